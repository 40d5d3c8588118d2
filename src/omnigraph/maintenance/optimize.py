"""``optimize``: compacts the tables of a branch and brings their indexes up to date.

Compaction and index build are published separately, without a graph commit, and change no answer.
Lance compacts only fragments that the same indexes cover, so a second round follows the first index
build. Tables are rewritten in pieces of bounded size; after an optimistic conflict, pieces whose
rows did not change are reused. History is never removed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MANIFEST_PATH
from omnigraph.maintenance.indexes import NO_VECTORS, build_all, list_indexes
from omnigraph.maintenance.publish import MaintenancePublisher, PublishReport
from omnigraph.storage.lance.staging.compaction import Piece, rewrite_pieces, stage_pieces
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite
from omnigraph.transaction.prepared import WriteInfo
from omnigraph.transaction.transaction import WriteTransaction

Rewrite = Callable[[PinnedTable], list[Piece]]

INFO: Final = WriteInfo("optimize", makes_commit=False)
ROUNDS_MAX: Final = 3
"""Rounds of compaction and index build. Two are enough without concurrent writers."""


@dataclass(frozen=True, slots=True)
class Optimized:
    """What was done to one type."""

    type_key: str
    fragments_removed: int = 0
    fragments_added: int = 0
    committed: bool = False
    skipped: str | None = None
    published_version: int | None = None
    head_version: int | None = None
    """The newest version of a table that was skipped because of drift."""
    pending_indexes: tuple[tuple[str, str], ...] = ()
    """Properties whose index cannot be built yet, with the reason."""

    def to_json(self) -> dict[str, Any]:
        return {
            "type_key": self.type_key,
            "fragments_removed": self.fragments_removed,
            "fragments_added": self.fragments_added,
            "committed": self.committed,
            "skipped": self.skipped,
            "published_dataset_version": self.published_version,
            "lance_head_version": self.head_version,
            "pending_indexes": [
                {"property": name, "reason": reason} for name, reason in self.pending_indexes
            ],
        }


@dataclass(frozen=True, slots=True)
class StageCompaction:
    """Stages the compaction of types; valid pieces are reused by the next attempt."""

    rewrite: Rewrite = rewrite_pieces
    pieces: dict[str, list[Piece]] = field(default_factory=dict)

    def __call__(
        self, key: str, table: PinnedTable, properties: Mapping[str, str]
    ) -> StagedWrite | None:
        kept = [piece for piece in self.pieces.get(key, ()) if piece.holds_for(table)]
        if not kept:
            kept = self.rewrite(table)
        self.pieces[key] = kept
        return stage_pieces(table, kept, properties)


def optimize(
    repository: Repository,
    transaction: WriteTransaction,
    branch: Branch,
    rewrite: Rewrite = rewrite_pieces,
) -> list[Optimized]:
    """Compact and index every type that the branch has its own table of.

    ``rewrite`` writes the compacted files of a table, in process or on executors.
    """
    transaction.enter(branch)
    publisher = MaintenancePublisher(repository, transaction, branch)
    keys = publisher.own_types()
    done = PublishReport()
    removed: Counter[str] = Counter()
    added: Counter[str] = Counter()
    for _ in range(ROUNDS_MAX):
        stage = StageCompaction(rewrite)
        left = [key for key in keys if key not in done.skipped]
        compacted = publisher.publish(INFO, left, stage)
        for key in compacted.published:
            removed[key] += sum(len(piece.old) for piece in stage.pieces[key])
            added[key] += sum(len(piece.new) for piece in stage.pieces[key])
        done = done | compacted | build_all(repository, transaction, branch, left)
        if not compacted.published:
            break
    pending: dict[str, list[tuple[str, str]]] = {}
    for index in list_indexes(repository, branch):
        if index.state == "pending":
            pending.setdefault(index.type_key, []).append((index.property, NO_VECTORS))
    pins = repository.snapshot(branch).pins
    types = [
        Optimized(
            key,
            removed[key],
            added[key],
            key in done.published,
            done.skipped.get(key),
            pins[key].ref.version if key in pins else None,
            done.newest_versions.get(key),
            tuple(pending.get(key, ())),
        )
        for key in keys
    ]
    # A publish compacts the manifest; it is listed because it is a table, too.
    version = repository.manifest(branch).current().version
    return [*types, Optimized(MANIFEST_PATH, published_version=version)]
