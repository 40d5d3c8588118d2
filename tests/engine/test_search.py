"""Search beyond the worked cases: embedding at query time, stems, ties, many vectors."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.embed import Embedder
from omnigraph.embed.mock import MockProvider
from omnigraph.engine.limits import Guard, Limits
from omnigraph.engine.search.analyze import ANALYSIS, terms_of, words_of
from omnigraph.engine.search.edit_distance import Letters
from omnigraph.engine.search.stem import stem
from omnigraph.engine.search.vectors import ESTIMATE_ROWS_MIN, Vectors
from omnigraph.errors import EmbeddingFailure, InvalidInput
from omnigraph.lang.schema.parts import METRICS, Metric
from tests.engine.graphs import load_graph, make_graph
from tests.engine.oracle import edits_between
from tests.support.internals import repository_of

GO_ON = Guard(Limits()).check
NEAREST = "match { $p: Page } return { $p.slug } order { nearest($p.vec, $q) } limit 4"


@pytest.fixture
def pages(tmp_path: Path) -> Graph:
    return load_graph(tmp_path / "g", "doc")


def test_D09_a_text_is_embedded_like_its_vector(
    pages: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    pages = omnigraph.open(pages.uri)
    vector = list(Embedder(MockProvider()).embed("a kettle", 2))
    by_text = pages.query(f"query q($q: String) {{ {NEAREST} }}", params={"q": "a kettle"})
    by_vector = pages.query(f"query q($q: Vector(2)) {{ {NEAREST} }}", params={"q": vector})
    assert by_text.rows() == by_vector.rows()
    assert len(by_text) == 4


def test_Q_82_only_a_text_needs_a_provider(pages: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMNIGRAPH_EMBEDDINGS_MOCK", "OPENROUTER_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    pages = omnigraph.open(pages.uri)
    pages.query(f"query q($q: Vector(2)) {{ {NEAREST} }}", params={"q": [1, 0]})
    with pytest.raises(EmbeddingFailure):
        pages.query(f"query q($q: String) {{ {NEAREST} }}", params={"q": "kettle"})


def test_Q_82_a_recorded_model_has_to_be_the_providers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = (
        'node Page { slug: String @key  body: String  vec: Vector(2)? @embed("body", model="m") }'
    )
    record = {"type": "Page", "data": {"slug": "a", "body": "x", "vec": [1, 0]}}
    graph = make_graph(tmp_path / "g", schema, [record])
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "other")
    graph = omnigraph.open(graph.uri)
    text = f"query q($q: String) {{ {NEAREST} }}"
    with pytest.raises(EmbeddingFailure, match="'m'"):
        graph.query(text, params={"q": "x"})
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "m")
    graph = omnigraph.open(graph.uri)
    assert len(graph.query(text, params={"q": "x"})) == 1


def test_ties_at_the_cut_go_by_id(tmp_path: Path) -> None:
    schema = "node Page { slug: String @key  body: String  vec: Vector(2) }"
    names = [f"p{at:03}" for at in range(50)]
    Random(3).shuffle(names)
    records = [
        {"type": "Page", "data": {"slug": name, "body": "tin cup", "vec": [1, 1]}} for name in names
    ]
    graph = make_graph(tmp_path / "g", schema, records)
    for order in ("nearest($p.vec, [0.0, 0.0])", 'bm25($p.body, "cups")'):
        text = (
            f"query q() {{ match {{ $p: Page }} return {{ $p.slug }} order {{ {order} }} limit 3 }}"
        )
        found = [row["p.slug"] for row in graph.query(text).rows()]
        assert found == ["p000", "p001", "p002"]


@pytest.mark.parametrize("metric", METRICS)
def test_the_estimate_never_loses_a_neighbour(metric: Metric) -> None:
    rng = np.random.default_rng(5)
    rows = np.arange(ESTIMATE_ROWS_MIN + 1_000)
    matrix = (rng.normal(size=(len(rows), 8)) * 1e3 + 1e4).astype(np.float32)
    matrix[:5] = 0
    vectors = Vectors(matrix, None, metric)
    for _ in range(5):
        query = matrix[rng.integers(len(rows))].astype(np.float64)
        possible = vectors.possible_nearest(query, rows, 10)
        exact = vectors.distances(query, rows)
        assert set(np.argsort(exact, kind="stable")[:10]) <= set(possible.tolist())


@pytest.mark.parametrize(
    ("metric", "nearest"),
    [("l2", ["near", "side", "far", "back"]), ("cosine", ["far", "near", "side", "back"])],
)
def test_the_property_says_how_distances_are_measured(
    tmp_path: Path, metric: str, nearest: list[str]
) -> None:
    schema = f"node P {{ name: String @key  vec: Vector(2)? @vector({metric}) @index }}"
    vectors = {"near": [1, 0.2], "far": [9, 0.9], "side": [0, 1], "back": [-20, 0], "none": None}
    records = [{"type": "P", "data": {"name": n, "vec": v}} for n, v in vectors.items()]
    graph = make_graph(tmp_path / "g", schema, records)
    text = (
        "query q() { match { $p: P } return { $p.name, nearest($p.vec, [1.0, 0.1]) as far } "
        "order { nearest($p.vec, [1.0, 0.1]) } limit 4 }"
    )
    scanned = graph.query(text).rows()
    assert [row["p.name"] for row in scanned] == nearest
    graph.maintenance.build_indexes()
    assert graph.query(text).rows() == scanned
    indexed = stored(graph).to_table(
        nearest={"column": "vec", "q": [1.0, 0.1], "k": 4}, columns=["name", "_distance"]
    )
    assert indexed["name"].to_pylist() == nearest
    assert indexed["_distance"].to_pylist() == pytest.approx([r["far"] for r in scanned], abs=1e-5)


def test_another_metric_is_a_change_of_the_schema_that_has_the_index_built_again(
    tmp_path: Path,
) -> None:
    schema = "node P { name: String @key  vec: Vector(2) @index }"
    records = [{"type": "P", "data": {"name": f"p{n}", "vec": [n, 1]}} for n in range(40)]
    graph = make_graph(tmp_path / "g", schema, records)
    graph.maintenance.build_indexes()
    done = graph.apply_schema(schema.replace("@index", "@vector(dot, partitions=4) @index"))
    assert [step.kind for step in done.plan.steps] == ["update_property_metadata"]
    states = {i.kind: i.state for i in graph.maintenance.indexes() if i.property == "vec"}
    assert states == {"IVF_FLAT": "behind"}
    graph.maintenance.optimize()
    (built,) = stored(graph).stats.index_stats("vec_ivf_flat")["indices"]
    assert (built["metric_type"], built["num_partitions"]) == ("dot", 4)
    text = (
        "query q() { match { $p: P } return { $p.name } order { nearest($p.vec, [1.0, 0.0]) } "
        "limit 1 }"
    )
    assert graph.query(text).rows() == [{"p.name": "p39"}]
    assert {i.state for i in graph.maintenance.indexes()} == {"current"}
    assert graph.maintenance.check().findings == []


def stored(graph: Graph) -> Any:
    return repository_of(graph).tables.open(graph.snapshot().pin("node:P").ref).dataset


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("scale", [1e-24, 1e-18, 1e18, 1e25])
def test_very_long_and_very_short_vectors_are_not_lost(metric: Metric, scale: float) -> None:
    rng = np.random.default_rng(5)
    rows = np.arange(ESTIMATE_ROWS_MIN + 1_000)
    matrix = rng.normal(size=(len(rows), 2)).astype(np.float32)
    matrix[7] = [scale, 0]
    matrix[8:11] = 0
    vectors = Vectors(matrix, None, metric)
    for query in ([1.0, 0.0], [scale, 0.0], [0.0, 0.0], [-scale, scale]):
        wanted = np.array(query)
        possible = vectors.possible_nearest(wanted, rows, 10)
        exact = vectors.distances(wanted, rows)
        last = np.sort(exact)[9]
        assert set(np.flatnonzero(exact < last)) <= set(possible.tolist())
        assert np.count_nonzero(exact[possible] <= last) >= 10


def test_Q_46_a_negated_search_does_not_match_null(tmp_path: Path) -> None:
    records = [
        {"type": "P", "data": {"k": "a", "t": "tea"}},
        {"type": "P", "data": {"k": "b", "t": "tin"}},
        {"type": "P", "data": {"k": "c"}},
    ]
    graph = make_graph(tmp_path / "g", "node P { k: String @key  t: String? }", records)
    for search in ('search($p.t, "tea")', 'match_text($p.t, "tea")', 'fuzzy($p.t, "tea", 0)'):
        text = f"query q() {{ match {{ $p: P  {search} = false }} return {{ $p.k as k }} }}"
        assert graph.query(text).rows() == [{"k": "b"}]


def test_a_negative_number_of_edits_is_refused(pages: Graph) -> None:
    text = 'query q($n: I32) { match { $p: Page  fuzzy($p.body, "x", $n) } return { $p.slug } }'
    with pytest.raises(InvalidInput, match="edits"):
        pages.query(text, params={"n": -1})


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("kettles", "kettl"),
        ("caresses", "caress"),
        ("flies", "fli"),
        ("dies", "die"),
        ("agreed", "agre"),
        ("hopping", "hop"),
        ("hoping", "hope"),
        ("generously", "generous"),
        ("communication", "communic"),
        ("relational", "relat"),
        ("consolingly", "consol"),
        ("knightly", "knight"),
        ("happy", "happi"),
        ("skies", "sky"),
        ("sky", "sky"),
        ("news", "news"),
        ("by", "by"),
        ("say", "say"),
        ("controlling", "control"),
        ("proceed", "proceed"),
        ("analogies", "analog"),
        ("adoption", "adopt"),
    ],
)
def test_stems_are_those_of_the_snowball_algorithm(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_another_analysis_has_another_name() -> None:
    """Files hold words as this one finds them: whoever changes it changes its name."""
    found = [(term.place, term.stem) for term in terms_of("The Kettles’ BOILED—twice; Grüße, 2x")]
    assert (ANALYSIS, found) == (
        "analysis-1",
        [(1, "kettl"), (2, "boil"), (3, "twice"), (4, "grüße"), (5, "2x")],
    )


def test_words_are_runs_of_letters_and_digits() -> None:
    assert words_of("  Grüße, don't_stop 2x—ÄÖ! ") == ["grüße", "don", "t", "stop", "2x", "äö"]
    assert words_of("") == []


@pytest.mark.parametrize(
    ("word", "other", "edits"),
    [
        ("kitten", "sitting", 3),
        ("", "ab", 2),
        ("abcdef", "uvwxyz", 6),
        ("ab", "ba", 2),
        ("grüße", "grusse", 3),
        ("𝄞a", "a", 1),
        ("same", "same", 0),
    ],
)
def test_edits_are_insertions_deletions_and_replacements(word: str, other: str, edits: int) -> None:
    letters = Letters(pa.array(["unlike", word, "elsewhere"]))
    assert 1 in letters.near(other, edits, GO_ON)
    assert 1 not in letters.near(other, edits - 1, GO_ON)


def test_words_are_looked_at_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    words = pa.array([f"w{at:03}" for at in range(500)])
    expected = Letters(words).near("w0000", 2, GO_ON).tolist()
    assert len(expected) > 10
    monkeypatch.setattr("omnigraph.engine.search.edit_distance.CELLS", 60)
    asked: list[None] = []
    assert Letters(words).near("w0000", 2, lambda: asked.append(None)).tolist() == expected
    assert len(asked) >= 50


def test_words_within_some_edits_are_those_of_the_table_of_edits() -> None:
    rng = Random(3)
    words = sorted({"".join(rng.choices("abc", k=rng.randrange(1, 7))) for _ in range(300)})
    letters = Letters(pa.array(words))
    for wanted in rng.choices(words, k=20):
        for edits_max in (0, 1, 2, 5):
            expected = [at for at, w in enumerate(words) if edits_between(w, wanted) <= edits_max]
            assert letters.near(wanted, edits_max, GO_ON).tolist() == expected
