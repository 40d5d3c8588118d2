"""Which provider: read from the environment, once per use.

A graph that never embeds needs none of this, not even the modules that speak HTTP; a missing key is
an error only when a text has to be embedded.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from omnigraph.embed.http import GeminiProvider, OpenAIProvider, Patience
from omnigraph.embed.mock import MockProvider
from omnigraph.embed.provider import Embedder, Provider
from omnigraph.errors import EmbeddingFailure
from omnigraph.model.integers import whole_number

log = logging.getLogger("omnigraph.embed")

PREFIX: Final = "OMNIGRAPH_EMBED_"
MOCK: Final = "OMNIGRAPH_EMBEDDINGS_MOCK"
_FALSE: Final = ("", "0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class _Kind:
    base_url: str
    model: str
    keys: tuple[str, ...]


_KINDS: Final[Mapping[str, _Kind]] = {
    "openai-compatible": _Kind(
        "https://openrouter.ai/api/v1",
        "openai/text-embedding-3-large",
        ("OPENROUTER_API_KEY", "OPENAI_API_KEY"),
    ),
    "openai": _Kind("https://api.openai.com/v1", "text-embedding-3-large", ("OPENAI_API_KEY",)),
    "gemini": _Kind(
        "https://generativelanguage.googleapis.com/v1beta",
        "gemini-embedding-2",
        ("GEMINI_API_KEY",),
    ),
}

_embedders: dict[Provider, Embedder] = {}


def embedder_from_environment(environment: Mapping[str, str] | None = None) -> Embedder:
    """The embedder that the environment describes."""
    provider = provider_from(os.environ if environment is None else environment)
    return _embedders.setdefault(provider, Embedder(provider))


def provider_from(environment: Mapping[str, str]) -> Provider:
    """The provider that settings describe; raises ``EmbeddingFailure`` when they cannot be used."""
    kind = environment.get(PREFIX + "PROVIDER", "")
    if environment.get(MOCK, "").lower() not in _FALSE:
        if kind not in ("", "mock"):
            log.warning("%s is set: the provider %s is not used", MOCK, kind)
        kind = "mock"
    if kind == "mock":
        return MockProvider(environment.get(PREFIX + "MODEL", ""))
    kind = kind or "openai-compatible"
    known = _KINDS.get(kind)
    if known is None:
        raise EmbeddingFailure(
            f"there is no embedding provider {kind!r}",
            remedy=f"Set {PREFIX}PROVIDER to one of {', '.join((*_KINDS, 'mock'))}.",
        )
    base_url = environment.get(PREFIX + "BASE_URL") or known.base_url
    model = environment.get(PREFIX + "MODEL") or known.model
    key = _key(environment, kind, known)
    patience = _patience(environment)
    if kind == "gemini":
        return GeminiProvider(base_url, model, key, patience)
    return OpenAIProvider(base_url, model, key, patience, kind)


def _key(environment: Mapping[str, str], kind: str, known: _Kind) -> str:
    for name in known.keys:
        if environment.get(name):
            return environment[name]
    names = " or ".join(known.keys)
    raise EmbeddingFailure(
        f"the embedding provider {kind} needs a key",
        remedy=f"Set {names}, or pass a vector instead of a text.",
        details={"environment": list(known.keys)},
    )


def _patience(environment: Mapping[str, str]) -> Patience:
    standard = Patience()
    return Patience(
        timeout_ms=_number(environment, "TIMEOUT_MS", standard.timeout_ms, 1),
        deadline_ms=_number(environment, "DEADLINE_MS", standard.deadline_ms, 0),
        attempts=_number(environment, "RETRY_ATTEMPTS", standard.attempts, 1),
        backoff_ms=_number(environment, "RETRY_BACKOFF_MS", standard.backoff_ms, 0),
    )


def _number(environment: Mapping[str, str], name: str, standard: int, low: int) -> int:
    text = environment.get(PREFIX + name, "").strip()
    if not text:
        return standard
    found = whole_number(text)
    if found is None or found < low:
        raise EmbeddingFailure(
            f"{PREFIX}{name} is {text!r}", remedy=f"Set it to a whole number of at least {low}."
        )
    return found
