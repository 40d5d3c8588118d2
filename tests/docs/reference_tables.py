"""The generated parts of ``docs/reference``: every command, every error, every setting."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import omnigraph
from omnigraph.cli.application import NOUNS, load_command
from omnigraph.errors import OmnigraphError
from omnigraph.settings import EnvironmentVariable, described


def commands() -> str:
    """The help of every command."""
    parts = []
    for name, (module, summary) in NOUNS.items():
        command = load_command(module)
        parts.append(f"## omnigraph {name}\n\n{summary}")
        inner = getattr(command, "commands", None)
        for verb, sub in sorted(inner.items()) if inner else [("", command)]:
            parts.append(_help(sub, f"omnigraph {name} {verb}".strip()))
    return "\n\n".join(parts)


def _help(command: Any, path: str) -> str:
    context = command.make_context(path, [], resilient_parsing=True)
    return f"```text\n{command.get_help(context).strip()}\n```"


def errors() -> str:
    """A row per error code."""
    kinds = sorted(set(error_classes()), key=lambda kind: (kind.code, kind.__name__))
    rows = [
        f"| `{kind.code}` | {kind.status} | {'yes' if kind.retryable else 'no'} "
        f"| {kind.default_remedy} |"
        for kind in kinds
    ]
    return "\n".join(
        ["| code | status | retry | remedy |", "|---|---|---|---|", *dict.fromkeys(rows)]
    )


def error_classes() -> Iterator[type[OmnigraphError]]:
    """Every error class of the package, wherever it is defined."""
    for module in pkgutil.walk_packages(omnigraph.__path__, "omnigraph."):
        importlib.import_module(module.name)
    waiting: list[type[OmnigraphError]] = [OmnigraphError]
    while waiting:
        kind = waiting.pop()
        if kind.__module__.startswith("omnigraph."):
            yield kind
        waiting.extend(kind.__subclasses__())


def settings() -> str:
    """A row per setting."""
    head = ["| variable | field | default | value | meaning |", "|---|---|---|---|---|"]
    return "\n".join([*head, *(_setting(name, found) for name, found in described())])


def _setting(field: str, variable: EnvironmentVariable) -> str:
    names = " or ".join(f"`{name}`" for name in variable.names)
    cells = (names, f"`{field}`", variable.default, variable.allowed, variable.meaning)
    return f"| {' | '.join(cells)} |"
