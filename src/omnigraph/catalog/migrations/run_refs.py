"""Version 2 to 3: removes refs of a former staging mechanism from the manifest.

Branches of that mechanism were refs called ``__run__<id>``. Branch names are in the registry and
refs are ULIDs, so a later branch of such a name has another ref and is not affected. Refs are
removed object by object, which needs no forced deletion and completes a removal that a crash cut
short.
"""

from __future__ import annotations

from typing import Final

from omnigraph.catalog.migrations.step import MigrationTarget
from omnigraph.catalog.rows import MANIFEST_PATH
from omnigraph.storage.failpoints import hit

PREFIX: Final = "__run__"
_REFS: Final = f"{MANIFEST_PATH}/_refs/branches/"
_TREES: Final = f"{MANIFEST_PATH}/tree/"


class SweepRunRefs:
    source = 2
    description = "remove refs of unfinished runs of old programs"

    def preview(self, target: MigrationTarget) -> list[str]:
        return [f"the ref {name}" for name in _stale(target)]

    def apply(self, target: MigrationTarget, properties: dict[str, str]) -> None:
        for name in _stale(target):
            target.tables.drop_fork(MANIFEST_PATH, name)
            hit("migrate.after_ref")


def _stale(target: MigrationTarget) -> list[str]:
    """The names of stale refs, found by the ref or, after a partial removal, by its files."""
    if target.ref is not None:
        return []  # refs belong to the whole manifest, which is migrated with main
    found = set()
    for info in target.tables.objects.list(MANIFEST_PATH):
        if info.path.startswith(_REFS + PREFIX):
            found.add(info.path.removeprefix(_REFS).removesuffix(".json"))
        elif info.path.startswith(_TREES + PREFIX):
            found.add(info.path.removeprefix(_TREES).partition("/")[0])
    return sorted(found)
