"""A load on Spark: the driver's side.

    read     parts of the input, each parsed, checked row by row and staged by a task
    check    stored columns shelved; then one bucket of ids, then one bucket of values per task
    commit   one strict transaction per type, one publish, whatever the size of the input

The rules, the messages and the write transaction are those of a load in process. Files are staged
once; when another writer was faster, only the checks against what is stored are repeated.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import TablePin
from omnigraph.constraints import VIOLATIONS_SHOWN_MAX, Report
from omnigraph.errors import InvalidInput, PreconditionFailed, SchemaChanged
from omnigraph.ingest.key_order import Orders, settled_orders
from omnigraph.ingest.load import MODES, LoadResult, LoadSpec, counts_of
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.model.ids import new_ulid
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Attempt, Committer, WriteOptions
from omnigraph.prepare.preparer import (
    edges_that_must_not_appear,
    has_effect,
    nodes_that_must_stay,
    writable,
)
from omnigraph.spark.assign import Assignment
from omnigraph.spark.deletion import delete_replaced
from omnigraph.spark.discard import discard
from omnigraph.spark.intent import Intent
from omnigraph.spark.load.bloom_filter import join_asked
from omnigraph.spark.load.check import (
    Checked,
    CheckTask,
    Merged,
    check_bucket_ids,
    check_bucket_values,
    match_bucket_edges,
)
from omnigraph.spark.load.check_plan import (
    asks_by_value,
    joined,
    lines_before,
    one_report,
    report_checks,
    report_rows,
    wanted_of_stored,
)
from omnigraph.spark.load.frames import Frame, find_frames, stage_frame
from omnigraph.spark.load.parts import PART_BYTES, Part, digest_part, find_parts
from omnigraph.spark.load.shuffle import BUCKETS_MAX, Shelf, bucket_paths
from omnigraph.spark.load.stage import Site, Staged, StageTask, stage_part
from omnigraph.spark.load.stored_keys import shelve_stored, stored_tasks
from omnigraph.spark.tasks import Tasks
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.staging.rows import stage_fragments, stage_replacement
from omnigraph.storage.lance.tables import StagedWrite, TableRef, operation_properties
from omnigraph.transaction.prepared import PreparedTable, PreparedWrite, WriteInfo

BUCKET_BYTES: Final = 64 << 20
"""Input per bucket: its keys, with hash tables over them, fit easily into a task's memory, and
looking through them takes longer than starting the task."""

STORED_ROW_BYTES: Final = 32
"""What a stored row is thought to add to a bucket: an id and a little more."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How a load is divided. ``buckets`` is derived from the input unless it is given."""

    part_bytes: int = PART_BYTES
    buckets: int | None = None


@dataclass(slots=True)
class _Target:
    """Where rows of a type are staged, and for which pin: a fork serves no other."""

    pin: TablePin
    ref: TableRef
    is_fork: bool

    def at(self, pin: TablePin, owned: bool) -> TableRef | None:
        """The version to build on for a newer pin; None when what was staged is of no use."""
        if self.is_fork:
            return self.ref if pin.ref == self.pin.ref else None
        same = owned and pin.ref.dataset_path == self.ref.dataset_path
        return pin.ref if same else None


@dataclass(slots=True)
class _Findings:
    """The outcome of the checks at one state of the graph."""

    pins: Mapping[str, TablePin]
    merged: dict[str, list[Merged]] = field(default_factory=dict)
    values_nulled: int = 0
    edges_repeated: int = 0


class SparkLoad:
    """One load: ``read``, perhaps ``check``, ``commit``, and ``close`` in any case."""

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
        set_aside: Mapping[int, frozenset[int]] | None = None,
        assignment: Assignment | None = None,
    ) -> None:
        if spec.mode not in MODES:
            raise InvalidInput(
                f"{spec.mode!r} is not a mode of loading", remedy=f"Use one of {', '.join(MODES)}."
            )
        self._spec = spec
        self._start = attempt
        self._policy = policy.keeping(spec.mode == "overwrite")
        self._tasks = tasks
        self._new_branch = for_new_branch
        self._sizes = sizes
        self._shown_max = shown_max
        self._set_aside = dict(set_aside or {})
        self._assignment = assignment
        self._repository: Repository = attempt.repository
        self._schema: AcceptedSchema = attempt.schema
        self._schema_hash = attempt.snapshot.schema_hash
        self._operation_id = new_ulid()
        self._intent = Intent(self._repository.objects, self._operation_id)
        self._parts: list[Part] = []
        self._frames: list[Frame] = []
        self._targets: dict[str, _Target] = {}
        self._staged: list[Staged] = []
        self._before: dict[int, int] = {}
        self._orders: Orders = {}
        self._broken = Report()
        self._findings: _Findings | None = None
        self._prepared = False
        self._site: Site | None = None

    # -- reading -----------------------------------------------------------------------------------

    def read(self) -> None:
        """Read and stage all input; raises everything that is wrong with single records."""
        if self._assignment is not None:
            self._parts = list(self._assignment.parts)
        else:
            files, self._frames = find_frames(self._spec, self._schema)
            self._parts = find_parts(files, self._schema, self._sizes.part_bytes)
        self._intent.declare()
        self._stage(self._start)

    def _stage(self, attempt: Attempt) -> None:
        self._targets = self._make_targets(attempt)
        self._site = Site(
            self._repository.location.uri,
            self._operation_id,
            self._schema,
            self._spec.mode,
            self._policy,
            {key: target.ref for key, target in self._targets.items()},
            self._buckets(attempt),
            self._spec.columns,
            self._shown_max,
            self._set_aside,
            None if self._assignment is None else self._assignment.types,
            self._waiting(),
            self._asking(attempt),
            self._orders,
        )
        self._staged = self._tasks.run(
            "reading", stage_part, [StageTask(self._site, part) for part in self._parts]
        )
        for frame in self._frames:
            following = max((answer.part + 1 for answer in self._staged), default=0)
            self._staged += stage_frame(self._tasks, self._site, frame, following)
        hit("stage.after_files")
        self._before = lines_before(self._staged)
        unread, self._broken = report_rows(self._schema, self._staged, self._before)
        self._findings = None
        if unread or "required" in self._broken.rules:
            self._refuse(one_report(unread, self._broken))
        if not self._orders and any(answer.orders for answer in self._staged):
            self._stage_in_order(attempt)

    def _stage_in_order(self, attempt: Attempt) -> None:
        """Stage everything again, with composite keys in the order that all parts agree on."""
        report = Report()
        found = (pair for answer in self._staged for pair in answer.orders.items())
        self._orders = settled_orders(self._schema, found, report)
        discard(self._repository, self._required_site, self._staged, ())
        report.raise_any()
        self._stage(attempt)

    def locate(self, file: str, line: int) -> tuple[int, int]:
        """The part that a line of a file is in, and its number in the part."""
        found = [answer for answer in self._staged if answer.name == file]
        part = max(a.part for a in found if self._before[a.part] < line)
        return part, line - self._before[part]

    @property
    def parts(self) -> list[Part]:
        return self._parts

    @property
    def parts_known(self) -> bool:
        """Whether the input was read, so that lines of it can be located."""
        return bool(self._before)

    def _make_targets(self, attempt: Attempt) -> dict[str, _Target]:
        """Where each type that may occur is staged: the branch's own table, or a fork of it."""
        named = {part.type_key for part in self._parts} | {f.type_key for f in self._frames}
        keys = {owner.key for owner in self._schema.types()} if None in named else named
        branch = None if self._new_branch else attempt.branch
        targets = {}
        for key in sorted(key for key in keys if key is not None):
            pin = attempt.snapshot.pin(key)
            ref = writable(self._repository, pin, branch).ref
            targets[key] = _Target(pin, ref, ref != pin.ref)
        return targets

    def _waiting(self) -> frozenset[str]:
        """Types whose rows cannot be written before the stored ones are known."""
        if self._spec.mode == "upsert":
            return frozenset(self._targets)
        if self._spec.mode != "merge":
            return frozenset()
        return frozenset(
            key
            for key, target in self._targets.items()
            if self._assignment is not None
            or not self._schema.type(key).key_properties  # of one id the last counts
            or self._repository.tables.open(target.ref).hidden  # they take over what it holds
        )

    def _asking(self, attempt: Attempt) -> frozenset[str]:
        """Types of which stored rows are wanted by id; an overwrite wants all of them."""
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
        wanted = math.ceil(size / BUCKET_BYTES)
        least = self._tasks.parallelism if wanted > 1 else 1
        return min(max(wanted, least), BUCKETS_MAX)

    # -- checking ----------------------------------------------------------------------------------

    def check(self, attempt: Attempt, expected_head: str | None = None) -> None:
        """Raise what a commit on this state would raise, without making anything visible."""
        if expected_head is not None and attempt.snapshot.commit_id != expected_head:
            raise PreconditionFailed(expected_head, attempt.snapshot.commit_id)
        self._checked(attempt)

    def _checked(self, attempt: Attempt) -> _Findings:
        """The checks against one state; repeated only when that state is another."""
        pins = attempt.snapshot.pins
        if self._findings is not None and self._findings.pins == pins:
            return self._findings
        site, given = self._required_site, self._given
        matched = self._matched
        wanted = wanted_of_stored(self._schema, attempt.snapshot, self._spec.mode, given, matched)
        refs = {item.key: pins[item.key].ref for item in wanted}
        shelves: list[Shelf] = [shelf for answer in self._staged for shelf in answer.shelves]
        paths = [answer.asked for answer in self._staged]
        asked = join_asked(site.objects, paths, site.asking) if wanted else None
        shelves += self._tasks.run(
            "reading stored keys", shelve_stored, stored_tasks(site, refs, wanted, asked)
        )
        by_id: list[Checked] = []
        if any(given.values()):
            specs = self._check_tasks(shelves, stored=refs)
            by_id = self._tasks.run("checking ids", check_bucket_ids, specs, light=True)
            shelves += [answer.shelf for answer in by_id]
        if any("required" in report.rules for answer in by_id for _, report in answer.reports):
            self._refuse(one_report(self._broken, report_checks(by_id)), by_id)
        by_content: list[Checked] = []
        if matched:
            specs = self._check_tasks(shelves, by_id)
            by_content = self._tasks.run("matching edges", match_bucket_edges, specs, light=True)
            shelves += [answer.shelf for answer in by_content]
        by_value: list[Checked] = []
        if asks_by_value(self._schema, self._spec.mode, given):
            specs = self._check_tasks(shelves, by_id)
            by_value = self._tasks.run(
                "checking constraints", check_bucket_values, specs, light=True
            )
        staging = [*by_id, *by_content]
        self._refuse(one_report(self._broken, report_checks([*by_id, *by_value])), staging)
        merged: dict[str, list[Merged]] = {}
        for answer in staging:
            for key, part in answer.merged.items():
                merged.setdefault(key, []).append(part)
        self._findings = _Findings(
            pins,
            merged,
            sum(answer.values_nulled for answer in by_id),
            sum(answer.edges_repeated for answer in by_content if self._spec.mode == "merge"),
        )
        return self._findings

    def _refuse(self, report: Report, by_id: Sequence[Checked] = ()) -> None:
        """Raise what is wrong, if anything is, and take back the files that were staged for it.

        After an attempt to commit they are left to cleanup: somebody may still look at them.
        """
        if report and not self._prepared:
            discard(self._repository, self._required_site, self._staged, by_id)
        report.raise_any()

    def _check_tasks(
        self,
        shelves: Sequence[Shelf],
        by_id: Sequence[Checked] = (),
        stored: Mapping[str, TableRef] | None = None,
    ) -> list[CheckTask]:
        site, matched = self._required_site, self._matched
        overridden = joined([answer.overridden for answer in by_id])
        replaced = joined(
            [
                {k: m.addresses for k, m in answer.merged.items() if m.addresses is not None}
                for answer in by_id
            ]
        )
        files = {answer.part: answer.name for answer in self._staged}
        return [
            CheckTask(
                site,
                paths,
                files,
                self._before,
                frozenset(self._given),
                staging=not self._broken,
                overridden=overridden,
                stored=stored or {},
                matched=matched,
                replaced={key: found for key, found in replaced.items() if key in matched},
            )
            for bucket in range(site.buckets)
            if (paths := tuple(bucket_paths(shelves, bucket)))
        ]

    @property
    def _matched(self) -> frozenset[str]:
        """Edge types with rows that have no id, where those are compared with others."""
        if not self._required_site.matches_edges:
            return frozenset()
        given, written = self._given, self.rows_written
        return frozenset(k for k in written if k.startswith("edge:") and written[k] > given[k])

    @property
    def _given(self) -> dict[str, int]:
        """Rows with an id or a key, for every type that occurs."""
        found: dict[str, int] = {}
        for answer in self._staged:
            for key in answer.rows:
                found[key] = found.get(key, 0) + answer.given.get(key, 0)
        return found

    # -- committing --------------------------------------------------------------------------------

    @property
    def rows_written(self) -> dict[str, int]:
        """Records per type key."""
        found: dict[str, int] = {}
        for answer in self._staged:
            for key, count in answer.rows.items():
                found[key] = found.get(key, 0) + count
        return dict(sorted(found.items()))

    def commit(self, committer: Committer, options: WriteOptions) -> LoadResult:
        """Make the load one commit on a branch."""
        self._new_branch = False
        outcome = committer.run(
            options,
            lambda attempt: self._prepare(attempt, options.info),
            retry=lambda: self._spec.mode != "overwrite",
            digest=self._digest,
        )
        return LoadResult.of(options.branch, self._spec.mode, outcome)

    def close(self) -> None:
        """Remove what the load left on its way."""
        self._intent.clear()

    def _prepare(
        self, attempt: Attempt, info: WriteInfo
    ) -> tuple[PreparedWrite | None, Mapping[str, Any]]:
        if attempt.snapshot.schema_hash != self._schema_hash:
            raise SchemaChanged(self._schema_hash, attempt.snapshot.schema_hash)
        refs = self._current_refs(attempt)
        findings = self._checked(attempt)
        operation_id = new_ulid()
        properties = operation_properties(operation_id, info.kind)
        tables = []
        for key in sorted(self.rows_written):
            staged = self._stage_table(key, refs[key], findings, properties)
            if staged is not None and has_effect(staged):
                tables.append(PreparedTable(attempt.snapshot.pin(key), staged))
        written = self.rows_written
        counts = counts_of(
            written,
            values_nulled=findings.values_nulled,
            edges_repeated=findings.edges_repeated,
        )
        reads: dict[str, TableRef] = {}
        if self._spec.mode == "upsert":  # it relies on what it found to be there already
            if not tables:
                return None, counts
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
        return prepared, counts

    def _current_refs(self, attempt: Attempt) -> dict[str, TableRef]:
        """What to build on now; stages anew when a table was forked since."""
        for _ in range(2):
            found: dict[str, TableRef] = {}
            for key in self.rows_written:
                pin = attempt.snapshot.pin(key)
                ref = self._targets[key].at(pin, pin.owner == attempt.branch.incarnation)
                if ref is None:
                    break
                found[key] = ref
            else:
                return found
            self._stage(attempt)
        raise AssertionError("what was just staged fits the state it was staged for")

    def _stage_table(
        self, key: str, ref: TableRef, findings: _Findings, properties: Mapping[str, str]
    ) -> StagedWrite | None:
        table = self._repository.tables.open(ref)
        written = [f for answer in self._staged for f in answer.fragments.get(key, ())]
        if self._spec.mode == "overwrite":
            rows = sum(fragment.physical_rows for fragment in written)
            return stage_replacement(table, written, rows, properties)
        merged = findings.merged.get(key, [])
        written += [fragment for part in merged for fragment in part.fragments]
        if not written:
            return None
        taken = [part.addresses for part in merged if part.addresses is not None]
        replaced = sum(map(len, taken))
        site = self._required_site
        changed, gone = delete_replaced(self._tasks, site.graph_uri, site.prefix, table, taken)
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
    def _required_site(self) -> Site:
        assert self._site is not None, "read() comes first"
        return self._site

    def _digest(self) -> str:
        """What identifies the request: its mode and the bytes of its input.

        A DataFrame may compute something else each time it is asked: only its shape counts.
        """
        digest = hashlib.sha256(self._spec.mode.encode())
        for found in self._tasks.run("reading for the key", digest_part, self._parts):
            digest.update(found)
        for frame in self._frames:
            digest.update(frame.shape())
        return digest.hexdigest()
