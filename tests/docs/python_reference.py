"""The Python reference, made from ``omnigraph.__all__``, signatures and docstrings."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import omnigraph

HANDLE = (
    "Graph",
    "BranchView",
    "SnapshotView",
    "Branches",
    "Tags",
    "History",
    "Maintenance",
    "SparkJobs",
)
OPENING = ("open", "init", "upgrade")
NOT_VALUES = {*HANDLE, *OPENING, "__version__", "errors"}
_SECTION = re.compile(r"^(Args|Returns|Raises|Attributes|Example):$")


def opening() -> str:
    """``omnigraph.open`` and the other functions of the package."""
    return _joined(_function(f"omnigraph.{name}", getattr(omnigraph, name)) for name in OPENING)


def handle() -> str:
    """The handle, its views and its groups, with every method."""
    return _joined(_class_with_methods(name) for name in HANDLE)


def values() -> str:
    """Options, results and literal types, with their attributes and methods."""
    names = [name for name in omnigraph.__all__ if name not in NOT_VALUES]
    return _joined(_value(name) for name in sorted(names))


def public_members(cls: type) -> Iterator[tuple[str, Any]]:
    """What a class itself defines and does not hide, in the order of the source."""
    for name, member in vars(cls).items():
        if not name.startswith("_"):
            yield name, member


def _class_with_methods(name: str) -> str:
    cls = getattr(omnigraph, name)
    parts = [f"## {name}", _prose(cls)]
    for member_name, member in public_members(cls):
        if isinstance(member, property):
            parts.append(f"### {name}.{member_name}\n\n{_prose(member.fget)}")
        elif inspect.isfunction(member):
            parts.append(_function(f"{name}.{member_name}", member))
    return _joined(parts)


def _function(title: str, function: Any) -> str:
    level = "##" if title.startswith("omnigraph.") else "###"
    return f"{level} {title}\n\n```python\n{_signature(function)}\n```\n\n{_prose(function)}"


def _signature(function: Any) -> str:
    found = inspect.signature(function)
    shown = [one for one in found.parameters.values() if one.name != "self"]
    plain = found.replace(parameters=shown)
    text = str(plain).replace("'", "")  # annotations are texts
    one_line = f"{function.__name__}{_defaults(text, shown)}"
    if len(one_line) <= 100:
        return one_line
    lines = []
    keyword_only = False
    for one in shown:
        if one.kind is one.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            lines.append("    *,")
        lines.append(f"    {_parameter(one)},")
    returns = "" if found.return_annotation is found.empty else f" -> {found.return_annotation}"
    return "\n".join([f"{function.__name__}(", *lines, f"){returns}"])


def _defaults(text: str, shown: list[inspect.Parameter]) -> str:
    """Texts that are defaults keep their quotes."""
    for one in shown:
        if isinstance(one.default, str):
            text = text.replace(
                f"{one.name}: {one.annotation} = {one.default}",
                f"{one.name}: {one.annotation} = {one.default!r}".replace("'", '"'),
            )
    return text


def _parameter(one: inspect.Parameter) -> str:
    stars = "**" if one.kind is one.VAR_KEYWORD else ""
    default = "" if one.default is one.empty else f" = {one.default!r}".replace("'", '"')
    return f"{stars}{one.name}: {one.annotation}{default}"


def _prose(documented: Any) -> str:
    """A docstring as Markdown: sections become lists, examples become code."""
    lines = (inspect.getdoc(documented) or "").splitlines()
    parts: list[str] = []
    section = ""
    for line in lines:
        heading = _SECTION.match(line)
        if heading:
            section = heading[1]
            parts += [f"**{section}**", ""] if section != "Example" else ["```python"]
        elif section == "Example":
            parts.append(line.removeprefix("    ").replace("  # doctest: +SKIP", ""))
        elif section in ("Args", "Raises", "Attributes") and re.match(r"    [\w*]+:", line):
            name, _, text = line.strip().partition(":")
            parts.append(f"* `{name}`:{text}")
        elif section in ("Args", "Raises", "Attributes") and line.startswith("        "):
            parts.append(f"  {line.strip()}")
        else:
            parts.append(line.removeprefix("    ") if section else line)
    if section == "Example":
        parts.append("```")
    return _ticks("\n".join(parts))


def _ticks(text: str) -> str:
    return re.sub(r"(?<!`)``(?!`)", "`", text)


def _value(name: str) -> str:
    found = getattr(omnigraph, name)
    if not isinstance(found, type):
        shown = str(found).replace("typing.", "").replace("collections.abc.", "")
        return f"### {name}\n\n`{shown}`"
    lines = [f"### {name}", "", _ticks(_summary(found)), ""]
    for member, annotation, text in _attributes(found):
        lines.append(_item(f"{member}: {annotation}" if annotation else member, text))
    for member, method in public_members(found):
        if inspect.isfunction(method) and not _names_private(method, found):
            lines.append(_item(_call(member, method), _first_line(method)))
    return "\n".join(lines)


def _item(code: str, text: str) -> str:
    return f"* `{code}`" + (f": {_ticks(text)}" if text else "")


def _summary(cls: type) -> str:
    text = inspect.getdoc(cls) or ""
    return text.partition("\n\n")[0]


def _first_line(method: Any) -> str:
    return (inspect.getdoc(method) or "").partition("\n\n")[0].replace("\n", " ")


def _call(name: str, method: Any) -> str:
    names = [one.name for one in inspect.signature(method).parameters.values()][1:]
    return f"{name}({', '.join(names)})"


def _attributes(cls: type) -> Iterator[tuple[str, str, str]]:
    """Name, type and description of every attribute; those of private types are left out."""
    texts = _texts_below_fields(cls)
    if issubclass(cls, enum.Enum):
        yield from ((member.name, "", texts.get(member.name, "")) for member in cls)
        return
    if dataclasses.is_dataclass(cls):
        for field in dataclasses.fields(cls):
            if not field.name.startswith("_") and not _is_private(str(field.type), cls):
                yield field.name, str(field.type), texts.get(field.name, "")
    for name, member in public_members(cls):
        getter = getattr(member, "fget", None) or getattr(member, "func", None)
        if isinstance(member, property | cached_property) and not _names_private(getter, cls):
            yield name, str(getter.__annotations__.get("return", "")), _first_line(getter)


def _texts_below_fields(cls: type) -> dict[str, str]:
    """The texts that stand below the fields of a class in its source."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, below in pairwise(tree.body):
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            target = getattr(field, "target", None) or next(
                iter(getattr(field, "targets", [])), None
            )
            if isinstance(target, ast.Name):
                found[target.id] = " ".join(str(below.value.value).split())
    return found


def _names_private(function: Any, cls: type) -> bool:
    return any(_is_private(str(text), cls) for text in function.__annotations__.values())


def _is_private(annotation: str, cls: type) -> bool:
    """Whether an annotation names a class of ours that is not exported."""
    known = vars(sys.modules[cls.__module__])
    named = (known.get(name) for name in re.findall(r"\w+", annotation))
    return any(
        isinstance(one, type)
        and one.__module__.startswith("omnigraph.")
        and not one.__module__.startswith("omnigraph.errors")
        and one.__name__ not in omnigraph.__all__
        for one in named
    )


def _joined(parts: Any) -> str:
    return "\n\n".join(part.strip() for part in parts)
