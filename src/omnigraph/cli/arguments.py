"""The arguments and options that several commands share, and how their values are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.errors import InvalidInput, PermissionDenied
from omnigraph.lang.query import read_parameters

# The largest schema or query file: people write much smaller ones.
TEXT_BYTES_MAX = 16 * 1024 * 1024

LOCATION_FORMS = "a path, file:// or s3://"


QuerySourceOption = Annotated[
    str | None,
    typer.Option("--query", metavar="FILE", help="A file of queries (.gq).", show_default=False),
]
QueryTextOption = Annotated[
    str | None,
    typer.Option(
        "--query-string", "-e", metavar="GQ", help="The query itself.", show_default=False
    ),
]


def several(flag: str, metavar: str, help: str) -> Any:
    """An option that may be given more than once."""
    return typer.Option(flag, metavar=metavar, help=f"{help} May be repeated.", show_default=False)


UriArgument = Annotated[
    str | None,
    typer.Argument(metavar="URI", help=f"The graph: {LOCATION_FORMS}.", show_default=False),
]
UriOption = Annotated[
    str | None,
    typer.Option("--uri", metavar="URI", help=f"The graph: {LOCATION_FORMS}."),
]
BranchOption = Annotated[str, typer.Option("--branch", metavar="NAME", help="The branch.")]
EntityArgument = Annotated[str, typer.Argument(metavar="ENTITY", help="`node` or `edge`.")]
TypeArgument = Annotated[str, typer.Argument(metavar="TYPE", help="The type of the entity.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of the entity.")]
PageTokenOption = Annotated[
    str | None,
    typer.Option(
        "--page-token", metavar="TOKEN", help="Continue after a page.", show_default=False
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="The Spark master.", show_default=False),
]
MessageOption = Annotated[
    str | None,
    typer.Option("--message", "-m", metavar="TEXT", help="The commit message."),
]
MetadataOption = Annotated[
    list[str] | None,
    several("--meta", "KEY=VALUE", "Metadata of the commit."),
]
IfCommitOption = Annotated[
    str | None,
    typer.Option(
        "--if-commit",
        metavar="ID",
        help="Only if this is the head of the branch; otherwise exit with 4.",
        show_default=False,
    ),
]
IdempotencyOption = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key",
        metavar="KEY",
        help="A repeated request with this key returns the commit of the first one.",
        show_default=False,
    ),
]
ParamsOption = Annotated[
    str | None,
    typer.Option("--params", metavar="JSON", help="Parameters as JSON.", show_default=False),
]
ParamsFileOption = Annotated[
    str | None,
    typer.Option(
        "--params-file", metavar="FILE", help="A file with the parameters.", show_default=False
    ),
]


def type_key(entity: str, type_name: str) -> str:
    """The type key of a kind (``node`` or ``edge``) and a type name."""
    if entity not in ("node", "edge"):
        raise InvalidInput(f"{entity!r} is neither node nor edge", remedy="Use node or edge.")
    return f"{entity}:{type_name}"


def read_text(path: Path, what: str) -> str:
    """The text of a UTF-8 file; ``what`` names the file in errors."""
    try:
        with path.open("rb") as file:
            data = file.read(TEXT_BYTES_MAX + 1)
    except PermissionError:
        raise PermissionDenied(
            f"not allowed to read the {what} {path}", remedy="Make the file readable."
        ) from None
    except OSError as error:
        raise InvalidInput(
            f"cannot read the {what} {path}: {error.strerror}", remedy="Check the file's path."
        ) from None
    except ValueError:
        raise InvalidInput(
            f"cannot read the {what} {str(path)!a}: no file can have this name",
            remedy="Check the file's path.",
        ) from None
    if len(data) > TEXT_BYTES_MAX:
        raise InvalidInput(
            f"the {what} {path} is larger than {TEXT_BYTES_MAX} bytes",
            remedy="Check that this is the right file.",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"the {what} {path} is not UTF-8 (byte {error.start})",
            remedy="Save the file as UTF-8.",
        ) from None


def query_source(file: str | None, text: str | None) -> tuple[str, str]:
    """The text of a query, from a file or from the command line, and its name in messages."""
    if (file is None) == (text is None):
        problem = "no query is given" if file is None else "both --query and -e are given"
        raise InvalidInput(problem, remedy="Give a file with --query, or a text with -e.")
    if file is not None:
        return read_text(Path(file), "query file"), file
    assert text is not None
    if not text.strip():
        raise InvalidInput("the text after -e is empty", remedy="Give a query, or use --query.")
    return text, "<query>"


def parameters(text: str | None, file: str | None) -> Mapping[str, Any] | None:
    """The parameters of a query, from --params or --params-file."""
    if text is not None and file is not None:
        raise InvalidInput("both --params and --params-file are given", remedy="Keep one of them.")
    if file is not None:
        text = read_text(Path(file), "parameter file")
    values: Mapping[str, Any] | None = None if text is None else read_parameters(text)
    return values


def pairs(given: list[str] | None, flag: str) -> dict[str, str]:
    """The values of a repeated ``KEY=VALUE`` flag, by key."""
    values: dict[str, str] = {}
    for text in given or []:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InvalidInput(f"{flag} {text!r} is not KEY=VALUE", remedy="Write NAME=VALUE.")
        values[key] = value
    return values
