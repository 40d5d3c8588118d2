"""The generated tables of the schema language reference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omnigraph.lang.schema.codes import CHANGE_CODES, SCHEMA_CODES
from omnigraph.lang.syntax.codes import SYNTAX_CODES
from omnigraph.model.types import SCALARS

_ACCEPTS = {
    "string": "a string",
    "bool": "`true` or `false`",
    "integer": "a whole number in range",
    "float": "a finite number",
    "date": '`"YYYY-MM-DD"`, or whole days since 1970-01-01',
    "datetime": "an RFC 3339 instant, or whole milliseconds since 1970-01-01 (UTC)",
    "blob": '`"base64:…"`, or a URI',
}
_EXAMPLES = {
    "String": "ana",
    "Bool": True,
    "I32": -7,
    "I64": 9007199254740993,
    "U32": 7,
    "U64": 18446744073709551615,
    "F32": 0.1,
    "F64": 1e21,
    "Date": "2024-02-29",
    "DateTime": "2024-02-29T12:00:00Z",
}


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def types() -> str:
    """Scalars: what JSON they take, what they hold, how a value is spelled in an id."""
    rows = []
    for name, scalar in SCALARS.items():
        spelled = ""
        if name in _EXAMPLES:
            spelled = f"`{scalar.spell(scalar.accept(_EXAMPLES[name]))}`"
        rows.append((f"`{name}`", _ACCEPTS[scalar.family], f"`{scalar.arrow_name}`", spelled))
    return _table(("Type", "JSON that is accepted", "Arrow column", "In an id, for example"), rows)


def codes() -> str:
    """Every code a schema text can be refused with."""
    known = {**SYNTAX_CODES, **SCHEMA_CODES}
    return _table(("Code", "Meaning"), ((f"`{code}`", text) for code, text in known.items()))


def change_codes() -> str:
    """Every code of a schema change."""
    rows = (
        (f"`{code}`", item.tier, item.meaning, "reserved" if item.reserved else "yes")
        for code, item in CHANGE_CODES.items()
    )
    return _table(("Code", "Tier", "Meaning", "Given out"), rows)
