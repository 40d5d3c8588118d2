"""Counts requests at the S3 test server, per operation, number of types and length of history."""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.storage_calls.histories import COMMITS, TYPES, build
from tests.storage_calls.operations import CLASSES, OPERATIONS, Operation, Subject
from tests.support.s3server import S3Server

import omnigraph
from omnigraph import Graph

COUNTED_AS = {"COPY": "PUT", "MULTIPART": "PUT", "DELETE_MANY": "DELETE"}
REPETITIONS = 3  # the median of three never shows the one commit that folds

Counts = dict[str, int]
Cell = tuple[str, int, int]  # operation, types, commits


def measure(s3: S3Server, types: int, lengths: Sequence[int] = COMMITS) -> dict[Cell, Counts]:
    """Every operation at these lengths of history, for one number of types."""
    found: dict[Cell, Counts] = {}
    bucket = s3.create_bucket("calls")
    with tempfile.TemporaryDirectory() as directory, environment(s3.environment()):
        for commits, place, newest in build(Path(directory), types, lengths):
            uri = f"{bucket}/{uuid.uuid4().hex}"
            s3.load(place, uri)
            subject = Subject(omnigraph.open(uri), newest)
            _warm_up(subject.graph, types)
            for operation in OPERATIONS:
                if types >= operation.types_min:
                    found[operation.name, types, commits] = _count(s3, subject, operation)
    return found


def measure_everything(s3: S3Server) -> dict[Cell, Counts]:
    return {cell: counts for types in TYPES for cell, counts in measure(s3, types).items()}


@contextlib.contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _warm_up(graph: Graph, types: int) -> None:
    """One write to every type that is written to later: a handle that has been used."""
    with graph.write() as w:
        w.insert("T0", {"name": "warm"})
        if types > 1:
            w.insert("T1", {"name": "warm"})


def _count(s3: S3Server, subject: Subject, operation: Operation) -> Counts:
    measured = []
    for repetition in range(REPETITIONS):
        if operation.prepare is not None:
            operation.prepare(subject, repetition)
        s3.reset()
        operation.run(subject, repetition)
        measured.append(_by_class(s3.counts()))
    return {name: int(statistics.median(m[name] for m in measured)) for name in CLASSES}


def _by_class(counts: Mapping[str, int]) -> Counts:
    result = dict.fromkeys(CLASSES, 0)
    for kind, count in counts.items():
        result[COUNTED_AS.get(kind, kind)] += count
    return result
