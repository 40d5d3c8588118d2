"""Version 2 to 3: refs of a staging mechanism that is gone are swept off the manifest.

Branches of that mechanism were refs called ``__run__<id>``. Since branches are named in the
registry and refs are ULIDs, a branch that somebody calls so later has another ref: the sweep cannot
meet it, and the name is an ordinary one. Refs are removed object by object, which needs no forced
deletion and finishes what a crash left half removed.
"""

from __future__ import annotations

from typing import Final

from omnigraph.catalog.migrations.step import Site
from omnigraph.catalog.rows import MANIFEST_PATH
from omnigraph.storage.failpoints import hit

PREFIX: Final = "__run__"
_REFS: Final = f"{MANIFEST_PATH}/_refs/branches/"
_TREES: Final = f"{MANIFEST_PATH}/tree/"


class SweepRunRefs:
    source = 2
    says = "remove refs of unfinished runs of old programs"

    def touches(self, site: Site) -> list[str]:
        return [f"the ref {name}" for name in _stale(site)]

    def work(self, site: Site, properties: dict[str, str]) -> None:
        for name in _stale(site):
            site.tables.drop_fork(MANIFEST_PATH, name)
            hit("migrate.after_ref")


def _stale(site: Site) -> list[str]:
    """By name; found by its ref or, where only those are left, by its files."""
    if site.ref is not None:
        return []  # refs belong to the whole manifest, whose first branch is main
    found = set()
    for info in site.tables.objects.list(MANIFEST_PATH):
        if info.path.startswith(_REFS + PREFIX):
            found.add(info.path.removeprefix(_REFS).removesuffix(".json"))
        elif info.path.startswith(_TREES + PREFIX):
            found.add(info.path.removeprefix(_TREES).partition("/")[0])
    return sorted(found)
