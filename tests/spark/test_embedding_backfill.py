"""Backfill of vectors: computed once where missing or stale, never committed for another text."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.promises import broken_promises

import omnigraph
from omnigraph import Graph
from omnigraph.cli.main import run
from omnigraph.embed.mock import MockProvider
from omnigraph.embed.provider import checked_unit
from omnigraph.errors import EmbeddingFailure, InvalidInput, TypeNotFound
from omnigraph.spark.embedding import backfill, embed_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
node Doc {
  name: String @key
  title: String?
  text: String?
  v: Vector(4)? @embed("text")
  w: Vector(3)? @embed("title")
  photo: Blob?
}
node Page { name: String @key  body: String?  v: Vector(4)? @embed("body") }
node Plain { name: String @key }
"""


class Provider:
    """A local HTTP provider with the mock's vectors; records its requests."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        self.times: list[float] = []
        self.fail_after: int | None = None
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert self.headers["Authorization"] == "Bearer key"
                if (
                    provider.fail_after is not None
                    and len(provider.requests) >= provider.fail_after
                ):
                    self.send_error(400)
                    return
                provider.requests.append(body["input"])
                provider.times.append(monotonic())
                vectors = [_vector(text, body["dimensions"]) for text in body["input"]]
                data = [{"index": n, "embedding": v} for n, v in enumerate(vectors)]
                answer = json.dumps({"data": data[::-1]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def texts(self) -> list[str]:
        return [text for request in self.requests for text in request]


def _vector(text: str, dimensions: int) -> list[float]:
    return list(MockProvider().embed(text, dimensions, "document"))


def _unit(text: str, dimensions: int = 4) -> list[float]:
    return list(checked_unit(_vector(text, dimensions), dimensions))


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    found = Provider()
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "openai-compatible")
    monkeypatch.setenv(
        "OMNIGRAPH_EMBED_BASE_URL", f"http://127.0.0.1:{found.server.server_address[1]}"
    )
    monkeypatch.setenv("OPENROUTER_API_KEY", "key")
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def graph(tmp_path: Path, request: pytest.FixtureRequest) -> Graph:
    if "provider" in request.fixturenames:
        request.getfixturevalue("provider")  # a handle has the settings of when it was opened
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    docs: list[dict[str, Any]] = [
        {"name": f"d{n}", "text": f"text {n % 6}", "title": f"title {n}"} for n in range(8)
    ]
    docs += [{"name": "empty", "text": ""}, {"name": "none"}]
    docs.append({"name": "given", "text": "mine", "v": [0, 0, 0, 1], "photo": "base64:aGVsbG8="})
    records: list[dict[str, Any]] = [{"type": "Doc", "data": doc} for doc in docs]
    records += [{"type": "Page", "data": {"name": "p", "body": "text 1"}}]
    graph.load(records, mode="append")
    return graph


def _stored(graph: Graph, name: str, column: str = "v") -> Any:
    return graph.entity("node:Doc", name)[column]


def test_missing_vectors_are_filled_in_one_commit(graph: Graph, provider: Provider) -> None:
    commits = len(graph.history.commits())
    found = graph.spark.embed(message="vectors")
    assert found.nodes == {"Doc": 8, "Page": 1}
    assert len(graph.history.commits()) == commits + 1
    assert (found.commits[0].kind, found.commits[0].message) == ("embed", "vectors")
    assert _stored(graph, "d7") == pytest.approx(_unit("text 1"))
    assert _stored(graph, "d7", "w") == pytest.approx(_unit("title 7", 3))
    assert _stored(graph, "given") == [0, 0, 0, 1]
    assert _stored(graph, "empty") is None
    assert _stored(graph, "none") is None
    assert b"".join(graph.blob("node", "Doc", "given", "photo").chunks()) == b"hello"
    # Equal texts of a type are asked for once, and in batches.
    assert found.asked == len(provider.texts) == 6 + 8 + 1
    assert len(provider.requests) == 3
    again = graph.spark.embed()
    assert (again.total, again.commits) == (0, ())
    assert broken_promises(graph.uri) == []


def test_stale_vectors_are_computed_again(graph: Graph, provider: Provider) -> None:
    graph.spark.embed()
    graph.mutate('query q() { update Doc set { text: "new" } where name = "d1" }')
    with graph.write() as batch:
        batch.update("Doc", "d2", {"text": None})
    graph.mutate('query q() { update Doc set { text: "own", v: [1, 0, 0, 0] } where name = "d3" }')
    graph.load([{"type": "Doc", "data": {"name": "late", "text": "late"}}], mode="append")
    provider.requests.clear()
    found = graph.spark.embed(types=["Doc"])
    assert found.stale == 2  # of which one has no text any more
    assert sorted(provider.texts) == ["late", "new"]
    assert _stored(graph, "d2") is None
    assert _stored(graph, "d2", "w") == pytest.approx(_unit("title 2", 3))
    assert _stored(graph, "d1") == pytest.approx(_unit("new"))
    assert _stored(graph, "d3") == [1, 0, 0, 0]
    assert graph.spark.embed(types=["Doc"]).total == 0
    everything = graph.spark.embed(types=["Page"], reembed_all=True)
    assert everything.nodes == {"Page": 1}


def test_a_vector_is_not_written_to_a_node_whose_text_has_changed(
    graph: Graph, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = backfill.embed_unit

    def meanwhile(task: Any) -> Any:
        answer = made(task)
        if task.unit.scan.type_targets.owner.name == "Doc":
            graph.mutate('query q() { update Doc set { text: "other" } where name = "d1" }')
            graph.mutate('query q() { delete Doc where name = "d2" }')
        return answer

    monkeypatch.setattr(backfill, "embed_unit", meanwhile)
    graph.spark.embed()
    assert _stored(graph, "d1") is None
    assert _stored(graph, "d0") == pytest.approx(_unit("text 0"))
    monkeypatch.undo()
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    graph = omnigraph.open(graph.uri)
    assert graph.spark.embed().nodes == {"Doc": 1}
    assert _stored(graph, "d1") == pytest.approx(_unit("other"))


def test_a_repeated_run_uses_the_staged_vectors(
    graph: Graph, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "TEXTS_PER_UNIT", 2)
    head, provider.fail_after = graph.snapshot().commit_id, 5
    with pytest.raises(EmbeddingFailure):
        graph.spark.embed(types=["Doc"], batch=1)
    assert graph.snapshot().commit_id == head
    assert len(provider.requests) == 5
    provider.fail_after = None
    found = graph.spark.embed(types=["Doc"], batch=1)
    # One whole unit (two texts, two titles) was kept; of the one in the making a text is repeated.
    assert found.asked == len(provider.requests) - 5 == 16 - 4
    assert not list(Path(graph.uri, "_staging").iterdir())


def test_batches_are_committed_as_they_complete(
    graph: Graph, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "TEXTS_PER_UNIT", 2)
    provider.fail_after = 5
    with pytest.raises(EmbeddingFailure):
        graph.spark.embed(types=["Doc"], batch=1, commit_every=2)
    assert _stored(graph, "d0") is not None
    assert _stored(graph, "d7") is None
    provider.fail_after = None
    graph.mutate('query q() { update Doc set { title: "other" } where name = "d0" }')
    found = graph.spark.embed(types=["Doc"], commit_every=4)
    assert (found.total, len(found.commits)) == (6, 2)
    assert [("embed" in commit.metadata) for commit in found.commits] == [False, True]


def test_the_rate_is_limited_and_invalid_options_are_refused(
    graph: Graph, provider: Provider
) -> None:
    graph.spark.embed(types=["Doc"], batch=5, rate=20)
    gaps = [b - a for a, b in zip(provider.times, provider.times[1:], strict=False)]
    assert len(gaps) == 3
    # Fifty milliseconds apart when they are sent; the way to the server may shorten that.
    assert min(gaps[0], gaps[2]) > 0.025
    for options in ({"batch": 0}, {"rate": -1}, {"commit_every": 0}):
        with pytest.raises(InvalidInput, match=" is "):
            graph.spark.embed(**options)
    with pytest.raises(InvalidInput, match="no property with @embed"):
        graph.spark.embed(types=["Plain"])
    with pytest.raises(TypeNotFound):
        graph.spark.embed(types=["Nothing"])


def test_a_pinned_model_must_be_the_providers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'node D { name: String @key  t: String?  v: Vector(2)? @embed("t", model="m") }'
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    graph = omnigraph.init(tmp_path / "m", text)
    with pytest.raises(EmbeddingFailure, match="embedding model 'm'"):
        graph.spark.embed()
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "m")
    graph = omnigraph.open(graph.uri)
    assert graph.spark.embed().total == 0


def test_the_command_fills_vectors(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    assert run(["embed", graph.uri, "--type", "Doc", "--json", "--as", "me"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["nodes"], answer["commits"][0]["actor_id"]) == ({"Doc": 8}, "me")
    assert run(["embed", graph.uri]) == 0
    assert "1 nodes, 0 of them stale; 1 texts embedded" in capsys.readouterr().out


@pytest.mark.spark
def test_many_vectors_are_computed_on_executors(
    graph: Graph, provider: Provider, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "IN_PROCESS_NODES_MAX", 1)
    monkeypatch.setattr(backfill, "TEXTS_PER_UNIT", 3)
    assert embed_tasks.TEXTS_PER_UNIT > 3
    found = graph.spark.embed(types=["Doc"])
    assert found.nodes == {"Doc": 8}
    assert _stored(graph, "d5") == pytest.approx(_unit("text 5"))
