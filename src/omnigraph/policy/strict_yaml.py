"""YAML as configuration needs it: no duplicate keys, no aliases, no surprises about types.

Owns the reading of one document into plain values, and checks of their shape that name the place
of a problem. It must never know what a document means.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

DOCUMENT_BYTES_MAX: Final = 1024 * 1024
"""A configuration is written by people; more than this is a wrong file."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with a document: where, and what."""

    path: str
    message: str
    code: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class YamlError(Exception):
    """A text that is not one well-formed document. ``is_duplicate``: because of a repeated key."""

    def __init__(self, message: str, *, is_duplicate: bool = False) -> None:
        super().__init__(message)
        self.is_duplicate = is_duplicate


class _StrictLoader(yaml.SafeLoader):
    """Refuses duplicate keys and aliases; dates stay texts."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            line = self.get_event().start_mark.line + 1  # type: ignore[no-untyped-call]
            raise YamlError(f"line {line}: aliases are not supported")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if not isinstance(key, str):
                raise YamlError(f"line {line}: the key {key!r} is not a text; put it in quotes")
            if key in found:
                raise YamlError(f"line {line}: the key {key!r} stands twice", is_duplicate=True)
            found[key] = self.construct_object(value_node, deep=deep)
        return found


def _construct_mapping(loader: Any, node: Any) -> Any:
    return loader.construct_mapping(node, deep=True)


def _construct_text(loader: Any, node: Any) -> Any:
    return loader.construct_scalar(node)


_StrictLoader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)
_StrictLoader.add_constructor("tag:yaml.org,2002:timestamp", _construct_text)


def load_document(data: bytes) -> Any:
    """The one document of a text, as plain values; raises :class:`YamlError`."""
    if len(data) > DOCUMENT_BYTES_MAX:
        raise YamlError(f"the document is larger than {DOCUMENT_BYTES_MAX} bytes")
    try:
        return yaml.load(data.decode("utf-8-sig"), Loader=_StrictLoader)
    except UnicodeDecodeError as error:
        raise YamlError(f"the document is not UTF-8 (byte {error.start})") from None
    except yaml.YAMLError as error:
        raise YamlError(" ".join(str(error).split())) from None
    except RecursionError:
        raise YamlError("the document is nested too deeply") from None


@dataclass(frozen=True, slots=True)
class DocumentReader:
    """Takes values out of a document and collects what is wrong with them."""

    problems: list[Problem] = field(default_factory=list)

    def problem(self, path: str, message: str, code: str = "") -> None:
        self.problems.append(Problem(path, message, code))

    def mapping(self, path: str, value: Any, keys: Collection[str] | None = None) -> dict[str, Any]:
        """A mapping, of these keys only; an empty one where it is none."""
        if value is None or not isinstance(value, Mapping):
            self.problem(path, f"must be a mapping, not {_kind(value)}")
            return {}
        if keys is not None:
            for key in value:
                if key not in keys:
                    self.problem(join(path, key), f"unknown key; known: {', '.join(sorted(keys))}")
        return dict(value)

    def texts(self, path: str, value: Any) -> tuple[str, ...]:
        """A list of texts that are not blank."""
        if not isinstance(value, list):
            self.problem(path, f"must be a list, not {_kind(value)}")
            return ()
        found = []
        for index, item in enumerate(value):
            text = self.text(f"{path}[{index}]", item)
            if text is not None:
                found.append(text)
        return tuple(found)

    def text(self, path: str, value: Any) -> str | None:
        """A text that is not blank; None where it is none."""
        if not isinstance(value, str):
            self.problem(path, f"must be a text, not {_kind(value)}")
            return None
        if not value.strip():
            self.problem(path, "must not be blank")
            return None
        return value

    def whole(self, path: str, value: Any, least: int) -> int | None:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            self.problem(path, f"must be a whole number of at least {least}, not {value!r}")
            return None
        return value


def join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _kind(value: Any) -> str:
    names = {type(None): "nothing", dict: "a mapping", list: "a list", str: "a text"}
    return names.get(type(value), repr(value))
