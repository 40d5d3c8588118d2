"""Choice of the engine of a load or merge, and the runner on the Spark session of this process.

A load goes where it is estimated to be done first (``bulk/estimate.py``); DataFrames go to Spark.
All engines have the same results and the same errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, get_args

from omnigraph.bulk.estimate import EngineChoice, cheapest_engine, input_bytes
from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.load.dataframes import has_frames
from omnigraph.bulk.tasks import JobProgress
from omnigraph.catalog.repository import Repository
from omnigraph.errors import InvalidInput
from omnigraph.ingest.load import LoadSpec, Progress
from omnigraph.merge.engine import ChooseEngine, LocalMerge, MergeEngine
from omnigraph.model.cores import cores
from omnigraph.settings import Engine, Settings
from omnigraph.spark.merge import SparkMerge
from omnigraph.spark.session.installed import is_available
from omnigraph.spark.session.spark_session import at_hand, session
from omnigraph.spark.tasks import SparkTasks

ENGINES: Final[tuple[str, ...]] = get_args(Engine)

AUTO_MERGE_ROWS_MIN: Final = 1_000_000
"""Changed entities above which a merge uses Spark: in process it holds all of their values in
memory, and takes about as long as starting Spark."""


def choose_engine(engine: str | None, spec: LoadSpec, settings: Settings) -> EngineChoice:
    """The engine for a load: named by the caller or the settings, else chosen by its cost."""
    named = _known(engine or settings.spark.load_engine)
    if has_frames(spec.source):
        return EngineChoice("spark", "the input is a DataFrame")
    if named == "spark":
        return EngineChoice("spark", "it was named")
    if named == "local":
        return EngineChoice("local", "it was named")
    if not spec.strict:
        return EngineChoice("local", "only it reads the compatible format")
    size = input_bytes(spec.source, settings.storage)
    return cheapest_engine(size, cores(), at_hand(settings))


def merge_engine(repository: Repository, engine: str | None) -> ChooseEngine:
    """The engine for a merge: named by the caller, else chosen by the number of changes."""
    named = _known(engine or "auto")

    def choose(touched: int) -> MergeEngine:
        large = touched > AUTO_MERGE_ROWS_MIN and is_available()
        if named == "spark" or (named == "auto" and large):
            return SparkMerge(repository, start_tasks(repository))
        return LocalMerge()

    return choose


def _known(engine: str) -> str:
    if engine not in ENGINES:
        raise InvalidInput(
            f"{engine!r} is not an engine", remedy=f"Use one of {', '.join(ENGINES)}."
        )
    return engine


def start_tasks(
    repository: Repository, progress: Callable[[Progress], None] | None = None
) -> SparkTasks:
    """Tasks on the session of this process, which is started if there is none.

    The executors of a cluster are checked first.
    """
    settings = repository.settings
    tasks = SparkTasks(session(settings=settings), settings.spark.stall_s, job_progress(progress))
    tasks.check_executors(GraphStorage.of(repository))
    return tasks


def job_progress(
    progress: Callable[[Progress], None] | None,
) -> Callable[[JobProgress], None] | None:
    """Progress of jobs as progress of a load."""
    if progress is None:
        return None
    return lambda step: progress(Progress(step.name, 0, 0, step.tasks, step.tasks_done))
