"""Writes a whole manifest in our layout: of a converted graph, and of forks of states before that.

History rows that are written later than what they tell state the manifest version they are of. The
version of the manifest that a state before the conversion had is the original's; a fork of it is
made from the newest version, with the history up to that state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.format import stamp
from omnigraph.catalog.original.layout import CONVERTED_PREFIX
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import (
    MANIFEST_PATH,
    Head,
    Row,
    TablePin,
    manifest_schema,
    rows_to_arrow,
)
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.catalog.state import ManifestState
from omnigraph.storage.lance.errors import TableNotFound
from omnigraph.storage.lance.staging.rows import stage_layout
from omnigraph.storage.lance.tables import (
    PinnedTable,
    StagedWrite,
    TableRef,
    operation_properties,
)


def rows_until(
    state: ManifestState,
    snapshot: SnapshotPins,
    completed: Callable[[TablePin], TablePin] = lambda pin: pin,
) -> list[Row]:
    """The rows of a manifest that ends with a snapshot; ``completed`` is applied to every pin."""
    until, timeline = snapshot.manifest_version, state.timeline
    commits = timeline.read_commits(range(timeline.commits.until(until)))
    head = Head(snapshot.commit_id, snapshot.schema_hash, state.head.branch)
    schemas = {commit.schema_hash for commit in commits} | {head.schema_hash}
    rows = [row for name in sorted(filter(None, schemas)) if (row := state.row(f"schema:{name}"))]
    rows += [completed(pin).to_row() for pin in snapshot.pins.values()]
    for track in timeline.types.values():
        places = track.rows[: track.until(until)]
        pins = timeline.read_pins(places)
        for version, place in zip(track.versions, places, strict=False):
            rows.append(completed(pins[place]).to_version_row(published=version))
    rows += [replace(c.to_row(), table_version=c.manifest_version) for c in commits]
    return [*rows, head.to_row()]


def stage_manifest(
    table: PinnedTable,
    rows: Sequence[Row],
    metadata: Mapping[str, str],
    properties: Mapping[str, str],
) -> StagedWrite:
    """Replace all rows of a manifest: history without the column ``current``, then the others."""
    history = rows_to_arrow([row for row in rows if not row.is_current], history_only=True)
    current = rows_to_arrow([row for row in rows if row.is_current])
    return stage_layout(table, (history, current), manifest_schema(metadata), properties)


def is_before_conversion(repository: Repository, source: Branch, version: int) -> bool:
    """Whether the manifest of a state is one of the original, or was on a ref of it."""
    ref = TableRef(MANIFEST_PATH, source.ref, version)
    try:
        stored = repository.tables.open(ref)
    except TableNotFound:
        return source.incarnation.startswith(CONVERTED_PREFIX)
    return repository.migrator(source).accept(stored).original


def fork_before_conversion(repository: Repository, branch: Branch, start: SnapshotPins) -> None:
    """Make the ref of a branch that is forked at a state before the conversion."""
    state = repository.manifest(start.branch).current()
    fork = repository.tables.fork(state.ref, branch.incarnation)
    properties = operation_properties(branch.incarnation, "fork")
    rows = rows_until(state, start)
    metadata = stamp(repository.graph_id)
    repository.tables.commit(
        stage_manifest(repository.tables.open(fork), rows, metadata, properties)
    )
