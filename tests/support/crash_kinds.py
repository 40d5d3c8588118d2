"""Writer kinds: every way a graph is written, in the form the crash harness needs.

A kind joins by subclassing :class:`WriterKind` under :func:`writer_kind`; the harness then kills it
at every failpoint it reaches. A kind whose module is not imported does not exist: name the module
in ``KIND_MODULES``.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from functools import cached_property
from typing import ClassVar, TypeVar

import omnigraph
from omnigraph import Graph
from omnigraph.storage.failpoints import NAMES

KIND_MODULES = (
    "tests.support.crash_writers",
    "tests.support.crash_statements",
    "tests.support.crash_branches",
    "tests.support.crash_evolution",
    "tests.support.crash_upkeep",
    "tests.support.crash_upgrade",
)


class Target:
    """A place where a graph is, or will be. ``graph`` is opened for writing on first use."""

    def __init__(self, uri: str) -> None:
        self.uri = uri

    @cached_property
    def graph(self) -> Graph:
        return omnigraph.open(self.uri)


class WriterKind(ABC):
    """One way of writing. Each write has a number; writes with different numbers do not collide."""

    name: ClassVar[str]
    # Whether a relocated copy of the directory is the same scene; otherwise it is prepared anew.
    copyable: ClassVar[bool] = True
    # Deleting a branch discards its own commits: nobody may miss them afterwards.
    deletes_branches: ClassVar[bool] = False

    # Repair works on a graph that is damaged: the promises hold when it was done, not before.
    starts_damaged: ClassVar[bool] = False
    # Opening for writing is, or begins, the write itself: nobody has the graph open before.
    opening_writes: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, uri: str) -> None:
        """Make the graph that is written to. Everything here is acknowledged before the crash."""

    @abstractmethod
    def write(self, target: Target, number: int) -> None:
        """Do the write. After an attempt that had no effect, the same call must succeed."""

    @abstractmethod
    def parts(self, graph: Graph, number: int) -> dict[str, bool]:
        """Every part of the write, by name, and whether it is visible now."""


_kinds: dict[str, WriterKind] = {}
_Kind = TypeVar("_Kind", bound=type[WriterKind])


def writer_kind(cls: _Kind) -> _Kind:
    """Register a writer kind."""
    if cls.name in _kinds:
        raise ValueError(f"there is a writer kind {cls.name!r} already")
    _kinds[cls.name] = cls()
    return cls


def of_conversions() -> set[str]:
    """The failpoints of conversions of the original's graphs, which no kind reaches: such a graph
    cannot be open for writing. ``tests/maintenance/original/test_kills.py`` kills there."""
    return {name for name in NAMES if name.startswith("convert.")}


def writer_kinds() -> dict[str, WriterKind]:
    """Every registered kind by name."""
    for module in KIND_MODULES:
        importlib.import_module(module)
    return dict(_kinds)
