"""Quarantine: bad records are set aside with what is wrong with them, and the rest is loaded.

The load is tried; records with violations are left out and it is tried again, until nothing is
wrong: leaving a node out may leave edges without an end, which then go too. What cannot be blamed
on a record of the input (a stored edge that would miss its node, a number of edges that is not
allowed) still refuses the load. The quarantine is written before the commit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from omnigraph.errors import AlreadyExists, ConstraintViolation, InvalidData, KeyConflict
from omnigraph.ingest.load import LoadResult
from omnigraph.ingest.sources import opened
from omnigraph.model.ids import new_ulid
from omnigraph.prepare.committer import Attempt, Committer, WriteOptions
from omnigraph.spark.load.driver import SparkLoad
from omnigraph.spark.load.parts import Part

RECORDS_MAX: Final = 1_000_000
"""More bad records than this are no accident: the load is refused."""

ROUNDS_MAX: Final = 20
"""Each round leaves out what the one before made wrong; real data needs two or three."""

_Place = tuple[str, int]


class QuarantiningLoad:
    """A load that sets bad records aside; the same steps as any load."""

    def __init__(self, open_load: Callable[..., SparkLoad], start: Attempt, target: str) -> None:
        self._open = open_load
        self._start = start
        self._target = os.path.abspath(target)
        self._load = open_load(shown_max=RECORDS_MAX)
        self._bad: dict[_Place, list[Mapping[str, Any]]] = {}

    @property
    def rows_written(self) -> dict[str, int]:
        return self._load.rows_written

    def read(self) -> None:
        """Try until nothing is wrong, then write down what was set aside."""
        if os.path.exists(self._target):
            raise AlreadyExists(
                f"{self._target} exists already", remedy="Name a new file for the quarantine."
            )
        set_aside: dict[int, set[int]] = {}
        for attempt in range(ROUNDS_MAX):
            try:
                self._load.read()
                self._load.check(self._start)
                break
            except (InvalidData, ConstraintViolation, KeyConflict) as error:
                places = self._blame(error)
                if attempt == ROUNDS_MAX - 1 or not places:
                    raise
                for part, line in places:
                    set_aside.setdefault(part, set()).add(line)
            self._load.close()
            frozen = {part: frozenset(lines) for part, lines in set_aside.items()}
            self._load = self._open(shown_max=RECORDS_MAX, set_aside=frozen)
        if self._bad:
            self._write()

    def check(self, attempt: Attempt, expected_head: str | None = None) -> None:
        self._load.check(attempt, expected_head)

    def commit(self, committer: Committer, options: WriteOptions) -> LoadResult:
        result = self._load.commit(committer, options)
        return replace(result, quarantined=len(self._bad))

    def close(self) -> None:
        self._load.close()

    def _blame(self, error: InvalidData | KeyConflict) -> list[tuple[int, int]]:
        """The records that an error is about; none when it is not only about records."""
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
        """One line per record, whole or not at all."""
        texts = _texts(self._load.parts, self._bad)
        temporary = f"{self._target}.{new_ulid()}"
        with open(temporary, "w", encoding="utf-8") as out:
            for (file, line), violations in sorted(self._bad.items()):
                body = {"file": file, "line": line, "violations": violations}
                if (file, line) in texts:
                    body["record"] = texts[file, line]
                out.write(json.dumps(body, ensure_ascii=False) + "\n")
        os.replace(temporary, self._target)


def _texts(parts: list[Part], bad: Mapping[_Place, Any]) -> dict[_Place, str]:
    """The bad records as they stand in files of lines."""
    found: dict[_Place, str] = {}
    for part in parts:
        wanted = {line for file, line in bad if file == part.name}
        if part.format != "ndjson" or not part.begins_file or not wanted:
            continue
        with opened(part.file()) as stream:
            for number, text in enumerate(stream, 1):
                if number in wanted:
                    found[part.name, number] = text.decode("utf-8", "replace").rstrip("\r\n")
    return found
