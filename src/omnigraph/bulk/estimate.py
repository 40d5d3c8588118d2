"""What a load costs on each engine, estimated before it begins: the input's size, cores, a session.

A load runs on threads of this process unless Spark is estimated to be done sooner, which takes a
cluster: on the cores of this machine Spark does the same work at a third of the speed, after a
start of many seconds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.bulk.load.input_parts import COMPRESSION_FACTOR
from omnigraph.errors import OmnigraphError
from omnigraph.ingest.frames import is_tabular
from omnigraph.ingest.load import LoadSpec
from omnigraph.ingest.sources import SourceFile, find_files
from omnigraph.settings import Engine, StorageSettings

LOCAL_BYTES_PER_CORE_S: Final = 40 << 20
"""NDJSON that a core loads per second in process: parse, checks and write."""

SPARK_BYTES_PER_CORE_S: Final = 16 << 20
"""The same in a warm Spark session."""

THREADED_BYTES_MIN: Final = 16 << 20
"""Input that is loaded as tasks: less is read at once by one thread in well under a second."""


@dataclass(frozen=True, slots=True)
class SparkAtHand:
    """The Spark session that a load would use."""

    cores: int
    start_s: float
    """Seconds until it can run a task."""
    is_cluster: bool


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine of a load, and why."""

    engine: Engine
    reason: str

    def __str__(self) -> str:
        return f"engine {self.engine}: {self.reason}"


def cheapest_engine(size: int, cores: int, spark: SparkAtHand | None) -> EngineChoice:
    """The engine that is estimated to load ``size`` bytes soonest."""
    here_s = size / (LOCAL_BYTES_PER_CORE_S * cores)
    shown = f"{size >> 20} MiB take about {_seconds(here_s)} on {cores} cores here"
    if spark is None:
        return EngineChoice("local", f"{shown}; Spark is not installed")
    there_s = spark.start_s + size / (SPARK_BYTES_PER_CORE_S * spark.cores)
    where = "the cluster" if spark.is_cluster else "Spark on this machine"
    reason = f"{shown}, {_seconds(there_s)} on {where}"
    return EngineChoice("spark" if there_s < here_s else "local", reason)


def runs_as_tasks(spec: LoadSpec, size: int) -> bool:
    """Whether a load in process is divided among threads, instead of read into memory at once."""
    if spec.quarantine is not None:
        return True
    return spec.strict and size >= THREADED_BYTES_MIN and _is_divisible(spec.source)


def input_bytes(source: Any, storage: StorageSettings) -> int:
    """Bytes that a load will read; records in memory and objects of a store count 0."""
    if isinstance(source, Mapping):
        return sum(input_bytes(inner, storage) for inner in source.values())
    if isinstance(source, bytes | bytearray | memoryview):
        return len(source)
    if isinstance(source, str | os.PathLike):
        try:
            return sum(_file_bytes(file) for file in find_files(source, storage))
        except OmnigraphError:
            return 0  # the load itself raises the error
    size = getattr(source, "nbytes", 0)
    return size if isinstance(size, int) else 0  # a frame may have a column of this name


def _is_divisible(source: Any) -> bool:
    if isinstance(source, Mapping):
        return all(_is_divisible(inner) for inner in source.values())
    return isinstance(source, str | os.PathLike | bytes | bytearray | memoryview) or is_tabular(
        source
    )


def _file_bytes(file: SourceFile) -> int:
    if not file.is_local or file.path is None:
        return 0
    packed = file.name.lower().endswith((".gz", ".zst"))
    return os.path.getsize(file.path) * (COMPRESSION_FACTOR if packed else 1)


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 1 else "less than a second"
