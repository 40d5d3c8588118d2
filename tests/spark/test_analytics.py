"""Graph algorithms agree with NetworkX, whatever the number of blocks, and are written back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pytest
from tests.spark.analytics_graphs import (
    SCHEMA,
    from_public,
    grouped,
    random_graph,
    records,
    stored,
    values,
)
from tests.support.inline_tasks import InlineTasks
from tests.support.promises import broken_promises

import omnigraph
from omnigraph.cli.main import run
from omnigraph.errors import AlreadyExists, EntityNotFound, InvalidInput, ReadOnly, TypeNotFound
from omnigraph.spark.analytics import network

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LARGE = 24
"""The seed of a random graph of more than two blocks."""
PUBLIC = {
    "karate club": nx.karate_club_graph,
    "les miserables": nx.les_miserables_graph,
    "davis southern women": nx.davis_southern_women_graph,
}


@pytest.fixture
def several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Split even small graphs into several blocks, and pickle tasks as Spark does."""
    monkeypatch.setattr(network, "NODES_PER_BLOCK", 24)
    monkeypatch.setattr("omnigraph.spark.engine_choice.start_tasks", lambda *_: InlineTasks())


def _check_against_networkx(graph: Any, expected: nx.MultiDiGraph) -> None:
    simple = nx.Graph(expected)
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    _check_ranks(graph, expected, None)
    found = values(graph.spark.analyze("components"))
    assert grouped(found) == sorted(sorted(c) for c in nx.weakly_connected_components(expected))
    triangles = graph.spark.analyze("triangles")
    assert values(triangles) == nx.triangles(simple)
    assert triangles.facts.statistics["triangles"] == sum(nx.triangles(simple).values()) // 3
    degrees = graph.spark.analyze("degrees")
    assert values(degrees, "in_degree") == dict(expected.in_degree())
    assert values(degrees, "out_degree") == dict(expected.out_degree())
    assert values(degrees, "degree") == dict(expected.degree())
    _check_distances(graph, expected)
    _check_communities(graph, expected)


def _check_ranks(graph: Any, expected: nx.MultiDiGraph, weight: str | None) -> None:
    settings = {} if weight is None else {"weight": weight}
    ranks = graph.spark.analyze("pagerank", tolerance=1e-13, sweeps_max=1000, **settings)
    matrix = np.asarray(nx.google_matrix(expected, weight=weight, nodelist=list(expected)))
    walker = np.full(len(expected), 1 / len(expected))
    for _ in range(400):
        walker = walker @ matrix
    found = values(ranks)
    assert ranks.facts.converged
    assert [found[node] for node in expected] == pytest.approx(walker.tolist(), abs=1e-10)


def _check_distances(graph: Any, expected: nx.MultiDiGraph) -> None:
    sources = list(expected)[:2]
    names = [":".join(node) for node in sources]
    for direction, seen in (
        ("out", expected),
        ("in", expected.reverse()),
        ("both", expected.to_undirected()),
    ):
        found = graph.spark.analyze("distances", sources=names, direction=direction)
        reference = nx.multi_source_dijkstra_path_length(seen, set(sources), weight=None)
        assert {n: d for n, d in values(found).items() if d is not None} == reference
        assert found.facts.statistics["reached"] == len(reference)
    weighed = graph.spark.analyze("distances", sources=names, weight="weight")
    reference = nx.multi_source_dijkstra_path_length(expected, set(sources), weight="weight")
    found = {n: d for n, d in values(weighed).items() if d is not None}
    assert found == pytest.approx(reference)


def _check_communities(graph: Any, expected: nx.MultiDiGraph) -> None:
    """If it converged, every node has the most frequent label of its neighbourhood."""
    found = graph.spark.analyze("communities", sweeps_max=50)
    labels = values(found)
    for node in expected if found.facts.converged else ():
        votes: dict[Any, int] = {labels[node]: 1}
        for source, target in (*expected.in_edges(node), *expected.out_edges(node)):
            other = labels[target if source == node else source]
            votes[other] = votes.get(other, 0) + 1
        best = max(votes.values())
        assert labels[node] == min(label for label, count in votes.items() if count == best)
    assert found.facts.statistics["communities"] == len(set(labels.values()))


@pytest.mark.parametrize("seed", range(4))
def test_analyses_of_random_graphs_agree_with_networkx(seed: int, tmp_path: Path) -> None:
    expected = random_graph(seed)
    _check_against_networkx(stored(tmp_path / "g", expected), expected)


@pytest.mark.usefixtures("several_blocks")
def test_analyses_in_several_blocks_agree_with_networkx(tmp_path: Path) -> None:
    expected = random_graph(LARGE)
    assert len(expected) > 48
    _check_against_networkx(stored(tmp_path / "g", expected), expected)


@pytest.mark.parametrize("name", PUBLIC)
def test_analyses_of_public_graphs_agree_with_networkx(name: str, tmp_path: Path) -> None:
    expected = from_public(PUBLIC[name]())
    graph = stored(tmp_path / "g", expected)
    _check_against_networkx(graph, expected)
    _check_ranks(graph, expected, "weight")


def test_cliques_are_communities(tmp_path: Path) -> None:
    expected = from_public(nx.disjoint_union_all([nx.complete_graph(n) for n in (3, 5, 9)]))
    graph = stored(tmp_path / "g", expected)
    wanted = sorted(sorted(c) for c in nx.community.label_propagation_communities(
        expected.to_undirected()
    ))  # fmt: skip
    assert grouped(values(graph.spark.analyze("communities"))) == wanted


def test_the_same_content_gives_the_same_numbers_however_it_is_stored(tmp_path: Path) -> None:
    expected = random_graph(LARGE)
    one = stored(tmp_path / "one", expected)
    other = omnigraph.init(tmp_path / "other", SCHEMA)
    lines = records(expected)[::-1]
    nodes = [line for line in lines if "type" in line]
    for part in (nodes[:20], nodes[20:], [line for line in lines if "edge" in line]):
        other.load(part, mode="append")
    for algorithm in ("pagerank", "components", "communities"):
        assert one.spark.analyze(algorithm).table() == other.spark.analyze(algorithm).table()


def test_a_long_chain_is_one_component_in_few_sweeps(tmp_path: Path) -> None:
    graph = stored(tmp_path / "g", from_public(nx.path_graph(3000)))
    found = graph.spark.analyze("components")
    assert found.facts.statistics == {"components": 1, "largest": 3000}
    assert found.facts.sweeps < 40


def test_old_commits_and_selected_types_can_be_analysed(tmp_path: Path) -> None:
    graph = stored(tmp_path / "g", random_graph(3))
    before = graph.snapshot().commit_id
    graph.load([{"type": "City", "data": {"name": "new"}}], mode="append")
    then, now = graph.spark.analyze("degrees", at=before), graph.spark.analyze("degrees")
    assert now.facts.nodes == then.facts.nodes + 1
    people = graph.spark.analyze("degrees", edges=["Knows"])
    assert {row["type"] for row in people.table().to_pylist()} == {"Person"}
    cities = graph.spark.analyze("degrees", nodes=["City"])
    assert cities.facts.edges == 0
    with pytest.raises(InvalidInput, match="older state cannot be written back"):
        then.write("rank")


def test_an_empty_graph_has_empty_results(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    for algorithm in ("pagerank", "components", "communities", "triangles", "degrees"):
        found = graph.spark.analyze(algorithm)
        assert found.table().num_rows == 0
        assert found.facts.converged


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ({"algorithm": "pagerang"}, "did you mean `pagerank`"),
        ({"algorithm": "degrees", "damping": 0.5}, "no setting 'damping'"),
        ({"algorithm": "pagerank", "damping": 2}, "damping is 2"),
        ({"algorithm": "pagerank", "weight": "name"}, "no numeric property 'name'"),
        ({"algorithm": "distances"}, "nodes to measure from"),
        ({"algorithm": "distances", "sources": "n0", "direction": "up"}, "not a direction"),
        ({"algorithm": "degrees", "edges": ["Person"]}, "Person"),
        ({"algorithm": "degrees", "nodes": ["Knows"]}, "not a node type"),
    ],
)
def test_invalid_requests_are_refused(
    request_: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    graph = stored(tmp_path / "g", random_graph(0))
    with pytest.raises((InvalidInput, TypeNotFound), match=problem):
        graph.spark.analyze(**request_)


def test_null_weights_and_unknown_sources_are_refused(tmp_path: Path) -> None:
    graph = stored(tmp_path / "g", random_graph(0))
    with pytest.raises(EntityNotFound, match="no node 'nobody'"):
        graph.spark.analyze("distances", sources="nobody")
    graph.load([{"edge": "Knows", "from": "n0", "to": "n0"}], mode="append")
    with pytest.raises(InvalidInput, match="null, negative"):
        graph.spark.analyze("pagerank", weight="weight")


# -- writing back ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("several_blocks")
def test_values_are_written_back_as_one_commit_that_changes_nothing_else(tmp_path: Path) -> None:
    graph = stored(tmp_path / "g", random_graph(LARGE))
    graph.mutate('query q() { update Person set { note: "kept" } where name = "n1" }')
    photo = {"name": "n2", "photo": "base64:aGVsbG8="}
    graph.load([{"type": "Person", "data": photo}], mode="merge")
    ranks = graph.spark.analyze("pagerank")
    # Others go on while the analysis runs: their changes stay, what they removed stays removed.
    graph.mutate('query q() { update Person set { note: "newer" } where name = "n3" }')
    graph.mutate('query q() { delete Person where name = "n4" }')
    before = {row["id"]: row for row in _people(graph)}
    commits = len(graph.history.commits())
    commit = ranks.write("rank", message="ranked", metadata={"run": "7"})
    assert commit is not None
    assert (commit.kind, commit.message) == ("analyze", "ranked")
    assert commit.metadata == {"algorithm": "pagerank", "run": "7"}
    assert len(graph.history.commits()) == commits + 1
    expected = values(ranks)
    for row in _people(graph):
        assert row["rank"] == expected["Person", row["id"]]
        assert {**row, "rank": None} == before[row["id"]]
    assert "n4" not in before
    assert b"".join(graph.blob("node", "Person", "n2", "photo").chunks()) == b"hello"
    assert graph.history.entity("node:Person", "n3").page(1).events[0].op == "update"
    assert broken_promises(graph.uri) == []


def test_properties_that_identify_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    graph = stored(tmp_path / "g", random_graph(3))
    found = graph.spark.analyze("degrees", edges=["Knows"])
    with pytest.raises(InvalidInput, match="identifies a node"):
        found.write("name")
    with pytest.raises(InvalidInput, match="no property 'ranc'; did you mean"):
        found.write("ranc")
    with pytest.raises(InvalidInput, match="no column 'rank'"):
        found.write({"rank": "rank"})
    with pytest.raises(ReadOnly):
        omnigraph.open(graph.uri, read_only=True).spark.analyze("degrees").write("rank")
    found.write({"in_degree": "group", "out_degree": "far"})
    person = _people(graph)[0]
    assert person["group"] == values(found, "in_degree")["Person", person["id"]]


def _people(graph: Any) -> list[dict[str, Any]]:
    lines = b"".join(graph.export(types=["Person"])).splitlines()
    return [{"id": json.loads(line)["data"]["name"], **json.loads(line)["data"]} for line in lines]


# -- on Spark, and from the command line -----------------------------------------------------------


@pytest.mark.spark
def test_an_analysis_on_spark_is_a_frame(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = random_graph(LARGE)
    graph = stored(tmp_path / "g", expected)
    alone = graph.spark.analyze("components").table()
    monkeypatch.setattr(network, "NODES_PER_BLOCK", 40)
    with graph.spark.analyze("components") as found:
        frame = found.frame(spark)
        assert found.facts.sweeps > 0
    rows = {(row["type"], row["id"]): row["component"] for row in frame.collect()}
    assert len(rows) == len(expected)
    pairs = zip(alone["type"].to_pylist(), alone["id"].to_pylist(), strict=True)
    labels = dict(zip(pairs, alone["component"].to_pylist(), strict=True))
    assert grouped(rows) == grouped(labels)


def test_the_command_shows_saves_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = stored(tmp_path / "g", from_public(nx.karate_club_graph()))
    command = ["analyze", "pagerank", "g", "--write", "rank", "-m", "ranks", "--to", "ranks.csv"]
    assert run([*command, "--limit", "3", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["nodes"] == 34
    assert len(answer["top"]) == 3
    assert answer["commit"]["message"] == "ranks"
    best = answer["top"][0]
    assert graph.entity("node:Person", best["id"])["rank"] == best["rank"]
    assert len(Path("ranks.csv").read_text().splitlines()) == 35
    assert run(["analyze", "degrees", "g", "--to", "d.parquet"]) == 0
    assert run(["analyze", "triangles", "g", "--to", "t.jsonl"]) == 0
    out = capsys.readouterr().out
    assert "triangles of 34 nodes and 78 edges" in out
    assert len(Path("t.jsonl").read_text().splitlines()) == 34
    with pytest.raises(AlreadyExists):
        graph.spark.analyze("degrees").save("d.parquet")
    with pytest.raises(InvalidInput, match="has no known suffix"):
        graph.spark.analyze("degrees").save("d.txt")
