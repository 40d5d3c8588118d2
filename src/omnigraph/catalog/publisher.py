"""The atomic publish: one strict commit to ``__manifest`` makes a whole write visible.

Every publication replaces the branch's head row. Two publishers of one branch therefore always
conflict in Lance and exactly one wins. The other re-reads the state, re-checks its requirements,
takes the new head as its parent and retries with backoff. The cost does not depend on the number of
earlier commits: superseded rows are deleted at known addresses, and the new ones go into one small
fragment. When there are too many small fragments, the same commit compacts them: current rows into
one fragment, history into another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceOperation, Transaction
from lance.fragment import RowIdSequence, write_fragments

from omnigraph.catalog.publication import Publication, PublicationRows
from omnigraph.catalog.rows import CURRENT, Commit, Row, history_schema, rows_to_arrow
from omnigraph.catalog.state import (
    ManifestState,
    current_fragments,
    history_fragments,
    load_state,
    state_after,
)
from omnigraph.errors import (
    Conflict,
    Contention,
    OmnigraphError,
    OutcomeUnknown,
    OwnershipLost,
    StorageFailure,
)
from omnigraph.model.clock import Clock
from omnigraph.model.retry import RetryPolicy
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.errors import AmbiguousOutcome, CommitRefused, translated
from omnigraph.storage.lance.staging.compaction_tiers import SMALL_FRAGMENTS_MAX, choose_fragments
from omnigraph.storage.lance.tables import StagedWrite, TableStore, operation_properties

# At least five attempts on a slow store, and at least ten seconds of them on a fast one.
PUBLISH_RETRY = RetryPolicy(base_s=0.004, cap_s=0.25, attempts_min=5, deadline_s=10.0)
HISTORY_FRAGMENTS_MAX = 8
_OFFSET_MASK = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class Published:
    """The outcome of a publish: the new state, and the commit as stored."""

    state: ManifestState
    commit: Commit | None


class Publisher:
    """Publishes to one branch's manifest. Holds no state of its own between calls."""

    def __init__(
        self,
        store: TableStore,
        refresh: Callable[[], ManifestState],
        migrated: Callable[[ManifestState], ManifestState],
        find_commit: Callable[[ManifestState, str], Commit | None],
        clock: Clock,
    ) -> None:
        self._store = store
        self._refresh = refresh
        self._migrated = migrated
        self._find_commit = find_commit
        self._clock = clock

    def publish(self, publication: Publication, state: ManifestState) -> Published:
        """Make ``publication`` visible, starting from a possibly stale ``state``."""
        retry = PUBLISH_RETRY.start(self._clock)
        while True:
            try:
                state = self._migrated(state)  # free once the branch has the current format
                self._check(publication, state)
                return self._attempt(publication, state)
            except (CommitRefused, AmbiguousOutcome) as failure:
                may_retry = retry.failed()
                retry.back_off()
                landed, state = self._find_outcome(publication, state, failure)
                if landed is not None:
                    return landed
                if not may_retry:
                    raise _gave_up(publication, retry.failures, failure) from failure
            except Conflict:
                fresh = self._refresh()
                if fresh.version == state.version:
                    return self._refused(publication, state)
                state = fresh  # the check used a stale state: repeat it

    def _check(self, publication: Publication, state: ManifestState) -> None:
        if state.row(f"abandoned:{publication.operation_id}") is not None:
            raise OwnershipLost(
                "another process took over this write while it was paused, and rolled it back",
                remedy="Nothing of this write is visible. Read the current state and repeat it.",
                details={"commit_id": publication.operation_id},
            )
        publication.requirements.check(state)

    def _refused(self, publication: Publication, state: ManifestState) -> Published:
        """Raise the conflict of the unmet requirement, unless this commit was already published."""
        if publication.commit is not None:
            published = self._find_commit(state, publication.commit.commit_id)
            if published is not None:
                return Published(state, published)
        self._check(publication, state)
        raise AssertionError("a refused publication has an unmet requirement")

    def _find_outcome(
        self, publication: Publication, attempted: ManifestState, failure: OmnigraphError
    ) -> tuple[Published | None, ManifestState]:
        """Search the versions made since the attempt for the operation; returns the newest state.

        Needed after an ambiguous outcome, and also after a refusal: a client that repeats a request
        whose response was lost is refused because of its own first success. The next attempt must
        build on the state that was searched, because a delayed request may still land after it.
        """
        try:
            fresh = self._refresh()
            for version in range(attempted.version + 1, fresh.version + 1):
                made = self._store.transaction(attempted.ref.at(version))
                if made.operation == publication.operation_id:
                    return Published(fresh, _commit_at(publication, attempted, version)), fresh
        except StorageFailure as second:
            raise OutcomeUnknown(
                f"the response to the publish was lost ({failure.message}) and its outcome "
                f"could not be read ({second.message})",
                details={"commit_id": publication.commit_id},
            ) from failure
        return None, fresh

    def _attempt(self, publication: Publication, state: ManifestState) -> Published:
        rows = publication.rows(state)
        compacts = len(current_fragments(state.table)) > SMALL_FRAGMENTS_MAX
        operation = _stage_compacting(state, rows) if compacts else _stage(state, rows)
        transaction = _transaction(state, operation, publication)
        write = StagedWrite(state.ref, transaction, "publish", rows_after=0)
        hit("publish.before_commit")
        landed = self._store.commit_rebasing(write)
        hit("publish.after_commit")
        if compacts:
            after = load_state(landed, state)
        else:
            after = state_after(landed, state, list(rows.written), set(rows.replaced))
        return Published(after, _commit_at(publication, state, landed.ref.version))


def _stage(state: ManifestState, rows: PublicationRows) -> Any:
    """Delete the superseded rows at their known addresses and add one small fragment."""
    superseded: dict[int, list[int]] = {}
    for object_id in rows.replaced:
        stored = state.current.get(object_id)
        if stored is not None:
            offset = stored.address & _OFFSET_MASK
            superseded.setdefault(stored.fragment_id, []).append(offset)
    updated, removed = [], []
    with translated("staging a publish"):
        for fragment_id, offsets in superseded.items():
            left = state.table.dataset.get_fragment(fragment_id).delete_rows(offsets)
            if left is None:
                removed.append(fragment_id)
            else:
                updated.append(left)
        added = _write(state, rows_to_arrow(list(rows.written)))
    return LanceOperation.Update(
        removed_fragment_ids=removed, updated_fragments=updated, new_fragments=[added]
    )


def _stage_compacting(state: ManifestState, rows: PublicationRows) -> Any:
    """``_stage`` with compaction: current rows into one fragment, history into another."""
    old_current = current_fragments(state.table)
    old_history = _history_to_merge(state)
    stored = state.table.scan(with_row_id=True, fragment_ids=list(old_current))
    is_current = pc.fill_null(stored[CURRENT], False)
    superseded = pc.is_in(stored["object_id"], value_set=pa.array(list(rows.replaced)))
    kept = stored.filter(pc.and_(is_current, pc.invert(superseded)))
    history = stored.filter(pc.invert(is_current)).drop_columns([CURRENT])
    if old_history:
        older = state.table.scan(history_schema().names, with_row_id=True, fragment_ids=old_history)
        history = pa.concat_tables([older, history.select(older.column_names)])
    written = rows_to_arrow(list(rows.written))
    with translated("staging a publish"):
        relocated = kept.drop_columns(["_rowid"]).cast(written.schema)
        added = [_with_row_ids(_write(state, pa.concat_tables([relocated, written])), kept)]
        if history.num_rows:
            bare = history.drop_columns(["_rowid"]).cast(history_schema())
            added.append(_with_row_ids(_write(state, bare), history))
    return LanceOperation.Update(
        removed_fragment_ids=[*old_current, *old_history], new_fragments=added
    )


def _history_to_merge(state: ManifestState) -> list[int]:
    fragments = history_fragments(state.table)
    if len(fragments) < HISTORY_FRAGMENTS_MAX:
        return []
    return sorted(choose_fragments({f: m.physical_rows for f, m in fragments.items()}))


def _write(state: ManifestState, rows: Any) -> Any:
    (fragment,) = write_fragments(rows, state.table.dataset, mode="append", schema=rows.schema)
    return fragment


def _with_row_ids(fragment: Any, relocated: Any) -> Any:
    """Keep the row ids of the leading rows, and with them their creation versions."""
    if not relocated.num_rows:
        return fragment
    ids = RowIdSequence(relocated["_rowid"].to_pylist())
    return replace(fragment, row_id_meta=ids.to_inline_metadata())


def _transaction(state: ManifestState, operation: Any, publication: Publication) -> Any:
    properties = operation_properties(publication.operation_id, "publish")
    return Transaction(state.version, operation, transaction_properties=properties)


def _gave_up(publication: Publication, attempts: int, failure: OmnigraphError) -> OmnigraphError:
    details = {"commit_id": publication.commit_id, "attempts": attempts}
    if isinstance(failure, AmbiguousOutcome):
        return StorageFailure(
            f"publishing failed {attempts} times and had no effect: {failure.message}",
            details=details,
        )
    return Contention(
        f"could not publish within {PUBLISH_RETRY.deadline_s:.0f} s and {attempts} attempts",
        details=details,
    )


def _commit_at(publication: Publication, state: ManifestState, version: int) -> Commit | None:
    """The commit as stored: with its parent and its manifest version."""
    row: Row | None = next(
        (r for r in publication.rows(state).written if r.object_id.startswith("graph_commit:")),
        None,
    )
    return None if row is None else Commit.from_row(row, version)
