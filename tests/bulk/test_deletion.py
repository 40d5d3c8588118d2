"""Addresses of replaced rows: small values for the driver, objects for the tasks."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from tests.support.stores import open_objects

from omnigraph.bulk.deletion import INLINE_MAX, keep_addresses
from omnigraph.storage.lance.tables import FRAGMENT_SHIFT
from omnigraph.storage.locations import parse_location

FRAGMENTS = 5


@pytest.mark.parametrize("rows", [10, INLINE_MAX * 4])
def test_addresses_are_read_whole_or_by_fragment(rows: int, tmp_path: Path) -> None:
    objects = open_objects(parse_location(str(tmp_path)))
    chance = np.random.default_rng(7)
    fragments = chance.integers(0, FRAGMENTS, rows).astype(np.uint64)
    addresses = (fragments << np.uint64(FRAGMENT_SHIFT)) + np.arange(rows, dtype=np.uint64)
    kept = keep_addresses(objects, "op", addresses)
    assert kept.count == rows
    assert len(pickle.dumps(kept)) < 16 << 10
    assert sorted(kept.read(objects).tolist()) == sorted(addresses.tolist())
    wanted = np.array([1, 4, 9], dtype=np.uint64)
    found = [address for part in kept.read_fragments(objects, wanted) for address in part.tolist()]
    expected = addresses[np.isin(addresses >> np.uint64(FRAGMENT_SHIFT), wanted)]
    assert sorted(found) == sorted(expected.tolist())
