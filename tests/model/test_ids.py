"""Ids made in bulk: as unique, as sortable and as well-formed as single ones."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from omnigraph.model import ids
from omnigraph.model.ids import new_ulid, new_ulids

ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


@pytest.mark.parametrize("count", [0, 1, 2, 1_000])
def test_a_run_is_ascending_and_well_formed(count: int) -> None:
    before, made, after = new_ulid(), new_ulids(count).to_pylist(), new_ulid()
    assert [before, *made, after] == sorted({before, *made, after})
    assert all(ULID.fullmatch(id) for id in made)


def test_a_run_counts_on_where_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    start = 5 << 80 | (1 << 40) - 2
    for count in (2, 3):  # just up to the end of what varies in a run, and one too many
        monkeypatch.setattr(ids, "_last", start - 1)
        monkeypatch.setattr(ids.time, "time_ns", lambda: 0)
        monkeypatch.setattr(ids.os, "urandom", bytes)
        made = new_ulids(count).to_pylist()
        assert len(set(made)) == count
        assert made == sorted(made)
        assert made[0] >= ids.encode_ulid(start)
        assert new_ulid() > made[-1]


def test_threads_never_share_an_id() -> None:
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: new_ulids(500).to_pylist(), range(40)))
    assert len({id for run in runs for id in run}) == 40 * 500
