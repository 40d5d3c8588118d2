"""How fast the query language is: parse, check, plan, format, and lint with start-up.

``run()`` measures and returns numbers; nothing is printed or written here. Times are medians over
repetitions of many calls each, with the fastest and slowest repetition beside them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

from omnigraph.lang.query import (
    check_query,
    compile_query,
    explain,
    format_queries,
    parse_queries,
    plan_query,
)
from omnigraph.lang.schema import accept_schema

SCHEMA: Final = """
node Person { nick: String @key  name: String  age: I32?  tags: [String]?  seen: DateTime? }
node Company { code: String @key  size: I64? }
edge Knows: Person -> Person { since: Date? }
edge WorksAt: Person -> Company { role: String? }
"""
TYPICAL: Final = """
query acquaintances($nick: String, $min: I32?) @description("People within two steps") {
  match {
    $p: Person { nick: $nick }
    $p knows{1,2} $q
    $q.age >= $min
    $q worksAt $c
    not { $p worksAt $c }
  }
  return { $q.nick, $q.age as age, $c.code }
  order { age desc, $q.nick }
  limit 10
}
"""
LINTED_QUERIES: Final = 300
LINT: Final = """
import sys
from omnigraph.cli.main import run
sys.exit(run())
"""
BARS: Final = {"parse_and_check_ms": 0.5, "lint_300_with_start_up_s": 0.5}
"""What must hold, in the units of the results."""


def run(repetitions: int = 9, calls: int = 200) -> dict[str, Any]:
    """Measure everything; the keys of ``BARS`` are among those of the result."""
    numbers = count(1)
    schema = accept_schema(SCHEMA, mint=lambda: str(next(numbers)))
    file = parse_queries(TYPICAL)
    checked = check_query(file.queries[0], schema, file.source)
    plan = plan_query(checked, schema)

    def parse_and_check() -> None:
        parsed = parse_queries(TYPICAL)
        check_query(parsed.queries[0], schema, parsed.source)

    timed: dict[str, Callable[[], object]] = {
        "parse_ms": lambda: parse_queries(TYPICAL),
        "check_ms": lambda: check_query(file.queries[0], schema, file.source),
        "parse_and_check_ms": parse_and_check,
        "plan_ms": lambda: plan_query(checked, schema),
        "compile_ms": lambda: compile_query(TYPICAL, schema),
        "explain_ms": lambda: explain(plan),
        "format_ms": lambda: format_queries(TYPICAL),
    }
    results = {name: _calls_ms(work, repetitions, calls) for name, work in timed.items()}
    results["lint_300_with_start_up_s"] = _lint_seconds(repetitions)
    return results


def _calls_ms(work: Callable[[], object], repetitions: int, calls: int) -> dict[str, float]:
    work()
    found = []
    for _ in range(repetitions):
        started = perf_counter()
        for _ in range(calls):
            work()
        found.append((perf_counter() - started) * 1000 / calls)
    return _spread(found)


def _lint_seconds(repetitions: int) -> dict[str, float]:
    """A new process each time, as a person waits for it; the first one compiles the modules."""
    with tempfile.TemporaryDirectory() as folder:
        schema, queries = Path(folder) / "schema.pg", Path(folder) / "queries.gq"
        schema.write_text(SCHEMA)
        texts = (TYPICAL.replace("acquaintances", f"q{at}") for at in range(LINTED_QUERIES))
        queries.write_text("\n".join(texts))
        command = [
            sys.executable,
            "-c",
            LINT,
            "lint",
            "--schema",
            str(schema),
            "--query",
            str(queries),
        ]
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        found = []
        for _ in range(repetitions + 1):
            started = perf_counter()
            printed = subprocess.run(
                command, check=True, timeout=60, env=environment, capture_output=True, text=True
            ).stdout
            found.append(perf_counter() - started)
            assert f"{LINTED_QUERIES} queries, 0 errors" in printed
    return _spread(found[1:])


def _spread(found: list[float]) -> dict[str, float]:
    return {"median": median(found), "min": min(found), "max": max(found)}


if __name__ == "__main__":
    for name, spread in run().items():
        bar = f"  (bar {BARS[name]})" if name in BARS else ""
        print(f"{name:28} {spread['median']:.3f}  {spread['min']:.3f}–{spread['max']:.3f}{bar}")
