"""Staged index builds: files and a prepared transaction, never a new version.

An index is replaced by removing its old segments in the same transaction: segments that stay would
return rows twice. Reads never depend on an index being present or current.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lance
from lance import LanceOperation, Transaction
from lance.indices import IndexConfig

from omnigraph.storage.lance.errors import translated
from omnigraph.storage.lance.staging.rows import stage_maintenance
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite

INDEX_SEGMENTS_MAX = 8  # an index with this many segments is rebuilt
PAGES_AIM = 4096
"""The target number of pages of a lookup index. The first lookup reads the bounds of all pages and
then one page per value, so that neither may be large."""
PAGE_ROWS_MIN, PAGE_ROWS_MAX = 512, 4096
VECTOR_INDEX = "IVF_FLAT"


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """An index to build: its column, Lance's kind and options."""

    column: str
    kind: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.column}_{self.kind.lower()}"


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """The files of an index, or of a new segment of one, that no version refers to yet.

    They stay valid while the covered fragments have the same data files: Lance ignores rows that
    were deleted or replaced since, as for any index that is older than its table.
    """

    spec: IndexSpec
    index: Any
    covers: Mapping[int, tuple[str, ...]]
    whole: bool  # replaces all segments of the index of this name

    dataset_path: str  # where the files are

    def holds_for(self, table: PinnedTable) -> bool:
        """Whether this version has the same column in the same files.

        False for a fork of the table, whose index files are in another directory, and when the
        column was dropped and another one has its name now.
        """
        if table.ref.dataset_path != self.dataset_path:
            return False
        stored = table.dataset.lance_schema.fields()
        if list(self.index.fields) != [f.id() for f in stored if f.name() == self.spec.column]:
            return False
        return all(_files(table, fragment) == files for fragment, files in self.covers.items())


def build_part(table: PinnedTable, spec: IndexSpec, fragment_ids: Sequence[int]) -> Any:
    """Build a segment of an index over some fragments, for ``join_parts``."""
    with translated(f"building an index on {table.ref.path}"):
        return table.private_dataset().create_index_uncommitted(
            spec.column,
            _kind(table, spec, fragment_ids),
            name=spec.name,
            fragment_ids=list(fragment_ids),
            replace=True,
            **_options(table, spec),
        )


def join_parts(table: PinnedTable, parts: Sequence[Any]) -> Any:
    """Merge segments that cover different fragments into one index.

    A single segment needs this step, too: without it an inverted index commits and then fails
    every search.
    """
    with translated(f"building an index on {table.ref.path}"):
        return table.dataset.merge_existing_index_segments(list(parts))


def build_in_process(table: PinnedTable, spec: IndexSpec, fragment_ids: Sequence[int]) -> Any:
    """An index over some fragments, built in this process."""
    return join_parts(table, [build_part(table, spec, fragment_ids)])


Build = Callable[[PinnedTable, IndexSpec, Sequence[int]], Any]
"""Builds an index over some fragments, in this process or on executors."""


def build_indexes(
    table: PinnedTable,
    specs: Sequence[IndexSpec],
    known: Sequence[BuiltIndex] = (),
    build: Build = build_in_process,
) -> Iterator[BuiltIndex]:
    """Build indexes for the rows that no stored or ``known`` index of these names covers.

    Lookup indexes get one more segment, so that the cost is proportional to the rows written; an
    index with many segments, and every other kind, is rebuilt.
    """
    stored = stored_indexes(table)
    for spec in specs:
        parts = [part for part in stored.get(spec.name, ()) if part.live]
        mine = [built for built in known if built.spec == spec]
        covered = {f for part in parts for f in part.live} | {f for b in mine for f in b.covers}
        missing = [fragment for fragment in table.fragments if fragment not in covered]
        if mine or (spec.name in stored and not missing and has_options(table, spec)):
            continue  # rows written since the build are indexed by the next run
        whole = spec.kind != "BTREE" or not parts or len(parts) >= INDEX_SEGMENTS_MAX
        fragments = list(table.fragments) if whole else missing
        index = build(table, spec, fragments)
        covers = {f: _files(table, f) for f in fragments}
        yield BuiltIndex(spec, index, covers, whole, table.ref.dataset_path)


def _kind(table: PinnedTable, spec: IndexSpec, fragments: Sequence[int]) -> Any:
    """The index kind for Lance; lookup indexes get a page size that fits the number of rows."""
    if spec.kind != "BTREE":
        return spec.kind
    rows = sum(table.fragments[fragment].physical_rows for fragment in fragments)
    page_rows = min(max(rows // PAGES_AIM, PAGE_ROWS_MIN), PAGE_ROWS_MAX)
    return IndexConfig("btree", {"zone_size": page_rows})


def stage_built(
    table: PinnedTable, built: Sequence[BuiltIndex], properties: Mapping[str, str]
) -> StagedWrite | None:
    """Stage one commit of these indexes; None when there are none."""
    if not built:
        return None
    stored = stored_indexes(table)
    replaced = [
        part.segment
        for one in built
        for part in stored.get(one.spec.name, ())
        if one.whole or not part.live
    ]
    operation = LanceOperation.CreateIndex([one.index for one in built], replaced)
    return stage_maintenance(table, "index_build", Transaction, operation, properties)


def stage_indexes(
    table: PinnedTable, specs: Sequence[IndexSpec], properties: Mapping[str, str]
) -> StagedWrite | None:
    """Stage an update of these indexes; None when they are current."""
    return stage_built(table, list(build_indexes(table, specs)), properties)


def has_options(table: PinnedTable, spec: IndexSpec) -> bool:
    """Whether the stored index of this name was built with the options of ``spec``."""
    if not spec.kind.startswith("IVF") or spec.name not in stored_indexes(table):
        return True
    wanted = _options(table, spec)
    with translated(f"reading the indexes of {table.ref.path}"):
        parts = table.dataset.stats.index_stats(spec.name)["indices"]
    built = {(part["metric_type"], part["num_partitions"]) for part in parts}
    return built == {(wanted["metric"], wanted["num_partitions"])}


def _options(table: PinnedTable, spec: IndexSpec) -> dict[str, Any]:
    """The options for Lance; an index cannot have more partitions than there are vectors."""
    options = dict(spec.options)
    if spec.kind.startswith("IVF") and options["num_partitions"] > 1:
        vectors = table.dataset.count_rows(filter=f"`{spec.column}` IS NOT NULL")
        options["num_partitions"] = max(min(options["num_partitions"], int(vectors)), 1)
    return options


def vector_index(column: str) -> str:
    """The name of the vector index of a column."""
    return IndexSpec(column, VECTOR_INDEX).name


def stage_drop_indexes(
    table: PinnedTable, names: Collection[str], properties: Mapping[str, str]
) -> StagedWrite | None:
    """Stage the removal of indexes; None when there are none of these names."""
    stored = stored_indexes(table)
    segments = [part.segment for name in names for part in stored.get(name, ())]
    if not segments:
        return None
    operation = LanceOperation.CreateIndex([], segments)
    return stage_maintenance(table, "index_drop", Transaction, operation, properties)


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """One stored segment of an index."""

    segment: Any  # in the form that a transaction removes
    kind: str
    live: frozenset[int]  # the fragments of this version that it covers
    size: int


def stored_indexes(table: PinnedTable) -> dict[str, list[StoredSegment]]:
    """The segments of every index of this version, by the name of the index."""
    found: dict[str, list[StoredSegment]] = {}
    with translated(f"reading the indexes of {table.ref.path}"):
        for index in table.dataset.describe_indices():
            for part in index.segments:
                segment = lance.Index(
                    uuid=part.uuid,
                    name=index.name,
                    fields=index.fields,
                    dataset_version=part.dataset_version_at_last_update,
                    fragment_ids=part.fragment_ids,
                    index_version=part.index_version,
                )
                live = frozenset(int(f) for f in part.fragment_ids if int(f) in table.fragments)
                stored = StoredSegment(segment, index.index_type, live, part.size_bytes or 0)
                found.setdefault(index.name, []).append(stored)
    return found


def _files(table: PinnedTable, fragment: int) -> tuple[str, ...]:
    metadata = table.fragments.get(fragment)
    return () if metadata is None else tuple(file.path for file in metadata.files)
