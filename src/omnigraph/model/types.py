"""The types of properties: declared name, Arrow type, JSON and canonical spelling in one table.

A *stored value* is the Python form of what a column holds: str, bool, int, float, days for a Date,
milliseconds for a DateTime, bytes (owned) or str (a URI) for a Blob. ``accept`` turns JSON into a
stored value under the strict rules of a load (times as strings or numbers), ``produce`` turns it
back into JSON for output (times as strings), and ``spell`` gives its canonical spelling, from which
keys and uniqueness are computed.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Literal

import pyarrow as pa

from omnigraph.errors import InvalidValue
from omnigraph.model.calendar import format_date, format_instant, parse_date, parse_instant
from omnigraph.model.floats import round_single, shortest_float

Stored = str | bool | int | float | bytes
Family = Literal["string", "bool", "integer", "float", "date", "datetime", "blob"]

VECTOR_DIMENSIONS_MAX: Final = 2**31 - 1
"""Arrow counts the items of a fixed-size list in 32 bits."""

JS_SAFE_INTEGER_MAX: Final = 2**53 - 1
BASE64_PREFIX: Final = "base64:"


@dataclass(frozen=True, slots=True)
class Scalar:
    """One row of the table. Rows are compared by identity; pickling finds the same row again."""

    name: str
    family: Family
    value_kind: str
    """The name of the type in the description of a result."""
    arrow_name: str
    """The pyarrow factory of its physical type."""
    accept: Callable[[Any], Stored]
    spell: Callable[[Any], str]
    produce: Callable[[Any], Any]

    @property
    def numeric(self) -> bool:
        return self.family in ("integer", "float")

    def arrow_type(self) -> pa.DataType:
        return getattr(pa, self.arrow_name)()

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (_scalar, (self.name,))


def _shown(value: object) -> str:
    """A JSON value for an error text, shortened."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value[:40]}…"' if len(value) > 40 else f'"{value}"'
    if isinstance(value, (int, float)):
        return f"{value!r:.40}" if isinstance(value, float) else _shown_integer(value)
    if isinstance(value, list | tuple):
        return "an array"
    return "an object" if isinstance(value, Mapping) else f"a Python {type(value).__name__}"


def _shown_integer(value: int) -> str:
    return str(value) if value.bit_length() <= 128 else "a very large number"


def _expected(what: str, value: object) -> InvalidValue:
    return InvalidValue(f"expected {what}, got {_shown(value)}")


def _accept_string(value: Any) -> str:
    if not isinstance(value, str):
        raise _expected("a string", value)
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidValue("the string contains a lone surrogate") from None
    return value


def _accept_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _expected("true or false", value)
    return value


def _integer(low: int, high: int, what: str = "a whole number") -> Callable[[Any], int]:
    def accept(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise _expected(what, value)
        if not low <= value <= high:
            raise InvalidValue(f"{_shown_integer(value)} is not between {low} and {high}")
        return value

    return accept


def _float(single: bool) -> Callable[[Any], float]:
    def accept(value: Any) -> float:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise _expected("a number", value)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if single:
            number = round_single(number)
        if not math.isfinite(number):
            width = 32 if single else 64
            raise InvalidValue(f"{_shown(value)} is not a finite {width}-bit float")
        return number

    return accept


def _time(
    parse: Callable[[str], int | None], bits: int, text: str, unit: str
) -> Callable[[Any], int]:
    whole = _integer(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, f"{text} or whole {unit}")

    def accept(value: Any) -> int:
        if not isinstance(value, str):
            return whole(value)
        stored = parse(value)
        if stored is None:
            raise _expected(text, value)
        return stored

    return accept


def _accept_blob(value: Any) -> str | bytes:
    text = _accept_string(value)
    if not text.startswith(BASE64_PREFIX):
        if ":" not in text:
            raise _expected("`base64:…` or a URI", value)
        return text
    try:
        return b64decode(text[len(BASE64_PREFIX) :], validate=True)
    except (Base64Error, ValueError):
        raise InvalidValue("the text after `base64:` is not standard base64") from None


def _export_blob(value: bytes | str) -> str:
    return value if isinstance(value, str) else BASE64_PREFIX + b64encode(value).decode("ascii")


def _refuse_blob(value: object) -> Any:
    raise InvalidValue("a Blob cannot be used as a value")


def _produce_float(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def _produce_single(value: float) -> float | str:
    return (
        float(shortest_float(value, single=True))
        if math.isfinite(value)
        else (_produce_float(value))
    )


def _same(value: Any) -> Any:
    return value


def _spell_bool(value: bool) -> str:
    return "true" if value else "false"


def _spell_single(value: float) -> str:
    return shortest_float(round_single(value), single=True)


def _signed(bits: int) -> Callable[[Any], int]:
    return _integer(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _unsigned(bits: int) -> Callable[[Any], int]:
    return _integer(0, 2**bits - 1)


_accept_date = _time(parse_date, 32, "a date `YYYY-MM-DD`", "days since 1970-01-01")
_accept_instant = _time(
    parse_instant, 64, "an RFC 3339 instant such as `2024-02-29T12:00:00Z`", "milliseconds"
)
_TABLE: Final = (
    # name, family, value kind, Arrow type, accept, spell, produce
    Scalar("String", "string", "string", "string", _accept_string, _same, _same),
    Scalar("Bool", "bool", "bool", "bool_", _accept_bool, _spell_bool, _same),
    Scalar("I32", "integer", "int", "int32", _signed(32), str, _same),
    Scalar("I64", "integer", "bigint", "int64", _signed(64), str, _same),
    Scalar("U32", "integer", "int", "uint32", _unsigned(32), str, _same),
    Scalar("U64", "integer", "bigint", "uint64", _unsigned(64), str, _same),
    Scalar("F32", "float", "float", "float32", _float(True), _spell_single, _produce_single),
    Scalar("F64", "float", "float", "float64", _float(False), shortest_float, _produce_float),
    Scalar("Date", "date", "date", "date32", _accept_date, str, format_date),
    Scalar("DateTime", "datetime", "datetime", "date64", _accept_instant, str, format_instant),
    Scalar("Blob", "blob", "blob", "large_binary", _accept_blob, _refuse_blob, _refuse_blob),
)
SCALARS: Final[Mapping[str, Scalar]] = MappingProxyType({row.name: row for row in _TABLE})


def _scalar(name: str) -> Scalar:
    return SCALARS[name]


STRING: Final = SCALARS["String"]
F32: Final = SCALARS["F32"]


@dataclass(frozen=True, slots=True)
class PropertyType:
    """What a property may hold: a scalar, a list of one, an enum, a vector or a blob."""

    scalar: Scalar
    nullable: bool = False
    is_list: bool = False
    enum: tuple[str, ...] | None = None
    """Members in sorted order. The scalar of an enum is String."""
    dimensions: int | None = None
    """Length of a vector. The scalar of a vector is F32."""

    @property
    def is_vector(self) -> bool:
        return self.dimensions is not None

    @property
    def is_blob(self) -> bool:
        return self.scalar.family == "blob"

    @property
    def is_single(self) -> bool:
        """Neither list nor vector nor blob. Only such properties can be keys or unique."""
        return not self.is_list and self.dimensions is None and not self.is_blob

    @property
    def is_numeric(self) -> bool:
        """A single number, not a list or vector."""
        return self.is_single and self.scalar.numeric

    @property
    def is_string(self) -> bool:
        """A single string or an enum member, not a list."""
        return self.is_single and self.scalar.family == "string"

    @property
    def is_plain_string(self) -> bool:
        return self.is_string and self.enum is None

    def required(self) -> PropertyType:
        """The same type without ``?``."""
        return replace(self, nullable=False) if self.nullable else self

    def __str__(self) -> str:
        """The type as the schema language writes it."""
        if self.enum is not None:
            text = f"enum({', '.join(self.enum)})"
        elif self.dimensions is not None:
            text = f"Vector({self.dimensions})"
        else:
            text = f"[{self.scalar.name}]" if self.is_list else self.scalar.name
        return text + "?" if self.nullable else text

    def accept(self, value: Any) -> Any:
        """JSON to a stored value, or ``InvalidValue``."""
        if value is None:
            if not self.nullable:
                raise InvalidValue("a value is required, got null")
            return None
        if self.dimensions is not None or self.is_list:
            return self._accept_items(value)
        stored = self.scalar.accept(value)
        if self.enum is not None and stored not in self.enum:
            raise _expected(f"one of {', '.join(self.enum)}", value)
        return stored

    def _accept_items(self, value: Any) -> list[Stored]:
        if not isinstance(value, list):
            raise _expected("an array", value)
        if self.dimensions is not None and len(value) != self.dimensions:
            raise InvalidValue(f"expected {self.dimensions} numbers, got {len(value)}")
        accept = self.scalar.accept
        try:
            return [accept(item) for item in value]
        except InvalidValue as problem:
            raise InvalidValue(f"in an array: {problem.message}") from None

    def produce(self, value: Any, *, js_safe: bool = False) -> Any:
        """A stored value as JSON for output; times are ISO 8601 strings."""
        if value is None:
            return None
        produce = self.scalar.produce
        if js_safe and self.scalar.value_kind == "bigint":
            produce = _js_safe
        if self.dimensions is not None or self.is_list:
            return [None if item is None else produce(item) for item in value]
        return produce(value)

    def export(self, value: Any) -> Any:
        """Like ``produce``, but a blob is given as base64 or as its URI."""
        if self.is_blob:
            return None if value is None else _export_blob(value)
        return self.produce(value)

    def spell(self, value: Stored) -> str:
        """The canonical spelling of one stored value; lists and vectors have none."""
        if not self.is_single:
            raise InvalidValue(f"a value of type {self} has no canonical spelling")
        return self.scalar.spell(value)

    def arrow_type(self) -> pa.DataType:
        """The physical type of the column."""
        item = self.scalar.arrow_type()
        if self.dimensions is not None:
            return pa.list_(pa.field("item", item, nullable=True), self.dimensions)
        return pa.list_(pa.field("item", item, nullable=True)) if self.is_list else item

    def to_json(self) -> dict[str, Any]:
        scalar = f"Vector({self.dimensions})" if self.dimensions is not None else self.scalar.name
        return {
            "scalar": scalar,
            "nullable": self.nullable,
            "list": self.is_list,
            "enum_values": None if self.enum is None else list(self.enum),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> PropertyType:
        name: str = body["scalar"]
        dimensions = int(name[7:-1]) if name.startswith("Vector(") else None
        enum = body["enum_values"]
        return cls(
            scalar=F32 if dimensions is not None else SCALARS[name],
            nullable=body["nullable"],
            is_list=body["list"],
            enum=None if enum is None else tuple(enum),
            dimensions=dimensions,
        )


def _js_safe(value: int) -> int | str:
    return value if abs(value) <= JS_SAFE_INTEGER_MAX else str(value)
