"""Named places where a test may stop, fail or kill the program.

Every durable step of every writer sits between two failpoints, and every name is in ``NAMES``. In
normal life a failpoint is one truth test of an empty mapping. A child process arms them through the
environment: ``OMNIGRAPH_FAILPOINTS="publish.before_commit=kill;record.after_put@2=error"``, where
``@n`` means the n-th time the point is reached (default 1).

Actions: ``kill`` (SIGKILL to itself), ``interrupt`` (SIGINT to itself, as Ctrl-C does),
``raise:NAME`` (raises the built-in exception of this name), ``error`` (raises ``FailpointError``,
a storage failure),
``pause:FILE`` (creates FILE and waits until it is removed), ``stop`` (SIGSTOP to itself),
``count`` (does nothing; ``reached`` tells how often).
"""

from __future__ import annotations

import builtins
import os
import signal
import time
from collections import Counter
from pathlib import Path

from omnigraph.errors import StorageFailure

ENVIRONMENT = "OMNIGRAPH_FAILPOINTS"
PAUSE_POLL_S = 0.005
PAUSE_MAX_S = 600.0

NAMES: dict[str, str] = {
    "init.before_tables": "nothing of the graph exists yet",
    "init.before_manifest": "all tables exist, the manifest does not",
    "create.after_table": "a table exists, the manifest does not say so",
    "create.after_files": "the first files of a table are written, the table does not exist yet",
    "init.after_manifest": "the graph exists",
    "record.before_put": "tables are staged, no recovery record yet",
    "record.after_put": "the recovery record is durable, no table has moved",
    "table.before_commit": "a staged table is about to move",
    "table.after_commit": "a table has moved, the manifest has not",
    "publish.before_commit": "the manifest commit is prepared",
    "publish.after_commit": "the manifest commit is durable, nobody was told",
    "record.before_delete": "the write is visible, its record still exists",
    "record.after_delete": "the write is over, nobody was told",
    "history.before_put": "a merge is staged, who did what on the merged branch is not stored yet",
    "history.after_put": "who did what is stored, no merge refers to it",
    "history.after_erase": "a purged entity is gone from the attribution of one merge",
    "branch.before_ref": "nothing of the new branch exists",
    "branch.after_ref": "the branch's ref exists, its registry row does not",
    "branch.after_row": "the branch exists",
    "branch.before_delete": "the branch is about to go away",
    "branch.after_forget": "the branch is gone for everybody, all its files are there",
    "branch.after_forks": "the branch's own tables are removed, its manifest is not",
    "branch.after_delete": "nothing of the branch is left",
    "fork.before_ref": "the first write to a type on a branch, nothing forked yet",
    "fork.after_ref": "the fork exists, nothing refers to it",
    "columns.before_step": "a fork is about to change its columns, nothing refers to it",
    "columns.after_step": "the fork has other columns, nothing refers to it",
    "purge.before_files": "a drop for good is visible, all its files are there",
    "purge.after_files": "the files of a drop for good are removed, the note to do so is not",
    "erase.before_versions": "no branch shows a purged entity, its older versions still hold it",
    "erase.after_version": "an older version no longer names the files that hold it",
    "erase.after_versions": "no version names the files that hold it, they are still there",
    "erase.after_files": "the files are gone, the branches do not say that the purge is done",
    "stage.before_intent": "a bulk write is about to say that it will write files",
    "stage.after_intent": "the intent is durable, no task has written anything",
    "task.before_files": "a task is about to write files that nothing refers to",
    "task.after_files": "a task has written files, its answer has not arrived",
    "stage.after_files": "all tasks have answered, nothing refers to their files",
    "stage.after_clear": "what a bulk write left on its way is gone",
    "reset.before_publish": "the old versions are forked, nothing refers to the forks",
    "cleanup.after_horizons": "old history is given up, all its files are there",
    "cleanup.after_versions": "old versions of a table are gone, files only they named are not",
    "cleanup.after_files": "a table is clean",
    "cleanup.after_staging": "what dead writers left beside the tables is gone",
    "copy.after_files": "the files of a copy are there, no version names them",
    "copy.before_head": "all of a copy is there but what makes it visible",
    "copy.after_head": "the copy is a graph",
    "relocate.before_versions": "the branches of a moved graph refer to where it was",
    "relocate.after_version": "one version of a branch refers to the graph's own files",
    "relocate.after_versions": "all of them do",
    "repair.before_publish": "a type that drifted is about to be taken over as it is",
    "repair.after_publish": "what drifted is published",
    "migrate.before_step": "a branch is about to take a step of the format",
    "migrate.after_ref": "a stale ref is gone",
    "migrate.after_work": "the work of a step is done, the stamp does not say so yet",
    "migrate.after_stamp": "a step of the format is taken",
    "recovery.after_claim": "this process may resolve the record",
    "recovery.before_restore": "a table that moved is about to be restored",
    "recovery.after_restore": "a table was restored, the manifest does not say so yet",
    "recovery.before_publish": "the decision is about to be published",
    "recovery.after_publish": "the decision is visible, audit and record are not done",
    "recovery.after_audit": "the audit row is written, the record still exists",
    "recovery.after_delete": "the record is gone",
}


class FailpointError(StorageFailure):
    """Raised by an armed failpoint: looks to the engine like a failing store."""

    code = "failpoint"
    default_remedy = "A test asked for this failure."


_ACTIONS = frozenset({"kill", "interrupt", "raise", "error", "pause", "stop", "count"})


class _Armed:
    def __init__(self, action: str, nth: int) -> None:
        self.action = action
        self.nth = nth


_armed: dict[str, _Armed] = {}
_reached: Counter[str] = Counter()


def arm(name: str, action: str, *, nth: int = 1) -> None:
    """Arm one failpoint in this process (see the module's docstring for actions)."""
    if name not in NAMES:
        raise KeyError(f"no failpoint is called {name!r}")
    if action.split(":", 1)[0] not in _ACTIONS:
        raise ValueError(f"unknown failpoint action {action!r}")
    _armed[name] = _Armed(action, nth)


def disarm_all() -> None:
    """Switch every failpoint off and forget how often they were reached."""
    _armed.clear()
    _reached.clear()


def reached(name: str) -> int:
    """How often an armed failpoint was reached in this process."""
    return _reached[name]


def hit(name: str) -> None:
    """Pass the failpoint ``name``; free when nothing is armed."""
    if _armed:
        _act(name)


def _act(name: str) -> None:
    armed = _armed.get(name)
    if armed is None:
        return
    _reached[name] += 1
    if _reached[name] != armed.nth:
        return
    action, _, argument = armed.action.partition(":")
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif action == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)  # to the process: its main thread takes it
    elif action == "raise":
        raise getattr(builtins, argument)(f"failpoint {name}")
    elif action == "error":
        raise FailpointError(f"failpoint {name}")
    elif action == "pause":
        _pause(Path(argument))


def _pause(flag: Path) -> None:
    flag.touch()
    deadline = time.monotonic() + PAUSE_MAX_S
    while flag.exists() and time.monotonic() < deadline:
        time.sleep(PAUSE_POLL_S)


def _arm_from_environment() -> None:
    for entry in filter(None, os.environ.get(ENVIRONMENT, "").split(";")):
        point, _, action = entry.partition("=")
        name, _, nth = point.partition("@")
        arm(name.strip(), action.strip(), nth=int(nth or 1))


_arm_from_environment()
