"""The fragments that upkeep compacts, and the paths of types."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.storage.lance.staging.compaction_tiers import (
    REWRITE_ROWS_MAX,
    SMALL_FRAGMENT_ROWS,
    SMALL_FRAGMENTS_MAX,
    choose_fragments,
    needs_compaction,
)
from omnigraph.storage.paths import fnv1a_64, table_path


def test_small_fragments_are_rewritten_and_a_large_one_is_left_alone() -> None:
    sizes = {0: 900_000, **dict.fromkeys(range(1, 60), 1)}
    assert choose_fragments(sizes) == set(range(1, 60))


def test_a_larger_fragment_joins_when_it_is_in_proportion() -> None:
    sizes = {0: 10_000, **dict.fromkeys(range(1, 50), 100)}
    assert 0 in choose_fragments(sizes)


def test_a_table_is_past_its_budget_by_small_fragments_only() -> None:
    assert not needs_compaction(dict.fromkeys(range(SMALL_FRAGMENTS_MAX), 1))
    assert needs_compaction(dict.fromkeys(range(SMALL_FRAGMENTS_MAX + 1), 1))
    assert not needs_compaction(dict.fromkeys(range(500), SMALL_FRAGMENT_ROWS))


@given(st.dictionaries(st.integers(0, 200), st.integers(0, 3 * REWRITE_ROWS_MAX)))
def test_what_is_chosen_is_always_a_set_of_the_smallest(sizes: dict[int, int]) -> None:
    chosen = choose_fragments(sizes)
    largest = max((sizes[f] for f in chosen), default=0)
    assert all(sizes[f] >= largest for f in sizes.keys() - chosen)
    assert largest < REWRITE_ROWS_MAX


def test_one_row_writes_rewrite_each_row_a_bounded_number_of_times() -> None:
    fragments: dict[int, int] = {}
    rewritten, next_id = 0, 0
    for _ in range(20_000):
        fragments[next_id] = 1
        next_id += 1
        if needs_compaction(fragments):
            chosen = choose_fragments(fragments)
            rewritten += sum(fragments[f] for f in chosen)
            merged = sum(fragments.pop(f) for f in chosen)
            fragments[next_id] = merged
            next_id += 1
    assert rewritten / 20_000 < 60
    assert len(fragments) <= SMALL_FRAGMENTS_MAX + 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [(b"", 0xCBF29CE484222325), (b"a", 0xAF63DC4C8601EC8C), (b"foobar", 0x85944171F73967E8)],
)
def test_the_hash_is_fnv_1a(text: bytes, expected: int) -> None:
    assert fnv1a_64(text) == expected


def test_a_later_lifetime_of_a_name_has_another_path() -> None:
    first = table_path("node:Person")
    assert first == "nodes/40d76f1f51639ec0"
    assert table_path("edge:Person") == "edges/40d76f1f51639ec0"
    assert table_path("node:Person", "01A") not in {first, table_path("node:Person", "01B")}
