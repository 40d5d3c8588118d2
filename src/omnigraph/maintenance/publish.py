"""Maintenance of several types as one publish that writers need not wait for.

What is asked for is staged type by type on one snapshot and published together, without a graph
commit. When another writer was faster, only the step is prepared again: whoever stages keeps the
files that are still good. A type that stays too busy, or that was changed from outside, is left
out and named, so that the others get what they need.
"""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import TablePin
from omnigraph.errors import Conflict, Drift, RecoveryRequired
from omnigraph.model.ids import new_ulid
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite, operation_properties
from omnigraph.transaction.prepared import PreparedTable, PreparedWrite, WriteInfo
from omnigraph.transaction.transaction import WriteTransaction

ATTEMPTS_MAX: Final = 30
"""How often a step is prepared again: cheap, because the files it names are there already."""
BACKOFF_S: Final = 0.01
BACKOFF_MAX_S: Final = 0.5
PATIENCE: Final = 10
"""After this many attempts, types are published one by one: a busy one must not hold up others."""

BUSY: Final = "busy"
DRIFT: Final = "drift_needs_repair"


class Stage(Protocol):
    """Stages a step of one type; None when there is nothing to do. May be asked again."""

    def __call__(
        self, key: str, table: PinnedTable, properties: Mapping[str, str]
    ) -> StagedWrite | None: ...


@dataclass(slots=True)
class Together:
    """What became of each type."""

    published: dict[str, TablePin] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    heads: dict[str, int] = field(default_factory=dict)  # newest versions of drifted tables


def own_keys(repository: Repository, branch: Branch) -> list[str]:
    """The types that a branch has tables of its own for; others are its parent's to maintain."""
    pins = repository.snapshot(branch).pins
    return [key for key, pin in pins.items() if pin.owner == branch.incarnation]


def publish_together(
    repository: Repository,
    transaction: WriteTransaction,
    branch: Branch,
    info: WriteInfo,
    keys: Collection[str],
    stage: Stage,
) -> Together:
    """Publish one step of each of these types, as one publish unless a type is too busy."""
    found = Together()
    left = set(keys)
    for attempt in range(ATTEMPTS_MAX):
        if not left:
            return found
        if attempt:
            time.sleep(random.uniform(0, min(BACKOFF_MAX_S, BACKOFF_S * 2**attempt)))
        rounds = [left] if attempt < PATIENCE else [{key} for key in sorted(left)]
        for chosen in rounds:
            left -= _attempt(repository, transaction, branch, info, set(chosen), stage, found)
    found.skipped.update(dict.fromkeys(left, BUSY))
    return found


def _attempt(
    repository: Repository,
    transaction: WriteTransaction,
    branch: Branch,
    info: WriteInfo,
    keys: set[str],
    stage: Stage,
    found: Together,
) -> set[str]:
    """Try once; returns the types that are settled."""
    transaction.enter(branch)
    operation_id = new_ulid()
    properties = operation_properties(operation_id, info.kind)
    snapshot = repository.snapshot(branch)
    pins = [snapshot.pins[k] for k in sorted(keys & snapshot.pins.keys())]
    tables = tuple(_stage(repository, branch, pins, stage, properties))
    if not tables:
        return keys
    try:
        transaction.commit(PreparedWrite(operation_id, snapshot, info, tables))
    except Drift as drift:
        key = drift.details.get("type_key")
        if key is None:
            return set()  # a table moved under this very step, which was undone
        found.skipped[key] = DRIFT
        found.heads[key] = drift.details["newest_version"]
        return {key}
    except (Conflict, RecoveryRequired):
        return set()
    now = repository.snapshot(branch).pins
    found.published.update({t.pin.key: now[t.pin.key] for t in tables if t.pin.key in now})
    return keys


def _stage(
    repository: Repository,
    branch: Branch,
    pins: Collection[TablePin],
    stage: Stage,
    properties: Mapping[str, str],
) -> Iterator[PreparedTable]:
    for pin in pins:
        if pin.owner != branch.incarnation:
            continue
        staged = stage(pin.key, repository.tables.open(pin.ref), properties)
        if staged is not None:
            yield PreparedTable(pin, staged)
