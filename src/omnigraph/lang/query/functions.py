"""The functions of the query language, as one table.

Owns their names, argument counts and where each may stand. The parser, the checker, the formatter
and the reference documentation all read this table; functions are listed nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

FunctionKind = Literal["constant", "text", "rank", "fusion", "aggregate"]


@dataclass(frozen=True, slots=True)
class Function:
    """One function. ``arguments`` names them for messages; those past ``required`` are optional."""

    name: str
    kind: FunctionKind
    arguments: tuple[str, ...]
    required: int
    result: str
    summary: str

    @property
    def signature(self) -> str:
        shown = list(self.arguments[: self.required])
        shown += [f"[{name}]" for name in self.arguments[self.required :]]
        return f"{self.name}({', '.join(shown)})"


def _function(
    name: str,
    kind: FunctionKind,
    arguments: str,
    result: str,
    summary: str,
    *,
    optional: int = 0,
) -> Function:
    names = tuple(arguments.split())
    return Function(name, kind, names, len(names) - optional, result, summary)


_ALL: Final = (
    _function(
        "now", "constant", "", "DateTime", "The instant of the request: the same everywhere."
    ),
    _function(
        "search", "text", "field query", "Bool", "Some word of the query occurs in the text."
    ),
    _function(
        "fuzzy",
        "text",
        "field query max_edits",
        "Bool",
        "Some word occurs with at most `max_edits` typing errors (2 when left out).",
        optional=1,
    ),
    _function(
        "match_text", "text", "field query", "Bool", "The words of the query occur as a phrase."
    ),
    _function(
        "nearest",
        "rank",
        "field query",
        "F64",
        "Distance of a vector property to a vector, or to the embedding of a text.",
    ),
    _function("bm25", "rank", "field query", "F64", "Relevance of a text property to the query."),
    _function(
        "rrf",
        "fusion",
        "first second k",
        "F64",
        "Two rankings merged by reciprocal rank, with the constant `k` (60 when left out).",
        optional=1,
    ),
    _function("count", "aggregate", "value", "I64", "How many rows of the group have a value."),
    _function("sum", "aggregate", "value", "F64", "Sum of the values that are not null."),
    _function("avg", "aggregate", "value", "F64", "Mean of the values that are not null."),
    _function("min", "aggregate", "value", "the argument's", "Smallest value."),
    _function("max", "aggregate", "value", "the argument's", "Largest value."),
)

FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType({item.name: item for item in _ALL})

LITERAL_WORDS: Final = ("date", "datetime")
"""Words that look like calls but write a literal."""
