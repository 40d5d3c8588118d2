"""What a caller says about a write: texts that are stored with commits, tags and keys.

Checked where they enter: a text that is not UTF-8 (a lone surrogate, as Python makes of bytes it
cannot decode) could be stored and never be shown again. NUL is refused, because tools that read
lines of C strings cut a text there. Everything else is stored as it is; the command line escapes
control characters when it shows them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from omnigraph.errors import InvalidInput
from omnigraph.model.arguments import utf8_problem


def check_text(what: str, text: Any) -> None:
    """Refuse a text that cannot be stored and shown; None is no text."""
    if text is None:
        return
    if not isinstance(text, str):
        raise InvalidInput(
            f"the {what} is {type(text).__name__}, not text", remedy=f"Give the {what} as a string."
        )
    problem = utf8_problem(text)
    if problem is not None:
        raise InvalidInput(
            f"the {what} {text!a} is not valid UTF-8: {problem}",
            remedy=f"Give the {what} in UTF-8.",
        )
    if "\0" in text:
        raise InvalidInput(f"the {what} contains NUL: {text!a}", remedy="Remove it.")


def checked_metadata(metadata: Any) -> dict[str, Any]:
    """Metadata of a commit as a dictionary that JSON can hold; none when there is none."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidInput(
            f"metadata is {type(metadata).__name__}, not a mapping",
            remedy="Give names and values, such as {'run': '7'}.",
        )
    for name, value in metadata.items():
        if not isinstance(name, str):
            raise InvalidInput(f"{name!r} is not a name of metadata", remedy="Use strings.")
        check_text("name of metadata", name)
        _check_value(name, value)
    return dict(metadata)


def _check_value(name: str, value: Any) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"metadata {name!r} is {type(value).__name__}, which JSON cannot hold: {error}",
            remedy="Give it as a string.",
        ) from None
    _check_texts(f"metadata {name!r}", value)


def _check_texts(what: str, value: Any) -> None:
    """Every text in a JSON value."""
    if isinstance(value, str):
        check_text(what, value)
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check_texts(what, str(name))
            _check_texts(what, inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check_texts(what, inner)
