"""How specifications reach tasks: in the closure or by reference, and never with credentials."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.scratch import Scratch
from omnigraph.settings import StorageSettings
from omnigraph.spark.task_specs import (
    CLOSURE_BYTES_MAX,
    RESULT_BYTES_MAX,
    pack,
    pack_result,
    unpack_result,
)

SECRET = "a-secret-of-the-store"


@dataclass(frozen=True, slots=True)
class Shared:
    storage: StorageSettings
    text: str


def _answer(shared: Shared, spec: tuple[int, str]) -> tuple[str | None, int, str]:
    return shared.storage.secret_access_key, spec[0], shared.text + spec[1]


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(GraphStorage(str(tmp_path), StorageSettings()), "_staging/op")


@pytest.mark.parametrize("size", [1, 10_000])
def test_a_task_reads_its_own_specification(size: int, scratch: Scratch) -> None:
    shared = Shared(StorageSettings(secret_access_key=SECRET), "shared-")
    specs = [(number, "x" * size) for number in range(50)]
    packed = pickle.loads(pickle.dumps(pack(partial(_answer, shared), specs, scratch)))
    assert len(pickle.dumps(packed)) < CLOSURE_BYTES_MAX
    for number in (0, 7, 49):
        assert packed.call(number) == (SECRET, number, "shared-" + "x" * size)
    written = [scratch.objects.get(info.path) for info in scratch.objects.list()]
    assert len(written) == (size > 1)
    assert not any(SECRET.encode() in data for data in written)


def test_a_large_result_is_an_object(scratch: Scratch) -> None:
    for size in (10, RESULT_BYTES_MAX * 3):
        result = pickle.dumps((True, "r" * size))
        sent = pack_result(result, scratch)
        assert len(sent) <= RESULT_BYTES_MAX
        assert unpack_result(sent, scratch) == (True, "r" * size)
    assert len(scratch.objects.list()) == 1
