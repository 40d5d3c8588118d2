"""Failpoints: named places where a test can stop, fail or kill the program.

Every durable step of every writer sits between two failpoints, and every name is in ``NAMES``. A
failpoint that is not armed costs one truth test of an empty mapping. Tests arm the failpoints of a
child process through the environment, and the child logs a warning:
``OMNIGRAPH_FAILPOINTS="publish.before_commit=kill;record.after_put@2=error"``, where ``@n`` means
the n-th time the point is reached (default 1).

Actions: ``kill`` (SIGKILL to itself), ``interrupt`` (SIGINT to itself, as Ctrl-C does),
``raise:NAME`` (raises the built-in exception of this name), ``error`` (raises ``FailpointError``,
a storage failure),
``pause:FILE`` (creates FILE and waits until it is removed), ``stop`` (SIGSTOP to itself),
``count`` (does nothing; ``reached`` returns how often).
"""

from __future__ import annotations

import builtins
import logging
import os
import signal
from collections import Counter
from pathlib import Path

from omnigraph.errors import StorageFailure
from omnigraph.model.retry import poll_policy, wait_until

ENVIRONMENT = "OMNIGRAPH_FAILPOINTS"
log = logging.getLogger(__name__)
PAUSE_POLL = poll_policy(0.005, 600.0, jitter=0.0)

NAMES: dict[str, str] = {
    "init.before_tables": "nothing of the graph exists yet",
    "init.before_manifest": "all tables exist, the manifest does not",
    "create.after_table": "a table exists, the manifest does not refer to it",
    "create.after_files": "the first files of a table are written, the table does not exist yet",
    "init.after_manifest": "the graph exists",
    "record.before_put": "tables are staged, no recovery record yet",
    "record.after_put": "the recovery record is durable, no table has moved",
    "table.before_commit": "a staged table is about to move",
    "table.after_commit": "a table has moved, the manifest has not",
    "publish.before_commit": "the manifest commit is prepared",
    "publish.after_commit": "the manifest commit is durable, the caller has no response yet",
    "record.before_delete": "the write is visible, its record still exists",
    "record.after_delete": "the record is deleted, the caller has no response yet",
    "history.before_put": "a merge is staged, its attribution is not stored yet",
    "history.after_put": "the attribution is stored, no merge refers to it",
    "history.after_erase": "a purged entity is removed from the attribution of one merge",
    "branch.before_ref": "nothing of the new branch exists",
    "branch.after_ref": "the branch's ref exists, its registry row does not",
    "branch.after_row": "the branch exists",
    "branch.before_delete": "the branch is about to be unregistered",
    "branch.after_unregister": "the branch is unregistered, all its files exist",
    "branch.after_forks": "the branch's own tables are removed, its manifest still exists",
    "branch.after_delete": "the branch and its files are deleted",
    "fork.before_ref": "the first write to a type on a branch, nothing forked yet",
    "fork.after_ref": "the fork exists, nothing refers to it",
    "columns.before_step": "a fork is about to change its columns, nothing refers to it",
    "columns.after_step": "the fork has other columns, nothing refers to it",
    "purge.before_files": "a dropped type is no longer visible, all its files exist",
    "purge.after_files": "the files of a dropped type are removed, its purge row still exists",
    "erase.before_versions": "no branch shows a purged entity, its older versions still hold it",
    "erase.after_version": "an older version no longer refers to the files that hold it",
    "erase.after_versions": "no version refers to the files that hold it, they still exist",
    "erase.after_files": "the files are removed, the purge is not marked as done",
    "stage.before_intent": "a bulk write is about to put its intent",
    "stage.after_intent": "the intent is durable, no task has written anything",
    "task.before_files": "a task is about to write files that nothing refers to",
    "task.after_files": "a task has written files, its result has not arrived",
    "stage.after_files": "all tasks have finished, nothing refers to their files",
    "stage.after_clear": "the intermediate files of a bulk write are removed",
    "reset.before_publish": "the old versions are forked, nothing refers to the forks",
    "cleanup.after_horizons": "the horizons are raised, all files of old history exist",
    "cleanup.after_versions": "old versions of a table are removed, their files are not",
    "cleanup.after_files": "the old files of a table are removed",
    "cleanup.after_staging": "the orphaned staging files of dead writers are removed",
    "copy.after_files": "the files of a copy exist, no version refers to them",
    "copy.before_head": "a copy is complete except for the version that makes it visible",
    "copy.after_head": "the copy is a graph",
    "relocate.before_versions": "the branches of a moved graph refer to its old location",
    "relocate.after_version": "one version of a branch refers to the new location",
    "relocate.after_versions": "all versions refer to the new location",
    "repair.before_publish": "the drifted version of a type is about to be published",
    "repair.after_publish": "the drifted version is published",
    "migrate.before_step": "a migration step of a branch is about to run",
    "migrate.after_ref": "a stale ref is removed",
    "migrate.after_work": "a migration step is applied, its version stamp is not written",
    "migrate.after_stamp": "the version stamp of a migration step is written",
    "convert.before_schema_file": "a staged schema file of an original is about to be settled",
    "convert.before_branch": "a branch of an original has no manifest in our layout yet",
    "convert.after_branch": "a branch of an original has one that nothing refers to",
    "convert.before_publish": "a conversion is complete except for the publish of main",
    "convert.after_publish": "an original is a graph of ours, its schema files still exist",
    "convert.after_file": "a schema file of the original is removed",
    "recovery.after_claim": "this process has claimed the record",
    "recovery.before_restore": "a table that moved is about to be restored",
    "recovery.after_restore": "a table was restored, the manifest does not refer to it yet",
    "recovery.before_publish": "the resolution is about to be published",
    "recovery.after_publish": "the resolution is published, the audit row is not written",
    "recovery.after_audit": "the audit row is written, the record still exists",
    "recovery.after_delete": "the record is deleted",
    "cluster.after_lock": "a cluster command holds the lock and has done nothing",
    "cluster.before_intent": "a step on a graph of a cluster is about to be written down",
    "cluster.after_intent": "the intent is durable, the step has not begun",
    "cluster.before_create": "a graph of a cluster is about to be created",
    "cluster.after_create": "the graph exists, the ledger does not know it",
    "cluster.before_schema": "a schema of a cluster is about to be applied",
    "cluster.after_schema": "the schema is applied, the ledger does not know it",
    "cluster.before_payload": "the text of a query or policy is about to be stored",
    "cluster.after_payload": "the text is stored, the ledger does not refer to it",
    "cluster.before_state": "everything is applied, the ledger is not written",
    "cluster.after_state": "the ledger is written, intents may still exist",
    "cluster.before_delete": "an approved deletion of a graph is about to begin",
    "cluster.after_delete": "the graph is deleted, the ledger still has it",
}


class FailpointError(StorageFailure):
    """The failure of the store that an armed failpoint simulates."""

    code = "failpoint"
    default_remedy = "A test armed this failpoint: disarm it."


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
    """Disarm every failpoint and reset the counts."""
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
        os.kill(os.getpid(), signal.SIGINT)  # handled by the main thread, whichever runs here
    elif action == "raise":
        raise getattr(builtins, argument)(f"failpoint {name}")
    elif action == "error":
        raise FailpointError(f"failpoint {name}")
    elif action == "pause":
        _pause(Path(argument))


def _pause(flag: Path) -> None:
    flag.touch()
    wait_until(lambda: not flag.exists(), PAUSE_POLL)


def _arm_from_environment() -> None:
    armed = os.environ.get(ENVIRONMENT, "")
    for entry in filter(None, armed.split(";")):
        point, _, action = entry.partition("=")
        name, _, nth = point.partition("@")
        arm(name.strip(), action.strip(), nth=int(nth or 1))
    if armed:
        log.warning("%s is set: this process stops or fails at %s", ENVIRONMENT, armed)


_arm_from_environment()
