"""Running tasks on executors: one function, many specifications, one answer each.

A task answers with a value or with a typed error; errors that a repetition may cure are raised, so
that Spark repeats the task. Only answers of successful attempts are seen. A job that stops moving
(all workers gone, no free cores) is cancelled after a while and reported, because Spark itself
would wait for ever.
"""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import pyarrow as pa

from omnigraph.errors import InvalidInput, OmnigraphError, SparkFailure, SparkStalled
from omnigraph.model.ids import new_ulid
from omnigraph.spark.session.spark_session import is_connect, parallelism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STALL_VARIABLE: Final = "OMNIGRAPH_SPARK_STALL_SECONDS"
STALL_S_DEFAULT: Final = 120.0
"""Longer than a cluster needs to replace a worker, shorter than a person waits in vain."""

POLL_S: Final = 0.1
RESULT_SCHEMA: Final = "task long, answer binary"

Spec = TypeVar("Spec")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Step:
    """How far one job is."""

    name: str
    tasks: int
    tasks_done: int


class Tasks(Protocol):
    """Something that carries tasks out, in any order, and returns their answers in order.

    ``light`` tasks are small when there is only one of them: not worth a job.
    """

    @property
    def parallelism(self) -> int: ...

    def run(
        self,
        name: str,
        function: Callable[[Spec], Answer],
        specs: Sequence[Spec],
        *,
        light: bool = False,
    ) -> list[Answer]: ...


class InProcess:
    """Tasks in this process, one after the other."""

    parallelism = 1

    def run(
        self,
        name: str,
        function: Callable[[Any], Any],
        specs: Sequence[Any],
        *,
        light: bool = False,
    ) -> list[Any]:
        return [function(spec) for spec in specs]


class SparkTasks:
    """Tasks as Spark jobs of one session."""

    def __init__(self, spark: SparkSession, progress: Callable[[Step], None] | None = None) -> None:
        self.spark = spark
        self._progress = progress

    @property
    def parallelism(self) -> int:
        return parallelism(self.spark)

    def run(
        self,
        name: str,
        function: Callable[[Spec], Answer],
        specs: Sequence[Spec],
        *,
        light: bool = False,
    ) -> list[Answer]:
        if not specs or (light and len(specs) == 1):
            return [function(spec) for spec in specs]
        frame = self.spark.range(0, len(specs), 1, len(specs))
        return self.collect(name, frame.mapInArrow(_each(function, specs), RESULT_SCHEMA))

    def collect(self, name: str, frame: DataFrame) -> list[Any]:
        """The answers of a frame of ``RESULT_SCHEMA``, by task number."""
        with self._watched(name):
            rows = frame.collect()
        return [_opened(row["answer"]) for row in sorted(rows, key=lambda row: int(row["task"]))]

    def _tell_end(self, name: str, total: int) -> None:
        """Say that all is done, also when the job was over before anything was reported."""
        if self._progress is not None:
            self._progress(Step(name, max(total, 1), max(total, 1)))

    @contextmanager
    def _watched(self, name: str) -> Iterator[None]:
        watch = _ConnectWatch(self.spark) if is_connect(self.spark) else _Watch(self.spark)
        limit_s, over = stall_seconds(), threading.Event()
        stalled: list[float] = []

        def look() -> None:
            last, since = (-1, 0), monotonic()
            while not over.wait(POLL_S):
                done, active, total = watch.state()
                if self._progress is not None and total and done != last[0]:
                    self._progress(Step(name, total, done))
                if active or (done, active) != last:
                    last, since = (done, active), monotonic()
                elif monotonic() - since > limit_s:
                    stalled.append(monotonic() - since)
                    watch.cancel()
                    return

        thread = threading.Thread(target=look, name="omnigraph-spark-watch", daemon=True)
        watch.start(name)
        thread.start()
        try:
            yield
            self._tell_end(name, watch.state()[2])
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


class _Watch:
    """The state of this thread's jobs, in a session of this process."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._group = f"omnigraph-{new_ulid()}"

    def start(self, name: str) -> None:
        self._context.setJobGroup(self._group, f"omnigraph: {name}")

    def state(self) -> tuple[int, int, int]:
        """Tasks done, running, and known."""
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
        self._context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


class _ConnectWatch:
    """The same over Spark Connect, which reports progress to a handler."""

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


def stall_seconds() -> float:
    """How long a job may stand still."""
    text = os.environ.get(STALL_VARIABLE, "")
    try:
        value = float(text) if text else STALL_S_DEFAULT
    except ValueError:
        value = 0.0
    if value <= 0:
        raise InvalidInput(f"{STALL_VARIABLE} is {text!r}; it must be a number of seconds")
    return value


def _each(
    function: Callable[[Spec], Answer], specs: Sequence[Spec]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function over the numbered rows of a frame, for ``mapInArrow``."""

    def carry_out(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield answer_batch(number, partial(function, specs[number]))

    return carry_out


def answer_batch(number: int, act: Callable[[], Any]) -> pa.RecordBatch:
    """What a task answers, as a row of ``RESULT_SCHEMA``."""
    try:
        answer = pickle.dumps((True, act()))
    except OmnigraphError as error:
        if error.retryable:
            raise
        answer = pickle.dumps((False, error))
    return pa.record_batch(
        [pa.array([number], pa.int64()), pa.array([answer], pa.binary())], ["task", "answer"]
    )


def _opened(answer: bytes) -> Any:
    good, value = pickle.loads(bytes(answer))
    if not good:
        raise value
    return value


def _failure(name: str, problem: Exception) -> SparkFailure:
    """One line for whatever PySpark raised."""
    why = reason(problem)
    return SparkFailure(
        f"the Spark job ({name}) failed: {why[:300]}", details={"job": name, "reason": why[:2000]}
    )


def reason(problem: Exception) -> str:
    """What went wrong: the last line of the executor's own traceback, or what Spark calls it."""
    parameters = getattr(problem, "getMessageParameters", lambda: None)() or {}
    said = str(problem).partition("JVM stacktrace:")[0]
    traceback = parameters.get("traceback") or said.partition("Traceback (most recent")[2]
    traces = [line for line in traceback.splitlines() if line.strip()]
    raised = [line for line in traces if not line.startswith((" ", "SQLSTATE"))]
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    named = [line for line in lines if line.startswith("[")]
    causes = [line for line in lines if "Error" in line or "Exception" in line]
    return (raised[-1:] or named or causes or lines or [type(problem).__name__])[0].strip()
