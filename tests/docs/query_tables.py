"""The generated parts of the query language reference."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from tests.docs.generate import DOCS

from omnigraph.lang.query import compile_query, explain
from omnigraph.lang.query.codes import PARSE_CODES, TYPE_CODES
from omnigraph.lang.query.functions import FUNCTIONS
from omnigraph.lang.query.lint import LINT_CODES
from omnigraph.lang.query.parse.words import OPERATORS, WORDS
from omnigraph.lang.schema import AcceptedSchema, accept_schema
from omnigraph.lang.syntax import DIAGNOSTICS_MAX, NESTING_MAX, TEXT_BYTES_MAX, SourceError
from omnigraph.lang.syntax.codes import SYNTAX_CODES
from omnigraph.lang.syntax.lexer import NUMBER_CHARS_MAX

PAGE = DOCS / "language" / "query.md"
_WRONG = "query q($nick: String) {\n  match { $p: Person { nik: $nick } }\n  return { $p }\n}"


def blocks(language: str) -> list[str]:
    """The fenced examples of one language."""
    text = PAGE.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def page_schema() -> AcceptedSchema:
    """The schema all examples of the page are about."""
    numbers = count(1)
    return accept_schema(blocks("pg")[0], mint=lambda: f"id-{next(numbers)}")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _meanings(head: str, entries: Mapping[str, str]) -> str:
    return _table((head, "Meaning"), ((f"`{name}`", text) for name, text in entries.items()))


def words() -> str:
    return _meanings("Word", WORDS)


def operators() -> str:
    return _meanings("Operator", OPERATORS)


def functions() -> str:
    rows = ((f"`{item.signature}`", item.result, item.summary) for item in FUNCTIONS.values())
    return _table(("Function", "Type", "Meaning"), rows)


def plan() -> str:
    """The plan of the first example."""
    return f"```text\n{explain(compile_query(blocks('gq')[0], page_schema()).plan)}\n```"


def lint() -> str:
    return _meanings("Code", LINT_CODES)


def limits() -> str:
    rows = (
        ("size of a text", f"{TEXT_BYTES_MAX:,} bytes"),
        ("nesting", f"{NESTING_MAX} levels"),
        ("length of a number", f"{NUMBER_CHARS_MAX} characters"),
        ("errors shown", str(DIAGNOSTICS_MAX)),
    )
    return _table(("What", "At most"), rows)


def error() -> str:
    """How a mistake is shown."""
    try:
        compile_query(_WRONG, page_schema(), file="people.gq")
    except SourceError as problem:
        return f"```text\n{problem.render()}\n```"
    raise AssertionError("the example of an error has none")


def syntax_codes() -> str:
    return _meanings("Code", {**SYNTAX_CODES, **PARSE_CODES})


def type_codes() -> str:
    return _meanings("Code", TYPE_CODES)
