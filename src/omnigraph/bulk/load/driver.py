"""A load on Spark: the driver's side.

    read     parts of the input, each parsed, checked row by row and staged by a task
    check    stored columns are shuffled; then one task per bucket of ids, one per bucket of values
    commit   one transaction per type, one publish, whatever the size of the input

The rules, the messages and the write transaction are those of a load in process. Files are staged
once; after an optimistic conflict only the checks against stored rows are repeated.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from omnigraph.bulk.assign import PropertyAssignment
from omnigraph.bulk.deletion import delete_replaced
from omnigraph.bulk.discard import discard
from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.intent import Intent
from omnigraph.bulk.load.bloom_filter import merge_filters
from omnigraph.bulk.load.bucket_checks import (
    CheckedBuckets,
    LoadChecks,
    MergedRows,
    check_bucket_ids,
    check_bucket_values,
    match_bucket_edges,
)
from omnigraph.bulk.load.check_plan import (
    lines_before,
    needs_value_checks,
    one_report,
    overridden_rows,
    report_checks,
    report_rows,
    stored_projections,
)
from omnigraph.bulk.load.dataframes import InputFrame, find_frames, stage_frame
from omnigraph.bulk.load.input_parts import (
    PART_BYTES,
    InputPart,
    digest_parts,
    find_parts,
    pack_parts,
)
from omnigraph.bulk.load.shuffle import Shuffled
from omnigraph.bulk.load.stage import LoadContext, StagedPart, StageTask, stage_parts
from omnigraph.bulk.load.stored_keys import StoredScan, shuffle_stored, stored_tasks
from omnigraph.bulk.scratch import Scratch
from omnigraph.bulk.tasks import Tasks
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import TablePin
from omnigraph.constraints import VIOLATIONS_SHOWN_MAX, Report
from omnigraph.errors import PreconditionFailed, SchemaChanged
from omnigraph.ingest.key_order import Orders, settled_orders
from omnigraph.ingest.load import LoadResult, LoadSpec, counts_of
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.model.ids import new_ulid
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Attempt, Committer, Prepared, WriteOptions
from omnigraph.prepare.preparer import (
    edges_that_must_not_appear,
    has_effect,
    nodes_that_must_stay,
    writable,
)
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.staging.rows import stage_fragments, stage_replacement
from omnigraph.storage.lance.tables import StagedWrite, TableRef, operation_properties
from omnigraph.transaction.prepared import PreparedTable, PreparedWrite, WriteInfo

BUCKET_BYTES: Final = 64 << 20
"""Input per bucket: its keys and hash tables fit into a task's memory, and checking them takes
longer than starting the task."""

STORED_ROW_BYTES: Final = 32
"""Estimated size of a stored row in a bucket: an id and a little more."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Partitioning of a load. ``buckets`` is derived from the size of the input unless given."""

    part_bytes: int = PART_BYTES
    buckets: int | None = None


@dataclass(frozen=True, slots=True)
class _LoadTarget:
    """The table that rows of a type are staged for. A fork is valid for its pin only."""

    pin: TablePin
    ref: TableRef
    is_fork: bool

    def at(self, pin: TablePin, owned: bool) -> TableRef | None:
        """The version to build on for a newer pin; None when the staged files cannot be used."""
        if self.is_fork:
            return self.ref if pin.ref == self.pin.ref else None
        same = owned and pin.ref.dataset_path == self.ref.dataset_path
        return pin.ref if same else None


@dataclass(frozen=True, slots=True)
class _CheckOutcome:
    """The outcome of the checks against one snapshot."""

    pins: Mapping[str, TablePin]
    merged: dict[str, list[MergedRows]] = field(default_factory=dict)
    values_nulled: int = 0
    edges_repeated: int = 0


class BulkLoad:
    """One load: ``read``, optionally ``check``, then ``commit``; always ``close``."""

    def __init__(
        self,
        spec: LoadSpec,
        attempt: Attempt,
        policy: BlobPolicy,
        tasks: Tasks,
        *,
        for_new_branch: bool = False,
        sizes: Sizes = Sizes(),  # noqa: B008 - immutable
        shown_max: int = VIOLATIONS_SHOWN_MAX,
        quarantined_lines: Mapping[int, frozenset[int]] | None = None,
        assignment: PropertyAssignment | None = None,
    ) -> None:
        self._spec = spec
        self._start = attempt
        self._policy = policy.keeping(spec.mode == "overwrite")
        self._new_branch = for_new_branch
        self._sizes = sizes
        self._shown_max = shown_max
        self._quarantined_lines = dict(quarantined_lines or {})
        self._assignment = assignment
        self._repository: Repository = attempt.repository
        self._schema: AcceptedSchema = attempt.schema
        self._schema_hash = attempt.snapshot.schema_hash
        self._operation_id = new_ulid()
        self._intent = Intent(self._repository, self._operation_id)
        self._scratch = Scratch(GraphStorage.of(self._repository), self._intent.prefix)
        self._tasks = tasks.within(self._scratch)
        self._parts: list[InputPart] = []
        self._frames: list[InputFrame] = []
        self._targets: dict[str, _LoadTarget] = {}
        self._staged: list[StagedPart] = []
        self._before: dict[int, int] = {}
        self._files: dict[int, str] = {}
        self._orders: Orders = {}
        self._folds = True
        self._broken = Report()
        self._outcome: _CheckOutcome | None = None
        self._prepared = False
        self._context: LoadContext | None = None

    # -- reading -----------------------------------------------------------------------------------

    def read(self) -> BulkLoad:
        """Read and stage all input; raises the violations of single records."""
        if self._assignment is not None:
            self._parts = list(self._assignment.parts)
        else:
            files, self._frames = find_frames(self._spec, self._schema)
            storage = self._repository.settings.storage
            self._parts = find_parts(files, self._schema, storage, self._sizes.part_bytes)
        self._intent.declare()
        self._stage(self._start)
        return self

    def _stage(self, attempt: Attempt) -> None:
        self._targets = self._make_targets(attempt)
        self._context = LoadContext(
            GraphStorage.of(self._repository),
            self._operation_id,
            self._schema,
            self._spec.mode,
            self._policy,
            {key: target.ref for key, target in self._targets.items()},
            self._buckets(attempt),
            self._spec.columns,
            self._shown_max,
            None if self._assignment is None else self._assignment.types,
            self._deferred_types(),
            self._filtered_types(attempt),
            self._folds,
            self._orders,
        )
        self._files = {part.number: part.name for part in self._parts}
        self._staged = self._tasks.run(
            "reading", partial(stage_parts, self._context), self._stage_tasks()
        )
        for frame in self._frames:
            following = max(self._files, default=-1) + 1
            results = stage_frame(self._tasks, self._context, frame, following)
            self._files |= {result.part: frame.name for result in results}
            self._staged += results
        hit("stage.after_files")
        self._before = dict.fromkeys(self._files, 0) | lines_before(self._staged)
        unread, self._broken = report_rows(self._schema, self._staged, self._before)
        self._outcome = None
        if unread or "required" in self._broken.rules:
            self._refuse(one_report(unread, self._broken))
        if not self._orders and any(result.orders for result in self._staged):
            self._stage_in_order(attempt)

    def _stage_tasks(self) -> list[StageTask]:
        skipped = self._quarantined_lines
        return [
            StageTask(pack, {p.number: skipped[p.number] for p in pack if p.number in skipped})
            for pack in pack_parts(self._parts, self._sizes.part_bytes)
        ]

    def _stage_in_order(self, attempt: Attempt) -> None:
        """Stage everything again, with composite keys in the order that fits all parts."""
        report = Report()
        found = (pair for result in self._staged for pair in result.orders.items())
        self._orders = settled_orders(self._schema, found, report)
        discard(self._repository, self._required_context, self._staged, ())
        report.raise_any()
        self._stage(attempt)

    def locate(self, file: str, line: int) -> tuple[int, int]:
        """The part that contains a line of a file, and the number of the line in that part."""
        named = [number for number, name in self._files.items() if name == file]
        part = max(number for number in named if self._before[number] < line)
        return part, line - self._before[part]

    @property
    def parts(self) -> list[InputPart]:
        return self._parts

    @property
    def parts_known(self) -> bool:
        """Whether the input was read, so that lines of it can be located."""
        return bool(self._staged)

    def _make_targets(self, attempt: Attempt) -> dict[str, _LoadTarget]:
        """The staging table of each type that may occur: the branch's own table, or a fork."""
        named = {part.type_key for part in self._parts} | {f.type_key for f in self._frames}
        keys = {owner.key for owner in self._schema.types()} if None in named else named
        branch = None if self._new_branch else attempt.branch
        targets = {}
        for key in sorted(key for key in keys if key is not None):
            pin = attempt.snapshot.pin(key)
            ref = writable(self._repository, pin, branch).ref
            targets[key] = _LoadTarget(pin, ref, ref != pin.ref)
        return targets

    def _deferred_types(self) -> frozenset[str]:
        """Types whose rows are written only after they are joined with the stored rows."""
        if self._spec.mode == "upsert":
            return frozenset(self._targets)
        if self._spec.mode != "merge":
            return frozenset()
        return frozenset(
            key
            for key, target in self._targets.items()
            if self._assignment is not None
            or not self._schema.type(key).key_properties  # the last row of an id wins
            or self._repository.tables.open(target.ref).hidden  # hidden columns are copied
        )

    def _filtered_types(self, attempt: Attempt) -> frozenset[str]:
        """Types whose stored rows are filtered by id; none in an overwrite, which reads all."""
        if self._spec.mode == "overwrite":
            return frozenset()
        keys = {key for key, pin in attempt.snapshot.pins.items() if pin.rows}
        if self._spec.mode in ("merge", "upsert"):
            keys |= {f"content/{key}" for key in keys if key.startswith("edge:")}
        return frozenset(keys)

    def _buckets(self, attempt: Attempt) -> int:
        if self._sizes.buckets is not None:
            return self._sizes.buckets
        stored = sum(pin.rows for pin in attempt.snapshot.pins.values())
        size = sum(part.size for part in self._parts) + stored * STORED_ROW_BYTES
        buckets = math.ceil(size / BUCKET_BYTES)
        return max(buckets, self._tasks.parallelism if buckets > 1 else 1)

    # -- checking ----------------------------------------------------------------------------------

    def check(self, attempt: Attempt, expected_head: str | None = None) -> None:
        """Raise the errors of a commit on this snapshot, without publishing anything."""
        if expected_head is not None and attempt.snapshot.commit_id != expected_head:
            raise PreconditionFailed(expected_head, attempt.snapshot.commit_id)
        self._checked(attempt)

    def _checked(self, attempt: Attempt) -> _CheckOutcome:
        """The outcome of the checks against one snapshot; cached while its pins are the same."""
        pins = attempt.snapshot.pins
        if self._outcome is not None and self._outcome.pins == pins:
            return self._outcome
        context, given = self._required_context, self._given
        matched = self._matched
        projections = stored_projections(
            self._schema, attempt.snapshot, self._spec.mode, given, matched
        )
        refs = {item.key: pins[item.key].ref for item in projections}
        shuffled = Shuffled(context.buckets).and_(
            file for result in self._staged for file in result.shuffled
        )
        paths = [result.filter_path for result in self._staged]
        filters = (
            merge_filters(context.objects, paths, context.filtered_types) if projections else None
        )
        scan = StoredScan(context, refs, tuple(projections), filters)
        stored = self._tasks.run(
            "reading stored keys", partial(shuffle_stored, scan), stored_tasks(scan)
        )
        shuffled = shuffled.and_(stored)
        by_id: list[CheckedBuckets] = []
        if any(given.values()):
            by_id = self._check_buckets("checking ids", check_bucket_ids, shuffled, stored=refs)
            shuffled = shuffled.and_(result.shuffled for result in by_id)
            if any(r.overridden for r in by_id) and any(r.folded for r in self._staged):
                return self._checked_without_folding(attempt)
        if any("required" in report.rules for result in by_id for _, report in result.reports):
            self._refuse(one_report(self._broken, report_checks(by_id)), by_id)
        by_content: list[CheckedBuckets] = []
        if matched:
            by_content = self._check_buckets("matching edges", match_bucket_edges, shuffled, by_id)
            shuffled = shuffled.and_(result.shuffled for result in by_content)
        by_value: list[CheckedBuckets] = []
        if needs_value_checks(self._schema, self._spec.mode, given):
            by_value = self._check_buckets(
                "checking constraints", check_bucket_values, shuffled, by_id
            )
        staging = [*by_id, *by_content]
        self._refuse(one_report(self._broken, report_checks([*by_id, *by_value])), staging)
        merged: dict[str, list[MergedRows]] = {}
        for result in staging:
            for key, part in result.merged.items():
                merged.setdefault(key, []).append(part)
        self._outcome = _CheckOutcome(
            pins,
            merged,
            sum(result.values_nulled for result in by_id),
            sum(result.edges_repeated for result in by_content if self._spec.mode == "merge"),
        )
        return self._outcome

    def _checked_without_folding(self, attempt: Attempt) -> _CheckOutcome:
        """Stage again and check: the load is refused because of repeated ids, and of those rows
        the earlier ones are not counted, so that every row is needed."""
        self._folds = False
        discard(self._repository, self._required_context, self._staged, ())
        self._stage(attempt)
        return self._checked(attempt)

    def _refuse(self, report: Report, by_id: Sequence[CheckedBuckets] = ()) -> None:
        """Raise the violations of a report, if it has any, and remove the staged files.

        After an attempt to commit the files are left to cleanup: it may still refer to them.
        """
        if report and not self._prepared:
            discard(self._repository, self._required_context, self._staged, by_id)
        report.raise_any()

    def _check_buckets(
        self,
        name: str,
        check: Callable[[LoadChecks, range], CheckedBuckets],
        shuffled: Shuffled,
        by_id: Sequence[CheckedBuckets] = (),
        stored: Mapping[str, TableRef] | None = None,
    ) -> list[CheckedBuckets]:
        """Run one round of checks over all buckets."""
        matched = self._matched
        replaced = {
            key: [
                part
                for result in by_id
                if key in result.merged
                for part in result.merged[key].addresses
            ]
            for key in matched
        }
        checks = LoadChecks(
            self._required_context,
            shuffled,
            self._files,
            self._before,
            frozenset(self._given),
            staging=not self._broken,
            overridden=overridden_rows(by_id),
            stored=stored or {},
            matched=matched,
            replaced=replaced,
        )
        return self._tasks.run(name, partial(check, checks), shuffled.ranges(), light=True)

    @property
    def _matched(self) -> frozenset[str]:
        """Edge types with rows that have no id and are compared by content."""
        if not self._required_context.matches_edges:
            return frozenset()
        given, written = self._given, self._rows_written
        return frozenset(k for k in written if k.startswith("edge:") and written[k] > given[k])

    @property
    def _given(self) -> dict[str, int]:
        """Rows with an id or a key, for every type that occurs."""
        found: dict[str, int] = {}
        for result in self._staged:
            for key in result.rows:
                found[key] = found.get(key, 0) + result.given.get(key, 0)
        return found

    # -- committing --------------------------------------------------------------------------------

    @property
    def _rows_written(self) -> dict[str, int]:
        """Records per type key."""
        found: dict[str, int] = {}
        for result in self._staged:
            for key, count in result.rows.items():
                found[key] = found.get(key, 0) + count
        return dict(sorted(found.items()))

    def commit(self, committer: Committer, options: WriteOptions) -> LoadResult:
        """Commit the load on a branch."""
        self._new_branch = False
        outcome = committer.run(
            options,
            lambda attempt: self._prepare(attempt, options.info),
            digest=self._digest,
        )
        return LoadResult.of(options.branch, self._spec.mode, outcome)

    def close(self) -> None:
        """Remove the temporary objects of the load."""
        self._intent.clear()

    def _prepare(self, attempt: Attempt, info: WriteInfo) -> Prepared[None]:
        if attempt.snapshot.schema_hash != self._schema_hash:
            raise SchemaChanged(self._schema_hash, attempt.snapshot.schema_hash)
        refs = self._current_refs(attempt)
        findings = self._checked(attempt)
        operation_id = new_ulid()
        properties = operation_properties(operation_id, info.kind)
        tables = []
        for key in sorted(self._rows_written):
            staged = self._stage_table(key, refs[key], findings, properties)
            if staged is not None and has_effect(staged):
                tables.append(PreparedTable(attempt.snapshot.pin(key), staged))
        written = self._rows_written
        counts = counts_of(
            written,
            values_nulled=findings.values_nulled,
            edges_repeated=findings.edges_repeated,
        )
        reads: dict[str, TableRef] = {}
        if self._spec.mode == "upsert":  # it depends on rows that it left unchanged
            if not tables:
                return Prepared(None, counts, written)
            moved = {table.pin.key for table in tables}
            reads = {k: attempt.snapshot.pin(k).ref for k in written if k not in moved}
        overwritten = written if self._spec.mode == "overwrite" else ()
        prepared = PreparedWrite(
            operation_id,
            attempt.snapshot,
            info,
            tuple(tables),
            nodes_that_must_stay(
                self._schema, attempt.snapshot, [key for key, rows in written.items() if rows]
            ),
            edges_that_must_not_appear(self._schema, attempt.snapshot, overwritten),
            reads,
        )
        self._prepared = True
        return Prepared(prepared, counts, written, repeatable=self._spec.mode != "overwrite")

    def _current_refs(self, attempt: Attempt) -> dict[str, TableRef]:
        """The versions to build on; stages again when a table was forked in the meantime."""
        for _ in range(2):
            found: dict[str, TableRef] = {}
            for key in self._rows_written:
                pin = attempt.snapshot.pin(key)
                ref = self._targets[key].at(pin, pin.owner == attempt.branch.incarnation)
                if ref is None:
                    break
                found[key] = ref
            else:
                return found
            self._stage(attempt)
        raise AssertionError("newly staged files match their snapshot")

    def _stage_table(
        self, key: str, ref: TableRef, findings: _CheckOutcome, properties: Mapping[str, str]
    ) -> StagedWrite | None:
        table = self._repository.tables.open(ref)
        written = [f for result in self._staged for f in result.fragments.get(key, ())]
        if self._spec.mode == "overwrite":
            rows = sum(fragment.physical_rows for fragment in written)
            return stage_replacement(table, written, rows, properties)
        merged = findings.merged.get(key, [])
        written += [fragment for part in merged for fragment in part.fragments]
        if not written:
            return None
        taken = [addresses for part in merged for addresses in part.addresses]
        replaced = sum(addresses.count for addresses in taken)
        changed, gone = delete_replaced(self._tasks, self._scratch, table, taken)
        return stage_fragments(
            table,
            "upsert" if self._spec.mode in ("merge", "upsert") else "insert",
            properties,
            new=written,
            changed=changed,
            gone=gone,
            rows_inserted=sum(fragment.physical_rows for fragment in written) - replaced,
            rows_updated=replaced,
        )

    @property
    def _required_context(self) -> LoadContext:
        assert self._context is not None, "read() comes first"
        return self._context

    def _digest(self) -> str:
        """Hash of the request for idempotency: the mode and the bytes of the input.

        Of a DataFrame only the schema counts: it may compute other rows each time.
        """
        digest = hashlib.sha256(self._spec.mode.encode())
        packs = pack_parts(self._parts, self._sizes.part_bytes)
        for found in self._tasks.run("reading for the key", digest_parts, packs):
            digest.update(b"".join(found))
        for frame in self._frames:
            digest.update(frame.shape())
        return digest.hexdigest()
