"""Which engine carries out a load: in process, or on Spark. Both give the same result."""

from __future__ import annotations

from typing import Protocol

from omnigraph.ingest.load import Load, LoadSpec
from omnigraph.ingest.local_load import LocalLoad
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Attempt
from omnigraph.spark import engine_choice


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
    if engine_choice.choose_engine(engine, spec, start.repository.settings) == "spark":
        return engine_choice.open_load(spec, start, blobs, for_new_branch=for_new_branch)
    return LocalLoad(spec, start, blobs)
