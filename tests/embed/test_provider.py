"""Embedding providers: the mock bit by bit, HTTP providers against a local server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from omnigraph.embed import Embedder
from omnigraph.embed.configured import configured_provider
from omnigraph.embed.http import GeminiProvider, OpenAIProvider, RequestPolicy
from omnigraph.embed.mock import MockProvider, fnv1a
from omnigraph.embed.provider import Provider
from omnigraph.errors import EmbeddingFailure
from omnigraph.settings import EmbedSettings, Settings

POLICY = RequestPolicy.of(EmbedSettings())


class Server:
    """An HTTP server with a list of responses; records the requests."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = []
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.requests.append((self.path, headers, body))
                status, answer = outer.answers.pop(0)
                sent = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(target=lambda: self._http.serve_forever(0.01), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.close()


def _policy(pauses: list[float], **options: Any) -> RequestPolicy:
    return replace(POLICY, sleep=pauses.append, **options)


def test_Q_83_the_mock_follows_the_published_algorithm() -> None:
    assert fnv1a(b"") == 0xCBF29CE484222325
    assert fnv1a(b"a") == 0xAF63DC4C8601EC8C
    raw = MockProvider().embed("a", 3, "query")
    state, expected = 0xAF63DC4C8601EC8C, []
    for _ in range(3):
        state ^= state << 13 & (2**64 - 1)
        state ^= state >> 7
        state ^= state << 17 & (2**64 - 1)
        expected.append(state / (2**64 - 1) * 2 - 1)
    assert raw == pytest.approx(expected, abs=1e-6)
    unit = Embedder(MockProvider()).embed("a", 3)
    assert sum(number * number for number in unit) == pytest.approx(1, abs=1e-6)


def test_openai_gets_the_text_the_width_and_the_key(server: Server) -> None:
    server.answers = [(200, {"data": [{"embedding": [3.0, 4.0]}]})]
    provider = OpenAIProvider(server.url, "m-1", "secret", POLICY)
    assert Embedder(provider).embed("hello", 2) == pytest.approx((0.6, 0.8))
    path, headers, body = server.requests[0]
    assert path == "/v1/embeddings"
    assert headers["authorization"] == "Bearer secret"
    assert body == {"model": "m-1", "input": ["hello"], "dimensions": 2}
    assert "secret" not in repr(provider)


@pytest.mark.parametrize(
    ("task", "word"), [("query", "RETRIEVAL_QUERY"), ("document", "RETRIEVAL_DOCUMENT")]
)
def test_gemini_receives_the_task_type(server: Server, task: Any, word: str) -> None:
    server.answers = [(200, {"embedding": {"values": [0, 2]}})]
    provider = GeminiProvider(server.url, "g-2", "secret", POLICY)
    assert Embedder(provider).embed("hello", 2, task=task) == (0.0, 1.0)
    path, headers, body = server.requests[0]
    assert path == "/v1/models/g-2:embedContent"
    assert headers["x-goog-api-key"] == "secret"
    assert body["taskType"] == word
    assert body["outputDimensionality"] == 2
    assert body["content"] == {"parts": [{"text": "hello"}]}


def test_too_many_requests_and_server_errors_are_tried_again(server: Server) -> None:
    pauses: list[float] = []
    server.answers = [(429, {}), (503, {}), (200, {"data": [{"embedding": [1, 0]}]})]
    provider = OpenAIProvider(server.url, "m", "k", _policy(pauses, backoff_ms=100))
    assert Embedder(provider).embed("x", 2) == (1.0, 0.0)
    assert pauses == [0.1, 0.2]


def test_attempts_come_to_an_end(server: Server) -> None:
    pauses: list[float] = []
    server.answers = [(500, {})] * 2
    provider = OpenAIProvider(server.url, "m", "k", _policy(pauses, attempts=2))
    with pytest.raises(EmbeddingFailure, match="after 2 attempts") as failed:
        provider.embed("x", 2, "query")
    assert failed.value.details["attempts"] == 2


def test_a_deadline_ends_them_earlier(server: Server) -> None:
    server.answers = [(500, {})]
    policy = _policy([], attempts=9, backoff_ms=500, deadline_ms=400)
    with pytest.raises(EmbeddingFailure, match="after 1 attempts"):
        OpenAIProvider(server.url, "m", "k", policy).embed("x", 2, "query")


def test_a_wrong_request_is_not_tried_again(server: Server) -> None:
    server.answers = [(401, {"error": "no"})]
    with pytest.raises(EmbeddingFailure, match="HTTP 401"):
        OpenAIProvider(server.url, "m", "k", POLICY).embed("x", 2, "query")
    assert len(server.requests) == 1


def test_a_refused_connection_is_retried() -> None:
    pauses: list[float] = []
    policy = _policy(pauses, attempts=3, timeout_ms=200)
    with pytest.raises(EmbeddingFailure, match="after 3 attempts"):
        OpenAIProvider("http://127.0.0.1:9", "m", "k", policy).embed("x", 2, "query")
    assert len(pauses) == 2


@pytest.mark.parametrize(
    "answer",
    [b"not json", {"data": []}, {"data": [{"embedding": ["x"]}]}, {"data": [{"embedding": 3}]}],
)
def test_an_answer_without_a_vector_is_an_error(server: Server, answer: Any) -> None:
    server.answers = [(200, answer)]
    with pytest.raises(EmbeddingFailure):
        OpenAIProvider(server.url, "m", "k", POLICY).embed("x", 2, "query")


@pytest.mark.parametrize("numbers", [[1.0], [0.0, 0.0], [float("inf"), 1.0], [1e39, 1.0]])
def test_what_is_no_usable_vector_is_refused(numbers: list[float]) -> None:
    class Bad:
        kind, model = "bad", "m"

        def embed(self, text: str, dimensions: int, task: str) -> list[float]:
            return numbers

    with pytest.raises(EmbeddingFailure):
        Embedder(Bad()).embed("x", 2)


def test_Q_82_the_model_has_to_be_the_recorded_one() -> None:
    embedder = Embedder(MockProvider("m-1"))
    assert embedder.embed("x", 2, model="m-1") == embedder.embed("x", 2)
    with pytest.raises(EmbeddingFailure) as failed:
        embedder.embed("x", 2, model="m-2")
    assert failed.value.details == {"expected_model": "m-2", "actual_model": "m-1"}


def test_a_repeated_text_is_cached(server: Server) -> None:
    server.answers = [(200, {"data": [{"embedding": [1, 0]}]})]
    embedder = Embedder(OpenAIProvider(server.url, "m", "k", POLICY))
    assert embedder.embed("x", 2) == embedder.embed("x", 2)
    assert len(server.requests) == 1


def provider_from(environment: dict[str, str]) -> Provider:
    return configured_provider(Settings.from_environment(environment).embed)


def test_the_environment_names_the_provider() -> None:
    openai = provider_from(
        {"OMNIGRAPH_EMBED_PROVIDER": "openai", "OPENAI_API_KEY": "k", "OMNIGRAPH_EMBED_MODEL": "m"}
    )
    assert openai == OpenAIProvider("https://api.openai.com/v1", "m", "k", POLICY, kind="openai")
    router = provider_from({"OPENROUTER_API_KEY": "a", "OPENAI_API_KEY": "b"})
    assert router == OpenAIProvider(
        "https://openrouter.ai/api/v1", "openai/text-embedding-3-large", "a", POLICY
    )
    gemini = provider_from({"OMNIGRAPH_EMBED_PROVIDER": "gemini", "GEMINI_API_KEY": "k"})
    assert isinstance(gemini, GeminiProvider)
    assert gemini.model == "gemini-embedding-2"


def test_the_mock_can_be_forced(caplog: pytest.LogCaptureFixture) -> None:
    environment = {"OMNIGRAPH_EMBEDDINGS_MOCK": "1", "OMNIGRAPH_EMBED_PROVIDER": "gemini"}
    assert provider_from(environment) == MockProvider("")
    assert "gemini" in caplog.text
    assert provider_from({"OMNIGRAPH_EMBED_PROVIDER": "mock"}) == MockProvider("")


@pytest.mark.parametrize(
    ("environment", "word"),
    [
        ({}, "OPENROUTER_API_KEY"),
        ({"OMNIGRAPH_EMBED_PROVIDER": "gemini"}, "GEMINI_API_KEY"),
    ],
)
def test_a_provider_without_its_key_says_what_to_set(
    environment: dict[str, str], word: str
) -> None:
    with pytest.raises(EmbeddingFailure) as failed:
        provider_from(environment)
    assert word in failed.value.remedy
