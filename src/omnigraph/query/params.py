"""Parameter values: from JSON to the stored values a plan refers to.

Owns what each declared type accepts, in both modes, and reports every wrong value at once. Nothing
is executed with a parameter missing or of the wrong type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, Literal, NoReturn

from omnigraph.errors import InvalidValue, ParameterError
from omnigraph.frozen import frozen
from omnigraph.query.expressions import BOOL, FLOAT, INTEGER, STRING, ParameterValue
from omnigraph.syntax.suggest import did_you_mean
from omnigraph.types import JS_SAFE_INTEGER_MAX, SCALARS, PropertyType, Scalar

ParameterMode = Literal["standard", "js_safe"]

PROBLEMS_MAX: Final = 100
"""More are counted by nobody."""

_DECIMAL: Final = re.compile(r"-?[0-9]{1,20}")
_UNSIGNED: Final = PropertyType(SCALARS["U64"])
_NULL: Final = replace(STRING, nullable=True)


@frozen
class BoundParameters:
    """Stored values by name: those declared, and others that were given besides."""

    values: Mapping[str, Any]
    types: Mapping[str, PropertyType]
    extra: Mapping[str, Any]


def bind_parameters(
    declared: Iterable[ParameterValue], given: object, *, mode: ParameterMode = "standard"
) -> BoundParameters:
    """Fit JSON values to declared parameters; raises ``ParameterError`` with every problem."""
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        _refuse("", "parameters are given as an object, by name")
    binder = _Binder(mode)
    values, types, extra = {}, {}, {}
    for parameter in declared:
        types[parameter.name] = parameter.type
        values[parameter.name] = binder.bind(parameter, given)
    for name, value in given.items():
        if name not in types:
            types[name], extra[name] = binder.infer(str(name), value)
    if binder.problems:
        raise ParameterError(binder.problems)
    return BoundParameters(values, types, extra)


def read_parameters(text: str) -> Any:
    """Parameters from JSON text; raises ``ParameterError`` when it is not JSON."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        _refuse("", "the JSON is nested too deep")
    except ValueError as problem:
        _refuse("", f"the parameters are not JSON: {problem}")


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _refuse(name: str, message: str) -> NoReturn:
    raise ParameterError([{"name": name, "message": message}])


class _Binder:
    """Collects the problems of one call."""

    def __init__(self, mode: ParameterMode) -> None:
        self._js_safe = mode == "js_safe"
        self.problems: list[dict[str, Any]] = []

    def bind(self, parameter: ParameterValue, given: Mapping[Any, Any]) -> Any:
        """The stored value of a declared parameter, or None after noting a problem."""
        name, kind = parameter.name, parameter.type
        value = given.get(name)
        if value is None:
            if not kind.nullable:
                problem = "is null" if name in given else "is missing"
                self._note_missing(name, problem, kind, given)
            return None
        try:
            return self._accept(kind, value)
        except InvalidValue as problem:
            self._note(name, problem.message, kind)
            return None

    def infer(self, name: str, value: object) -> tuple[PropertyType, Any]:
        """The type and value of something given that no parameter asks for."""
        try:
            kind = _inferred(value)
            return kind, self._accept(kind, value)
        except InvalidValue as problem:
            self._note(name, problem.message, None)
            return _NULL, None

    def _note(self, name: str, problem: str, kind: PropertyType | None) -> None:
        body: dict[str, Any] = {"name": name, "message": f"parameter `{name}`: {problem}"}
        if kind is not None:
            body["expected"] = str(kind)
        self._add(body)

    def _add(self, problem: dict[str, Any]) -> None:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(problem)

    def _note_missing(
        self, name: str, problem: str, kind: PropertyType, given: Mapping[Any, Any]
    ) -> None:
        body = {
            "name": name,
            "message": f"parameter `{name}` of type {kind} {problem}",
            "expected": str(kind),
        }
        if len(self.problems) < PROBLEMS_MAX:
            hint = did_you_mean(name, (str(other) for other in given))
            body |= {"hint": hint} if hint is not None else {}
        self._add(body)

    # Values

    def _accept(self, kind: PropertyType, value: object) -> Any:
        if value is None:
            return None
        if kind.is_list or kind.is_vector:
            return self._accept_items(kind, value)
        return self._accept_one(kind.scalar, value)

    def _accept_items(self, kind: PropertyType, value: object) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            raise InvalidValue(f"expected an array, got {_shown(value)}")
        if kind.dimensions is not None and len(value) != kind.dimensions:
            raise InvalidValue(f"expected {kind.dimensions} numbers, got {len(value)}")
        found = []
        for at, item in enumerate(value):
            try:
                found.append(self._accept_one(kind.scalar, item))
            except InvalidValue as problem:
                raise InvalidValue(f"item {at + 1}: {problem.message}") from None
        return tuple(found)

    def _accept_one(self, scalar: Scalar, value: object) -> Any:
        if scalar.family == "integer":
            return scalar.accept(self._whole(value))
        if scalar.family in ("date", "datetime", "blob") and not isinstance(value, str):
            raise InvalidValue(f"expected a string, got {_shown(value)}")
        return scalar.accept(value)

    def _whole(self, value: object) -> object:
        """A whole number given as one or as decimal text; anything else is left as it is."""
        if isinstance(value, str):
            if not _DECIMAL.fullmatch(value):
                raise InvalidValue(f"expected a whole number, got {_shown(value)}")
            return int(value)
        if isinstance(value, float) and self._js_safe and value.is_integer():
            value = int(value)
        if isinstance(value, int) and self._js_safe and abs(value) > JS_SAFE_INTEGER_MAX:
            raise InvalidValue(
                "a number this large is not exact in JavaScript; pass it as a string of digits"
            )
        return value


def _inferred(value: object) -> PropertyType:
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INTEGER if value < 2**63 else _UNSIGNED
    if isinstance(value, float):
        return FLOAT
    if isinstance(value, str):
        return STRING
    if isinstance(value, (list, tuple)):
        if any(isinstance(item, (list, tuple)) for item in value):
            raise InvalidValue("an array cannot hold an array")
        items = [_inferred(item) for item in value]
        kind = next((item for item in items), STRING)
        if kind.is_numeric and FLOAT in items:
            kind = FLOAT
        return replace(kind, is_list=True, nullable=False)
    raise InvalidValue(f"expected a simple value or an array, got {_shown(value)}")


def _shown(value: object) -> str:
    """A value in the words of a message, cut where it is long."""
    if isinstance(value, int) and value.bit_length() > 128:
        return "a very large number"
    if isinstance(value, (str, int, float)) or value is None:
        text = json.dumps(value)
        return text if len(text) <= 40 else text[:40] + "…"
    return "an array" if isinstance(value, (list, tuple)) else "an object"
