"""Commands whose text arguments are taken as they are.

typer converts every argument through pydantic, present or not, and importing pydantic costs more
than the rest of a start together (110 of 240 ms measured). Text needs no conversion and an absent
argument has no value to convert; only a number or the like that was really given goes the long
way. This is about time alone: without this module every command would behave the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand, TyperGroup


class PlainCommand(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _taken_as_they_are(super().get_params(ctx))


class PlainGroup(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _taken_as_they_are(super().get_params(ctx))


class _Conversion:
    """What typer asks to convert a value; ``load`` gives typer's own."""

    def __init__(self, annotation: Any, load: Callable[[], Any]) -> None:
        self._is_text = annotation in (str, list[str])
        self._load = load

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if self._is_text:
            return value
        return self._load().coerce(value, param=param, ctx=ctx)


def _taken_as_they_are(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if "get_runtime_param" not in vars(parameter):
            annotation = parameter.type_descriptor.annotation
            conversion = _Conversion(annotation, parameter.get_runtime_param)
            parameter.get_runtime_param = lambda conversion=conversion: conversion
    return parameters
