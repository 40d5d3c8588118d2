"""The fast reading of NDJSON and the exact one never disagree: same rows, same problems."""

from __future__ import annotations

import io
import json
from random import Random
from typing import Any

import numpy as np
import pytest

from omnigraph.constraints import Report
from omnigraph.ingest import ndjson
from omnigraph.ingest.ndjson import StrictReader
from omnigraph.ingest.row_collector import RowCollector
from omnigraph.lang.schema import AcceptedSchema, accept_schema
from omnigraph.prepare.blob_policy import BlobPolicy

SCHEMA = """
node A { k: String @key  i: I32?  l: I64?  u: U64?  f: F32?  d: F64?  b: Bool?  e: enum(x, y)? }
node T { day: Date?  at: DateTime?  s: [String]?  n: [I64]?  ds: [Date]?  v: Vector(2)?
  blob: Blob? }
edge Link: A -> A { w: I32?  at: DateTime? }
edge Bare: A -> T
"""
VALUES: list[str] = [
    "null", "0", "-0", "1", "-1", "1.0", "1e2", "1E400", "-1e-400", "2147483648", "01", "+1", ".5",
    "9223372036854775808", "18446744073709551615", "1" * 400, "true", "false", "NaN", "Infinity",
    '""', '"x"', '"é"', '"\\u00e9"', '"\\ud800"', '"\\ud83d\\ude00"', '"\\u0000"', '"a\tb"',
    '"\\/"',
    '"2024-02-29"', '"2023-02-29"', '"2024-02-29T12:00:00Z"', '"2024-02-29T12:00:00.12345+01:00"',
    '"2024-02-29t12:00:60z"', '"base64:AA=="', '"base64:*"', '"12"', "[]", "[1]", "[1,2]",
    "[1.5,null]", '["a"]', '["a",null]', '["2024-02-29",3]', "[[1]]", "{}", '{"a":1}', '"x', "tru",
]  # fmt: skip
NAMES = [
    "k",
    "i",
    "l",
    "u",
    "f",
    "d",
    "b",
    "e",
    "day",
    "at",
    "s",
    "n",
    "ds",
    "v",
    "blob",
    "w",
    "id",
]
NAMES += ["zz", "src", "_rowid", "", "K"]
HEADS = [
    '"type":"A"', '"type" : "A"', '"type":"T"', '"edge":"Link"', '"edge":"link"', '"edge":"Bare"',
    '"type":"Nope"', '"type":7', '"type":null', '"t\\u0079pe":"A"', '"type":"\\u0041"', '"x":1',
]  # fmt: skip


@pytest.fixture(scope="module")
def schema() -> AcceptedSchema:
    numbers = iter(range(1_000))
    return accept_schema(SCHEMA, mint=lambda: f"i{next(numbers)}")


class Anything(BlobPolicy):
    """Allows every reference: what is read is compared here, not what is allowed."""

    def settle(self, values: Any, place: Any = None) -> list[Any]:
        return list(values)


def _line(rng: Random) -> str:
    head = rng.choice(HEADS[:4]) if rng.random() < 0.8 else rng.choice(HEADS)
    good = rng.random() < 0.6
    parts = [head]
    if "edge" in head:
        parts += ['"from":"a"', '"to":"b"'] if rng.random() < 0.9 else ['"from":null']
    names = _names(head) if good else rng.sample(NAMES, rng.randint(0, 3))
    members = [f'"{name}":{_value(rng, name, good)}' for name in names if rng.random() < 0.6]
    if rng.random() < 0.03 and members:
        members.append(members[0])
    data = rng.choice(["{%s}"] * 30 + ["null", "[]", "%s"])
    if rng.random() < 0.95:
        parts.append('"data":' + (data % ",".join(members) if "%s" in data else data))
    if rng.random() < 0.05:
        rng.shuffle(parts)
    text = "{" + ",".join(parts) + "}"
    return _damaged(rng, text) if rng.random() < 0.06 else text


def _names(head: str) -> list[str]:
    if "edge" in head:
        return ["w", "at"] if "ink" in head else []
    return NAMES[:8] if '"A"' in head else NAMES[8:15]


def _value(rng: Random, name: str, good: bool) -> str:
    fitting = {
        "k": ['"x"', '"é"', '"\\u0000"'], "i": ["0", "-1", "null"], "l": ["1", "-0"],
        "u": ["18446744073709551615"], "f": ["1", "1.0", "0.1"], "d": ["1e2", "-1e-400"],
        "b": ["true", "false"], "e": ['"x"', '"q"'], "day": ['"2024-02-29"', "5"], "w": ["1"],
        "at": ['"2024-02-29T12:00:00Z"', "7", '"2024-02-29t12:00:60z"'], "s": ["[]", '["a"]'],
        "n": ["[1]", "[1,2]"], "ds": ['["2024-02-29",3]', '["2024-02-29"]', "[3]"],
        "v": ["[1,2]"], "blob": ['"base64:AA=="', "null"],
    }  # fmt: skip
    return rng.choice(fitting[name] if good and rng.random() < 0.97 else VALUES)


def _damaged(rng: Random, text: str) -> str:
    at = rng.randrange(len(text))
    return rng.choice(
        [text[:at], text + text, text + " x", text[:at] + "," + text[at:], " " + text]
    )


def _read(
    schema: AcceptedSchema, data: bytes, fast: bool, marks_nulls: bool = False
) -> tuple[dict[str, Any], list[Any]]:
    collector = RowCollector(
        schema, Report(), Anything(), bytes_max=1 << 30, marks_nulls=marks_nulls
    )
    collector.begin_file("f")
    reader = StrictReader(collector)
    if not fast:
        reader._read_fast = lambda *_: False  # type: ignore[method-assign, assignment]
        reader._read_layouts = (  # type: ignore[method-assign]
            lambda lines, _: np.arange(len(lines.ends))
        )
    reader.read(io.BytesIO(data))
    tables = {}
    for key, table in collector.finish().items():
        plain = {name: table[name] for name in table.column_names}
        tables[key] = {name: _plain(column) for name, column in plain.items()}
    return tables, [violation.to_json() for violation in collector.report.shown]


def _plain(column: Any) -> str:
    import pyarrow as pa

    column = column.combine_chunks()
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return f"{column.type} {column.to_pylist()!r}"


@pytest.mark.parametrize("seed", range(60))
def test_L_4_fast_and_exact_reading_agree(schema: AcceptedSchema, seed: int) -> None:
    rng = Random(seed)
    lines = [_line(rng) for _ in range(rng.choice([1, 2, 5, 40]))]
    data = "\n".join(lines).encode()
    if seed % 10 == 0:
        data = data.replace("é".encode(), b"\xe9")
    fast, exact = _read(schema, data, True), _read(schema, data, False)
    assert fast[0] == exact[0]
    assert fast[1] == exact[1]
    assert len(fast[1]) + sum(len(t) for t in fast[0].values())


def test_the_fast_reading_is_used(schema: AcceptedSchema, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard of the test above: it compares two different things."""
    monkeypatch.setattr(StrictReader, "_read_slowly", lambda self, lines: assert_none(lines))

    def assert_none(lines: list[Any]) -> None:
        assert lines == []

    lines = [{"type": "A", "data": {"k": "a", "i": 1, "f": 0.5, "b": True}}]
    lines += [{"type": "T", "data": {"day": "2024-02-29", "v": [1, 2], "blob": "base64:AA=="}}]
    lines += [{"edge": "Link", "from": "a", "to": "a"}, {"edge": "Bare", "from": "a", "to": "t"}]
    tables, problems = _read(schema, "\n".join(map(json.dumps, lines)).encode(), True)
    assert problems == []
    assert len(tables) == 4


# -- lines of one layout ---------------------------------------------------------------------------

LAYOUTS = [
    '{"type":"A","data":{"k":%(s)s,"i":%(i)s,"d":%(d)s,"b":%(b)s}}',
    '{"type": "A", "data": {"k": %(s)s, "l": %(i)s, "u": %(u)s, "f": %(d)s}}',
    '{"data":{"e":%(e)s,"k":%(s)s},"type":"A"}',
    '{"edge":"Link","from":%(s)s,"to":%(s)s,"data":{"w":%(i)s,"at":%(t)s}}',
    '{"edge":"Link","from":%(s)s,"data":{"id":%(s)s},"to":%(s)s}',
    '{"edge":"Bare","from":%(s)s,"to":%(s)s}',
    '{"type":"T","data":{"day":%(y)s,"blob":null}}',
    '{"type":"T","data":{"day":%(y)s,"at":%(t)s}}',
    '{"type":"A","data":{"i":%(i)s,"zz":1}}',
    '{"type":"A","data":{"i":%(i)s,"i":%(i)s}}',
    '{"type":"A","data":{"k":%(s)s}} ',
]  # fmt: skip
FITTING = {
    "s": ['"x"', '""', '"é"', '"a, b: {c}"', '"null"'],
    "i": ["0", "-1", "17", "2147483647", "null"],
    "u": ["18446744073709551615", "0"],
    "d": ["1", "-0.5", "1e2", "1E-3", "0.1", "null"],
    "b": ["true", "false", "null"],
    "e": ['"x"', '"y"'],
    "t": ['"2024-02-29T12:00:00Z"', '"2024-02-29T12:00:00.5+01:00"'],
    "y": ['"2024-02-29"', '"1999-12-31"'],
}


@pytest.mark.parametrize("marks_nulls", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_L_4_lines_of_one_layout_are_read_as_the_exact_reader_reads_them(
    schema: AcceptedSchema, seed: int, marks_nulls: bool
) -> None:
    rng = Random(1_000 + seed)
    odd = rng.choice([0.0, 0.002, 0.05])
    layouts = rng.sample(LAYOUTS, rng.randint(1, 3))

    def value(kind: str) -> str:
        return rng.choice(VALUES if rng.random() < odd else FITTING[kind])

    lines = []
    for _ in range(rng.choice([70, 300])):
        text = rng.choice(layouts) % {kind: value(kind) for kind in FITTING}
        lines.append(_damaged(rng, text) if rng.random() < odd else text)
    data = "\n".join(lines).encode() + rng.choice([b"", b"\n"])
    if rng.random() < 0.1:
        data = data.replace("é".encode(), b"\xe9")
    fast = _read(schema, data, True, marks_nulls)
    exact = _read(schema, data, False, marks_nulls)
    assert fast == exact


def test_lines_of_one_layout_need_no_parser(
    schema: AcceptedSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f'{{"type":"A","data":{{"k":"k{n}","i":{n}}}}}' for n in range(200)]
    monkeypatch.setattr(ndjson, "group_lines", None)
    rows, problems = _read(schema, ("\n".join(lines) + "\n").encode(), True)
    assert problems == []
    assert rows["node:A"]["i"] == f"int32 {list(range(200))!r}"
