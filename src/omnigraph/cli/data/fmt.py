"""``omnigraph fmt``: format schema and query files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.addressing import local_verb
from omnigraph.cli.arguments import read_text
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import EXIT_FAILURE, EXIT_OK, CommandResult
from omnigraph.errors import InvalidInput, PermissionDenied
from omnigraph.lang.query import format_queries, upgrade_queries
from omnigraph.lang.schema import format_schema

app = single("Format schema and query files.")

_FORMATTERS = {
    ".pg": lambda text, name: format_schema(text, name),
    ".gq": lambda text, name: format_queries(text, name=name),
}


@command(app, local_verb("fmt"))
def fmt(
    call: Invocation,
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Files (.pg and .gq).")],
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; fail if a file would change.")
    ] = False,
    upgrade: Annotated[
        bool,
        typer.Option(
            "--upgrade", help="Also rewrite queries of earlier versions, with their meaning."
        ),
    ] = False,
) -> CommandResult:
    """Rewrite files in the standard layout. Comments and meaning do not change."""
    laid_out = {name: _laid_out(name, upgrade) for name in files}  # before any is written
    changed = [name for name, (before, after) in laid_out.items() if before != after]
    if not check:
        for name in changed:
            _write(Path(name), laid_out[name][1])
    word = "would change" if check else "changed"
    return CommandResult(
        {"files": len(files), "changed": changed, "written": not check},
        [f"{word} {name}" for name in changed] or ["nothing to change"],
        EXIT_FAILURE if check and changed else EXIT_OK,
    )


def _laid_out(name: str, upgrade: bool) -> tuple[str, str]:
    formatter = _FORMATTERS.get(Path(name).suffix)
    if formatter is None:
        raise InvalidInput(
            f"{name} is neither a schema nor a query file",
            remedy="Give files that end in .pg or .gq.",
        )
    text = read_text(Path(name), "file")
    is_query = Path(name).suffix == ".gq"
    current = upgrade_queries(text, name=name) if upgrade and is_query else text
    return text, formatter(current, name)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PermissionDenied(
            f"cannot write {path}: {error.strerror}", remedy="Make the file writable."
        ) from None
