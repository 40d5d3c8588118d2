"""The arguments that several commands share: declared once, worded once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.errors import InvalidInput, PermissionDenied

# A schema or query text is written by people; more than this is a wrong file.
TEXT_BYTES_MAX = 16 * 1024 * 1024


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
    typer.Argument(metavar="URI", help="The graph: a path, file:// or s3://.", show_default=False),
]
UriOption = Annotated[
    str | None,
    typer.Option("--uri", metavar="URI", help="The graph: a path, file:// or s3://."),
]
BranchOption = Annotated[str, typer.Option("--branch", metavar="NAME", help="Which branch.")]
EntityArgument = Annotated[str, typer.Argument(metavar="ENTITY", help="`node` or `edge`.")]
TypeArgument = Annotated[str, typer.Argument(metavar="TYPE", help="Its type.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Its id.")]
PageTokenOption = Annotated[
    str | None,
    typer.Option("--page-token", metavar="TOKEN", help="Go on after a page.", show_default=False),
]
MasterOption = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="The Spark master.", show_default=False),
]


def type_key(entity: str, type_name: str) -> str:
    """The key of a type that was named by its kind and name."""
    if entity not in ("node", "edge"):
        raise InvalidInput(f"{entity!r} is neither node nor edge", remedy="Use node or edge.")
    return f"{entity}:{type_name}"


def read_text(path: Path, what: str) -> str:
    """The text of a file that the user named, or an error that says what is wrong with it."""
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
    """The text of a query, from a file or as it was given, and what messages call it."""
    if (file is None) == (text is None):
        problem = "no query is given" if file is None else "both --query and -e are given"
        raise InvalidInput(problem, remedy="Give a file with --query, or a text with -e.")
    if file is not None:
        return read_text(Path(file), "query file"), file
    assert text is not None
    if not text.strip():
        raise InvalidInput("the text after -e is empty", remedy="Give a query, or use --query.")
    return text, "<query>"
