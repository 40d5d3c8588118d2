"""The last step of a conversion: manifests in our layout, on fresh refs, and one publish.

Every branch gets a new ref of the manifest whose newest version holds our rows; its tables stay
where they are. Main comes last, and overwriting it is the one publish that makes the graph ours:
until then the original opens what it always did, and what was made is not referred to. Nothing of a
table is written, and no commit is added.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from omnigraph.catalog.branches.registry import MAIN_BRANCH, Branch, all_branches
from omnigraph.catalog.format import stamp
from omnigraph.catalog.original.layout import CONVERTED_PREFIX, SCHEMA_FILES
from omnigraph.catalog.original.rewrite import rows_until, stage_manifest
from omnigraph.catalog.original.state import OriginalState
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import (
    HORIZON,
    MAIN,
    MANIFEST_PATH,
    Row,
    RowKind,
    TablePin,
)
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.errors import Contention, OmnigraphError
from omnigraph.model.ids import new_ulid
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.errors import CommitRefused
from omnigraph.storage.lance.tables import (
    TableStore,
    operation_properties,
)

log = logging.getLogger("omnigraph.upgrade")


@dataclass(frozen=True, slots=True)
class SeenBranch:
    """A branch of the original and its newest state."""

    branch: Branch
    state: OriginalState


def publish_converted(repository: Repository, seen: Sequence[SeenBranch]) -> None:
    """Make the graph ours; ``seen`` are all branches, main first."""
    tables, operation = repository.tables, new_ulid()
    refs = {one.branch.incarnation: f"{CONVERTED_PREFIX}{new_ulid()}" for one in seen[1:]}
    refs[MAIN] = MAIN
    branches = [_renamed(one.branch, refs) for one in seen[1:]]
    properties = operation_properties(operation, "convert")
    metadata = stamp(repository.graph_id)
    for one, branch in zip(seen[1:], branches, strict=True):
        hit("convert.before_branch")
        fork = tables.fork(one.state.ref, branch.incarnation)
        rows = _rows(tables, one.state, refs)
        tables.commit(stage_manifest(tables.open(fork), rows, metadata, properties))
        hit("convert.after_branch")
    main = seen[0].state
    registry = [branch.to_row() for branch in branches]
    staged = stage_manifest(
        main.table, [*_rows(tables, main, refs), *registry], metadata, properties
    )
    _require_unchanged(repository, seen)
    hit("convert.before_publish")
    try:
        tables.commit(staged)
    except CommitRefused as refused:
        for branch in branches:
            _discard(tables, branch)
        raise moved_meanwhile(repository.location.uri) from refused
    hit("convert.after_publish")


def remove_leftovers(repository: Repository) -> None:
    """Remove the schema files of the original: the schema is in the manifest now.

    Without them the original's program refuses the graph instead of misreading it.
    """
    for name in SCHEMA_FILES:
        repository.objects.delete(name)
        hit("convert.after_file")


def seen_branches(repository: Repository) -> list[SeenBranch]:
    """The newest state of every branch, main first."""
    branches = all_branches(repository.main.current()).values()
    found = []
    for branch in sorted(branches, key=lambda b: (b != MAIN_BRANCH, b.name)):
        state = repository.manifest(branch).current()
        if not isinstance(state, OriginalState):
            raise moved_meanwhile(repository.location.uri)
        found.append(SeenBranch(branch, state))
    return found


def moved_meanwhile(uri: str) -> Contention:
    return Contention(
        f"the graph at {uri} was written to while it was being converted",
        remedy="Stop the program that writes to it, then repeat the command.",
    )


def _require_unchanged(repository: Repository, seen: Sequence[SeenBranch]) -> None:
    for one in seen:
        if repository.tables.newest_from(one.state.ref) != one.state.ref:
            raise moved_meanwhile(repository.location.uri)


def _discard(tables: TableStore, branch: Branch) -> None:
    """Remove a ref that was never registered; a failure leaves it to cleanup."""
    try:
        tables.drop_fork(MANIFEST_PATH, branch.incarnation)
    except OmnigraphError as error:
        log.warning("could not remove the unused ref %s: %s", branch.incarnation, error.message)


def _renamed(branch: Branch, refs: Mapping[str, str]) -> Branch:
    """A branch under its new incarnation."""
    parent = None if branch.parent is None else refs.get(branch.parent, MAIN)
    return replace(branch, incarnation=refs[branch.incarnation], parent=parent)


def _rows(tables: TableStore, state: OriginalState, refs: Mapping[str, str]) -> list[Row]:
    """The rows of a state in our layout; pins name their transactions and owners of now."""

    def completed(pin: TablePin) -> TablePin:
        try:
            made = tables.transaction(pin.ref).uuid or ""
        except OmnigraphError:
            made = ""  # removed by the original's cleanup, or damaged: reading it says which
        return replace(pin, owner=refs.get(pin.owner, pin.owner), transaction=made)

    snapshot = SnapshotPins.of(MAIN_BRANCH, state)
    rows = rows_until(state, snapshot, completed)
    if state.horizon:
        rows.append(Row(HORIZON, RowKind.HORIZON, {"version": state.horizon}))
    return rows
