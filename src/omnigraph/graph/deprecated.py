"""The method names of 0.1: they work for one release and warn with the new spelling.

Owns the table of old names. ``Graph`` looks here for an attribute that it does not have; the groups
call ``warn_of_call`` where they are called like the methods they replace.
"""

from __future__ import annotations

import warnings
from operator import attrgetter
from typing import Any, Final

OLD_NAMES: Final = {
    "analyze": "spark.analyze",
    "ancestry": "history.ancestry",
    "backup": "maintenance.backup",
    "baseline": "history.baseline",
    "blame": "history.blame",
    "build_indexes": "maintenance.build_indexes",
    "changes": "history.changes",
    "check": "maintenance.check",
    "cleanup": "maintenance.cleanup",
    "clone": "maintenance.clone",
    "commit": "history.commit",
    "commit_changes": "history.commit_changes",
    "commits": "history.commits",
    "create_branch": "branches.create",
    "delete_branch": "branches.delete",
    "delete_tag": "tags.delete",
    "drop_indexes": "maintenance.drop_indexes",
    "embed": "spark.embed",
    "export_to": "spark.export",
    "follow": "history.follow",
    "hold": "maintenance.hold",
    "indexes": "maintenance.indexes",
    "is_protected": "branches.is_protected",
    "log": "history.log",
    "optimize": "maintenance.optimize",
    "pending_writes": "maintenance.pending_writes",
    "protect_branch": "branches.protect",
    "purge": "maintenance.purge",
    "recover": "maintenance.recover",
    "recovered_at_open": "maintenance.recovered_at_open",
    "recoveries": "maintenance.recoveries",
    "relocate": "maintenance.relocate",
    "repair": "maintenance.repair",
    "schema_plan": "plan_schema",
    "stream": "spark.stream",
    "tag": "tags.create",
    "upgrade": "maintenance.upgrade",
}
"""Attributes of ``Graph`` in 0.1, and where they are now."""


def old_attribute(graph: Any, name: str) -> Any:
    """The attribute of a handle that an old name stands for, with a warning."""
    if name not in OLD_NAMES:
        raise AttributeError(f"{type(graph).__name__!r} object has no attribute {name!r}")
    _warn(f"graph.{name}", f"graph.{OLD_NAMES[name]}")
    return attrgetter(OLD_NAMES[name])(graph)


def warn_of_call(group: str, method: str) -> None:
    """Warn that a group was called; ``method`` is what to call instead."""
    _warn(f"graph.{group}(…)", f"graph.{group}.{method}(…)")


def _warn(old: str, new: str) -> None:
    text = f"`{old}` is deprecated and will be removed in 0.3: use `{new}`."
    warnings.warn(text, DeprecationWarning, stacklevel=4)
