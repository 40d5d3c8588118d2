"""The generated parts of docs/language/query.md, made from the tables in the code.

``python -m tests.docs.query_reference`` writes them into the page; a test holds them up to date.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path

from omnigraph.query import compile_query, explain
from omnigraph.query.codes import SYNTAX_CODES, TYPE_CODES
from omnigraph.query.functions import FUNCTIONS
from omnigraph.query.lint import LINT_CODES
from omnigraph.query.words import OPERATORS, WORDS
from omnigraph.schema import AcceptedSchema, accept_schema
from omnigraph.syntax import DIAGNOSTICS_MAX, NESTING_MAX, TEXT_BYTES_MAX, SourceError
from omnigraph.syntax.lexer import NUMBER_CHARS_MAX

PAGE = Path(__file__).parents[2] / "docs" / "language" / "query.md"
_PART = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_WRONG = "query q($nick: String) {\n  match { $p: Person { nik: $nick } }\n  return { $p }\n}"


def blocks(page: str, language: str) -> list[str]:
    """The fenced examples of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def page_schema(page: str) -> AcceptedSchema:
    numbers = count(1)
    return accept_schema(blocks(page, "pg")[0], mint=lambda: f"id-{next(numbers)}")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines)


def meanings(head: str, entries: Mapping[str, str]) -> str:
    return table((head, "Meaning"), [(f"`{name}`", text) for name, text in entries.items()])


def parts(page: str) -> dict[str, str]:
    """Every generated part by its name."""
    schema = page_schema(page)
    functions = [(f"`{item.signature}`", item.result, item.summary) for item in FUNCTIONS.values()]
    limits = {
        "size of a text": f"{TEXT_BYTES_MAX:,} bytes",
        "nesting": f"{NESTING_MAX} levels",
        "length of a number": f"{NUMBER_CHARS_MAX} characters",
        "errors shown": f"{DIAGNOSTICS_MAX}",
    }
    lint = {code: text[0].upper() + text[1:] + "." for code, text in LINT_CODES.items()}
    plan = compile_query(blocks(page, "gq")[0], schema).plan
    return {
        "words": meanings("Word", WORDS),
        "operators": meanings("Operator", OPERATORS),
        "functions": table(("Function", "Type", "Meaning"), functions),
        "plan": f"```text\n{explain(plan)}\n```",
        "lint": meanings("Code", lint),
        "limits": table(("What", "At most"), limits.items()),
        "error": f"```text\n{wrong(schema)}\n```",
        "syntax-codes": meanings("Code", SYNTAX_CODES),
        "type-codes": meanings("Code", TYPE_CODES),
    }


def wrong(schema: AcceptedSchema) -> str:
    """How a mistake is shown."""
    try:
        compile_query(_WRONG, schema, file="people.gq")
    except SourceError as error:
        return error.render()
    raise AssertionError("the example of an error has none")


def filled(page: str) -> str:
    """The page with its generated parts made anew."""
    made = parts(page)
    return _PART.sub(lambda match: f"{match[1]}\n{made[match[2]]}\n\n{match[3]}", page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
