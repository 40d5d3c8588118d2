"""The texts by which ``storage/lance/errors.py`` recognises Lance's untyped errors.

Every failure here is a real one: files that are missing, damaged, forbidden or too large, and a
store that answers so. What is asserted is the type that the rest of the program sees.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import uuid
from collections.abc import Callable
from pathlib import Path

import lance
import pytest
from lance.commit import CommitConflictError
from tests.guards.support import (
    PATH,
    SCHEMA,
    TYPE,
    content,
    create,
    insert,
    new_store,
    one_fragment,
    rows,
    several_fragments,
    staged_by_hand,
)
from tests.support.s3server import S3Fault, S3Server
from tests.support.stores import open_tables

from omnigraph.errors import CorruptData, OmnigraphError, PermissionDenied, StorageFailure
from omnigraph.storage.lance.errors import (
    AmbiguousOutcome,
    CommitRefused,
    TableExists,
    TableNotFound,
    translate,
    translated,
)
from omnigraph.storage.lance.staging import rows as staging
from omnigraph.storage.lance.tables import PinnedTable, TableStore
from omnigraph.storage.locations import parse_location


def reopened(store: TableStore) -> TableStore:
    return open_tables(store.location, store.objects)


def version_file(store: TableStore, table: PinnedTable) -> Path:
    name = f"{2**64 - 1 - table.ref.version:020d}.manifest"
    return Path(store.location.path, table.ref.dataset_path, "_versions", name)


# -- missing and existing -------------------------------------------------------------------------


def test_a_missing_version_table_or_branch_is_not_found(store: TableStore) -> None:
    table = one_fragment(store)
    for ref in (
        table.ref.at(99),
        type(table.ref)("nodes/absent", None, 1),
        type(table.ref)(PATH, "01ABSENT", 1),
    ):
        with pytest.raises(TableNotFound):
            store.open(ref)
    with pytest.raises(TableNotFound):
        store.open_newest("nodes/absent")


def test_a_missing_data_file_is_not_found(store: TableStore) -> None:
    table = one_fragment(store)
    for path in Path(store.location.path, PATH, "data").iterdir():
        path.unlink()
    with pytest.raises(TableNotFound):
        content(reopened(store).open(table.ref))


@pytest.mark.parametrize("below", [False, True])
def test_a_file_where_a_table_should_be_is_not_found(tmp_path: Path, below: bool) -> None:
    (tmp_path / "file").write_text("not a directory")
    store = new_store(tmp_path / "file" / "below" if below else tmp_path / "file")
    with pytest.raises(TableNotFound):
        store.open_newest(PATH)
    with pytest.raises(TableNotFound):
        store.open(type(one_fragment(new_store(tmp_path)).ref)(PATH, None, 1))


def test_creating_what_exists_says_so(store: TableStore) -> None:
    one_fragment(store)
    with pytest.raises(TableExists):
        create(reopened(store))
    with pytest.raises(OSError, match="Dataset already exists") as caught:
        lance.write_dataset(rows(["a"]), str(Path(store.location.path, PATH)), mode="create")
    assert isinstance(translate(caught.value, "testing"), TableExists)


def test_a_conflict_is_typed(store: TableStore) -> None:
    table = one_fragment(store)
    insert(store, table, ["x"])
    stale = staged_by_hand(table, lance.LanceOperation.Overwrite(SCHEMA, []))
    with pytest.raises(CommitConflictError):
        lance.LanceDataset.commit(table.dataset, stale.transaction, max_retries=0)
    with pytest.raises(CommitRefused):
        store.commit(stale)


# -- damaged --------------------------------------------------------------------------------------

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "a few bytes": lambda data: data[:10],
    "half": lambda data: data[: len(data) // 2],
    "noise": lambda data: bytes(len(data)),
    "noise with a good end": lambda data: b"\xff" * (len(data) - 16) + data[-16:],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_version_is_corrupt(store: TableStore, damage: str) -> None:
    """The last kind makes Lance panic, which Python sees as something above ``Exception``."""
    table = several_fragments(store)
    path = version_file(store, table)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))

    with pytest.raises(CorruptData):
        reopened(store).open(table.ref)
    with pytest.raises(CorruptData):
        reopened(store).open_newest(PATH)


@pytest.mark.parametrize("damage", [d for d in DAMAGE if d != "noise with a good end"])
def test_a_damaged_data_file_is_corrupt(store: TableStore, damage: str) -> None:
    table = one_fragment(store)
    (path,) = Path(store.location.path, PATH, "data").iterdir()
    path.write_bytes(DAMAGE[damage](path.read_bytes()))

    with pytest.raises(CorruptData):
        content(reopened(store).open(table.ref))


def test_a_panic_while_committing_is_an_unclear_outcome() -> None:
    """Whether the commit took effect before the panic is not known."""

    class PanicException(BaseException):  # the name by which pyo3's class is known
        pass

    with pytest.raises(AmbiguousOutcome), translated("testing", committing=True):
        raise PanicException("index out of bounds")
    with pytest.raises(KeyboardInterrupt), translated("testing"):
        raise KeyboardInterrupt


# -- refused --------------------------------------------------------------------------------------


def test_what_the_file_system_forbids_is_permission_denied() -> None:
    """In a child that is not root, on a table that belongs to somebody else."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        store = new_store(root / "graph")
        one_fragment(store)
        root.chmod(0o755)

        found = _unprivileged(root / "graph")
        assert found.pop("open") == "ok"
        assert set(found.values()) == {"permission_denied"}
        assert found.keys() == {"stage", "delete", "create", "fork"}

        for path in (root / "graph" / PATH).rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        assert _unprivileged(root / "graph") == {"open": "permission_denied"}


@pytest.mark.s3
def test_the_answers_of_an_object_store_are_told_apart(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    store = _on_s3(f"{s3.create_bucket('texts')}/{uuid.uuid4().hex}")
    table = one_fragment(store)
    damaged = f"{PATH}/_versions/{2**64 - 1 - 1:020d}.manifest"

    with pytest.raises(TableNotFound):
        store.open(table.ref.at(99))
    with pytest.raises(TableNotFound):
        store.open_newest("nodes/absent")
    with pytest.raises(TableNotFound):
        _on_s3("s3://there-is-no-such-bucket/graph").open_newest(PATH)
    with pytest.raises(TableExists):
        create(reopened(store))
    store.objects.put(damaged, b"")
    with pytest.raises(CorruptData):
        reopened(store).open(table.ref.at(1))

    staged = staging.stage_insert(table, rows(["x"]), {}, type_key=TYPE)
    for status, kind in ((403, PermissionDenied), (401, PermissionDenied), (400, StorageFailure)):
        s3.inject(S3Fault(status=status, times=None))
        for call in (
            lambda: reopened(store).open(table.ref.at(1)),
            lambda: staging.stage_insert(table, rows(["y"]), {}, type_key=TYPE),
            lambda: store.commit(staged),
        ):
            with pytest.raises(kind):
                call()
        s3.clear_faults()
    assert store.newest_from(table.ref) == table.ref


# -- words that are not about the failure ---------------------------------------------------------


@pytest.mark.parametrize(
    "directory",
    ["corrupt", "protobuf", "magic number", "not found", "AccessDenied", "403 Forbidden"],
)
def test_a_path_is_not_taken_for_a_cause(directory: str) -> None:
    """The texts name paths, and people choose those."""
    for text in (
        f"LanceError(IO): Generic S3 error: Error performing GET http://127.0.0.1:1/b/{directory}"
        "/t/_versions/1.manifest in 5s, after 3 retries - Server returned non-2xx status code: "
        "503 Service Unavailable: , /home/runner/lance/rust/lance-io/src/object_store.rs:15:42",
        f"LanceError(IO): Generic LocalFileSystem error: Unable to open file /data/{directory}/t/"
        "_versions/1.manifest: Input/output error (os error 5), /home/r/lance/src/commit.rs:1:2",
    ):
        error = translate(OSError(text), "opening nodes/t")
        assert type(error) is StorageFailure, (directory, type(error))


def test_messages_do_not_show_lances_source(store: TableStore) -> None:
    table = one_fragment(store)
    (path,) = Path(store.location.path, PATH, "data").iterdir()
    path.write_bytes(b"")
    with pytest.raises(OmnigraphError) as caught:
        content(reopened(store).open(table.ref))
    assert ".rs:" not in caught.value.message
    assert caught.value.message.startswith(f"reading {PATH}: ")


def _on_s3(uri: str) -> TableStore:
    location = parse_location(uri)
    return open_tables(location)


_CHILD = """
    import json, os, sys, tempfile
    from pathlib import Path
    import pyarrow as pa
    from omnigraph.errors import OmnigraphError
    from omnigraph.storage.lance.staging import rows as staging
    from tests.guards.support import PATH, TYPE, create, new_store, one_fragment, rows, upsert

    with tempfile.TemporaryDirectory() as first:  # imports everything while that is allowed
        throwaway = new_store(Path(first))
        upsert(throwaway, one_fragment(throwaway), ["a", "x"], 1)
    if os.geteuid() == 0:
        os.setgroups([]), os.setgid(65534), os.setuid(65534)
    store = new_store(Path(sys.argv[1]))
    result = {}

    def outcome(name, call):
        try:
            value = call()
            result[name] = "ok"
            return value
        except OmnigraphError as error:
            result[name] = error.code

    table = outcome("open", lambda: store.open_newest(PATH))
    if table is not None:
        insert = lambda: staging.stage_insert(table, rows(["x"]), {}, type_key=TYPE)
        outcome("stage", insert)
        outcome("delete", lambda: staging.stage_delete(table, pa.array(["a"]), {}))
        outcome("create", lambda: create(store, "nodes/new"))
        outcome("fork", lambda: store.fork(table.ref, "01BRANCH"))
    print(json.dumps(result))
"""


def _unprivileged(graph: Path) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_CHILD), str(graph)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "src:."},
    )
    return dict(json.loads(done.stdout))
