"""Translation of errors that are not Lance's own, and of paths that look like error texts."""

from __future__ import annotations

import errno
from pathlib import Path

import pyarrow as pa
import pytest
from tests.graphs import people_graph

from omnigraph.errors import PermissionDenied, StorageFailure, StorageFull
from omnigraph.storage.lance import tables
from omnigraph.storage.lance.errors import TableExists, TableNotFound, translate, translated


@pytest.mark.parametrize(
    ("number", "expected"),
    [(errno.EACCES, PermissionDenied), (errno.ENOSPC, StorageFull), (errno.EIO, StorageFailure)],
)
def test_errors_of_the_operating_system_are_known_by_their_number(
    number: int, expected: type[Exception]
) -> None:
    assert type(translate(OSError(number, "text"), "looking")) is expected


def test_a_missing_version_is_no_lost_race_of_creators_whatever_its_number() -> None:
    lost = OSError("Dataset at path g/nodes/a/_versions/0.manifest was not found")
    missing = OSError("Dataset at path g/_versions/18446744073709551610.manifest was not found")
    assert isinstance(translate(lost, "creating", committing=True), TableExists)
    assert isinstance(translate(missing, "committing", committing=True), TableNotFound)


def test_a_failing_look_at_written_files_is_typed_and_nothing_is_left_of_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = people_graph(tmp_path / "g")

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "the disk is failing")

    with monkeypatch.context() as broken:
        broken.setattr(tables, "require_complete_files", fail)
        with pytest.raises(StorageFailure), graph.write() as w:
            w.insert("City", {"name": "Rome"})
    with graph.write() as w:
        w.insert("City", {"name": "Bern"})
    assert graph.snapshot().pin("node:City").rows == 2


def test_an_interrupt_that_arrives_inside_a_stream_stays_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), translated("reading nodes/a"):
        raise pa.ArrowInvalid("External error: KeyboardInterrupt: ")
