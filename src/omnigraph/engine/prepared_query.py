"""Prepared queries: a read query with its options, compiled once per snapshot that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from omnigraph.engine.result import Result
from omnigraph.engine.tables.access import SnapshotTables, TypeUse
from omnigraph.lang.query.parameters import Parameters
from omnigraph.lang.query.plan.logical import ReadPlan
from omnigraph.model import arguments

if TYPE_CHECKING:
    from omnigraph.engine.engine import ReadOptions


@dataclass(frozen=True, slots=True)
class PreparedRead:
    """A compiled read query: its plan, the columns it reads and the variables it needs."""

    plan: ReadPlan
    use: TypeUse
    needed: frozenset[str]
    names: tuple[str, ...]
    """The columns of the result."""


class Runner(Protocol):
    """What runs a prepared query: the reader of a graph."""

    def prepare(
        self, text: str, name: str | None, tables: SnapshotTables, file: str
    ) -> PreparedRead: ...

    def run(self, query: PreparedQuery, params: Parameters | None) -> Result: ...


class PreparedQuery:
    """A read query that is compiled once and run many times, made by ``Graph.prepare``.

    Every run reads the newest state of its branch, or the state it was prepared for. It is compiled
    again when the schema has changed. Threads may share it.

    Attributes:
        text: The text of the query.
        name: Which query of the text.
    """

    __slots__ = ("_compiled", "_runner", "at", "branch", "name", "options", "text")

    def __init__(
        self,
        runner: Runner,
        text: str,
        name: str | None,
        branch: str | None,
        at: str | None,
        options: ReadOptions,
    ) -> None:
        self._runner = runner
        self.text = text
        self.name = name
        self.branch = branch
        self.at = at
        self.options = options
        self._compiled: tuple[SnapshotTables, PreparedRead] | None = None

    def query(self, params: Parameters | None = None) -> Result:
        """Run it.

        Args:
            params: Values of the query's parameters.

        Returns:
            The rows.

        Raises:
            LanguageError: The schema has changed, and the query does not fit it any more.
            NotFound: The branch or the state is gone.
            ParameterError: A parameter is missing, unknown or of the wrong type.
            QueryTimeout: The query ran longer than its limit.
            ResourceLimit: The query needed more memory or rows than its limit.

        Example:
            >>> text = "query q($n: String) { match { $p: Person { name: $n } } return { $p.age } }"
            >>> prepared = graph.prepare(text)
            >>> prepared.query({"n": "ana"}).rows()
            [{'p.age': 30}]
        """
        return self._runner.run(self, params)

    def compiled(self, tables: SnapshotTables) -> PreparedRead:
        """The compiled form for a snapshot."""
        arguments.instance("tables", tables, SnapshotTables)
        known = self._compiled
        if known is None or known[0] is not tables:
            found = self._runner.prepare(self.text, self.name, tables, self.options.file)
            known = self._compiled = tables, found
        return known[1]
