"""How versions are named, found, opened and created: what lets the engine do without listings."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceOperation
from tests.guards.support import (
    PATH,
    SCHEMA,
    TYPE,
    content,
    create,
    fork,
    index,
    insert,
    properties,
    rows,
    several_fragments,
    staged_by_hand,
)
from tests.support.s3server import S3Server
from tests.support.stores import open_tables

from omnigraph.storage.lance.errors import TableExists
from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.staging.compaction import stage_compaction
from omnigraph.storage.lance.staging.indexes import IndexSpec, stage_drop_indexes, stage_indexes
from omnigraph.storage.lance.tables import PinnedTable, TableStore
from omnigraph.storage.locations import parse_location

CREATORS = 8
CREATIONS = 10


def test_versions_are_files_named_by_their_complement(store: TableStore) -> None:
    """Depends on it: ``TableStore.has_version``, the drift check and ``newest_from``."""
    table = several_fragments(store)
    branch = insert(store, fork(store, table, "01BRANCH"), ["x"])
    for ref in (table.ref, branch.ref):
        directory = Path(store.location.path, ref.dataset_path, "_versions")
        assert (directory / f"{2**64 - 1 - ref.version:020d}.manifest").is_file()
        assert store.has_version(ref)
        assert not store.has_version(ref.at(ref.version + 1))
        names = sorted(path.name for path in directory.glob("*.manifest"))
        assert all(len(name) == len(f"{2**64 - 1}.manifest") for name in names)


def test_a_branch_starts_at_the_version_it_was_forked_from(store: TableStore) -> None:
    """Depends on it: ``TableStore.fork`` and a landing version of pinned + 1 on a fresh fork."""
    table = several_fragments(store)
    older = store.open(table.ref.at(table.ref.version - 1))
    branch = fork(store, older, "01BRANCH")

    assert branch.ref.version == older.ref.version
    assert content(branch) == content(older)
    assert store.newest_from(branch.ref) == branch.ref
    assert insert(store, branch, ["x"]).ref.version == older.ref.version + 1


@pytest.mark.parametrize("hint", ["", "{", '{"version":1}', '{"version":99}', None])
def test_the_version_hint_is_only_a_hint(store: TableStore, hint: str | None) -> None:
    """Depends on it: ``TableStore.open_newest``. A crash may leave any hint behind."""
    table = several_fragments(store)
    path = Path(store.location.path, PATH, "_versions", "latest_version_hint.json")
    if hint is None:
        path.unlink(missing_ok=True)
    else:
        path.write_text(hint)

    fresh = open_tables(store.location, store.objects)
    assert fresh.open_newest(PATH).ref == table.ref
    assert insert(fresh, fresh.open_newest(PATH), ["x"]).ref.version == table.ref.version + 1


def test_a_commit_leaves_older_handles_as_they_were(store: TableStore) -> None:
    """Depends on it: ``PinnedTable``, which promises that its answers stay true for ever."""
    table = several_fragments(store)
    before = content(table)
    for n in range(3):
        newest = insert(store, store.open_newest(PATH), [f"x{n}"])
    compaction = stage_compaction(newest, properties())
    assert compaction is not None
    store.commit(compaction)

    assert table.dataset.version == table.ref.version
    assert content(table) == content(open_tables(store.location, store.objects).open(table.ref))
    assert content(table) == before


def test_every_kind_of_write_leaves_its_uuid_and_operation(store: TableStore) -> None:
    """Depends on it: recovery, which proves ownership by these two and by nothing else."""
    table = several_fragments(store)
    stagers = [
        lambda t, p: staging.stage_insert(t, rows(["x"]), p, type_key=TYPE),
        lambda t, p: staging.stage_upsert(t, rows(["a", "y"], 1), p, type_key=TYPE),
        lambda t, p: staging.stage_update(t, rows(["a"], 2), p, type_key=TYPE),
        lambda t, p: staging.stage_delete(t, pa.array(["b"]), p),
        lambda t, p: stage_indexes(t, [IndexSpec("n", "BTREE")], p),
        lambda t, p: stage_drop_indexes(t, ["n_btree"], p),
        lambda t, p: stage_compaction(t, p),
        lambda t, p: staging.stage_restore(t, t.ref.version - 1, 0, p),
        lambda t, p: staging.stage_overwrite(t, rows(["z"]), p, type_key=TYPE),
    ]
    for number, stage in enumerate(stagers):
        staged = stage(table, properties(f"operation-{number}"))
        assert staged is not None
        table = store.commit(staged)
        made = open_tables(store.location, store.objects).transaction(table.ref)
        assert (made.uuid, made.operation) == (staged.uuid, f"operation-{number}")
        assert table.ref.version == staged.ref.version + 1


def test_lance_cannot_show_its_own_compaction_of_an_indexed_table(store: TableStore) -> None:
    """Why ``TableStore.transaction`` takes a ``TypeError`` for somebody else's compaction."""
    table = index(store, several_fragments(store), "id")
    dataset = lance.dataset(str(Path(store.location.path, PATH)))
    dataset.optimize.compact_files(target_rows_per_fragment=100)
    assert dataset.version > table.ref.version

    with pytest.raises(TypeError, match="RewrittenIndex"):
        dataset.read_transaction(dataset.version)
    assert store.transaction(table.ref.at(dataset.version)).uuid is None


def test_creation_has_one_winner_among_threads(store: TableStore) -> None:
    """Depends on it: ``TableStore.create``, on which the exclusiveness of ``init`` rests."""
    _race_to_create(store)


@pytest.mark.s3
def test_creation_has_one_winner_on_s3(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    _race_to_create(_s3_store(s3, monkeypatch))


@pytest.mark.s3
def test_opening_a_version_lists_nothing(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Depends on it: the hot path. Opening the newest version, in contrast, does list."""
    store = _s3_store(s3, monkeypatch)
    table = several_fragments(store)
    branch = fork(store, table, "01BRANCH")
    assert store.has_version(table.ref)  # the store knows from here on that the bucket exists

    for ref in (table.ref, branch.ref):
        s3.reset()
        opened = open_tables(store.location, store.objects).open(ref)
        assert opened.ref == ref
        assert "LIST" not in s3.counts()
        s3.reset()
        assert not store.has_version(ref.at(ref.version + 1))
        assert s3.counts() == {"HEAD": 1}

    s3.reset()
    open_tables(store.location, store.objects).open_newest(PATH)
    assert s3.counts()["LIST"] == 1


def test_a_transaction_file_is_not_needed_to_read_a_version(store: TableStore) -> None:
    """Depends on it: nothing of ours deletes them, but cleanup may; reading must not care."""
    table = several_fragments(store)
    for path in Path(store.location.path, PATH, "_transactions").iterdir():
        path.unlink()

    fresh = open_tables(store.location, store.objects)
    assert content(fresh.open(table.ref)) == content(table)
    assert fresh.transaction(table.ref).operation == "guard"  # the version itself carries it


def test_uuid_and_properties_survive_a_rebase(store: TableStore) -> None:
    """Depends on it: whoever finds a version elsewhere than planned and asks whose it is."""
    table = several_fragments(store)
    build = stage_indexes(table, [IndexSpec("n", "BTREE")], properties("late build"))
    insert(store, table, ["in between"])
    landed = store.commit_rebasing(build)

    made = open_tables(store.location, store.objects).transaction(landed.ref)
    assert (made.uuid, made.operation) == (build.uuid, "late build")
    assert landed.dataset.read_transaction(landed.ref.version).read_version == table.ref.version


def test_a_zero_row_overwrite_keeps_schema_and_stable_row_ids(store: TableStore) -> None:
    """Depends on it: ``staging.stage_overwrite`` and every later write to the emptied type."""
    table = several_fragments(store)
    table = store.commit(staged_by_hand(table, LanceOperation.Overwrite(SCHEMA, [])))

    assert table.rows == 0
    assert table.dataset.has_stable_row_ids
    assert table.schema.equals(SCHEMA, check_metadata=False)
    assert table.schema.field("id").metadata == SCHEMA.field("id").metadata
    assert content(insert(store, table, ["x"])) == {"x": 0}


def test_creating_a_table_needs_no_directory(store: TableStore) -> None:
    """``create`` makes what it needs, and an empty table is a table."""
    table = create(store, "nodes/some/where")
    assert open_tables(store.location, store.objects).open(table.ref).rows == 0


def _race_to_create(store: TableStore) -> None:
    barrier = threading.Barrier(CREATORS)

    def attempt(number: int) -> list[PinnedTable | None]:
        own = open_tables(store.location, store.objects)
        made: list[PinnedTable | None] = []
        for creation in range(CREATIONS):
            barrier.wait(60)
            try:
                made.append(own.create(f"nodes/{creation}", SCHEMA, properties(str(number))))
            except TableExists:
                made.append(None)
        return made

    with ThreadPoolExecutor(CREATORS) as pool:
        results = list(pool.map(attempt, range(CREATORS)))

    for creation in range(CREATIONS):
        winners = [n for n, made in enumerate(results) if made[creation] is not None]
        assert len(winners) == 1, f"creation {creation} had the winners {winners}"
        found = open_tables(store.location, store.objects).open_newest(f"nodes/{creation}")
        assert found.ref.version == 1
        assert store.transaction(found.ref).operation == str(winners[0])


def _s3_store(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> TableStore:
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    location = parse_location(f"{s3.create_bucket('guards')}/{uuid.uuid4().hex}")
    return open_tables(location)
