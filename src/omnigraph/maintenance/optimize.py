"""``optimize``: a branch's files as they should be, without changing anything that it says.

A publish puts compacted files into place, another one brings the indexes up to date; neither adds
a graph commit. Lance joins only files that the same indexes cover, so there is a second round when
the first one has evened that out. Tables are rewritten in pieces of bounded size; when a writer was
faster, pieces whose rows it did not touch are kept. History is never removed here.
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
from omnigraph.maintenance.publish import Together, own_keys, publish_together
from omnigraph.storage.lance.staging.compaction import Piece, rewrite_pieces, stage_pieces
from omnigraph.storage.lance.tables import PinnedTable, StagedWrite
from omnigraph.transaction.prepared import WriteInfo
from omnigraph.transaction.transaction import WriteTransaction

Rewrite = Callable[[PinnedTable], list[Piece]]

INFO: Final = WriteInfo("optimize", makes_commit=False)
ROUNDS_MAX: Final = 3
"""Two are enough on a quiet graph; on a busy one there is always something more to do."""


@dataclass(frozen=True, slots=True)
class Optimized:
    """What was done to one type."""

    type_key: str
    fragments_removed: int = 0
    fragments_added: int = 0
    committed: bool = False
    skipped: str | None = None
    published_version: int | None = None
    head_version: int | None = None  # only of a type that was skipped
    pending_indexes: tuple[tuple[str, str], ...] = ()  # properties and reasons

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


@dataclass(slots=True)
class Compacting:
    """Compacts types; pieces are kept between attempts, while they are good."""

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


@dataclass(slots=True)
class _Done:
    """What the rounds did, by type key."""

    removed: Counter[str] = field(default_factory=Counter)
    added: Counter[str] = field(default_factory=Counter)
    committed: set[str] = field(default_factory=set)
    skipped: dict[str, str] = field(default_factory=dict)
    heads: dict[str, int] = field(default_factory=dict)

    def note(self, together: Together) -> None:
        self.committed |= together.published.keys()
        self.skipped |= together.skipped
        self.heads |= together.heads


def optimize(
    repository: Repository,
    transaction: WriteTransaction,
    branch: Branch,
    rewrite: Rewrite = rewrite_pieces,
) -> list[Optimized]:
    """Compact and index every type that the branch has of its own.

    ``rewrite`` writes the new files of a table, here or elsewhere; nothing refers to them yet.
    """
    transaction.enter(branch)
    keys = own_keys(repository, branch)
    done = _Done()
    for _ in range(ROUNDS_MAX):
        stage = Compacting(rewrite)
        left = [key for key in keys if key not in done.skipped]
        compacted = publish_together(repository, transaction, branch, INFO, left, stage)
        done.note(compacted)
        for key in compacted.published:
            done.removed[key] += sum(len(piece.old) for piece in stage.pieces[key])
            done.added[key] += sum(len(piece.new) for piece in stage.pieces[key])
        done.note(build_all(repository, transaction, branch, left))
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
            done.removed[key],
            done.added[key],
            key in done.committed,
            done.skipped.get(key),
            pins[key].ref.version if key in pins else None,
            done.heads.get(key),
            tuple(pending.get(key, ())),
        )
        for key in keys
    ]
    # The manifest folds itself as part of publishing; it is named because it is a table, too.
    version = repository.manifest(branch).current().version
    return [*types, Optimized(MANIFEST_PATH, published_version=version)]
