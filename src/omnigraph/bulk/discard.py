"""Removal of files that a refused load or merge has staged.

Best effort. Files that cannot be removed, and files of tasks that failed, are orphaned; cleanup
removes them, since no table version refers to them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from omnigraph.bulk.load.bucket_checks import CheckedBuckets
from omnigraph.bulk.load.stage import LoadContext, StagedPart
from omnigraph.catalog.repository import Repository
from omnigraph.errors import OmnigraphError

log = logging.getLogger("omnigraph.spark")


def discard(
    repository: Repository,
    context: LoadContext,
    staged: Sequence[StagedPart],
    checked: Sequence[CheckedBuckets],
) -> None:
    """Remove the data files of these results. None of them may have been committed."""
    remove_files(
        repository,
        (
            f"{context.targets[key].dataset_path}/data/{file.path}"
            for key, fragment in _fragments(staged, checked)
            for file in fragment.files
        ),
    )


def remove_files(repository: Repository, paths: Iterable[str]) -> None:
    """Remove files; stops at the first failure, which is logged."""
    try:
        for path in paths:
            repository.objects.delete(path)
    except OmnigraphError as error:
        log.info("staged files of a refused write are left to the next cleanup: %s", error.message)


def _fragments(
    staged: Sequence[StagedPart], checked: Sequence[CheckedBuckets]
) -> Iterator[tuple[str, Any]]:
    for result in staged:
        for key, fragments in result.fragments.items():
            yield from ((key, fragment) for fragment in fragments)
    for found in checked:
        for key, merged in found.merged.items():
            yield from ((key, fragment) for fragment in merged.fragments)
