"""Lint: everything that can be said about a file of queries and a schema, without data.

Owns the report and its JSON form. A text that does not parse has no queries; each query that does
is checked by itself, and one that fails does not hide the others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from omnigraph.lang.query.check import try_check
from omnigraph.lang.query.checked import CheckedQuery, CheckedRead, CheckedUpdate, CheckedWrite
from omnigraph.lang.query.operation import QueryOperation, describe_operation
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.parse.parser import parse_source
from omnigraph.lang.query.usage import unused_parameters
from omnigraph.lang.schema import AcceptedSchema, NodeType
from omnigraph.lang.syntax.diagnostics import Diagnostic, Diagnostics, Severity, render_all
from omnigraph.lang.syntax.source import Source

_SEVERITIES: Final[Mapping[Severity, int]] = {"error": 0, "warning": 1, "info": 2}

PARSE_FAILURE: Final = "Q000"
NEVER_UPDATED: Final = "L201"
NAME_TAKEN: Final = "L202"
LINT_CODES: Final[Mapping[str, str]] = {
    PARSE_FAILURE: "the file does not parse",
    NEVER_UPDATED: "a nullable property of an updated node type that no update sets",
    NAME_TAKEN: "a query that cannot be called, because an earlier one has its name",
}


@dataclass(frozen=True, slots=True)
class SchemaOrigin:
    """Where the schema came from: a file's path or a graph's URI."""

    kind: Literal["file", "graph"]
    location: str

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "path" if self.kind == "file" else "uri": self.location}


@dataclass(frozen=True, slots=True)
class LintFinding:
    """Something about the file as a whole."""

    severity: Severity
    code: str
    message: str
    type_name: str | None = None
    property_name: str | None = None
    query_names: tuple[str, ...] = ()

    @property
    def sort_key(self) -> tuple[int, str, str, str]:
        place = (self.type_name or "", self.property_name or "")
        return (_SEVERITIES[self.severity], *place, self.message)

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
        }
        if self.type_name is not None:
            body["type_name"] = self.type_name
        if self.property_name is not None:
            body["property"] = self.property_name
        if self.query_names:
            body["query_names"] = list(self.query_names)
        return body


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What became of one query: its operation, or its first error."""

    name: str
    kind: Literal["read", "mutation"]
    warnings: tuple[str, ...] = ()
    error: str | None = None
    operation: QueryOperation | None = None

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind,
            "status": "ok" if self.error is None else "error",
        }
        if self.warnings:
            body["warnings"] = list(self.warnings)
        if self.error is not None:
            body["error"] = self.error
        if self.operation is not None:
            body["operation"] = self.operation.to_json()
        return body


@dataclass(frozen=True, slots=True)
class LintReport:
    """The whole report. ``diagnostics`` has every error with its place, in rule order."""

    source: Source
    schema_origin: SchemaOrigin
    results: tuple[QueryResult, ...]
    findings: tuple[LintFinding, ...]
    diagnostics: tuple[Diagnostic, ...]
    omitted: int = 0

    @property
    def errors(self) -> int:
        return self._count("error") + sum(item.error is not None for item in self.results)

    @property
    def warnings(self) -> int:
        return self._count("warning") + sum(len(item.warnings) for item in self.results)

    @property
    def ok(self) -> bool:
        return self.errors == 0

    def _count(self, severity: Severity) -> int:
        return sum(item.severity == severity for item in self.findings)

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "status": "ok" if self.ok else "error",
            "schema_source": self.schema_origin.to_json(),
            "query_path": self.source.name,
            "queries_processed": len(self.results),
            "errors": self.errors,
            "warnings": self.warnings,
            "infos": self._count("info"),
            "results": [item.to_json() for item in self.results],
            "findings": [item.to_json() for item in self.findings],
        }
        if self.diagnostics:
            body["diagnostics"] = [item.to_json(self.source) for item in self.diagnostics]
        return body

    def render(self) -> str:
        """The report for people."""
        parts = [render_all(self.source, self.diagnostics, self.omitted)]
        lines = [
            f"{self.source.name}: warning: query `{item.name}`: {text}"
            for item in self.results
            for text in item.warnings
        ]
        lines += [
            f"{self.source.name}: {item.severity}[{item.code}]: {item.message}"
            for item in self.findings
            if item.code != PARSE_FAILURE
        ]
        parts.append("\n".join(lines))
        parts.append(f"{len(self.results)} queries, {self.errors} errors, {self.warnings} warnings")
        return "\n\n".join(part for part in parts if part)


def lint_queries(text: str | Source, schema: AcceptedSchema, origin: SchemaOrigin) -> LintReport:
    """Check every query of a text and look for what is likely a mistake."""
    source = text if isinstance(text, Source) else Source("<query>", text)
    parsing = Diagnostics(source)
    file = parse_source(source, parsing)
    if parsing.error_count:
        return _unparsed(source, origin, parsing)
    results: list[QueryResult] = []
    valid: list[CheckedQuery] = []
    diagnostics: list[Diagnostic] = []
    omitted = 0
    for query in file.queries:
        found = Diagnostics(source)
        checked = try_check(query, schema, found)
        diagnostics += found.found
        omitted += found.omitted
        if checked is not None:
            valid.append(checked)
        results.append(_result(query, checked, schema, found))
    findings = [*_never_updated(valid, schema), *_taken_names(file)]
    return LintReport(
        source,
        origin,
        tuple(results),
        tuple(sorted(findings, key=lambda item: item.sort_key)),
        tuple(diagnostics),
        omitted,
    )


def _unparsed(source: Source, origin: SchemaOrigin, parsing: Diagnostics) -> LintReport:
    findings = [
        LintFinding("error", PARSE_FAILURE, item.headline(source))
        for item in parsing.items
        if item.severity == "error"
    ]
    findings.sort(key=lambda item: item.sort_key)
    return LintReport(source, origin, (), tuple(findings), parsing.items, parsing.omitted)


def _result(
    query: ast.Query, checked: CheckedQuery | None, schema: AcceptedSchema, found: Diagnostics
) -> QueryResult:
    kind: Literal["read", "mutation"] = "mutation" if query.is_write else "read"
    if checked is None:
        first = found.found[0]
        return QueryResult(query.name.text, kind, error=f"{first.code}: {first.message}")
    return QueryResult(
        query.name.text,
        kind,
        warnings=tuple(_warnings(query, checked)),
        operation=describe_operation(checked, schema),
    )


def _warnings(query: ast.Query, checked: CheckedQuery) -> Iterable[str]:
    if query.is_write and not query.parameters:
        yield "a mutation without parameters always writes the same"
    for name in unused_parameters(query):
        yield f"the parameter `${name}` is never used"
    if isinstance(checked, CheckedRead):
        for name, count in Counter(item.name for item in checked.columns).items():
            if count > 1:
                yield f"{count} columns are called `{name}`: rows keep only the last"


# Findings about the whole file


def _never_updated(
    queries: Sequence[CheckedQuery], schema: AcceptedSchema
) -> Iterable[LintFinding]:
    updated: dict[str, set[str]] = defaultdict(set)
    names: dict[str, dict[str, None]] = defaultdict(dict)
    for query in queries:
        if not isinstance(query, CheckedWrite):
            continue
        for statement in query.statements:
            if isinstance(statement, CheckedUpdate) and statement.type.kind == "node":
                node = statement.type.name
                names[node][query.name] = None
                updated[node].update(item.property.property for item in statement.assignments)
    for node, by in names.items():
        for name in _updatable(schema.nodes[node]):
            if name not in updated[node]:
                message = f"no update sets the nullable property `{name}` of {node}"
                yield LintFinding("warning", NEVER_UPDATED, message, node, name, tuple(by))


def _updatable(node: NodeType) -> Iterable[str]:
    """Properties one would expect an update to set at some time."""
    return (
        name
        for name, item in node.properties.items()
        if item.type.nullable and item.embed is None and name not in node.key_columns
    )


def _taken_names(file: ast.QueryFile) -> Iterable[LintFinding]:
    seen: set[str] = set()
    for query in file.queries:
        name = query.name.text
        if name in seen:
            message = f"a query `{name}` stands earlier in the file and is the one called"
            yield LintFinding("warning", NAME_TAKEN, message, query_names=(name,))
        seen.add(name)
