"""Declared parameters: their names and types."""

from __future__ import annotations

from typing import Final

from omnigraph.lang.query.check.context import Context
from omnigraph.lang.query.parse import ast
from omnigraph.lang.query.typed_expressions import ParameterValue
from omnigraph.model.types import F32, SCALARS, VECTOR_DIMENSIONS_MAX, PropertyType

RESERVED_PARAMETERS: Final = ("__nanograph_now",)
"""Names that engines use for values of their own."""


def check_parameters(context: Context, query: ast.Query) -> tuple[ParameterValue, ...]:
    """Declare every parameter in the context, the wrong ones as far as they are usable."""
    found: list[ParameterValue] = []
    for parameter in query.parameters:
        name = parameter.name.text
        if name in RESERVED_PARAMETERS:
            context.report(
                "T30", f"`${name}` is reserved", parameter.name.span, remedy="Use another name."
            )
        elif parameter.name.is_anonymous:
            context.report(
                "T30", "a parameter needs a name", parameter.name.span, remedy="Replace `$_`."
            )
            continue
        elif name in context.parameters:
            context.report(
                "T31",
                f"the parameter `${name}` is declared twice",
                parameter.name.span,
                remedy="Keep one of the two.",
            )
            continue
        kind = _declared_type(context, parameter.type)
        if kind is None:
            context.unusable.add(name)
            continue
        context.parameters[name] = ParameterValue(name, kind)
        found.append(context.parameters[name])
    return tuple(found)


def _declared_type(context: Context, declared: ast.ParameterType) -> PropertyType | None:
    if declared.dimension is not None:
        if not 1 <= declared.dimension <= VECTOR_DIMENSIONS_MAX:
            message = f"a vector has between 1 and {VECTOR_DIMENSIONS_MAX} dimensions"
            context.report("T32", message, declared.span, remedy="Write `Vector(3)`.")
            return None
        return PropertyType(F32, declared.optional, dimensions=declared.dimension)
    scalar = SCALARS.get(declared.name.text)
    if scalar is None:
        name = declared.name.text
        message, remedy = f"there is no type {name}", None
        if name == "Vector":
            message = "a list of vectors cannot be a parameter"
            remedy = "Declare one parameter for each: `Vector(3)`."
        known = (*SCALARS, "Vector")
        context.report_unknown("T32", message, declared.name.span, name, known, remedy=remedy)
        return None
    found = PropertyType(scalar, declared.optional, is_list=declared.is_list)
    if found.is_blob and found.is_list:
        message = "a list of Blobs cannot be a parameter"
        context.report("T32", message, declared.span, remedy="Declare one parameter for each.")
        return None
    return found
