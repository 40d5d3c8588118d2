"""Parameter values: from JSON to the stored values a plan refers to.

Owns what each declared type accepts, in both modes, and reports every wrong value at once. Nothing
is executed with a parameter missing or of the wrong type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn, TypeAlias

from omnigraph.errors import InvalidValue, ParameterError
from omnigraph.lang.query.typed_expressions import ParameterValue
from omnigraph.lang.syntax.suggest import did_you_mean
from omnigraph.model.python_values import plain_value
from omnigraph.model.types import JS_SAFE_INTEGER_MAX, PropertyType, Scalar

ParameterMode = Literal["standard", "js_safe"]

NAME_SHOWN: Final = 100
"""Letters of an unknown name in a message."""
PROBLEMS_MAX: Final = 100
"""Further problems are not reported."""

_DECIMAL: Final = re.compile(r"-?[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class BoundParameters:
    """Stored values of the declared parameters by name."""

    values: Mapping[str, Any]
    types: Mapping[str, PropertyType]


def bind_parameters(
    declared: Iterable[ParameterValue], given: object, *, mode: ParameterMode = "standard"
) -> BoundParameters:
    """Fit JSON values to declared parameters; raises ``ParameterError`` with every problem."""
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        _refuse("", "parameters are given as an object, by name")
    binder = _Binder(mode)
    values, types = {}, {}
    for parameter in declared:
        types[parameter.name] = parameter.type
        values[parameter.name] = binder.bind(parameter, given)
    if len(given) > len(types) or not given.keys() <= types.keys():
        binder.refuse_unknown([str(name) for name in given if name not in types], list(types))
    if binder.problems:
        raise ParameterError(binder.problems, remedy=_remedy(values))
    return BoundParameters(values, types)


def _remedy(declared: Iterable[str]) -> str:
    names = ", ".join(f"`{name}`" for name in declared)
    if not names:
        return "The query declares no parameters: give none."
    return f"Give {names} values of their declared types, and nothing else."


Parameters: TypeAlias = Mapping[str, Any]
"""Values by name, as a caller gives them; ``bind_parameters`` says what is wrong with them."""


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
        try:
            value = plain_value(given.get(name))
            if value is None:
                if not kind.nullable:
                    problem = "is null" if name in given else "is missing"
                    self._note_missing(name, problem, kind, given)
                return None
            return self._accept(kind, value)
        except InvalidValue as problem:
            message = problem.message
            if problem.remedy != InvalidValue.default_remedy:
                message += f". {problem.remedy}"
            self._note(name, message, kind)
            return None

    def refuse_unknown(self, names: Sequence[str], declared: Sequence[str]) -> None:
        """Note names that the query does not declare: a misspelt one would do nothing, silently."""
        for name in names:
            if len(self.problems) >= PROBLEMS_MAX:
                return
            body = {"name": name, "message": f"the query has no parameter `{name[:NAME_SHOWN]}`"}
            hint = did_you_mean(name, declared)
            if hint is not None:
                body |= {"message": f"{body['message']}; {hint}", "hint": hint}
            self._add(body)

    def _note(self, name: str, problem: str, kind: PropertyType) -> None:
        message = f"parameter `{name}`: {problem}"
        self._add({"name": name, "message": message, "expected": str(kind)})

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


def _shown(value: object) -> str:
    """A value in the words of a message, cut where it is long."""
    if isinstance(value, int) and value.bit_length() > 128:
        return "a very large number"
    if isinstance(value, (str, int, float)) or value is None:
        text = json.dumps(value)
        return text if len(text) <= 40 else text[:40] + "…"
    if isinstance(value, (list, tuple)):
        return "an array"
    return "an object" if isinstance(value, Mapping) else f"a Python {type(value).__name__}"
