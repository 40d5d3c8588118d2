"""Running tasks on executors: one function, one specification and one result per task.

A task returns a value or a typed error; retryable errors are raised, so that Spark repeats the
task. Only results of successful attempts are used. A stalled job (all workers lost, no free cores)
is cancelled after a timeout with ``SparkStalled``, because Spark itself would wait forever.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.scratch import Scratch
from omnigraph.bulk.tasks import JobProgress, Result, Spec
from omnigraph.errors import OmnigraphError, SparkFailure, SparkStalled
from omnigraph.model.ids import new_ulid
from omnigraph.spark.session.preflight import (
    TASKS_MAX,
    probe_executors,
    read_graph,
    require_packages,
    require_storage,
)
from omnigraph.spark.session.spark_session import is_connect, parallelism, runs_here
from omnigraph.spark.task_specs import (
    InlineSpecs,
    StoredSpecs,
    pack,
    pack_result,
    unpack_result,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

POLL_S: Final = 0.1

_checked: set[tuple[str, str]] = set()
"""Applications and graphs whose executors were checked."""

RESULT_SCHEMA: Final = "task long, result binary"


class SparkTasks:
    """Runs tasks as jobs of a Spark session."""

    def __init__(
        self,
        spark: SparkSession,
        stall_s: float,
        progress: Callable[[JobProgress], None] | None = None,
        scratch: Scratch | None = None,
    ) -> None:
        """``stall_s``: how long a job may make no progress before it is cancelled.

        ``scratch``: where large specifications and results are exchanged; without one they are
        part of the closure.
        """
        self.spark = spark
        self._stall_s = stall_s
        self._progress = progress
        self._scratch = scratch

    def within(self, scratch: Scratch) -> SparkTasks:
        return SparkTasks(self.spark, self._stall_s, self._progress, scratch)

    @property
    def parallelism(self) -> int:
        return parallelism(self.spark)

    def run(
        self,
        name: str,
        function: Callable[[Spec], Result],
        specs: Sequence[Spec],
        *,
        light: bool = False,
    ) -> list[Result]:
        if not specs or (light and len(specs) == 1):
            return [function(spec) for spec in specs]
        frame = self.spark.range(0, len(specs), 1, len(specs))
        packed = pack(function, specs, self._scratch)
        return self._collect(name, frame.mapInArrow(_each(packed, self._scratch), RESULT_SCHEMA))

    def check_executors(self, graph: GraphStorage) -> None:
        """Raise ``SparkUnavailable`` unless the executors can work on this graph; checked once per
        session and graph. Executors of this machine are not asked, nor those of a server."""
        if is_connect(self.spark) or runs_here(self.spark):
            return
        context = self.spark.sparkContext
        known = (context.applicationId, graph.uri)
        if known in _checked:
            return
        with self._watched("checking the executors"):
            found = probe_executors(context, self.parallelism)
        require_packages(found)
        count = min(self.parallelism, TASKS_MAX)
        require_storage(
            graph,
            self.run("checking the executors", partial(read_graph, graph), range(max(count, 2))),
        )
        _checked.add(known)

    def map_partitions(
        self,
        name: str,
        frame: DataFrame,
        function: Callable[[int, Iterator[pa.RecordBatch]], Result],
    ) -> list[Result]:
        """The results of a function of the number and the rows of each partition of a frame."""
        each = _each_partition(function, self._scratch)
        return self._collect(name, frame.mapInArrow(each, RESULT_SCHEMA))

    def _collect(self, name: str, frame: DataFrame) -> list[Any]:
        """The results in a frame of ``RESULT_SCHEMA``, by task number."""
        with self._watched(name):
            rows = frame.collect()
        rows.sort(key=lambda row: int(row["task"]))
        return [_result(bytes(row["result"]), self._scratch) for row in rows]

    def _report_end(self, name: str, total: int) -> None:
        """Report completion, also of a job that ended before the first poll."""
        if self._progress is not None:
            self._progress(JobProgress(name, max(total, 1), max(total, 1)))

    @contextmanager
    def _watched(self, name: str) -> Iterator[None]:
        watch = _ConnectWatch(self.spark) if is_connect(self.spark) else _JobWatch(self.spark)
        over = threading.Event()
        stalled: list[float] = []

        def look() -> None:
            last, since = (-1, 0), monotonic()
            while not over.wait(POLL_S):
                done, active, total = watch.state()
                if self._progress is not None and total and done != last[0]:
                    self._progress(JobProgress(name, total, done))
                if active or (done, active) != last:
                    last, since = (done, active), monotonic()
                elif monotonic() - since > self._stall_s:
                    stalled.append(monotonic() - since)
                    watch.cancel()
                    return

        thread = threading.Thread(target=look, name="omnigraph-spark-watch", daemon=True)
        watch.start(name)
        thread.start()
        try:
            yield
            self._report_end(name, watch.state()[2])
        except KeyboardInterrupt:
            watch.cancel()
            raise
        except OmnigraphError:
            raise
        except Exception as problem:
            if stalled:
                raise SparkStalled(
                    f"the Spark job ({name}) made no progress for {stalled[0]:.0f} s",
                    details={"job": name, "seconds": round(stalled[0])},
                ) from problem
            raise _failure(name, problem) from problem
        finally:
            over.set()
            thread.join()
            watch.stop()


_JOB_PROPERTIES: Final = (
    "spark.jobGroup.id",
    "spark.job.description",
    "spark.job.interruptOnCancel",
)


class _JobWatch:
    """Progress and cancellation of the jobs of this thread, in a session of this process.

    The caller's own job group and description are restored in the end.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._group = f"omnigraph-{new_ulid()}"
        self._before: dict[str, Any] = {}

    def start(self, name: str) -> None:
        self._before = {key: self._context.getLocalProperty(key) for key in _JOB_PROPERTIES}
        self._context.setJobGroup(self._group, f"omnigraph: {name}")

    def state(self) -> tuple[int, int, int]:
        """Completed, active and total tasks."""
        tracker = self._context.statusTracker()
        done = active = total = 0
        for job in tracker.getJobIdsForGroup(self._group):
            found = tracker.getJobInfo(job)
            for stage in () if found is None else found.stageIds:
                info = tracker.getStageInfo(stage)
                if info is not None:
                    done += info.numCompletedTasks
                    active += info.numActiveTasks
                    total += info.numTasks
        return done, active, total

    def cancel(self) -> None:
        self._context.cancelJobGroup(self._group)

    def stop(self) -> None:
        for key, value in self._before.items():
            self._context.setLocalProperty(key, value)


class _ConnectWatch:
    """Progress and cancellation over Spark Connect, which reports to a handler."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._tag = f"omnigraph-{new_ulid()}"
        self._state = (0, 0, 0)

    def start(self, name: str) -> None:
        self._spark.addTag(self._tag)
        self._spark.registerProgressHandler(self._note)

    def _note(self, stages: Any, inflight_tasks: int, **_: Any) -> None:
        done = sum(stage.num_completed_tasks for stage in stages)
        self._state = (done, inflight_tasks, sum(stage.num_tasks for stage in stages))

    def state(self) -> tuple[int, int, int]:
        return self._state

    def cancel(self) -> None:
        self._spark.interruptTag(self._tag)

    def stop(self) -> None:
        self._spark.removeTag(self._tag)
        self._spark.removeProgressHandler(self._note)


def _each(
    packed: InlineSpecs | StoredSpecs, scratch: Scratch | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow``: task numbers to results."""

    def run_tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _result_batch(number, partial(packed.call, number), scratch)

    return run_tasks


def _each_partition(
    function: Callable[[int, Iterator[pa.RecordBatch]], Result], scratch: Scratch | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow``: one result per partition."""

    def run_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        running = TaskContext.get()
        number = 0 if running is None else running.partitionId()
        yield _result_batch(number, partial(function, number, batches), scratch)

    return run_partition


def _result_batch(number: int, act: Callable[[], Any], scratch: Scratch | None) -> pa.RecordBatch:
    """The result or the final error of a task, as a row of ``RESULT_SCHEMA``."""
    try:
        result = pickle.dumps((True, act()))
    except OmnigraphError as error:
        if error.retryable:
            raise
        result = pickle.dumps((False, error))
    data = pack_result(result, scratch)
    return pa.record_batch(
        [pa.array([number], pa.int64()), pa.array([data], pa.binary())], ["task", "result"]
    )


def _result(data: bytes, scratch: Scratch | None) -> Any:
    good, value = unpack_result(data, scratch)
    if not good:
        raise value
    return value


def _failure(name: str, problem: Exception) -> SparkFailure:
    """The error for an exception of PySpark, with its cause in one line."""
    why = reason(problem)
    return SparkFailure(
        f"the Spark job ({name}) failed: {why[:300]}", details={"job": name, "reason": why[:2000]}
    )


def reason(problem: Exception) -> str:
    """The cause of a failed job: the last line of the executor's traceback, or Spark's message."""
    parameters = getattr(problem, "getMessageParameters", lambda: None)() or {}
    said = str(problem).partition("JVM stacktrace:")[0]
    traceback = parameters.get("traceback") or said.partition("Traceback (most recent")[2]
    traces = [line for line in traceback.splitlines() if line.strip()]
    raised = [line for line in traces if not line.startswith((" ", "SQLSTATE"))]
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    named = [line for line in lines if line.startswith("[")]
    causes = [line for line in lines if "Error" in line or "Exception" in line]
    return (raised[-1:] or named or causes or lines or [type(problem).__name__])[0].strip()
