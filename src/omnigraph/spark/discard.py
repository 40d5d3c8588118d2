"""Taking back what a refused load or merge has staged: files that nothing refers to.

Best effort. What cannot be removed now, and what tasks wrote that never answered, is left to the
cleanup of the graph, which finds files that no version names.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from omnigraph.catalog.repository import Repository
from omnigraph.errors import OmnigraphError
from omnigraph.spark.load.check import Checked
from omnigraph.spark.load.stage import Site, Staged

log = logging.getLogger("omnigraph.spark")


def discard(
    repository: Repository, site: Site, staged: Sequence[Staged], checked: Sequence[Checked]
) -> None:
    """Remove the data files of these answers. Nothing may have been committed of them."""
    remove_files(
        repository,
        (
            f"{site.targets[key].dataset_path}/data/{file.path}"
            for key, fragment in _fragments(staged, checked)
            for file in fragment.files
        ),
    )


def remove_files(repository: Repository, paths: Iterable[str]) -> None:
    """Remove files that nothing refers to."""
    try:
        for path in paths:
            repository.objects.delete(path)
    except OmnigraphError as error:
        log.info("files of a refused write stay until the next cleanup: %s", error.message)


def _fragments(staged: Sequence[Staged], checked: Sequence[Checked]) -> Iterator[tuple[str, Any]]:
    for answer in staged:
        for key, fragments in answer.fragments.items():
            yield from ((key, fragment) for fragment in fragments)
    for found in checked:
        for key, merged in found.merged.items():
            yield from ((key, fragment) for fragment in merged.fragments)
