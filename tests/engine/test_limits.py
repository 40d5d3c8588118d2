"""Limits, cancellation, invalid input, and bounded memory."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnigraph import Graph
from omnigraph.engine.cache.memory_cache import MemoryCache
from omnigraph.engine.engine import Reader, ReadOptions
from omnigraph.engine.exec.project import Projection
from omnigraph.engine.limits import Guard, Limits
from omnigraph.errors import (
    InvalidInput,
    LanguageError,
    OmnigraphError,
    ParameterError,
    QueryCancelled,
    QueryNotFound,
    QueryTimeout,
    RefNotFound,
    ResourceLimit,
)
from tests.engine.graphs import load_graph, make_graph, use_small_blocks
from tests.support.internals import repository_of

ALL = "query q() { match { $c: Curator } return { $c.handle } }"

AGE = "query q($x: I32) { match { $c: Curator  $c.age = $x } return { $c } }"
HANDLE = "query q($x: String) { match { $c: Curator { handle: $x } } return { $c } }"
ITEMS = "query q($x: [I64]) { match { $c: Curator  $x contains $c.age } return { $c } }"


def _curators(count: int) -> str:
    """A text of about a megabyte that asks for so many curators."""
    variables = "  ".join(f"$v{at}: Curator" for at in range(count))
    return f"query q() {{ match {{ {variables} }} return {{ $v0 }} }}"


@pytest.fixture(scope="module")
def museum(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return load_graph(tmp_path_factory.mktemp("m") / "g", "mus")


def test_a_product_of_billions_is_refused_before_it_is_made(museum: Graph) -> None:
    variables = "  ".join(f"$v{at}: Curator" for at in range(18))
    text = f"query q() {{ match {{ {variables} }} return {{ $v0.handle, $v17.handle }} }}"
    with pytest.raises(ResourceLimit) as failed:
        museum.query(text)
    assert failed.value.details["resource"] in ("query_memory_bytes", "query_result_rows")


def test_a_product_that_is_only_counted_is_not_made_at_all(museum: Graph) -> None:
    variables = "  ".join(f"$v{at}: Curator" for at in range(18))
    text = f"query q() {{ match {{ {variables} }} return {{ count($v3) as n }} }}"
    assert museum.query(text).rows() == [{"n": 4**18}]


@pytest.mark.parametrize(
    "output",
    ["count($v3) as n", "$v0.k as k, count($v3) as n, sum($v0.v) as s", "$v0.k as k"],
)
@pytest.mark.parametrize("clause", ["$v{at}: N", "$v{at} e $v{after}"])
def test_more_matches_than_a_number_can_say_are_refused(
    tmp_path: Path, clause: str, output: str
) -> None:
    nodes = [{"type": "N", "data": {"k": str(at), "v": at}} for at in range(4)]
    ends = [(a, b) for a in range(4) for b in range(4)]
    edges = [{"edge": "E", "from": str(a), "to": str(b), "data": {}} for a, b in ends]
    graph = make_graph(
        tmp_path / "g", "node N { k: String @key  v: I32 }\nedge E: N -> N", [*nodes, *edges]
    )
    clauses = "  ".join(clause.format(at=at, after=at + 1) for at in range(40))
    with pytest.raises(ResourceLimit) as failed:
        graph.query(f"query q() {{ match {{ $v0: N  {clauses} }} return {{ {output} }} }}")
    assert failed.value.details["actual"] > failed.value.details["limit"] > 0


def test_a_negation_over_the_memory_limit_is_evaluated_in_parts(tmp_path: Path) -> None:
    schema = "node N { k: String @key  v: I32 }"
    records = [{"type": "N", "data": {"k": str(at), "v": at}} for at in range(60)]
    graph = make_graph(tmp_path / "g", schema, records)
    text = "query q() { match { $a: N  not { $b: N  $b.v > $a.v } } return { $a.k } }"
    small = ReadOptions(limits=Limits(memory_bytes=48 * 200))
    assert graph.query(text, options=small).rows() == [{"a.k": "59"}]


def test_more_rows_than_allowed_are_refused(museum: Graph) -> None:
    with pytest.raises(ResourceLimit) as failed:
        museum.query(ALL, options=ReadOptions(limits=Limits(rows_max=3)))
    assert failed.value.details == {"resource": "query_result_rows", "limit": 3, "actual": 4}
    limited = ALL.replace("} }", "} limit 3 }")
    assert len(museum.query(limited, options=ReadOptions(limits=Limits(rows_max=3)))) == 3


def test_a_query_that_takes_too_long_is_given_up(
    museum: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(0, 10_000, 5))
    monkeypatch.setattr("omnigraph.engine.limits.time.monotonic", lambda: next(ticks))
    with pytest.raises(QueryTimeout) as failed:
        museum.query(ALL, options=ReadOptions(limits=Limits(timeout_ms=100)))
    assert failed.value.details["limit_ms"] == 100


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One item for every time a query asked whether it may go on."""
    found: list[None] = []
    check = Guard.check

    def noted(self: Guard) -> None:
        found.append(None)
        check(self)

    monkeypatch.setattr(Guard, "check", noted)
    return found


@pytest.mark.parametrize("search", ["search", "fuzzy"])
def test_a_search_for_many_words_can_be_given_up_between_them(
    tmp_path: Path, checks: list[None], search: str
) -> None:
    graph = load_graph(tmp_path / "g", "doc")
    words = " ".join(f"word{at}" for at in range(300))
    body = f"match {{ $p: Page  {search}($p.body, $w) }} return {{ $p.slug }}"
    graph.query(f"query q($w: String) {{ {body} }}", params={"w": words})
    assert len(checks) >= 300


def test_columns_of_a_large_product_are_compared_in_parts(
    tmp_path: Path, checks: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [{"type": "N", "data": {"k": str(at), "v": at % 7}} for at in range(60)]
    graph = make_graph(tmp_path / "g", "node N { k: String @key  v: I32 }", records)
    text = (
        "query q() { match { $a: N  $b: N  $a.k contains $b.k } return { $a.k as a, $b.k as b } }"
    )
    expected = graph.query(text).rows()
    before = len(checks)
    use_small_blocks(monkeypatch, rows=100)
    assert graph.query(text).rows() == expected
    assert len(checks) - before >= 36
    assert len(expected) == sum(str(b) in str(a) for a in range(60) for b in range(60))


def test_an_answer_that_comes_too_late_is_none(
    museum: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = threading.Event()
    answer = Projection.answer

    def slow(self: Projection, *given: Any) -> Any:
        late.set()
        return answer(self, *given)

    monkeypatch.setattr(Projection, "answer", slow)
    with pytest.raises(QueryCancelled):
        museum.query(ALL, options=ReadOptions(cancelled=late))


def test_a_cancelled_query_stops(museum: Graph) -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(QueryCancelled):
        museum.query(ALL, options=ReadOptions(cancelled=cancelled))


@pytest.mark.parametrize(
    ("text", "params", "kind"),
    [
        (AGE, {}, ParameterError),
        (AGE, {"x": 5.5}, ParameterError),
        (AGE, {"x": 2**31}, ParameterError),
        (AGE.replace("I32", "F64"), {"x": float("nan")}, ParameterError),
        (HANDLE, {"x": None}, ParameterError),
        (ITEMS, {"x": [1, None]}, ParameterError),
        ("query q() { match { $c: Curator } return { $d.x } }", None, LanguageError),
        ("", None, QueryNotFound),
        ('query q() { insert Hall { code: "x" } }', None, LanguageError),
        ("query q() {" + " " * 1_000_000 + "}", None, LanguageError),
        ("query q() { match { $c: Curator " + "not { " * 3_000, None, LanguageError),
        (_curators(50_000), None, ResourceLimit),
        ("query q() { match { $c: Nobody } return { $c } }", None, LanguageError),
        ("query q() { match { $c: Curator  $c.nothing = 1 } return { $c } }", None, LanguageError),
        ("query q() { match { $c: Curator  $c nowhere $d } return { $c } }", None, LanguageError),
        (ALL.replace("} }", f"}} limit {10**30} }}"), None, LanguageError),
        (AGE.replace("$x }", f"{10**30} }}"), {"x": 1}, LanguageError),
        (AGE, {"x": 10**400}, ParameterError),
        (AGE, {"x": [[[[1]]]]}, ParameterError),
        (AGE, [1], ParameterError),
        (AGE.replace("I32", "F64"), {"x": float("inf")}, ParameterError),
        (HANDLE, {"x": "\ud800"}, ParameterError),
        (None, None, InvalidInput),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_input_is_a_typed_error(
    museum: Graph, text: Any, params: Any, kind: type[OmnigraphError]
) -> None:
    with pytest.raises(kind) as failed:
        museum.query(text, params=params)
    assert failed.value.remedy


def test_a_name_that_no_query_has_or_that_is_no_text_is_refused(museum: Graph) -> None:
    with pytest.raises(QueryNotFound):
        museum.query(ALL, "other")
    with pytest.raises(InvalidInput):
        museum.query(ALL, 5)  # type: ignore[arg-type]


def test_a_text_of_a_megabyte_is_answered_when_it_is_right(museum: Graph) -> None:
    long = HANDLE.replace("$x }", '"' + "x" * 1_000_000 + '" }').replace("($x: String)", "()")
    assert len(museum.query(long)) == 0


def test_a_commit_that_does_not_exist_is_not_found(museum: Graph) -> None:
    with pytest.raises(RefNotFound):
        museum.query(ALL, at="01JUNKJUNKJUNKJUNKJUNKJUNK")


def test_q12_parameters_that_are_not_declared_are_refused(museum: Graph) -> None:
    for value in (1, None, {"an": "object"}):
        with pytest.raises(ParameterError, match="no parameter `extra`"):
            museum.query(ALL, params={"extra": value})


def test_a_read_keeps_its_snapshot_and_a_commit_can_be_read_again(tmp_path: Path) -> None:
    graph = load_graph(tmp_path / "g", "mus")
    before = graph.snapshot().commit_id
    graph.branches.create("dev")
    with graph.write() as w:
        w.insert("Curator", {"handle": "ed"})
    assert len(graph.query(ALL)) == 5
    at = graph.query(ALL, at=before)
    assert (len(at), at.commit_id, at.target.snapshot) == (4, before, before)
    assert len(graph.query(ALL, branch="dev")) == 4


def test_the_cache_stays_within_its_bytes_over_changing_versions(tmp_path: Path) -> None:
    graph = load_graph(tmp_path / "g", "mus")
    cache = MemoryCache(20_000)
    reader = Reader(repository_of(graph), cache=cache)
    text = (
        "query q() { match { $c: Curator  $c mentors{1,3} $d } return { $c, $d } order { $d.age } }"
    )
    for at in range(30):
        with graph.write() as w:
            w.insert("Curator", {"handle": f"x{at}", "tags": ["a"] * at})
        reader.query(text)
        assert cache.nbytes <= 20_000
    assert len(cache) > 0


def test_a_value_larger_than_the_cache_is_returned_but_not_cached() -> None:
    cache = MemoryCache(10)
    assert len(cache.get_or_make("a", lambda: np.zeros(100))) == 100
    assert (cache.nbytes, len(cache)) == (0, 0)


def test_a_value_that_many_threads_need_is_made_once() -> None:
    cache, made = MemoryCache(1 << 20), []
    barrier = threading.Barrier(8)

    def make() -> Any:
        made.append(1)
        return np.zeros(3)

    def ask() -> None:
        barrier.wait()
        cache.get_or_make("k", make)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
