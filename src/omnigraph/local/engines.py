"""Which engine carries out a load, and as what: the same result and the same errors on each.

Large input is divided into tasks, for threads of this process or for Spark; small input is read
into memory at once.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Protocol

from omnigraph.bulk.estimate import input_bytes, runs_as_tasks
from omnigraph.bulk.load.driver import BulkLoad
from omnigraph.bulk.quarantine import QuarantiningLoad
from omnigraph.bulk.tasks import Tasks, ThreadTasks
from omnigraph.ingest.load import Load, LoadSpec, Progress
from omnigraph.ingest.local_load import LocalLoad
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Attempt
from omnigraph.spark import engine_choice

log = logging.getLogger("omnigraph.load")


class OpenLoad(Protocol):
    """Begins a load; ``engine`` is ``auto``, ``local``, ``spark``, or None for the default."""

    def __call__(
        self,
        engine: str | None,
        spec: LoadSpec,
        start: Attempt,
        blobs: BlobPolicy,
        *,
        for_new_branch: bool,
    ) -> Load: ...


def open_load(
    engine: str | None,
    spec: LoadSpec,
    start: Attempt,
    blobs: BlobPolicy,
    *,
    for_new_branch: bool,
) -> Load:
    """A load on the engine that the caller names, or that suits the input."""
    settings, progress = start.repository.settings, spec.progress
    choice = engine_choice.choose_engine(engine, spec, settings)
    size = input_bytes(spec.source, settings.storage)
    as_tasks = choice.engine == "spark" or runs_as_tasks(spec, size)
    log.info("%s", choice)
    if progress is not None and as_tasks:
        progress(Progress("engine", 0, 0, message=str(choice)))
    if not as_tasks:
        return LocalLoad(spec, start, blobs)
    tasks: Tasks
    if choice.engine == "spark":
        tasks = engine_choice.start_tasks(start.repository, progress)
    else:
        tasks = ThreadTasks(engine_choice.job_progress(progress))
    opened = partial(BulkLoad, spec, start, blobs, tasks, for_new_branch=for_new_branch)
    if spec.quarantine is None:
        return opened()
    return QuarantiningLoad(opened, start, spec.quarantine)
