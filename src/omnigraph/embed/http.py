"""Embedding providers over HTTP: OpenAI-compatible ones, and Gemini.

One request per text, or per batch where the provider supports it. Connection failures, timeouts,
429 and 5xx are retried with exponential backoff within limits of attempts and time; other errors
are final. Error messages never contain keys.
"""

from __future__ import annotations

import json
import math
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from omnigraph.embed.provider import EmbeddingTask
from omnigraph.errors import EmbeddingFailure
from omnigraph.model.retry import RetryPolicy
from omnigraph.settings import EmbedSettings

RESPONSE_BYTES_MAX: Final = 16 << 20
"""The largest response that is read."""
_GEMINI_TASKS: Final = {"query": "RETRIEVAL_QUERY", "document": "RETRIEVAL_DOCUMENT"}


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """Timeout of a request, and limits of its retries. ``deadline_ms`` 0 means no deadline."""

    timeout_ms: int
    deadline_ms: int
    attempts: int
    backoff_ms: int
    sleep: Callable[[float], None] = field(default=time.sleep, compare=False, repr=False)

    @classmethod
    def of(cls, settings: EmbedSettings) -> RequestPolicy:
        """The policy that the settings give."""
        return cls(
            timeout_ms=settings.timeout_ms,
            deadline_ms=settings.deadline_ms,
            attempts=settings.attempts,
            backoff_ms=settings.backoff_ms,
        )

    def retry_policy(self) -> RetryPolicy:
        return RetryPolicy(
            base_s=self.backoff_ms / 1000,
            attempts_max=self.attempts,
            deadline_s=self.deadline_ms / 1000 if self.deadline_ms else math.inf,
            jitter=0.0,
            sleep=self.sleep,
        )


@dataclass(frozen=True, slots=True)
class OpenAIProvider:
    """A provider with OpenAI's ``/embeddings`` endpoint."""

    base_url: str
    model: str
    key: str = field(repr=False)
    policy: RequestPolicy
    kind: str = "openai-compatible"

    def embed(self, text: str, dimensions: int, task: EmbeddingTask) -> Sequence[float]:
        return self.embed_many([text], dimensions, task)[0]

    def embed_many(
        self, texts: Sequence[str], dimensions: int, task: EmbeddingTask
    ) -> Sequence[Sequence[float]]:
        body = {"model": self.model, "input": list(texts), "dimensions": dimensions}
        url = f"{self.base_url.rstrip('/')}/embeddings"
        headers = {"Authorization": f"Bearer {self.key}"}
        response = post(url, body, headers, self.policy)
        with _checking_response():
            return [_floats(_item(response, index)["embedding"]) for index in range(len(texts))]


@dataclass(frozen=True, slots=True)
class GeminiProvider:
    """The provider of Gemini's ``embedContent`` endpoint."""

    base_url: str
    model: str
    key: str = field(repr=False)
    policy: RequestPolicy
    kind: str = "gemini"

    def embed(self, text: str, dimensions: int, task: EmbeddingTask) -> Sequence[float]:
        body = {
            "model": f"models/{self.model}",
            "content": {"parts": [{"text": text}]},
            "taskType": _GEMINI_TASKS[task],
            "outputDimensionality": dimensions,
        }
        url = f"{self.base_url.rstrip('/')}/models/{quote(self.model)}:embedContent"
        response = post(url, body, {"x-goog-api-key": self.key}, self.policy)
        with _checking_response():
            return _floats(response["embedding"]["values"])

    def embed_many(
        self, texts: Sequence[str], dimensions: int, task: EmbeddingTask
    ) -> Sequence[Sequence[float]]:
        return [self.embed(text, dimensions, task) for text in texts]


def post(
    url: str, body: Mapping[str, Any], headers: Mapping[str, str], policy: RequestPolicy
) -> Any:
    """Send a JSON request and return the JSON response, with retries."""
    retry = policy.retry_policy().start()
    while True:
        timeout_s = min(policy.timeout_ms / 1000, retry.remaining_s)
        try:
            return _request(url, body, headers, max(timeout_s, 0.001))
        except _Transient as problem:
            if not retry.again():
                raise _failure(url, str(problem), retry.failures) from problem


class _Transient(Exception):
    """A failure that a retry may resolve."""


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
            return json.loads(response.read(RESPONSE_BYTES_MAX))
    except urllib.error.HTTPError as error:
        with error:
            text = error.read(500).decode("utf-8", "replace")
        if error.code == 429 or error.code >= 500:
            raise _Transient(f"HTTP {error.code}") from error
        raise _failure(url, f"HTTP {error.code}: {text}", 1) from error
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise _Transient(str(getattr(error, "reason", error))) from error
    except ValueError as error:
        raise _failure(url, "the response is not JSON", 1) from error


def _failure(url: str, problem: str, attempts: int) -> EmbeddingFailure:
    return EmbeddingFailure(
        f"the embedding provider at {url} failed after {attempts} attempts: {problem}",
        details={"url": url, "attempts": attempts},
    )


def _item(response: Any, index: int) -> Any:
    """The item for one text of a batch: by its ``index`` if it has one, else by position."""
    items = response["data"]
    numbered = [item for item in items if isinstance(item, dict) and item.get("index") == index]
    return numbered[0] if numbered else items[index]


def _floats(numbers: Iterable[Any]) -> list[float]:
    return [float(number) for number in numbers]


@contextmanager
def _checking_response() -> Iterator[None]:
    """Report a response that does not have the expected structure."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise EmbeddingFailure("the response of the embedding provider has no vector") from error
