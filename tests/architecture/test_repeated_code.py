"""No run of ten identical lines of code stands twice in ``src``.

White space is folded. Blank lines, comments, imports and signatures of functions do not count: two
verbs that take the same parameters have to spell them out, and a shared ``**kwargs`` would hide
them from every tool. A run is reported once, however long it is.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping

from tests.architecture.source_tree import texts

RUN = 10
"""How many identical lines make a repetition: fewer are often only the shape of a language."""


def code_lines(text: str) -> list[tuple[int, str]]:
    """The lines of code with their numbers, white space folded."""
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            skipped.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            skipped.update(range(node.lineno, node.body[0].lineno))
    folded = ((n, " ".join(line.split())) for n, line in enumerate(text.splitlines(), 1))
    return [(n, line) for n, line in folded if line and line[0] != "#" and n not in skipped]


def repetitions(sources: Mapping[str, str]) -> Iterator[str]:
    """Every run of at least ``RUN`` lines that stands in two places: both places."""
    lines = {name: code_lines(text) for name, text in sources.items()}
    places: defaultdict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, code in lines.items():
        for start in range(len(code) - RUN + 1):
            places[tuple(line for _, line in code[start : start + RUN])].append((name, start))
    pairs = {
        (first, second)
        for found in places.values()
        for i, first in enumerate(found)
        for second in found[i + 1 :]
    }
    for (name, start), (other, begin) in sorted(pairs):
        if ((name, start - 1), (other, begin - 1)) not in pairs:  # where the run begins
            yield f"{name}:{lines[name][start][0]} = {other}:{lines[other][begin][0]}"


def test_no_ten_lines_stand_twice() -> None:
    assert list(repetitions(texts())) == []


def test_a_repetition_would_be_noticed() -> None:
    run = "\n".join(f"line{number}()" for number in range(RUN + 2))
    indented = "def f():\n" + "\n\n".join(f"    line{number}()  " for number in range(RUN + 2))
    sources = {"a.py": f"import os\n{run}\n", "b.py": f"# a comment\n{indented}\n"}
    assert list(repetitions(sources)) == ["a.py:2 = b.py:3"]


def test_a_repetition_within_one_module_would_be_noticed() -> None:
    run = "\n".join(f"line{number}()" for number in range(RUN))
    assert list(repetitions({"a.py": f"{run}\nother()\n{run}\n"})) == [f"a.py:1 = a.py:{RUN + 2}"]


def test_signatures_do_not_count() -> None:
    parameters = "\n".join(f"    line{number}: int," for number in range(RUN))
    signature = f"(\n{parameters}\n) -> None:\n    "
    sources = {name: f"def f{signature}{name}()\n" for name in ("a", "b")}
    assert list(repetitions(sources)) == []


def test_imports_do_not_count() -> None:
    run = "\n".join(f"import line{number}" for number in range(RUN))
    assert list(repetitions({"a.py": run, "b.py": run})) == []
