"""Which engine a load runs on, and the door to the one on Spark.

Small input is loaded in process, because starting Java costs more than loading it; large input and
DataFrames go to Spark. Both give the same result and the same errors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Literal, get_args

from omnigraph.catalog.repository import Repository
from omnigraph.errors import InvalidInput, OmnigraphError
from omnigraph.ingest.load import LoadSpec, OneLoad, Progress
from omnigraph.ingest.sources import find_files
from omnigraph.merge.engine import ChooseEngine, InProcess, MergeEngine
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Attempt
from omnigraph.spark.load.driver import SparkLoad
from omnigraph.spark.load.frames import has_frames
from omnigraph.spark.merge import SparkMerge
from omnigraph.spark.quarantine import QuarantiningLoad
from omnigraph.spark.session.installed import is_available
from omnigraph.spark.session.spark_session import session
from omnigraph.spark.tasks import SparkTasks, Step

Engine = Literal["auto", "spark", "local"]
ENGINES: Final[tuple[str, ...]] = get_args(Engine)
ENGINE_VARIABLE: Final = "OMNIGRAPH_LOAD_ENGINE"

AUTO_BYTES_MIN: Final = 128 << 20
"""Input of more bytes is worth a Spark session: in process it would take longer than starting one,
and more than a gigabyte of memory."""


AUTO_MERGE_ROWS_MIN: Final = 1_000_000
"""A merge whose source touched more entities is worth a Spark session: in process it holds all of
their values at once, and takes about as long as starting one."""


def choose_engine(engine: str | None, spec: LoadSpec) -> Engine:
    """The engine for a load: as the caller or the environment says, or by its input."""
    named = _known(engine or os.environ.get(ENGINE_VARIABLE) or "auto")
    if named == "spark" or has_frames(spec.source) or spec.quarantine is not None:
        return "spark"
    if named == "local" or not spec.strict or not is_available():
        return "local"
    return "spark" if _size(spec.source) > AUTO_BYTES_MIN else "local"


def merge_engine(repository: Repository, engine: str | None) -> ChooseEngine:
    """The engine for a merge: as the caller says, or by what its source has touched."""
    named = _known(engine or "auto")

    def choose(touched: int) -> MergeEngine:
        large = touched > AUTO_MERGE_ROWS_MIN and is_available()
        if named == "spark" or (named == "auto" and large):
            return SparkMerge(repository, start_tasks())
        return InProcess()

    return choose


def _known(engine: str) -> str:
    if engine not in ENGINES:
        raise InvalidInput(
            f"{engine!r} is not an engine", remedy=f"Use one of {', '.join(ENGINES)}."
        )
    return engine


def open_load(
    spec: LoadSpec, start: Attempt, blobs: BlobPolicy, *, for_new_branch: bool
) -> OneLoad:
    """A load on the Spark session of this process, which is started if there is none."""
    tasks = start_tasks(spec.progress)
    opened = partial(SparkLoad, spec, start, blobs, tasks, for_new_branch=for_new_branch)
    if spec.quarantine is None:
        return opened()
    return QuarantiningLoad(opened, start, spec.quarantine)


def start_tasks(progress: Callable[[Progress], None] | None = None) -> SparkTasks:
    """Tasks on the session of this process, which is started if there is none."""
    return SparkTasks(session(), _steps(progress))


def _size(source: Any) -> int:
    """How many bytes a load will read; what is not a file, bytes or a table counts nothing."""
    if isinstance(source, Mapping):
        return sum(_size(inner) for inner in source.values())
    if isinstance(source, bytes | bytearray | memoryview):
        return len(source)
    if isinstance(source, str | os.PathLike):
        try:
            files = find_files(source)
        except OmnigraphError:
            return 0  # the load itself says what is wrong
        return sum(os.path.getsize(file.path) for file in files if file.is_local and file.path)
    size = getattr(source, "nbytes", 0)
    return size if isinstance(size, int) else 0  # a column of a frame may be called so


def _steps(progress: Callable[[Progress], None] | None) -> Callable[[Step], None] | None:
    if progress is None:
        return None
    return lambda step: progress(Progress(step.name, 0, 0, step.tasks, step.tasks_done))
