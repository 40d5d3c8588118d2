"""Typed expressions: what the checker makes of the expressions a person wrote.

Owns the values that plans are built from. Every expression knows its type, names entities by
variable and parameters by name, and compares by meaning: no places, no spelling. Shared by the
checked query and the plan; an engine interprets exactly these classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, TypeGuard

from omnigraph.lang.query.functions import FUNCTIONS
from omnigraph.lang.query.parse.ast import ArithmeticOperator, ComparisonOperator, LogicalOperator
from omnigraph.lang.syntax.lexer import quote
from omnigraph.model.types import SCALARS, PropertyType, Stored

AggregateFunction = Literal["count", "count_distinct", "sum", "avg", "min", "max"]
TextFunction = Literal["search", "fuzzy", "match_text"]

BOOL: Final = PropertyType(SCALARS["Bool"])
DATE_TIME: Final = PropertyType(SCALARS["DateTime"])
INTEGER: Final = PropertyType(SCALARS["I64"])
FLOAT: Final = PropertyType(SCALARS["F64"])
STRING: Final = PropertyType(SCALARS["String"])
TRUTH: Final = replace(BOOL, nullable=True)
"""The type of a condition: unknown is null."""
SCORE: Final = replace(FLOAT, nullable=True)
"""A score is null for an entity that has no vector, or whose text does not match."""

FUZZY_EDITS_DEFAULT: Final = 2
RRF_K_DEFAULT: Final = 60


@dataclass(frozen=True, slots=True)
class EntityType:
    """The type of a whole node or edge."""

    kind: Literal["node", "edge"]
    name: str

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.name}"

    def __str__(self) -> str:
        return self.name


ValueType: TypeAlias = PropertyType | EntityType


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal as a stored value: days for a date, milliseconds for an instant."""

    value: Stored | tuple[Stored, ...]
    type: PropertyType


@dataclass(frozen=True, slots=True)
class NullValue:
    """``null``, of the type of what stands beside it."""

    type: PropertyType


@dataclass(frozen=True, slots=True)
class ParameterValue:
    name: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class CurrentTime:
    """The instant of the request, the same in every place and statement."""

    type: PropertyType = DATE_TIME


@dataclass(frozen=True, slots=True)
class PropertyOf:
    """``variable.property``; in a mutation the variable is empty: the entity being looked at."""

    variable: str
    property: str
    type: PropertyType


@dataclass(frozen=True, slots=True)
class WholeEntity:
    variable: str
    type: EntityType


@dataclass(frozen=True, slots=True)
class Compare:
    """Unknown, and so not true, when a side is null."""

    operator: ComparisonOperator
    left: Expression
    right: Expression

    @property
    def type(self) -> PropertyType:
        return TRUTH


@dataclass(frozen=True, slots=True)
class NullCheck:
    """Whether a value is null; negated, whether it is not."""

    operand: Expression
    negated: bool

    @property
    def type(self) -> PropertyType:
        return BOOL


@dataclass(frozen=True, slots=True)
class Junction:
    """``and`` or ``or`` in three-valued logic."""

    operator: LogicalOperator
    operands: tuple[Expression, ...]

    @property
    def type(self) -> PropertyType:
        return TRUTH


@dataclass(frozen=True, slots=True)
class Complement:
    """``not``: unknown stays unknown."""

    operand: Expression

    @property
    def type(self) -> PropertyType:
        return TRUTH


@dataclass(frozen=True, slots=True)
class Calculation:
    """Arithmetic on two numbers of ``type``; what does not fit the type is an error."""

    operator: ArithmeticOperator
    left: Expression
    right: Expression
    type: PropertyType


@dataclass(frozen=True, slots=True)
class Opposite:
    """A number with the other sign."""

    operand: Expression
    type: PropertyType


@dataclass(frozen=True, slots=True)
class CaseBranch:
    condition: Expression
    result: Expression


@dataclass(frozen=True, slots=True)
class Conditional:
    """The result of the first branch whose condition is true. Only that one is evaluated."""

    branches: tuple[CaseBranch, ...]
    otherwise: Expression
    type: PropertyType


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function of values; null in, null out, except for ``coalesce``, ``least``, ``greatest``."""

    function: str
    arguments: tuple[Expression, ...]
    type: PropertyType


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of values that are not all literals; one that is null makes the list null."""

    items: tuple[Expression, ...]
    type: PropertyType


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A text search; ``negated`` keeps exactly the entities that do not match.

    Only ``fuzzy`` has ``max_edits``.
    """

    function: TextFunction
    field: PropertyOf
    query: Expression
    max_edits: Expression | None = None
    negated: bool = False

    @property
    def type(self) -> PropertyType:
        return BOOL


@dataclass(frozen=True, slots=True)
class Nearest:
    """Distance; smaller is better."""

    field: PropertyOf
    query: Expression

    @property
    def type(self) -> PropertyType:
        return SCORE


@dataclass(frozen=True, slots=True)
class Bm25:
    """Relevance; larger is better."""

    field: PropertyOf
    query: Expression

    @property
    def type(self) -> PropertyType:
        return SCORE


@dataclass(frozen=True, slots=True)
class Fusion:
    """Two rankings as one, by reciprocal rank; larger is better."""

    first: Nearest | Bm25
    second: Nearest | Bm25
    k: Expression

    @property
    def type(self) -> PropertyType:
        return SCORE


@dataclass(frozen=True, slots=True)
class Aggregate:
    function: AggregateFunction
    argument: Expression
    type: PropertyType


Ranking: TypeAlias = Nearest | Bm25 | Fusion
Expression: TypeAlias = (
    Constant
    | NullValue
    | ParameterValue
    | CurrentTime
    | PropertyOf
    | WholeEntity
    | Compare
    | NullCheck
    | Junction
    | Complement
    | Calculation
    | Opposite
    | Conditional
    | FunctionCall
    | ListOf
    | TextMatch
    | Nearest
    | Bm25
    | Fusion
    | Aggregate
)


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly inside another one."""
    match expression:
        case Compare() | Calculation():
            return (expression.left, expression.right)
        case NullCheck() | Complement() | Opposite():
            return (expression.operand,)
        case Junction(operands=found) | FunctionCall(arguments=found) | ListOf(items=found):
            return found
        case Conditional():
            parts = [part for item in expression.branches for part in (item.condition, item.result)]
            return (*parts, expression.otherwise)
        case TextMatch():
            inner: tuple[Expression, ...] = (expression.field, expression.query)
            return inner if expression.max_edits is None else (*inner, expression.max_edits)
        case Nearest() | Bm25():
            return (expression.field, expression.query)
        case Fusion():
            return (expression.first, expression.second, expression.k)
        case Aggregate():
            return (expression.argument,)
        case _:
            return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """An expression and everything inside it, outermost first."""
    pending = [expression]
    while pending:
        found = pending.pop()
        yield found
        pending.extend(reversed(children(found)))


def variables(expression: Expression) -> frozenset[str]:
    """The match variables an expression depends on."""
    return frozenset(
        found.variable for found in walk(expression) if isinstance(found, (PropertyOf, WholeEntity))
    )


def has_aggregate(expression: Expression) -> bool:
    return any(isinstance(part, Aggregate) for part in walk(expression))


def counts_rows(expression: Expression) -> TypeGuard[Aggregate]:
    """Whether it counts an entity: no entity is missing, so that is counting rows."""
    return (
        isinstance(expression, Aggregate)
        and expression.function == "count"
        and isinstance(expression.argument, WholeEntity)
    )


def is_constant(expression: Expression) -> bool:
    """Whether the value is known before anything is read."""
    return isinstance(expression, (Constant, NullValue, ParameterValue, CurrentTime))


def can_fail(expression: Expression) -> bool:
    """Whether a value can make it fail: an overflow, a division by zero, a text that is no date."""
    return any(
        isinstance(part, (Calculation, Opposite))
        or (isinstance(part, FunctionCall) and FUNCTIONS[part.function].can_fail)
        for part in walk(expression)
    )


def to_text(expression: Expression) -> str:
    """The expression as a query would write it. In one read plan, equal texts mean the same."""
    match expression:
        case Constant():
            return constant_text(expression.value, expression.type)
        case NullValue():
            return "null"
        case ParameterValue():
            return f"${expression.name}"
        case CurrentTime():
            return "now()"
        case PropertyOf():
            prefix = f"${expression.variable}." if expression.variable else ""
            return prefix + expression.property
        case WholeEntity():
            return f"${expression.variable}"
        case Compare() | Calculation():
            sides = _operand_text(expression.left), _operand_text(expression.right)
            return f"{sides[0]} {expression.operator} {sides[1]}"
        case NullCheck():
            test = "is not null" if expression.negated else "is null"
            return f"{_operand_text(expression.operand)} {test}"
        case Junction():
            parts = [_operand_text(item) for item in expression.operands]
            return f" {expression.operator} ".join(parts)
        case Complement():
            return f"not {_operand_text(expression.operand)}"
        case Opposite():
            return f"-{_operand_text(expression.operand)}"
        case Conditional():
            branches = [
                f"when {to_text(item.condition)} then {to_text(item.result)}"
                for item in expression.branches
            ]
            return f"case {{ {' '.join(branches)} else {to_text(expression.otherwise)} }}"
        case ListOf():
            return f"[{', '.join(to_text(item) for item in expression.items)}]"
        case TextMatch():
            negation = "not " if expression.negated else ""
            return f"{negation}{expression.function}({_arguments_text(expression)})"
        case Aggregate() | FunctionCall():
            return f"{expression.function}({_arguments_text(expression)})"
        case _:
            return f"{_RANKING_NAMES[type(expression)]}({_arguments_text(expression)})"


def _arguments_text(expression: Expression) -> str:
    return ", ".join(to_text(item) for item in children(expression))


_INFIX: Final = (Compare, Calculation, NullCheck, Junction, Complement, Opposite)


def _operand_text(expression: Expression) -> str:
    text = to_text(expression)
    return f"({text})" if isinstance(expression, _INFIX) else text


_RANKING_NAMES: Final[dict[Any, str]] = {Nearest: "nearest", Bm25: "bm25", Fusion: "rrf"}


def constant_text(value: Stored | tuple[Stored, ...], kind: PropertyType) -> str:
    """A stored value as a literal."""
    if isinstance(value, tuple):
        item = replace(kind, is_list=False, dimensions=None)
        return "[" + ", ".join(constant_text(part, item) for part in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if kind.scalar.family in ("date", "datetime"):
        return f'{kind.scalar.family}("{kind.scalar.produce(value)}")'
    if isinstance(value, str):
        return quote(value)
    return str(value)
