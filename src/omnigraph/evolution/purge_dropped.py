"""Removes the files of hard drops, which only older states refer to.

The commit of a hard drop publishes a row that names what to remove, so that a later process can
finish the removal. First the horizon of the branch is raised above its history before the drop (see
``catalog/history/horizon.py``); then the files that no other branch and no tag refers to are
deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.catalog.branches.registry import MAIN_BRANCH, Branch, all_branches
from omnigraph.catalog.branches.tags import all_tags
from omnigraph.catalog.create import PURGED
from omnigraph.catalog.history.commits import get_commit
from omnigraph.catalog.history.horizon import raise_horizon
from omnigraph.catalog.publication import Publication
from omnigraph.catalog.references import at_commit
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Row, RowKind
from omnigraph.model.ids import new_ulid
from omnigraph.storage.failpoints import hit


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A table to remove: entirely, or all but the fork ``keep``."""

    path: str
    keep: str | None
    commit_id: str
    """The commit of the drop; states before it become unreadable."""

    def to_row(self) -> Row:
        facts = {"keep": self.keep, "commit_id": self.commit_id}
        return Row(f"purge:{self.path}", RowKind.PURGE, facts, location=self.path)

    @classmethod
    def from_row(cls, row: Row) -> DroppedTable:
        return cls(row.location or "", row.metadata["keep"], row.metadata["commit_id"])


def holders(repository: Repository, branch: Branch, purge: DroppedTable) -> list[str]:
    """The other branches, and the tags, that refer to a table."""
    return sorted(name for name, held in _states(repository, branch) if purge.path in held)


def _states(repository: Repository, branch: Branch) -> Iterator[tuple[str, set[str]]]:
    """Every other branch and every tag, with the paths of the tables it refers to."""
    main = repository.main.current()
    for other in (MAIN_BRANCH, *all_branches(main).values()):
        if other.incarnation != branch.incarnation:
            pins = repository.manifest(other).current().pins.values()
            yield f"branch {other.name}", {pin.ref.path for pin in pins}
    for tag in all_tags(main).values():
        tagged = at_commit(repository, tag.commit_id).pins.values()
        yield f"tag {tag.name}", {pin.ref.path for pin in tagged}


def finish_purges(repository: Repository, branch: Branch) -> bool:
    """Finish the removals of a branch; False if another branch or a tag refers to some table."""
    manifest = repository.manifest(branch)
    complete = True
    for row in list(manifest.current().rows(RowKind.PURGE)):
        purge = DroppedTable.from_row(row)
        made = get_commit(manifest.current(), purge.commit_id).manifest_version or 0
        if made > manifest.current().horizon:
            raise_horizon(manifest, branch, made)
        if holders(repository, branch, purge):
            complete = False
            continue
        hit("purge.before_files")
        _remove(repository, purge)
        hit("purge.after_files")
        manifest.publish(Publication(new_ulid(), branch.name, drop=(row.object_id,)))
    return complete


def _remove(repository: Repository, purge: DroppedTable) -> None:
    objects = repository.objects
    # The marker comes first: the path must not be used again, even if files below it stay.
    objects.put(f"{purge.path}/{PURGED}", b"")
    kept = f"{purge.path}/tree/{purge.keep}/" if purge.keep else None
    spared = {f"{purge.path}/{PURGED}", f"{purge.path}/_refs/branches/{purge.keep}.json"}
    for info in list(objects.list(purge.path)):
        if info.path not in spared and not (kept and info.path.startswith(kept)):
            objects.delete(info.path)
    repository.tables.evict(purge.path)
