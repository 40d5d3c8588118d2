"""The functions of the query language, as one table.

Owns their names, argument counts and where each may stand. The parser, the checker, the formatter
and the reference documentation all read this table; functions are listed nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, cast

FunctionKind = Literal["constant", "text", "rank", "fusion", "aggregate", "scalar"]
Takes = Literal["text", "number", "whole", "time", "list", "single", "same"]
"""What an argument may be. ``same``: a value of the one type that all these arguments have."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function. ``arguments`` names them for messages; those past ``required`` are optional.

    Of a variadic function the last argument may be repeated. ``takes`` says what the arguments of
    a scalar function are; the last entry counts for all further ones.
    """

    name: str
    kind: FunctionKind
    arguments: tuple[str, ...]
    required: int
    result: str
    summary: str
    takes_types: tuple[Takes, ...] = ()
    variadic: bool = False
    can_fail: bool = False
    """Whether a value can make it fail, such as a text that is no number."""

    @property
    def signature(self) -> str:
        shown = list(self.arguments[: self.required])
        shown += [f"[{name}]" for name in self.arguments[self.required :]]
        shown += ["…"] if self.variadic else []
        return f"{self.name}({', '.join(shown)})"

    def takes(self, count: int) -> bool:
        """Whether it can be called with so many arguments."""
        return count >= self.required and (self.variadic or count <= len(self.arguments))


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


def _scalar_function(
    name: str,
    arguments: str,
    result: str,
    summary: str,
    *,
    optional: int = 0,
    variadic: bool = False,
    can_fail: bool = False,
) -> Function:
    """A function of values. Arguments are written ``name:what`` it takes."""
    pairs = [item.partition(":") for item in arguments.split()]
    names, takes = tuple(name for name, _, _ in pairs), tuple(what for _, _, what in pairs)
    required = len(names) - optional
    types = cast(tuple[Takes, ...], takes)
    return Function(name, "scalar", names, required, result, summary, types, variadic, can_fail)


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
    _function(
        "count_distinct", "aggregate", "value", "I64", "How many different values the group has."
    ),
    _function("sum", "aggregate", "value", "F64", "Sum of the values that are not null."),
    _function("avg", "aggregate", "value", "F64", "Mean of the values that are not null."),
    _function("min", "aggregate", "value", "the argument's", "Smallest value."),
    _function("max", "aggregate", "value", "the argument's", "Largest value."),
    _scalar_function("lower", "text:text", "String", "The text in lower case."),
    _scalar_function("upper", "text:text", "String", "The text in upper case."),
    _scalar_function("trim", "text:text", "String", "The text without white space at its ends."),
    _scalar_function("length", "text:text", "I64", "How many characters a text has."),
    _scalar_function(
        "substring",
        "text:text start:whole length:whole",
        "String",
        "The part of a text from a character on, counted from 0; to the end without a length.",
        optional=1,
    ),
    _scalar_function(
        "replace",
        "text:text part:text by:text",
        "String",
        "The text with every occurrence of a part replaced.",
    ),
    _scalar_function(
        "split", "text:text separator:text", "[String]", "The parts between the separators."
    ),
    _scalar_function(
        "concat", "text:text", "String", "The texts one after the other.", variadic=True
    ),
    _scalar_function("contains", "text:text part:text", "Bool", "Whether a text has this part."),
    _scalar_function(
        "starts_with", "text:text part:text", "Bool", "Whether a text has this beginning."
    ),
    _scalar_function("ends_with", "text:text part:text", "Bool", "Whether a text has this end."),
    _scalar_function(
        "matches",
        "text:text pattern:text",
        "Bool",
        "Whether a regular expression (RE2) is found in a text.",
        can_fail=True,
    ),
    _scalar_function(
        "coalesce",
        "value:same",
        "the argument's",
        "The first value that is not null.",
        variadic=True,
    ),
    _scalar_function(
        "abs", "number:number", "the argument's", "The number without its sign.", can_fail=True
    ),
    _scalar_function(
        "round",
        "number:number digits:whole",
        "the argument's",
        "The nearest number with so many decimal digits (0 when left out), halves away from 0.",
        optional=1,
        can_fail=True,
    ),
    _scalar_function("floor", "number:number", "the argument's", "The next whole number below."),
    _scalar_function("ceil", "number:number", "the argument's", "The next whole number above."),
    _scalar_function(
        "least",
        "value:same",
        "the argument's",
        "The smallest value that is not null.",
        variadic=True,
    ),
    _scalar_function(
        "greatest",
        "value:same",
        "the argument's",
        "The largest value that is not null.",
        variadic=True,
    ),
    _scalar_function(
        "date_part",
        "time:time part:text",
        "I64",
        "Its `year`, `quarter`, `month`, `week`, `day`, `day_of_week` (1 is Monday), `day_of_year`,"
        " `hour`, `minute` or `second`.",
        can_fail=True,
    ),
    _scalar_function(
        "date_trunc",
        "time:time unit:text",
        "the argument's",
        "The start of its `year`, `quarter`, `month`, `week`, `day`, `hour`, `minute` or `second`.",
        can_fail=True,
    ),
    _scalar_function(
        "add",
        "time:time amount:whole unit:text",
        "the argument's",
        "The time so many units later; a day that a month does not have is its last.",
        can_fail=True,
    ),
    _scalar_function(
        "between",
        "start:time end:time unit:text",
        "I64",
        "How many whole units lie between two Dates, or two DateTimes.",
        can_fail=True,
    ),
    _scalar_function("to_string", "value:single", "String", "The value as text."),
    _scalar_function(
        "to_int",
        "value:single",
        "I64",
        "A text of digits, or a number without its fraction.",
        can_fail=True,
    ),
    _scalar_function(
        "to_float", "value:single", "F64", "A text or a number as a float.", can_fail=True
    ),
    _scalar_function(
        "to_date",
        "value:single",
        "Date",
        "A text such as `2024-02-29`, or the day of an instant in UTC.",
        can_fail=True,
    ),
    _scalar_function(
        "to_datetime",
        "value:single",
        "DateTime",
        "A text as in the literals, or the start of a day in UTC.",
        can_fail=True,
    ),
    _scalar_function("size", "list:list", "I64", "How many items a list has."),
    _scalar_function(
        "item",
        "list:list index:whole",
        "the item's",
        "The item of a list at an index, counted from 0; null where it has none.",
    ),
)

FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType({item.name: item for item in _ALL})

LITERAL_WORDS: Final = ("date", "datetime")
"""Words that look like calls but write a literal."""
