"""Detection of dead processes: a process that cannot be inspected counts as alive."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.transaction.ownership import is_certainly_dead, this_process


def test_a_living_process_is_not_dead_and_a_later_one_with_its_number_is_another() -> None:
    assert not is_certainly_dead(this_process())
    assert is_certainly_dead(replace(this_process(), started="1"))
    assert not is_certainly_dead(replace(this_process(), host="elsewhere", started="1"))


def test_a_process_that_proc_hides_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, read = this_process(), Path.read_text

    def hidden(path: Path) -> str:
        if str(path) == f"/proc/{os.getpid()}/stat":
            raise FileNotFoundError
        return read(path)

    monkeypatch.setattr(Path, "read_text", hidden)
    assert not is_certainly_dead(owner)
