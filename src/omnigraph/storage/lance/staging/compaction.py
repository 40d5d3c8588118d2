"""Compaction: merges small fragments and removes deleted rows, in bounded pieces.

Owns which fragments ``optimize`` rewrites (``compaction_tiers`` decides for automatic upkeep) and
the pieces of work. A piece stays valid while the fragments it replaces are unchanged, whatever else
happens to the table. Row ids and version columns stay; nothing here commits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lance import LanceOperation, Transaction
from lance.optimize import Compaction, CompactionTask

from omnigraph.storage.lance.errors import translated
from omnigraph.storage.lance.staging.compaction_tiers import choose_fragments
from omnigraph.storage.lance.staging.rows import stage_maintenance
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite

FRAGMENT_ROWS: Final = 1 << 20
"""The target size of a fragment, in rows: opening costs 0.15 ms per fragment."""
DELETED_SHARE_MAX: Final = 0.1
"""Fragments with a larger share of deleted rows are rewritten: scans read deleted rows."""
BATCH_ROWS: Final = 8_192
"""Rows per batch while a fragment is rewritten, which bounds memory."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some neighbouring fragments, and the files that will replace them."""

    dataset_path: str  # where the files are
    old: tuple[Any, ...]
    new: tuple[Any, ...]

    def holds_for(self, table: PinnedTable) -> bool:
        """Whether this version has the old fragments unchanged.

        A fork of the table has them, too, but its new files are in another directory.
        """
        if table.ref.dataset_path != self.dataset_path:
            return False
        return all(_content(table.fragments.get(old.id)) == _content(old) for old in self.old)


def rewrite_pieces(table: PinnedTable) -> list[Piece]:
    """Plan and rewrite all pieces in this process."""
    return [rewrite_piece(table, work) for work in plan_pieces(table)]


def plan_pieces(table: PinnedTable) -> list[str]:
    """The pieces to rewrite, serialised so that any process can execute them."""
    return _plan(
        table,
        {
            "target_rows_per_fragment": FRAGMENT_ROWS,
            "materialize_deletions_threshold": DELETED_SHARE_MAX,
            "batch_size": BATCH_ROWS,
            "num_threads": 1,
        },
    )


def drop_deleted(table: PinnedTable, only: Collection[int] | None = None) -> list[Piece]:
    """Rewrite every fragment that has deleted rows, however few; ``only`` limits the fragments."""
    whole = [
        fragment_id
        for fragment_id, about in table.fragments.items()
        if not about.num_deletions or (only is not None and fragment_id not in only)
    ]
    options = {"materialize_deletions_threshold": 0.0, "excluded_fragment_ids": whole}
    return [rewrite_piece(table, work) for work in _plan(table, options)]


def stage_compaction(table: PinnedTable, properties: Mapping[str, str]) -> StagedWrite | None:
    """Stage the compaction of automatic upkeep; None when there are few small fragments.

    Large fragments are left alone (see ``compaction_tiers``), so that the cost of upkeep is
    proportional to the rows written, not to the table.
    """
    sizes = {fragment_id: f.physical_rows for fragment_id, f in table.fragments.items()}
    chosen = choose_fragments(sizes)
    if len(chosen) < 2:
        return None
    options = {
        "excluded_fragment_ids": [f for f in sizes if f not in chosen],
        "target_rows_per_fragment": max(sum(sizes[f] for f in chosen), 1) + 1,
    }
    pieces = [rewrite_piece(table, work) for work in _plan(table, options)]
    return stage_pieces(table, pieces, properties)


def rewrite_piece(table: PinnedTable, work: str) -> Piece:
    """Execute one piece on the version it was planned for."""
    with translated(f"compacting {table.ref.path}"):
        made = CompactionTask.from_json(work).execute(table.dataset)
    new, old = tuple(made.new_fragments), tuple(made.original_fragments)
    return Piece(table.ref.dataset_path, old, new)


def stage_pieces(
    table: PinnedTable, pieces: Sequence[Piece], properties: Mapping[str, str]
) -> StagedWrite | None:
    """Stage one commit of all pieces; None when there are none."""
    if not pieces:
        return None
    groups = [LanceOperation.RewriteGroup(list(piece.old), list(piece.new)) for piece in pieces]
    operation = LanceOperation.Rewrite(groups, [])
    return stage_maintenance(table, "compaction", Transaction, operation, properties)


def _plan(table: PinnedTable, options: dict[str, Any]) -> list[str]:
    with translated(f"compacting {table.ref.path}"):
        return [task.json() for task in Compaction.plan(table.dataset, options).tasks]


def _content(fragment: Any) -> Any:
    if fragment is None:
        return None
    return [file.path for file in fragment.files], fragment.deletion_file
