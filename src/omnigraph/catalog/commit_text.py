"""Checks the strings and metadata that a caller passes with a write: actor, message, keys, names.

A string with a lone surrogate is refused: it cannot be encoded as UTF-8. NUL is refused, because
programs that use C strings cut a string there. Everything else is stored unchanged; the command
line escapes control characters when it prints them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from omnigraph.errors import InvalidInput
from omnigraph.model.arguments import utf8_problem


def check_text(what: str, text: Any) -> None:
    """Raise ``InvalidInput`` for a string that cannot be stored; None is accepted."""
    if text is None:
        return
    if not isinstance(text, str):
        raise InvalidInput(
            f"the {what} must be a string, not {type(text).__name__}",
            remedy=f"Give the {what} as a string.",
        )
    problem = utf8_problem(text)
    if problem is not None:
        raise InvalidInput(
            f"the {what} {text!a} is not valid UTF-8: {problem}",
            remedy=f"Give the {what} in UTF-8.",
        )
    if "\0" in text:
        raise InvalidInput(
            f"the {what} contains NUL: {text!a}",
            remedy=f"Remove the NUL character from the {what}.",
        )


def checked_metadata(metadata: Any) -> dict[str, Any]:
    """Metadata of a commit as a JSON-compatible dictionary; empty when None is given."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidInput(
            f"metadata must be a mapping, not {type(metadata).__name__}",
            remedy="Give names and values, such as {'run': '7'}.",
        )
    for name, value in metadata.items():
        if not isinstance(name, str):
            raise InvalidInput(
                f"the metadata name {name!r} is not a string",
                remedy="Use strings as metadata names.",
            )
        check_text("metadata name", name)
        _check_value(name, value)
    return dict(metadata)


def _check_value(name: str, value: Any) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"metadata {name!r} is {type(value).__name__}, which JSON cannot represent: {error}",
            remedy=f"Give metadata {name!r} as a string.",
        ) from None
    _check_texts(f"metadata {name!r}", value)


def _check_texts(what: str, value: Any) -> None:
    """Check every string in a JSON value."""
    if isinstance(value, str):
        check_text(what, value)
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check_texts(what, str(name))
            _check_texts(what, inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check_texts(what, inner)
