"""Creates the embedding provider that the settings name.

It is created when the first text is embedded, so that a missing API key is an error only then.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from omnigraph.embed.http import GeminiProvider, OpenAIProvider, RequestPolicy
from omnigraph.embed.mock import MockProvider
from omnigraph.embed.provider import Embedder, Provider
from omnigraph.errors import EmbeddingFailure
from omnigraph.settings import EmbedSettings

log = logging.getLogger("omnigraph.embed")


@dataclass(frozen=True, slots=True)
class _Service:
    base_url: str
    model: str
    keys: Mapping[str, str]
    """The settings that may hold the key, with their environment variables."""


_SERVICES: Final[Mapping[str, _Service]] = {
    "openai-compatible": _Service(
        "https://openrouter.ai/api/v1",
        "openai/text-embedding-3-large",
        {"openrouter_api_key": "OPENROUTER_API_KEY", "openai_api_key": "OPENAI_API_KEY"},
    ),
    "openai": _Service(
        "https://api.openai.com/v1", "text-embedding-3-large", {"openai_api_key": "OPENAI_API_KEY"}
    ),
    "gemini": _Service(
        "https://generativelanguage.googleapis.com/v1beta",
        "gemini-embedding-2",
        {"gemini_api_key": "GEMINI_API_KEY"},
    ),
}

_embedders: dict[Provider, Embedder] = {}


def configured_embedder(settings: EmbedSettings) -> Embedder:
    """The embedder of these settings: one per provider and process."""
    provider = configured_provider(settings)
    return _embedders.setdefault(provider, Embedder(provider))


def configured_provider(settings: EmbedSettings) -> Provider:
    """The provider of these settings; raises ``EmbeddingFailure`` when its key is missing."""
    if settings.mock and settings.provider not in (None, "mock"):
        log.warning(
            "OMNIGRAPH_EMBEDDINGS_MOCK is set: the provider %s is not used", settings.provider
        )
    if settings.mock or settings.provider == "mock":
        return MockProvider(settings.model or "")
    kind = settings.provider or "openai-compatible"
    service = _SERVICES[kind]
    base_url = settings.base_url or service.base_url
    model = settings.model or service.model
    key = _key(settings, kind, service)
    policy = RequestPolicy.of(settings)
    if kind == "gemini":
        return GeminiProvider(base_url, model, key, policy)
    return OpenAIProvider(base_url, model, key, policy, kind)


def _key(settings: EmbedSettings, kind: str, service: _Service) -> str:
    for name in service.keys:
        key: str | None = getattr(settings, name)
        if key:
            return key
    variables = list(service.keys.values())
    raise EmbeddingFailure(
        f"the embedding provider {kind} has no API key",
        remedy=f"Set {' or '.join(variables)}, or pass a vector instead of text.",
        details={"environment": variables},
    )
