"""From text to plan in one call: parse, select, check, plan.

Owns the choice of one query out of a file and the rule that a read is not run as a write. Engines
cache what comes out of here by text and schema hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from omnigraph.errors import QueryNotFound
from omnigraph.lang.query.check import check_query
from omnigraph.lang.query.checked import CheckedQuery, CheckedWrite
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.parse.parser import parse_queries
from omnigraph.lang.query.plan.logical import Plan
from omnigraph.lang.query.plan.planner import plan_query
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.lang.syntax.diagnostics import Diagnostic, SourceError
from omnigraph.lang.syntax.source import Source
from omnigraph.lang.syntax.suggest import did_you_mean
from omnigraph.model.lru import LruCache

COMPILED_MAX: Final = 512
"""Compiled queries that a process keeps."""


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query ready to be executed."""

    source: Source
    checked: CheckedQuery
    plan: Plan

    @property
    def name(self) -> str:
        return self.checked.name

    @property
    def is_write(self) -> bool:
        return isinstance(self.checked, CheckedWrite)

    def require_read(self) -> None:
        """Refuse a write query where a read is required."""
        if self.is_write:
            self._refuse("writes, and was called as a read", "Call it as a mutation.")

    def require_write(self) -> None:
        """Refuse a read query where a write is required."""
        if not self.is_write:
            self._refuse("reads, and was called as a mutation", "Call it as a read query.")

    def _refuse(self, problem: str, remedy: str) -> None:
        name = self.checked.syntax.name
        finding = Diagnostic("T44", f"query `{name.text}` {problem}", name.span, remedy=remedy)
        raise SourceError(self.source, [finding])


_compiled: LruCache[tuple[str, str | None, str, str], CompiledQuery] = LruCache(COMPILED_MAX)


def compile_cached(
    text: str,
    schema: AcceptedSchema,
    schema_hash: str,
    name: str | None = None,
    *,
    file: str = "<query>",
) -> CompiledQuery:
    """The same as ``compile_query``, compiled once per process. ``schema_hash`` names the schema
    with the identities of its types.
    """
    key = (text, name, schema_hash, file)
    found = _compiled.get(key)
    if found is None:
        found = compile_query(text, schema, name, file=file)
        _compiled.put(key, found)
    return found


def compile_query(
    text: str, schema: AcceptedSchema, name: str | None = None, *, file: str = "<query>"
) -> CompiledQuery:
    """Compile one query of a text; without a name the text must hold exactly one."""
    parsed = parse_queries(text, name=file)
    query = select_query(parsed, name)
    checked = check_query(query, schema, parsed.source)
    return CompiledQuery(parsed.source, checked, plan_query(checked, schema))


def select_query(file: ast.QueryFile, name: str | None = None) -> ast.Query:
    """The query of this exact name, the first if several have it."""
    names = [query.name.text for query in file.queries]
    if name is None:
        if len(names) == 1:
            return file.queries[0]
        found = "no query" if not names else f"{len(names)} queries: {', '.join(names[:10])}"
        raise QueryNotFound(
            f"{file.source.name} holds {found}", remedy="Give the name of one of them."
        )
    for query in file.queries:
        if query.name.text == name:
            return query
    hint = did_you_mean(name, names)
    raise QueryNotFound(
        f"{file.source.name} has no query `{name[:100]}`" + (f"; {hint}" if hint else ""),
        details={"name": name[:100], "known": names[:100]},
    )
