"""Quarantine: records with violations go to a file, and the rest is loaded.

The load is attempted; records with violations are skipped and it is attempted again until there are
none: without a node, edges that refer to it dangle and are skipped in the next attempt. Violations
that have no line of the input (a stored edge that would dangle, a cardinality) still fail the load.
The quarantine file is written before the commit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from omnigraph.bulk.load.driver import BulkLoad
from omnigraph.bulk.load.input_parts import InputPart
from omnigraph.errors import AlreadyExists, ConstraintViolation, InvalidData, KeyConflict
from omnigraph.ingest.load import LoadResult
from omnigraph.ingest.sources import opened
from omnigraph.model.ids import new_ulid
from omnigraph.prepare.committer import Attempt, Committer, WriteOptions

RECORDS_MAX: Final = 1_000_000
"""A load with more bad records is refused."""

ROUNDS_MAX: Final = 20
"""Attempts at most; each one skips the records that the one before found. Usually two or three."""

_Position = tuple[str, int]


class QuarantiningLoad:
    """A load that quarantines bad records; implements ``Load``."""

    def __init__(self, open_load: Callable[..., BulkLoad], start: Attempt, target: str) -> None:
        self._open = open_load
        self._start = start
        self._target = os.path.abspath(target)
        self._load = open_load(shown_max=RECORDS_MAX)
        self._bad: dict[_Position, list[Mapping[str, Any]]] = {}

    def read(self) -> QuarantiningLoad:
        """Repeat the load until there are no violations, then write the quarantine file."""
        if os.path.exists(self._target):
            raise AlreadyExists(
                f"{self._target} exists already", remedy="Name a new quarantine file."
            )
        quarantined_lines: dict[int, set[int]] = {}
        for attempt in range(ROUNDS_MAX):
            try:
                self._load.read()
                self._load.check(self._start)
                break
            except (InvalidData, ConstraintViolation, KeyConflict) as error:
                places = self._bad_records(error)
                if attempt == ROUNDS_MAX - 1 or not places:
                    raise
                for part, line in places:
                    quarantined_lines.setdefault(part, set()).add(line)
            self._load.close()
            frozen = {part: frozenset(lines) for part, lines in quarantined_lines.items()}
            self._load = self._open(shown_max=RECORDS_MAX, quarantined_lines=frozen)
        if self._bad:
            self._write()
        return self

    def check(self, attempt: Attempt, expected_head: str | None = None) -> None:
        self._load.check(attempt, expected_head)

    def commit(self, committer: Committer, options: WriteOptions) -> LoadResult:
        result = self._load.commit(committer, options)
        return replace(result, quarantined=len(self._bad))

    def close(self) -> None:
        self._load.close()

    def _bad_records(self, error: InvalidData | KeyConflict) -> list[tuple[int, int]]:
        """Parts and lines of the records in an error; empty if a violation has no line."""
        violations = error.details["violations"]
        if error.details["total"] > len(violations) or not self._load.parts_known:
            return []
        if any("line" not in violation for violation in violations):
            return []
        for violation in violations:
            place = (violation["file"], violation["line"])
            self._bad.setdefault(place, []).append(violation)
        return [self._load.locate(v["file"], v["line"]) for v in violations]

    def _write(self) -> None:
        """Write one JSON line per record, atomically."""
        texts = _texts(self._load.parts, self._bad)
        temporary = f"{self._target}.{new_ulid()}"
        with open(temporary, "w", encoding="utf-8") as out:
            for (file, line), violations in sorted(self._bad.items()):
                body = {"file": file, "line": line, "violations": violations}
                if (file, line) in texts:
                    body["record"] = texts[file, line]
                out.write(json.dumps(body, ensure_ascii=False) + "\n")
        os.replace(temporary, self._target)


def _texts(parts: list[InputPart], bad: Mapping[_Position, Any]) -> dict[_Position, str]:
    """The text of bad records in NDJSON files."""
    found: dict[_Position, str] = {}
    for part in parts:
        lines = {line for file, line in bad if file == part.name}
        again = part.data is None and not part.begins_file  # the first part opens the whole file
        if part.format != "ndjson" or again or not lines:
            continue
        with opened(part.file()) as stream:
            for number, text in enumerate(stream, 1 + part.data_lines_before):
                if number in lines:
                    found[part.name, number] = text.decode("utf-8", "replace").rstrip("\r\n")
    return found
