"""The `.gq` syntax tree: what was written, with the place of every name.

Owns nothing but values. Nodes compare by meaning: spans take no part in equality. Conditions are
ordinary expressions and bodies are blocks of clauses, so that richer conditions and blocks can join
later without changing what is here. Knows neither the schema nor the types of anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from omnigraph.lang.syntax.lexer import Token
from omnigraph.lang.syntax.source import Source, Span

ComparisonOperator = Literal["=", "!=", "<", "<=", ">", ">=", "contains", "starts_with", "in"]
LogicalOperator = Literal["and", "or"]
ArithmeticOperator = Literal["+", "-", "*", "/", "%"]
LiteralKind = Literal["string", "integer", "decimal", "boolean", "date", "datetime"]
Direction = Literal["asc", "desc"]
NullPlace = Literal["first", "last"]

ANONYMOUS: Final = "_"


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written; of a variable, without its ``$``."""

    text: str
    span: Span = field(compare=False, repr=False)

    @property
    def is_anonymous(self) -> bool:
        return self.text == ANONYMOUS


# Expressions


@dataclass(frozen=True, slots=True)
class LiteralValue:
    """A single value. Dates keep their text: whether it is a date is the checker's question."""

    kind: LiteralKind
    value: str | int | float | bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NullLiteral:
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    items: tuple[Expression, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """A bare ``$name``: a parameter if one has this name, else a match variable."""

    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PropertyAccess:
    variable: Name
    property: Name
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SystemField:
    """``$variable.@id``; in a mutation ``@id``, without a variable."""

    variable: Name | None
    name: Name
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AliasReference:
    """A bare name: the alias of a return item."""

    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a known function with an acceptable number of arguments, options in their place."""

    function: Name
    arguments: tuple[Expression, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    operator: ComparisonOperator
    left: Expression
    right: Expression
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NullTest:
    """``operand is null``, or ``is not null``."""

    operand: Expression
    negated: bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Logical:
    """``and`` or ``or`` of at least two operands."""

    operator: LogicalOperator
    operands: tuple[Expression, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    operator: ArithmeticOperator
    left: Expression
    right: Expression
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Minus:
    operand: Expression
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class When:
    condition: Expression
    result: Expression


@dataclass(frozen=True, slots=True)
class Case:
    """``case { when … then … else … }``; without ``else`` the other rows are null."""

    branches: tuple[When, ...]
    otherwise: Expression | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FieldReference:
    """A property of the type a mutation is about: a bare name."""

    name: str
    span: Span = field(compare=False, repr=False)


Expression: TypeAlias = (
    LiteralValue
    | NullLiteral
    | ListLiteral
    | Variable
    | PropertyAccess
    | SystemField
    | AliasReference
    | Call
    | Comparison
    | NullTest
    | Logical
    | Not
    | Arithmetic
    | Minus
    | Case
    | FieldReference
)


def operands(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly inside another one, in text order."""
    match expression:
        case Comparison(left=left, right=right) | Arithmetic(left=left, right=right):
            return (left, right)
        case NullTest(operand=operand) | Not(operand=operand) | Minus(operand=operand):
            return (operand,)
        case Logical(operands=inner) | Call(arguments=inner) | ListLiteral(items=inner):
            return inner
        case Case():
            parts = [part for item in expression.branches for part in (item.condition, item.result)]
            return tuple(parts if expression.otherwise is None else [*parts, expression.otherwise])
        case _:
            return ()


def parts(expression: Expression) -> Iterator[Expression]:
    """An expression and everything inside it."""
    pending = [expression]
    while pending:
        found = pending.pop()
        yield found
        pending += operands(found)


# Clauses of a match


@dataclass(frozen=True, slots=True)
class PropertyValue:
    """``name: value``: an equality in a binding, an assignment in a mutation."""

    name: Name
    value: Expression
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Binding:
    variable: Name
    type_name: Name
    properties: tuple[PropertyValue, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Hops:
    """``{minimum,maximum}`` as written; an absent maximum is the checker's to refuse."""

    minimum: int
    maximum: int | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Traversal:
    left: Name
    edge: Name
    right: Name
    edge_variable: Name | None
    undirected: bool
    hops: Hops | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Filter:
    condition: Expression
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negation:
    block: Block
    span: Span = field(compare=False, repr=False)


Clause: TypeAlias = Binding | Traversal | Filter | Negation


@dataclass(frozen=True, slots=True)
class Block:
    """Clauses in braces; all of them must hold."""

    clauses: tuple[Clause, ...]
    span: Span = field(compare=False, repr=False)


# Bodies


@dataclass(frozen=True, slots=True)
class ReturnItem:
    expression: Expression
    alias: Name | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OrderItem:
    """``direction`` and ``nulls`` are None when none was written."""

    expression: Expression
    direction: Direction | None
    nulls: NullPlace | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Limit:
    """``limit count offset offset``; each part may be missing, but not both."""

    count: int | Variable | None
    offset: int | Variable | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ReadBody:
    match: Block
    returns: tuple[ReturnItem, ...]
    order: tuple[OrderItem, ...]
    limit: Limit | None
    distinct: bool
    returns_span: Span = field(compare=False, repr=False)
    order_span: Span | None = field(compare=False, repr=False, default=None)


@dataclass(frozen=True, slots=True)
class Insert:
    type_name: Name
    assignments: tuple[PropertyValue, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Update:
    type_name: Name
    assignments: tuple[PropertyValue, ...]
    where: Expression
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Delete:
    type_name: Name
    where: Expression
    span: Span = field(compare=False, repr=False)


Statement: TypeAlias = Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class WriteBody:
    statements: tuple[Statement, ...]


# Queries


@dataclass(frozen=True, slots=True)
class ParameterType:
    """A declared type as written: ``name`` is not yet known to be a type."""

    name: Name
    is_list: bool
    dimension: int | None
    optional: bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    name: Name
    type: ParameterType
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Annotation:
    """``@description("…")`` or ``@instruction("…")``."""

    name: Name
    text: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Query:
    name: Name
    parameters: tuple[Parameter, ...]
    annotations: tuple[Annotation, ...]
    body: ReadBody | WriteBody
    span: Span = field(compare=False, repr=False)
    parameters_span: Span = field(compare=False, repr=False)

    @property
    def is_write(self) -> bool:
        return isinstance(self.body, WriteBody)

    @property
    def description(self) -> str | None:
        return self._annotation("description")

    @property
    def instruction(self) -> str | None:
        return self._annotation("instruction")

    def _annotation(self, name: str) -> str | None:
        return next((item.text for item in self.annotations if item.name.text == name), None)


@dataclass(frozen=True, slots=True)
class QueryFile:
    """All queries of one text. ``comments`` are in text order, for the formatter."""

    queries: tuple[Query, ...]
    source: Source = field(compare=False, repr=False)
    comments: tuple[Token, ...] = field(compare=False, repr=False)
