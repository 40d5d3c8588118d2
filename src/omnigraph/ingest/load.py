"""Loading in process: read everything, check everything, commit once.

Input is read completely before anything is decided, so records may come in any order. One load is
one commit, also when the input is empty; a load that fails has written nothing and reports all that
is wrong with its input.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, get_args

import pyarrow as pa

from omnigraph.catalog.rows import Commit
from omnigraph.constraints import FILE, LINE, Report, TypeImage, evaluate
from omnigraph.constraints.rows import check_required, check_values
from omnigraph.errors import InvalidInput, PreconditionFailed, SchemaChanged
from omnigraph.ingest.frames import as_table, is_tabular, require_type
from omnigraph.ingest.gathered_rows import Gathered
from omnigraph.ingest.identify import identify
from omnigraph.ingest.load_image import Met, merged, upserted
from omnigraph.ingest.ndjson import CompatibleReader, StrictReader
from omnigraph.ingest.records import RecordReader
from omnigraph.ingest.sources import Format, SourceFile, find_files, from_bytes, opened, recognise
from omnigraph.ingest.tabular import find_type, read_csv, read_parquet, read_table
from omnigraph.ingest.upsert import check_given
from omnigraph.lang.schema import EdgeType
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Attempt, Committer, Outcome, WriteOptions
from omnigraph.prepare.preparer import Preparer
from omnigraph.prepare.stored_entities import StoredSnapshot
from omnigraph.transaction.prepared import PreparedWrite, WriteInfo

Mode = Literal["append", "merge", "upsert", "overwrite"]
MODES: Final[tuple[str, ...]] = get_args(Mode)

LoadSource = Any
"""A path, a glob, bytes, a table (Arrow, pandas, polars, …), an iterable of records, or a mapping
of types to those."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a load is. ``phase`` is ``read``, ``check`` or ``done``; on Spark it is the name of
    a job, of which so many tasks are done."""

    phase: str
    bytes_read: int
    rows: int
    tasks: int = 0
    tasks_done: int = 0


@dataclass(frozen=True, slots=True)
class LoadSpec:
    """What to load and how to read it."""

    source: LoadSource
    mode: Mode
    type_name: str | None = None
    columns: Mapping[str, str] | None = None
    format: Format | None = None
    strict: bool = True
    progress: Callable[[Progress], None] | None = None
    quarantine: str | None = None


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did: records per type, and its commit."""

    branch: str
    mode: str
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    commit: Commit | None
    base_branch: str | None = None
    branch_created: bool = False
    quarantined: int = 0
    values_nulled: int = 0
    """Stored values that a merge set to null, because the input did not give them."""
    edges_repeated: int = 0
    """Edges that a merge added beside equal ones."""
    repeated: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, branch: str, mode: str, outcome: Outcome) -> LoadResult:
        result = outcome.result
        return cls(
            branch,
            mode,
            result["nodes"],
            result["edges"],
            outcome.commit,
            values_nulled=result.get("values_nulled", 0),
            edges_repeated=result.get("edges_repeated", 0),
            repeated=outcome.repeated,
        )

    @property
    def total(self) -> int:
        return sum(self.nodes.values()) + sum(self.edges.values())

    def to_json(self, uri: str | None = None) -> dict[str, Any]:
        """The wire form."""
        body: dict[str, Any] = {} if uri is None else {"uri": uri}
        return body | {
            "branch": self.branch,
            "base_branch": self.base_branch,
            "branch_created": self.branch_created,
            "mode": self.mode,
            "nodes": _counts_json(self.nodes),
            "edges": _counts_json(self.edges),
            "total_entities": self.total,
            **{name: count for name, count in self._beside() if count},
            "actor_id": None if self.commit is None else self.commit.actor,
            "commit": None if self.commit is None else self.commit.to_json(),
        }

    def _beside(self) -> list[tuple[str, int]]:
        return [
            ("quarantined", self.quarantined),
            ("values_nulled", self.values_nulled),
            ("edges_repeated", self.edges_repeated),
        ]


def counts_of(rows: Mapping[str, int], **beside: int) -> dict[str, Any]:
    """Records per type key, and other numbers, as a result reports them."""
    counts: dict[str, Any] = {"nodes": {}, "edges": {}}
    for key, count in rows.items():
        kind, _, name = key.partition(":")
        counts[kind + "s"][name] = count
    return counts | {name: number for name, number in beside.items() if number}


def _counts_json(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "entities_loaded": counts[name]} for name in sorted(counts)]


class OneLoad(Protocol):
    """What an engine makes of a load. ``close`` is called in any case."""

    @property
    def rows_written(self) -> dict[str, int]: ...

    def read(self) -> None: ...

    def check(self, attempt: Attempt, expected_head: str | None = None) -> None: ...

    def commit(self, committer: Committer, options: WriteOptions) -> LoadResult: ...

    def close(self) -> None: ...


class Load:
    """One load: ``read`` its input against a schema, then ``commit`` it to a branch."""

    def __init__(self, spec: LoadSpec, attempt: Attempt, policy: BlobPolicy) -> None:
        if spec.mode not in MODES:
            raise InvalidInput(
                f"{spec.mode!r} is not a mode of loading", remedy=f"Use one of {', '.join(MODES)}."
            )
        self._spec = spec
        self._schema = attempt.schema
        self._schema_hash = attempt.snapshot.schema_hash
        self._report = Report()
        policy = policy.keeping(spec.mode == "overwrite")
        self._gathered = Gathered(
            self._schema, self._report, policy, marks_nulls=spec.mode == "upsert"
        )
        self._named: dict[str, Any] = {}
        self._rows: dict[str, pa.Table] = {}
        self._image: dict[str, TypeImage] = {}
        self._broken = Report()
        self._bytes_read = 0

    # -- reading -----------------------------------------------------------------------------------

    def read(self) -> None:
        """Read all input; raises one error with everything that is wrong with single records."""
        self._read_source(self._spec.source, self._spec.type_name)
        self._rows = self._gathered.finish()
        self._tell("check")
        self._named = {key: rows["id"].is_valid() for key, rows in self._rows.items()}
        upsert = self._spec.mode == "upsert"
        found = identify(
            self._schema, self._rows, self._report, strict=self._spec.strict, names_nodes=upsert
        )
        for key in sorted(found.rows):
            owner, rows = self._schema.type(key), found.rows[key]
            if owner.key_properties:
                self._named.pop(key)  # all of them, by their keys
            self._image[key] = TypeImage(
                rows,
                replaces_all=self._spec.mode == "overwrite",
                must_be_new=self._spec.mode == "append",
                fresh=key in found.fresh,
                last_wins=upsert or (self._spec.mode == "merge" and not owner.key_properties),
            )
        if upsert or self._report:
            self._check_rows()
        self._report.raise_any()

    def _check_rows(self) -> None:
        """Rules about single rows, before the stored ones are known: of an upsert only about what
        is given; of another load only when records are missing from the image."""
        broken = Report(files=self._report.files)
        for key, change in self._image.items():
            owner = self._schema.type(key)
            if self._spec.mode == "upsert":
                check_given(owner, change.rows, self._named.get(key), broken)
            else:
                check_required(owner, change.rows, broken)
            check_values(owner, change.rows, broken)
        if self._report or "required" in broken.rules:
            self._report.extend(broken.shown, broken.total)
            self._report.rules |= broken.rules
        else:
            self._broken = broken

    def _read_source(self, source: LoadSource, type_name: str | None) -> None:
        if isinstance(source, str | os.PathLike):
            for file in find_files(source):
                self._read_file(file, type_name)
        elif isinstance(source, bytes | bytearray | memoryview):
            self._read_file(from_bytes(bytes(source)), type_name)
        elif isinstance(source, Mapping):
            for name, inner in source.items():
                self._read_source(inner, name)
        elif is_tabular(source):
            name = require_type(source, type_name)
            self._gathered.begin_file(f"<{name}>")
            owner, columns = find_type(self._schema, name), self._spec.columns
            read_table(self._gathered, owner, as_table(source, owner, columns), columns)
        elif isinstance(source, Iterable):
            self._read_records(source, type_name)
        else:
            raise InvalidInput(
                f"cannot load from {type(source).__name__}",
                remedy="Give a path, bytes, a table or frame, records, or a mapping of types.",
            )

    def _read_file(self, file: SourceFile, type_name: str | None) -> None:
        self._gathered.begin_file(file.name)
        with opened(file) as stream:
            kind = self._spec.format or recognise(file, stream)
            if kind == "ndjson" and type_name is None:
                if self._spec.strict:
                    StrictReader(self._gathered, self._count).read(stream)
                else:
                    CompatibleReader(self._gathered).read(stream)
                return
            if type_name is None:
                raise InvalidInput(
                    f"{file.name} is {kind}: its rows do not say their type",
                    remedy="Say which type the rows are of (`--type Person`).",
                )
            owner = find_type(self._schema, type_name)
            read = read_parquet if kind == "parquet" else read_csv
            read(self._gathered, owner, stream, self._spec.columns, file.name)

    def _read_records(self, records: Iterable[Any], type_name: str | None) -> None:
        """Records in the load format, or plain values of one type."""
        self._gathered.begin_file("<records>")
        reader = RecordReader(self._gathered, strict=self._spec.strict)
        if type_name is None:
            for number, record in enumerate(records, 1):
                reader.read(record, number)
            return
        owner = find_type(self._schema, type_name)
        self._gathered.occurs(owner.key)
        for number, values in enumerate(records, 1):
            reader.read(_wrapped(owner.kind, owner.name, values), number)

    def _count(self, size: int) -> None:
        self._bytes_read += size
        self._tell("read")

    def _tell(self, phase: str) -> None:
        if self._spec.progress is not None:
            self._spec.progress(Progress(phase, self._bytes_read, self._gathered.rows))

    # -- committing --------------------------------------------------------------------------------

    @property
    def rows_written(self) -> dict[str, int]:
        """Records per type key."""
        return {key: rows.num_rows for key, rows in self._rows.items()}

    def check(self, attempt: Attempt, expected_head: str | None = None) -> None:
        """Raise what a commit on this state would raise, without writing anything."""
        if expected_head is not None and attempt.snapshot.commit_id != expected_head:
            raise PreconditionFailed(expected_head, attempt.snapshot.commit_id)
        self._meet(StoredSnapshot(attempt.repository, attempt.snapshot))

    def commit(self, committer: Committer, options: WriteOptions) -> LoadResult:
        """Make the load one commit on a branch."""
        outcome = committer.run(
            options,
            lambda attempt: self._prepare(attempt, options.info),
            retry=lambda: self._spec.mode != "overwrite",
            digest=self._digest,
        )
        self._tell("done")
        return LoadResult.of(options.branch, self._spec.mode, outcome)

    def close(self) -> None:
        """Nothing was left anywhere."""

    def _prepare(
        self, attempt: Attempt, info: WriteInfo
    ) -> tuple[PreparedWrite | None, Mapping[str, Any]]:
        if attempt.snapshot.schema_hash != self._schema_hash:
            raise SchemaChanged(self._schema_hash, attempt.snapshot.schema_hash)
        preparer = Preparer(attempt.repository, attempt.snapshot, attempt.schema)
        met = self._meet(preparer.stored)
        prepared = preparer.stage(met.image, info, known=met.known)
        beside = {"values_nulled": met.values_nulled, "edges_repeated": met.edges_repeated}
        counts = counts_of(self.rows_written, **beside)
        if self._spec.mode != "upsert":
            return prepared, counts
        if not prepared.tables:
            return None, counts
        written = {table.pin.key for table in prepared.tables}
        reads = {k: attempt.snapshot.pin(k).ref for k in self._image if k not in written}
        return replace(prepared, reads=reads), counts

    def _meet(self, stored: StoredSnapshot) -> Met:
        """What becomes of the rows on one state of the graph; raises what is wrong with them."""
        report = Report(files=self._report.files)
        if self._spec.mode == "upsert":
            report.extend(self._broken.shown, self._broken.total)
            report.rules |= self._broken.rules
            met = upserted(self._schema, self._image, self._named, stored, report)
        elif self._spec.mode == "merge":
            evaluate(self._schema, self._image, stored, report)
            report.raise_any()
            return merged(self._schema, self._image, self._named, stored)
        else:
            met = Met(self._image)
        rows_checked = self._spec.mode == "upsert"
        evaluate(self._schema, met.image, stored, report, rows_checked=rows_checked)
        report.raise_any()
        return met

    def _digest(self) -> str:
        """What identifies the request: its mode and its rows as they were read, without places."""
        digest = hashlib.sha256(self._spec.mode.encode())
        for key, rows in self._rows.items():
            digest.update(key.encode())
            sink = pa.BufferOutputStream()
            plain = rows.drop_columns([FILE, LINE])
            with pa.ipc.new_stream(sink, plain.schema) as writer:
                writer.write_table(plain)
            digest.update(sink.getvalue())
        return digest.hexdigest()


def _wrapped(kind: str, name: str, values: Any) -> Any:
    """Plain values of one type as a record; an edge names its ends `from` and `to`."""
    if not isinstance(values, Mapping):
        return values
    if kind == "node":
        return {"type": name, "data": values}
    words = EdgeType.endpoints.values()
    outside = {field: values[field] for field in words if field in values}
    data = {field: value for field, value in values.items() if field not in outside}
    return {"edge": name, **outside, "data": data}
