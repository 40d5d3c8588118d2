"""The arguments and options that several commands about versions share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.cli.arguments import read_text, several
from omnigraph.merge.resolutions import read_resolutions

CommitArgument = Annotated[str, typer.Argument(metavar="COMMIT", help="The commit's id.")]
StateArgument = Annotated[
    str, typer.Argument(metavar="REF", help="The older state: a commit, a tag or a time.")
]
KindOption = Annotated[list[str] | None, several("--kind", "KIND", "Only node or edge.")]
TypeOption = Annotated[list[str] | None, several("--type", "TYPE", "Only this type.")]
OpOption = Annotated[list[str] | None, several("--op", "OP", "Only insert, update or delete.")]
LevelOption = Annotated[
    str, typer.Option("--level", metavar="LEVEL", help="Merge by property or by entity.")
]
StrategyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--strategy",
        metavar="[TYPE=]SIDE",
        help="Decide conflicts by side, for all types or for one: ours or theirs. May be repeated.",
        show_default=False,
    ),
]
ResolveOption = Annotated[
    str | None,
    typer.Option(
        "--resolve",
        metavar="FILE",
        help="A file with resolutions of single entities (JSON).",
        show_default=False,
    ),
]


def decisions(level: str, strategy: list[str] | None, resolve: str | None) -> Any:
    """The conflict flags (--level, --strategy, --resolve) as arguments of the handle."""
    overall, by_type = None, {}
    for given in strategy or []:
        name, equals, side = given.rpartition("=")
        if equals:
            by_type[name] = side
        else:
            overall = given
    given_decisions: dict[str, Any] = {"level": level, "strategy": overall, "by_type": by_type}
    if resolve is not None:
        text = read_text(Path(resolve), "file of resolutions")
        given_decisions["resolutions"] = read_resolutions(text)
    return given_decisions
