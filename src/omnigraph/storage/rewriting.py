"""Rewriting a fork so that it needs nothing of the table it came from, nor any dropped column.

Every file is written anew below the fork, rows in their order, under the row ids and stamps they
have. Afterwards everything else of the table can be deleted without anybody missing it. Works only
on forks that nobody refers to yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnigraph.storage.columns import commit_unpublished
from omnigraph.storage.lance_errors import translated
from omnigraph.storage.staging import stage_maintenance, write_rows
from omnigraph.storage.tables import PinnedTable, TableStore


def rewrite_fork(
    store: TableStore, table: PinnedTable, properties: Mapping[str, str]
) -> PinnedTable:
    """The fork with files of its own only, without indexes, which upkeep builds again."""
    from lance import LanceOperation

    indexes = _indexes(table)
    if indexes:
        operation: Any = LanceOperation.CreateIndex([], indexes)
        table = _moved(store, table, operation, properties)
    groups = _without_deletions(table)
    if groups:
        table = _moved(store, table, LanceOperation.Rewrite(groups, []), properties)
    groups = [_copied(table, fragment) for fragment in table.fragments.values()]
    if groups:
        table = _moved(store, table, LanceOperation.Rewrite(groups, []), properties)
    return table


def _moved(
    store: TableStore, table: PinnedTable, operation: Any, properties: Mapping[str, str]
) -> PinnedTable:
    from lance import Transaction

    staged = stage_maintenance(table, "rewrite", Transaction, operation, properties)
    return commit_unpublished(store, staged)


def _indexes(table: PinnedTable) -> list[Any]:
    """Every segment of every index, in the form in which it is removed."""
    import lance

    return [
        lance.Index(
            uuid=segment.uuid,
            name=index.name,
            fields=index.fields,
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=segment.fragment_ids,
            index_version=segment.index_version,
        )
        for index in table.dataset.describe_indices()
        for segment in index.segments
    ]


def _without_deletions(table: PinnedTable) -> list[Any]:
    """Fragments with deleted rows, compacted: only Lance can tell the stamps of what is left."""
    from lance import LanceOperation
    from lance.optimize import Compaction

    with translated(f"rewriting {table.ref.path}"):
        # So small a target makes no two fragments one.
        options = {"materialize_deletions_threshold": 0.0, "target_rows_per_fragment": 1}
        plan = Compaction.plan(table.dataset, options)
        results = [task.execute(table.dataset) for task in plan.tasks]
    return [LanceOperation.RewriteGroup(r.original_fragments, r.new_fragments) for r in results]


def _copied(table: PinnedTable, fragment: Any) -> Any:
    """One fragment without deleted rows, written again as it is."""
    from lance import LanceOperation

    names = [field.name for field in table.dataset.schema]
    with translated(f"rewriting {table.ref.path}"):
        rows = table.dataset.get_fragment(fragment.id).to_table(columns=names)
        (written,) = write_rows(table, rows)
    kept = replace(
        written,
        row_id_meta=fragment.row_id_meta,
        created_at_version_meta=fragment.created_at_version_meta,
        last_updated_at_version_meta=fragment.last_updated_at_version_meta,
    )
    return LanceOperation.RewriteGroup([fragment], [kept])
