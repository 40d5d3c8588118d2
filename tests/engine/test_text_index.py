"""Text postings: updated for later versions, stored on disk, invalidated by a purge."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.cache.disk_store import ArrayStore
from omnigraph.engine.cache.memory_cache import MemoryCache
from omnigraph.engine.engine import Reader
from omnigraph.engine.search import load_text_index, postings, text_index
from omnigraph.engine.tables import loaded_edges
from omnigraph.engine.tables.loaded import CachedTable
from omnigraph.storage.lance.errors import TableNotFound
from tests.graphs import repository

BYTES_MAX = 1 << 30
SCHEMA = "node Page { slug: String @key  body: String?  year: I32 }"
WORDS = ["kettle", "kettles", "tea", "the", "boiling", "boiled", "cup", "Straße", "tin"]
PAGES = 200
QUERIES = [
    'match { $p: Page  search($p.body, "kettle tin") } return { $p.slug as slug }',
    'match { $p: Page  match_text($p.body, "boiling the kettle") } return { $p.slug as slug }',
    'match { $p: Page  match_text($p.body, "cup tea") } return { $p.slug as slug }',
    'match { $p: Page  fuzzy($p.body, "kettel", 2) } return { $p.slug as slug }',
    """match { $p: Page  $p.year >= 3 } return { $p.slug as slug, bm25($p.body, "tea cups") as s }
       order { bm25($p.body, "tea cups") } limit 20""",
]


def _text(rng: Random) -> str | None:
    if rng.random() < 0.1:
        return None
    return " ".join(rng.choices(WORDS, k=rng.randrange(9)))


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    rng = Random(1)
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    with graph.write() as w:
        for at in range(PAGES):
            w.insert("Page", {"slug": f"p{at}", "body": _text(rng), "year": at % 7})
    return graph


def _reader(graph: Graph, store: ArrayStore | None = None) -> Reader:
    return Reader(repository(graph), cache=MemoryCache(1 << 26), store=store)


def _answers(reader: Reader) -> list[Any]:
    return [reader.query(f"query q() {{ {body} }}").rows() for body in QUERIES]


def _change(graph: Graph, rng: Random, at: int) -> None:
    """One small write: pages come, change, lose their text or go."""
    slugs = [
        row["s"] for row in graph.query("query q() { match { $p: Page } return { $p.slug as s } }")
    ]
    kind = rng.choice(("insert", "update", "delete", "several"))
    if kind == "delete":
        graph.mutate(
            "query q($s: String) { delete Page where slug = $s }", params={"s": rng.choice(slugs)}
        )
        return
    with graph.write() as w:
        if kind in ("insert", "several"):
            w.insert("Page", {"slug": f"n{at}", "body": _text(rng), "year": 5})
        if kind in ("update", "several"):
            for slug in rng.sample(slugs, 2):
                w.update("Page", slug, {"body": _text(rng)})


@pytest.mark.parametrize("seed", range(4))
def test_an_updated_index_finds_what_a_rebuilt_one_finds(
    graph: Graph, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    warm = _reader(graph)
    _answers(warm)
    for at in range(8):
        _change(graph, rng, at)
        expected = _answers(_reader(graph))
        with monkeypatch.context() as patch:
            patch.setattr(load_text_index, "build_postings", _not_again)
            assert _answers(warm) == expected, f"step {at}"


def _not_again(*_: object) -> None:
    raise AssertionError("all texts were split into words again")


def test_what_is_new_is_gathered_until_it_is_too_much(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = _reader(graph)
    _answers(warm)
    sizes: list[int] = []
    build = postings.build_postings

    def noted(texts: Any) -> Any:
        sizes.append(len(texts))
        return build(texts)

    monkeypatch.setattr(text_index, "build_postings", noted)
    monkeypatch.setattr(load_text_index, "build_postings", noted)
    for at in range(40):
        with graph.write() as w:
            w.insert("Page", {"slug": f"m{at}", "body": "tea in a tin", "year": 1})
        _answers(warm)
    assert sizes[:3] == [1, 2, 3]
    assert max(sizes) > PAGES, "everything anew when an eighth of it was new"
    assert max(size for size in sizes if size < PAGES) * 8 <= PAGES + 40
    assert _answers(warm) == _answers(_reader(graph))


def test_texts_that_are_split_in_parts_are_found_like_all_at_once(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _answers(_reader(graph))
    assert all(expected)
    monkeypatch.setattr(postings, "SPLIT_BYTES", 7)
    monkeypatch.setattr(postings, "PHRASE_WORDS", 5)
    assert _answers(_reader(graph)) == expected


def test_another_process_finds_the_words_of_large_types(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_text_index, "TEXTS_STORED_MIN", 1)
    store = ArrayStore(tmp_path / "cache", BYTES_MAX)
    expected = _answers(_reader(graph, store))
    assert list(store.directory.glob("*/*"))
    monkeypatch.setattr(load_text_index, "build_postings", _not_again)
    again = _reader(graph, store)
    assert _answers(again) == expected
    assert again.cache.get(f"{again.newest('main').nodes('Page').key}/column/body/String?") is None


def test_a_property_with_the_name_of_another_is_not_taken_for_it(graph: Graph) -> None:
    warm = _reader(graph)
    _answers(warm)
    renamed = SCHEMA.replace("body: String?", 'old: String? @rename_from("body")')
    graph.apply_schema(renamed)
    graph.apply_schema(
        renamed.replace("year", "body: String?  year"), backfill={"Page.body": "tea"}
    )
    assert _answers(warm) == _answers(_reader(graph))
    tea = 'query q() { match { $p: Page  search($p.body, "tea") } return { count($p) as n } }'
    assert warm.query(tea).rows() == [{"n": PAGES}]


def test_words_of_what_was_removed_for_good_are_in_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_text_index, "TEXTS_STORED_MIN", 1)
    where = tmp_path / "cache"
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", str(where))
    search = (
        'query q() { match { $p: Page  search($p.body, "hunter2") } return { count($p) as n } }'
    )

    def held() -> bool:
        return any(b"hunter2" in path.read_bytes() for path in where.glob("*/*"))

    def filled(name: str) -> Graph:
        graph = omnigraph.init(tmp_path / name, SCHEMA)
        with graph.write() as w:
            w.insert("Page", {"slug": "a", "body": "hunter2 is my secret", "year": 1})
            w.insert("Page", {"slug": "b", "body": "tea", "year": 1})
        assert graph.query(search).rows() == [{"n": 1}]
        assert held()
        return graph

    graph = filled("purged")
    graph.maintenance.purge("node", "Page", "a", confirm=True)
    assert not held()
    assert graph.query(search).rows() == [{"n": 0}]
    filled("dropped").apply_schema(SCHEMA.replace("body: String?", ""), allow_data_loss=True)
    assert not held()


@pytest.mark.parametrize("reopened", [True, False], ids=["its files", "its memory"])
def test_another_reader_of_a_purged_state_does_not_mix_texts_up(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reopened: bool
) -> None:
    monkeypatch.setattr(load_text_index, "TEXTS_STORED_MIN", 1)
    monkeypatch.setattr(loaded_edges, "EDGES_STORED_MIN", 1)
    store = ArrayStore(tmp_path / "elsewhere", BYTES_MAX)
    commit = graph.snapshot().commit_id
    other = Reader(repository(omnigraph.open(graph.uri)), cache=MemoryCache(1 << 26), store=store)

    def found(reader: Reader) -> list[Any]:
        return [reader.query(f"query q() {{ {body} }}", at=commit).rows() for body in QUERIES]

    found(other)
    graph.maintenance.purge("node", "Page", "p3", confirm=True)
    if reopened:
        other = Reader(
            repository(omnigraph.open(graph.uri)), cache=MemoryCache(1 << 26), store=store
        )
    else:
        other.repository.tables.evict(
            other.repository.snapshot_at_commit(other.repository.branch("main"), commit)
            .pin("node:Page")
            .ref.path
        )
    assert found(other) == found(_reader(graph, ArrayStore(tmp_path / "new", BYTES_MAX)))


def test_an_index_is_rebuilt_when_the_earlier_version_is_gone(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = _reader(graph)
    _answers(warm)
    _change(graph, Random(2), 0)
    old = warm.newest("main").snapshot.pin("node:Page").ref.version - 1
    opened = CachedTable.delta

    def gone(self: CachedTable, earlier: CachedTable, **how: Any) -> Any:
        assert earlier.ref.version == old

        def fail() -> Any:
            raise TableNotFound("the version is gone")

        earlier.open = fail  # type: ignore[method-assign]
        return opened(self, earlier, **how)

    monkeypatch.setattr(CachedTable, "delta", gone)
    assert _answers(warm) == _answers(_reader(graph))


def test_files_are_for_their_owner_alone(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_text_index, "TEXTS_STORED_MIN", 1)
    store = ArrayStore(tmp_path / "new" / "cache", BYTES_MAX)
    _answers(_reader(graph, store))
    files = [path for path in store.directory.rglob("*") if path.is_file()]
    assert files
    assert {path.stat().st_mode & 0o077 for path in (store.directory, *files)} == {0}


def test_counting_and_searching_load_no_column(graph: Graph) -> None:
    reader = _reader(graph)
    reader.query(
        'query q() { match { $p: Page  search($p.body, "tea") } return { count($p) as n } }'
    )
    nodes = reader.newest("main").nodes("Page")
    assert not any(nodes.has_columns([name]) for name in ("id", "slug", "year"))
