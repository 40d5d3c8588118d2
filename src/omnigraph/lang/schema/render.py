"""Renders an accepted schema as text, for example the merged schema of two branches.

The text has all declarations in name order, in the layout of the formatter. Comments and rename
hints of earlier texts are not part of an accepted schema and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.schema.catalog import AcceptedSchema, EdgeType, InterfaceType, NodeType
from omnigraph.lang.schema.format import format_schema
from omnigraph.lang.schema.parse.ast import Value
from omnigraph.lang.schema.parts import (
    ANY_NUMBER,
    Columns,
    CustomAnnotation,
    Property,
    VectorOptions,
)
from omnigraph.lang.syntax import quote
from omnigraph.model.floats import shortest_float


def render_schema(schema: AcceptedSchema) -> str:
    """A text that is accepted as this schema."""
    declared = [
        *(
            _block(f"interface {item.name}", _interface(item))
            for item in schema.interfaces.values()
        ),
        *(_block(_node_head(item), _body(item)) for item in schema.nodes.values()),
        *(_block(_edge_head(item), _body(item)) for item in schema.edges.values()),
    ]
    return format_schema("\n".join(declared))


def _block(head: str, lines: Iterator[str]) -> str:
    return "\n".join((head + " {", *lines, "}"))


def _interface(item: InterfaceType) -> Iterator[str]:
    for name, declared in item.properties.items():
        marks = [
            word
            for word, columns in (
                ("@key", [(key,) for key in item.keys]),
                ("@unique", item.unique),
                ("@index", [c for c in item.indexes if c[0] not in item.keys]),
            )
            if (name,) in columns
        ]
        yield " ".join((_property(declared), *marks))


def _node_head(item: NodeType) -> str:
    implements = f" implements {', '.join(item.implements)}" if item.implements else ""
    return f"node {item.name}{_annotations(item)}{implements}"


def _edge_head(item: EdgeType) -> str:
    card = "" if item.cardinality == ANY_NUMBER else f" @card({item.cardinality})"
    return f"edge {item.name}: {item.source} -> {item.target}{card}{_annotations(item)}"


def _body(item: NodeType | EdgeType) -> Iterator[str]:
    for declared in item.properties.values():
        if not declared.inherited:
            yield _property(declared)
    key = item.key_columns if isinstance(item, NodeType) else ()
    if key and not _comes_from_interface(item, key):
        yield f"@key({', '.join(key)})"
    for word, groups in (("unique", item.unique), ("index", item.indexes)):
        for columns in groups:
            if columns != key and not _comes_from_interface(item, columns):
                yield f"@{word}({', '.join(columns)})"
    if isinstance(item, NodeType):
        for bounds in item.ranges:
            yield f"@range({bounds.property}, {bounds})"
        for check in item.checks:
            yield f"@check({check.property}, {quote(check.pattern)})"


def _comes_from_interface(item: NodeType | EdgeType, columns: Columns) -> bool:
    found = item.properties.get(columns[0])
    return len(columns) == 1 and found is not None and found.inherited


def _property(item: Property) -> str:
    words = [f"{item.name}: {item.type}"]
    if item.embed is not None:
        model = "" if item.embed.model is None else f", model={quote(item.embed.model)}"
        words.append(f"@embed({item.embed.source}{model})")
    if item.description is not None:
        words.append(f"@description({quote(item.description)})")
    if item.vector != VectorOptions():
        parts = f", partitions={item.vector.partitions}" if item.vector.partitions != 1 else ""
        words.append(f"@vector({item.vector.metric}{parts})")
    if item.default is not None:
        words.append(f"@default({_literal(item.default)})")
    words += map(_custom, item.annotations)
    return " ".join(words)


def _annotations(item: NodeType | EdgeType) -> str:
    words = []
    if item.description is not None:
        words.append(f"@description({quote(item.description)})")
    if item.instruction is not None:
        words.append(f"@instruction({quote(item.instruction)})")
    words += map(_custom, item.annotations)
    return "".join(f" {word}" for word in words)


def _custom(item: CustomAnnotation) -> str:
    given = [] if item.value is None else [_literal(item.value)]
    given += [f"{name}={_literal(value)}" for name, value in item.keywords]
    return f"@{item.name}({', '.join(given)})" if given else f"@{item.name}"


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return shortest_float(value)
    return quote(value) if isinstance(value, str) else str(value)
