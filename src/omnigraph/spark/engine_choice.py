"""Choice of the engine of a load or merge, and the entry points of the Spark engine.

Small input is loaded in process, because starting Java costs more than loading it; large input and
DataFrames go to Spark. Both engines have the same results and the same errors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, get_args

from omnigraph.bulk.load.dataframes import has_frames
from omnigraph.bulk.load.driver import BulkLoad
from omnigraph.bulk.quarantine import QuarantiningLoad
from omnigraph.bulk.tasks import JobProgress
from omnigraph.catalog.repository import Repository
from omnigraph.errors import InvalidInput, OmnigraphError
from omnigraph.ingest.load import Load, LoadSpec, Progress
from omnigraph.ingest.sources import find_files
from omnigraph.merge.engine import ChooseEngine, LocalMerge, MergeEngine
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Attempt
from omnigraph.settings import Engine, Settings, StorageSettings
from omnigraph.spark.merge import SparkMerge
from omnigraph.spark.session.installed import is_available
from omnigraph.spark.session.spark_session import session
from omnigraph.spark.tasks import SparkTasks

ENGINES: Final[tuple[str, ...]] = get_args(Engine)

AUTO_BYTES_MIN: Final = 128 << 20
"""Input size above which a load uses Spark: in process it would take longer than starting Spark,
and more than a gigabyte of memory."""

AUTO_MERGE_ROWS_MIN: Final = 1_000_000
"""Changed entities above which a merge uses Spark: in process it holds all of their values in
memory, and takes about as long as starting Spark."""


def choose_engine(engine: str | None, spec: LoadSpec, settings: Settings) -> Engine:
    """The engine for a load: named by the caller or the settings, else chosen by the input."""
    named = _known(engine or settings.spark.load_engine)
    if named == "spark" or has_frames(spec.source) or spec.quarantine is not None:
        return "spark"
    if named == "local" or not spec.strict or not is_available():
        return "local"
    return "spark" if _size(spec.source, settings.storage) > AUTO_BYTES_MIN else "local"


def merge_engine(repository: Repository, engine: str | None) -> ChooseEngine:
    """The engine for a merge: named by the caller, else chosen by the number of changes."""
    named = _known(engine or "auto")

    def choose(touched: int) -> MergeEngine:
        large = touched > AUTO_MERGE_ROWS_MIN and is_available()
        if named == "spark" or (named == "auto" and large):
            return SparkMerge(repository, start_tasks(repository.settings))
        return LocalMerge()

    return choose


def _known(engine: str) -> str:
    if engine not in ENGINES:
        raise InvalidInput(
            f"{engine!r} is not an engine", remedy=f"Use one of {', '.join(ENGINES)}."
        )
    return engine


def open_load(spec: LoadSpec, start: Attempt, blobs: BlobPolicy, *, for_new_branch: bool) -> Load:
    """A load on the Spark session of this process, which is started if there is none."""
    tasks = start_tasks(start.repository.settings, spec.progress)
    opened = partial(BulkLoad, spec, start, blobs, tasks, for_new_branch=for_new_branch)
    if spec.quarantine is None:
        return opened()
    return QuarantiningLoad(opened, start, spec.quarantine)


def start_tasks(
    settings: Settings, progress: Callable[[Progress], None] | None = None
) -> SparkTasks:
    """Tasks on the session of this process, which is started if there is none."""
    return SparkTasks(session(settings=settings), settings.spark.stall_s, _steps(progress))


def _size(source: Any, storage: StorageSettings) -> int:
    """Bytes that a load will read; sources other than files, bytes and tables count 0."""
    if isinstance(source, Mapping):
        return sum(_size(inner, storage) for inner in source.values())
    if isinstance(source, bytes | bytearray | memoryview):
        return len(source)
    if isinstance(source, str | os.PathLike):
        try:
            files = find_files(source, storage)
        except OmnigraphError:
            return 0  # the load itself raises the error
        return sum(os.path.getsize(file.path) for file in files if file.is_local and file.path)
    size = getattr(source, "nbytes", 0)
    return size if isinstance(size, int) else 0  # a frame may have a column of this name


def _steps(progress: Callable[[Progress], None] | None) -> Callable[[JobProgress], None] | None:
    if progress is None:
        return None
    return lambda step: progress(Progress(step.name, 0, 0, step.tasks, step.tasks_done))
