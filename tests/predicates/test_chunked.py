"""Chunked numpy functions: equal to numpy, however small the chunks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.engine.exec import sort
from omnigraph.lang.query.typed_expressions import STRING
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Values

SIZES = ("LONG_ROWS", "CHUNK_ROWS", "SORT_ROWS", "ORDER_ROWS")
same = np.testing.assert_array_equal


@pytest.fixture(params=range(10))
def rng(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> np.random.Generator:
    found = np.random.default_rng(request.param)
    for name in SIZES:
        monkeypatch.setattr(chunked, name, int(found.integers(1, 50)))
    monkeypatch.setattr(sort, "RANKED_MAX", 0)
    return found


def _columns(rng: np.random.Generator, rows: int) -> list[np.ndarray]:
    wide = int(rng.choice([1, 3, 50, 10**9]))
    whole = rng.integers(-wide, wide, rows)
    floats = np.where(rng.random(rows) < 0.1, np.nan, whole / 2.0)
    return [whole, floats, np.sort(whole), whole.astype(np.int32)]


def test_sorting_is_numpy_s_own(rng: np.random.Generator) -> None:
    rows = int(rng.integers(1, 600))
    few = rng.integers(0, 4, rows)
    for column in _columns(rng, rows):
        same(chunked.sort(column), np.sort(column))
        same(chunked.order([column]), np.lexsort([column]))
        same(chunked.order([few, column]), np.lexsort([column, few]))
        same(chunked.order([column, few]), np.lexsort([few, column]))
        same(chunked.unique(column), np.unique(column))
        for found, expected in zip(
            chunked.unique_codes(column), np.unique(column, return_inverse=True), strict=True
        ):
            same(found, expected)


def test_gathering_and_counting_is_numpy_s_own(rng: np.random.Generator) -> None:
    rows = int(rng.integers(1, 600))
    whole, *_ = _columns(rng, rows)
    mask, counts = rng.random(rows) < 0.5, rng.integers(0, rng.choice([2, 300]), rows)
    places = rng.integers(-rows, rows, 3 * rows)
    same(chunked.take(whole, places), whole[places])
    same(chunked.nonzero(mask), np.flatnonzero(mask))
    for found, expected in zip(
        chunked.compress(mask, whole, mask), (whole[mask], mask[mask]), strict=True
    ):
        same(found, expected)
    same(chunked.repeat(counts), np.repeat(np.arange(rows), counts))
    same(chunked.cumsum(counts), np.cumsum(counts))
    same(
        chunked.concatenate([whole, whole[:5], counts]), np.concatenate([whole, whole[:5], counts])
    )
    same(chunked.bincount(counts, 400), np.bincount(counts, minlength=400))
    sums = np.zeros(400, dtype=np.int64)
    np.add.at(sums, counts, whole)
    same(chunked.sums(counts, whole, 400), sums)
    same(chunked.search(np.sort(whole), counts), np.searchsorted(np.sort(whole), counts))
    found = chunked.product(7, whole)
    same(found[0], np.repeat(np.arange(7), rows))
    same(found[1], np.tile(whole, 7))
    target, other = np.zeros(rows), np.zeros(rows)
    chunked.scatter(target, places, np.arange(3 * rows))
    other[places] = np.arange(3 * rows)
    same(target, other)


def test_strings_are_ranked_by_their_bytes_however_many_there_are(
    rng: np.random.Generator,
) -> None:
    letters = ["a", "ab", "\0", "é", "\U0001f600", "a long beginning that many share "]
    texts: list[str | None] = [
        None if rng.random() < 0.1 else "".join(rng.choice(letters, rng.integers(0, 5)))
        for _ in range(int(rng.integers(1, 400)))
    ]
    array = pa.array(["left out", *texts], type=pa.string())[1:]
    keys = [(text is not None, (text or "").encode()) for text in texts]
    expected = np.unique([sorted(set(keys)).index(key) for key in keys], return_inverse=True)[1]
    same(np.unique(sort.string_ranks(array), return_inverse=True)[1], expected)
    assert sort.dictionary_encoded(Values(STRING, array)).to_list() == texts
