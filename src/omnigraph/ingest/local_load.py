"""A load in this process: read everything, check everything, commit once.

Input is read completely before anything is decided, so records may come in any order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from omnigraph.constraints import FILE, LINE, Report, TypeImage, evaluate
from omnigraph.constraints.row_checks import check_required, check_values
from omnigraph.errors import PreconditionFailed, SchemaChanged
from omnigraph.ingest.identify import identify
from omnigraph.ingest.load import LoadResult, LoadSpec, Progress, counts_of
from omnigraph.ingest.load_image import LoadImage, merge_image, upsert_image
from omnigraph.ingest.read_source import read_source
from omnigraph.ingest.row_collector import RowCollector
from omnigraph.ingest.upsert import check_given
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Attempt, Committer, Prepared, WriteOptions
from omnigraph.prepare.preparer import Preparer
from omnigraph.prepare.stored_entities import StoredSnapshot
from omnigraph.transaction.prepared import WriteInfo


class LocalLoad:
    """Reads the input of a load into memory; implements ``Load``."""

    def __init__(self, spec: LoadSpec, attempt: Attempt, policy: BlobPolicy) -> None:
        self._spec = spec
        self._schema = attempt.schema
        self._settings = attempt.repository.settings
        self._schema_hash = attempt.snapshot.schema_hash
        self._policy = policy.keeping(spec.mode == "overwrite")

    def read(self) -> LocalInput:
        """Read all input; raises one error with everything that is wrong with single records."""
        spec, schema, report = self._spec, self._schema, Report()
        upsert = spec.mode == "upsert"
        collector = RowCollector(
            schema,
            report,
            self._policy,
            bytes_max=self._settings.limits.load_bytes_max,
            marks_nulls=upsert,
        )
        bytes_read = 0

        def count(size: int) -> None:
            nonlocal bytes_read
            bytes_read += size
            _report_progress(spec, "read", bytes_read, collector.rows)

        read_source(spec, collector, self._settings.storage, count)
        rows = collector.finish()
        _report_progress(spec, "check", bytes_read, collector.rows)
        has_id = {key: table["id"].is_valid() for key, table in rows.items()}
        found = identify(schema, rows, report, strict=spec.strict, names_nodes=upsert)
        image: dict[str, TypeImage] = {}
        for key in sorted(found.rows):
            owner = schema.type(key)
            if owner.key_properties:
                has_id.pop(key)  # the key identifies every row
            image[key] = TypeImage(
                found.rows[key],
                replaces_all=spec.mode == "overwrite",
                must_be_new=spec.mode == "append",
                fresh=key in found.fresh,
                last_wins=upsert or (spec.mode == "merge" and not owner.key_properties),
            )
        checked = Report(files=report.files)
        if upsert or report:
            checked = self._check_rows(image, has_id, report)
        report.raise_any()
        progress = Progress("done", bytes_read, collector.rows)
        return LocalInput(spec, schema, self._schema_hash, rows, image, has_id, checked, progress)

    def close(self) -> None:
        """Nothing was left anywhere."""

    def _check_rows(
        self, image: Mapping[str, TypeImage], has_id: Mapping[str, Any], report: Report
    ) -> Report:
        """Check rules about single rows before the stored rows are known.

        Of an upsert only what is given is checked; another load is checked here only when it is
        refused anyway, because records are missing from its image. Missing values go to ``report``
        and refuse the load; the other violations are returned, to be reported with later ones.
        """
        checked = Report(files=report.files)
        for key, change in image.items():
            owner = self._schema.type(key)
            if self._spec.mode == "upsert":
                check_given(owner, change.rows, has_id.get(key), checked)
            else:
                check_required(owner, change.rows, checked)
            check_values(owner, change.rows, checked)
        if not report and "required" not in checked.rules:
            return checked
        report.extend(checked.shown, checked.total)
        report.rules |= checked.rules
        return Report(files=report.files)


@dataclass(frozen=True, slots=True)
class LocalInput:
    """Records in memory, with their ids; implements ``LoadInput``.

    ``rows`` are the records as they were read, ``image`` the same with ids. ``has_id`` marks the
    rows that came with an id, of types without a key. ``checked`` are violations of single rows.
    """

    spec: LoadSpec
    schema: AcceptedSchema
    schema_hash: str
    rows: Mapping[str, pa.Table]
    image: Mapping[str, TypeImage]
    has_id: Mapping[str, Any]
    checked: Report
    progress: Progress

    def check(self, attempt: Attempt, expected_head: str | None = None) -> None:
        """Raise what a commit on this state would raise, without writing anything."""
        if expected_head is not None and attempt.snapshot.commit_id != expected_head:
            raise PreconditionFailed(expected_head, attempt.snapshot.commit_id)
        self._image_on(StoredSnapshot(attempt.repository, attempt.snapshot))

    def commit(self, committer: Committer, options: WriteOptions) -> LoadResult:
        """Make the load one commit on a branch."""
        outcome = committer.run(
            options, lambda attempt: self._prepare(attempt, options.info), digest=self._digest
        )
        if self.spec.progress is not None:
            self.spec.progress(self.progress)
        return LoadResult.of(options.branch, self.spec.mode, outcome)

    def _prepare(self, attempt: Attempt, info: WriteInfo) -> Prepared[None]:
        if attempt.snapshot.schema_hash != self.schema_hash:
            raise SchemaChanged(self.schema_hash, attempt.snapshot.schema_hash)
        preparer = Preparer(attempt.repository, attempt.snapshot, attempt.schema)
        found = self._image_on(preparer.stored)
        write = preparer.stage(found.image, info, known=found.known)
        rows_written = {key: rows.num_rows for key, rows in self.rows.items()}
        counts = counts_of(
            rows_written, values_nulled=found.values_nulled, edges_repeated=found.edges_repeated
        )
        repeatable = self.spec.mode != "overwrite"
        if self.spec.mode != "upsert":
            return Prepared(write, counts, rows_written, repeatable)
        if not write.tables:
            return Prepared(None, counts, rows_written, repeatable)
        written = {table.pin.key for table in write.tables}
        reads = {k: attempt.snapshot.pin(k).ref for k in self.image if k not in written}
        return Prepared(replace(write, reads=reads), counts, rows_written, repeatable)

    def _image_on(self, stored: StoredSnapshot) -> LoadImage:
        """What the load writes on one state of the graph; raises every violation there."""
        mode, report = self.spec.mode, Report(files=self.checked.files)
        if mode == "upsert":
            report.extend(self.checked.shown, self.checked.total)
            report.rules |= self.checked.rules
            found = upsert_image(self.schema, self.image, self.has_id, stored, report)
        elif mode == "merge":
            evaluate(self.schema, self.image, stored, report)
            report.raise_any()
            return merge_image(self.schema, self.image, self.has_id, stored)
        else:
            found = LoadImage(self.image)
        evaluate(self.schema, found.image, stored, report, rows_checked=mode == "upsert")
        report.raise_any()
        return found

    def _digest(self) -> str:
        """Identifies the request: its mode and its rows as read, without file and line."""
        digest = hashlib.sha256(self.spec.mode.encode())
        for key, rows in self.rows.items():
            digest.update(key.encode())
            sink = pa.BufferOutputStream()
            plain = rows.drop_columns([FILE, LINE])
            with pa.ipc.new_stream(sink, plain.schema) as writer:
                writer.write_table(plain)
            digest.update(sink.getvalue())
        return digest.hexdigest()


def _report_progress(spec: LoadSpec, phase: str, bytes_read: int, rows: int) -> None:
    if spec.progress is not None:
        spec.progress(Progress(phase, bytes_read, rows))
