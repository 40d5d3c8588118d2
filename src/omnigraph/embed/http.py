"""Providers that are reached over HTTP: OpenAI-compatible ones, and Gemini.

One request per text, or per batch where the provider takes several. Connection failures, time-outs,
429 and 5xx are tried again with growing pauses until the attempts or the deadline are used up;
everything else is final. Keys are never part of a message.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from omnigraph.embed.provider import EmbeddingTask
from omnigraph.errors import EmbeddingFailure

ANSWER_BYTES_MAX: Final = 16 << 20
"""A vector of a hundred thousand numbers is far smaller."""
_GEMINI_TASKS: Final = {"query": "RETRIEVAL_QUERY", "document": "RETRIEVAL_DOCUMENT"}


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often a provider is asked. ``deadline_ms`` 0 means no end."""

    timeout_ms: int = 30_000
    deadline_ms: int = 60_000
    attempts: int = 4
    backoff_ms: int = 200
    sleep: Callable[[float], None] = field(default=time.sleep, compare=False, repr=False)
    monotonic: Callable[[], float] = field(default=time.monotonic, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OpenAIProvider:
    """Anything that speaks OpenAI's ``/embeddings``."""

    base_url: str
    model: str
    key: str = field(repr=False)
    patience: Patience = Patience()
    kind: str = "openai-compatible"

    def embed(self, text: str, dimensions: int, task: EmbeddingTask) -> Sequence[float]:
        return self.embed_many([text], dimensions, task)[0]

    def embed_many(
        self, texts: Sequence[str], dimensions: int, task: EmbeddingTask
    ) -> Sequence[Sequence[float]]:
        body = {"model": self.model, "input": list(texts), "dimensions": dimensions}
        url = f"{self.base_url.rstrip('/')}/embeddings"
        headers = {"Authorization": f"Bearer {self.key}"}
        answer = post(url, body, headers, self.patience)
        return [
            _numbers(lambda at=at: _item(answer, at)["embedding"])  # type: ignore[misc]
            for at in range(len(texts))
        ]


@dataclass(frozen=True, slots=True)
class GeminiProvider:
    base_url: str
    model: str
    key: str = field(repr=False)
    patience: Patience = Patience()
    kind: str = "gemini"

    def embed(self, text: str, dimensions: int, task: EmbeddingTask) -> Sequence[float]:
        body = {
            "model": f"models/{self.model}",
            "content": {"parts": [{"text": text}]},
            "taskType": _GEMINI_TASKS[task],
            "outputDimensionality": dimensions,
        }
        url = f"{self.base_url.rstrip('/')}/models/{quote(self.model)}:embedContent"
        answer = post(url, body, {"x-goog-api-key": self.key}, self.patience)
        return _numbers(lambda: answer["embedding"]["values"])

    def embed_many(
        self, texts: Sequence[str], dimensions: int, task: EmbeddingTask
    ) -> Sequence[Sequence[float]]:
        return [self.embed(text, dimensions, task) for text in texts]


def post(url: str, body: Mapping[str, Any], headers: Mapping[str, str], patience: Patience) -> Any:
    """The JSON answer to a JSON request, after as many attempts as patience allows."""
    started = patience.monotonic()
    attempt = 0
    while True:
        attempt += 1
        passed_ms = (patience.monotonic() - started) * 1000
        timeout_ms = float(patience.timeout_ms)
        if patience.deadline_ms:
            timeout_ms = min(timeout_ms, patience.deadline_ms - passed_ms)
        try:
            return _request(url, body, headers, max(timeout_ms, 1) / 1000)
        except _Transient as problem:
            pause_ms = patience.backoff_ms * 2 ** (attempt - 1)
            late = passed_ms + pause_ms >= patience.deadline_ms if patience.deadline_ms else False
            if attempt >= patience.attempts or late:
                raise _failure(url, str(problem), attempt) from problem
            patience.sleep(pause_ms / 1000)


class _Transient(Exception):
    """Trying again may help."""


def _request(
    url: str, body: Mapping[str, Any], headers: Mapping[str, str], timeout_s: float
) -> Any:
    request = urllib.request.Request(
        url,
        data=json.dumps(body).encode("utf-8"),
        headers={"Content-Type": "application/json", **headers},
        method="POST",
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as response:
            return json.loads(response.read(ANSWER_BYTES_MAX))
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(500).decode("utf-8", "replace")
        if error.code == 429 or error.code >= 500:
            raise _Transient(f"HTTP {error.code}") from error
        raise _failure(url, f"HTTP {error.code}: {said}", 1) from error
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise _Transient(str(getattr(error, "reason", error))) from error
    except ValueError as error:
        raise _failure(url, "the answer is not JSON", 1) from error


def _failure(url: str, problem: str, attempts: int) -> EmbeddingFailure:
    return EmbeddingFailure(
        f"the embedding provider at {url} failed after {attempts} attempts: {problem}",
        details={"url": url, "attempts": attempts},
    )


def _item(answer: Any, at: int) -> Any:
    """The vector of one text of a batch: answers may say which text they are for."""
    items = answer["data"]
    found = [item for item in items if isinstance(item, dict) and item.get("index") == at]
    return found[0] if found else items[at]


def _numbers(find: Callable[[], Any]) -> Sequence[float]:
    try:
        return [float(number) for number in find()]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise EmbeddingFailure("the provider's answer holds no vector") from error
