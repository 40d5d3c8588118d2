"""The worker of ``benchmarks.compare``: one process per checkout, one case per line of input.

Runs as a file, with the interpreter and the ``omnigraph`` of the checkout it measures, so it uses
only what both have. Answers with the CPU time of a round in ms: user and system time of the whole
process, with the threads of Lance.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

import omnigraph

SCHEMA = """
node Person {
  handle: String @key
  age: I32
  weight: F64
  city: String
  email: String? @unique
}
node Note { text: String }
edge Follows: Person -> Person { since: I32? }
edge Cites: Note -> Note
"""
PEOPLE = 20_000
FOLLOWS = 200_000
FEW = 800
LOADED = 20_000

READS = {
    "read: point look-up": 'match { $p: Person { handle: "p77" } } return { $p.age }',
    "read: filter": "match { $p: Person  $p.age < 30  $p.weight > 0.5 } return { count($p) as n }",
    "read: one hop": 'match { $p: Person { handle: "p77" }  $p follows $q } return { $q.handle }',
    "read: two hops counted": "match { $a follows $b  $b follows $c } return { count($a) as n }",
    "read: two hops filtered": "match { $a: Person  $a.age < 40  $a follows $b  $b follows $c  "
    "$c.age > 20 } return { count($a) as n }",
    "read: two hops float sum": "match { $a: Person  $a follows $b  $b follows $c } "
    "return { $a.city as city, sum($c.weight) as s }",
    "read: edges ordered": "match { $a: Person  $a.age < 5  $a $e:follows $b } "
    "return { $e.since, $b.handle } order { $e.since desc } limit 50",
    "read: aggregate": "match { $p: Person } return { $p.city as city, avg($p.age) as a } "
    "order { a }",
    "read: rows": "match { $p: Person } return { $p.handle, $p.age, $p.weight }",
    "read: product grouped": "match { $a: Person  $b: Person  $a.age = 1  $b.age < 40 } "
    "return { $a.city as c, count($b) as n, sum($b.age) as s }",
    "read: product grouped by texts": "match { $a: Person  $b: Person  $a.age = 1  $b.age < 20 } "
    "return { $a.city as c, $b.city as d, count($b) as n }",
    "read: product filtered": "match { $a: Person  $b: Person  $a.age = 1  $a.weight < $b.weight } "
    "return { count($a) as n }",
    "read: not": "match { $a: Person  $a.age = 1  not { $b: Person  $b.weight > $a.weight } } "
    "return { $a.handle }",
    "read: not over edges": "match { $a: Person  not { $a follows $b  $b.age < 50 } } "
    "return { count($a) as n }",
    "read: reach": 'match { $p: Person { handle: "p77" }  $p follows{1,3} $q } '
    "return { count($q) as n }",
}

Round = Callable[[], Any]


def cases(folder: Path) -> dict[str, Callable[[], Iterator[Round]]]:
    """How each case gives its rounds. What it does between two of them is not measured."""
    found: dict[str, Callable[[], Iterator[Round]]] = {}
    shared: list[Any] = []

    def people() -> Any:
        if not shared:
            shared.append(_people(folder / "people"))
        return shared[0]

    for name, body in READS.items():
        found[name] = partial(_reads, people, body)
    found |= {
        "write: single insert": lambda: _mutations(_people(folder / "insert", FEW), _INSERT),
        "write: single update": lambda: _mutations(_people(folder / "update", FEW), _UPDATE),
        "write: update of all": lambda: _mutations(_people(folder / "all"), _UPDATE_ALL),
        "write: delete": lambda: _mutations(_people(folder / "delete", 4_000), _DELETE),
        "write: batch of 10": lambda: _batches(folder / "batch10", 10),
        "write: batch of 5000 nodes": lambda: _batches(folder / "batch", 5_000),
        "write: batch of 5000 edges": lambda: _edge_batches(folder / "edges", 5_000),
        "write: batch of 2000 updates": lambda: _update_batches(folder / "updates", 2_000),
        "load: append": lambda: _loads(folder / "append", "append"),
        "load: overwrite": lambda: _loads(folder / "overwrite", "overwrite"),
        "load: merge of nodes": lambda: _loads(folder / "merge", "merge", edges=False),
        "load: merge of new edges": lambda: _edge_merges(folder / "new", equal=False),
        "load: merge of equal edges": lambda: _edge_merges(folder / "equal", equal=True),
        "load: NDJSON": lambda: _ndjson(folder / "ndjson"),
        "merge: 1 entity, fast": lambda: _merges(folder / "merge1", 1, both=False),
        "merge: 1 entity": lambda: _merges(folder / "merge1b", 1, both=True),
        "merge: 1 entity of 8 commits": lambda: _merges(folder / "merge8", 1, both=True, commits=8),
        "merge: 200 entities": lambda: _merges(folder / "merge200", 200, both=True),
        "merge: 5000 entities": lambda: _merges(folder / "merge5000", 5_000, both=True),
    }
    return found


def _reads(opened: Callable[[], Any], body: str) -> Iterator[Round]:
    graph, text = opened(), f"query q() {{ {body} }}"
    while True:
        yield lambda: graph.query(text).rows()


_INSERT = 'insert Person { handle: "n%d", age: 1, weight: 0.5, city: "c" }'
_UPDATE = 'update Person set { age: %d } where handle = "p77"'
_UPDATE_ALL = "update Person set { age: %d } where weight < 0.5"
_DELETE = 'delete Person where handle = "p%d"'


def _mutations(graph: Any, statement: str) -> Iterator[Round]:
    for number in range(1_000_000):
        yield partial(graph.mutate, f"query q() {{ {statement % number} }}")


def _batches(where: Path, size: int) -> Iterator[Round]:
    graph = _people(where, FEW)
    for number in range(1_000_000):
        yield partial(_insert, graph, number, size)


def _insert(graph: Any, number: int, size: int) -> None:
    with graph.write() as w:
        for at in range(size):
            row = {"handle": f"n{number}-{at}", "age": at % 90, "weight": 0.5, "city": "c"}
            w.insert("Person", row)


def _edge_batches(where: Path, size: int) -> Iterator[Round]:
    graph, rng = _people(where, FEW), random.Random(1)
    while True:
        pairs = [(f"p{rng.randrange(FEW)}", f"p{rng.randrange(FEW)}") for _ in range(size)]
        yield partial(_connect, graph, pairs)


def _connect(graph: Any, pairs: list[tuple[str, str]]) -> None:
    with graph.write() as w:
        for source, target in pairs:
            w.insert_edge("Follows", source, target, {"since": 2000})


def _update_batches(where: Path, size: int) -> Iterator[Round]:
    graph = _people(where)
    for number in range(1_000_000):
        yield partial(_update, graph, number, size)


def _update(graph: Any, number: int, size: int) -> None:
    with graph.write() as w:
        for at in range(size):
            w.update("Person", f"p{at * 7}", {"age": (at + number) % 90})


def _loads(where: Path, mode: str, *, edges: bool = True) -> Iterator[Round]:
    graph = omnigraph.init(where, SCHEMA)
    for number in range(1_000_000):
        data = {"Person": _rows(LOADED, prefix=f"x{number}-" if mode == "append" else "x")}
        if edges:
            names = data["Person"]["handle"]
            data["Follows"] = _edges(names, LOADED, number)
        yield partial(graph.load, data, mode=mode, engine="local", upkeep=False)


def _edge_merges(where: Path, *, equal: bool) -> Iterator[Round]:
    graph = _people(where, 2_000)
    names = pa.array([f"p{at}" for at in range(2_000)])
    graph.load({"Follows": _edges(names, LOADED, 0)}, mode="append", engine="local")
    for number in range(1_000_000):
        data = {"Follows": _edges(names, LOADED, 0 if equal else number + 1)}
        yield partial(graph.load, data, mode="merge", engine="local", upkeep=False)


def _ndjson(where: Path) -> Iterator[Round]:
    graph = omnigraph.init(where, SCHEMA)
    where.with_suffix(".jsonl").write_text(
        "".join(
            f'{{"type":"Person","data":{{"handle":"p{at}","age":{at % 90},"weight":0.5,'
            f'"city":"c{at % 50}"}}}}\n'
            for at in range(LOADED)
        )
        + "".join(
            f'{{"edge":"Follows","from":"p{at}","to":"p{at * 7 % LOADED}"}}\n'
            for at in range(LOADED)
        )
    )
    file = where.with_suffix(".jsonl")
    while True:
        yield partial(graph.load, file, mode="overwrite", engine="local", upkeep=False)


def _merges(where: Path, size: int, *, both: bool, commits: int = 1) -> Iterator[Round]:
    graph = _people(where)
    for number in range(1_000_000):
        branch = f"work{number}"
        _fork(graph, branch)
        order = random.Random(number).sample(range(PEOPLE), 2 * size)
        for at in range(commits):
            _touch(graph, order[:size], number + at + 1, branch)
        if both:
            _touch(graph, order[size:], number + 1, "main")
        yield partial(graph.merge, branch)


def _fork(graph: Any, name: str) -> None:
    """Create a branch, also in a checkout whose handle has one namespace only."""
    fork = graph.branches.create if hasattr(graph.branches, "create") else graph.create_branch
    fork(name)


def _touch(graph: Any, numbers: list[int], value: int, branch: str) -> None:
    with graph.write(branch=branch) as w:
        for number in numbers:
            w.update("Person", f"p{number}", {"weight": number + value / 1_000})


def _people(where: Path, size: int = PEOPLE) -> Any:
    graph = omnigraph.init(where, SCHEMA)
    people = _rows(size)
    count = FOLLOWS if size == PEOPLE else size
    data = {"Person": people, "Follows": _edges(people["handle"], count, 1)}
    graph.load(data, mode="append", engine="local")
    return graph


def _rows(size: int, prefix: str = "p") -> pa.Table:
    rng = np.random.default_rng(7)
    handles = [f"{prefix}{at}" for at in range(size)]
    return pa.table(
        {
            "handle": handles,
            "age": pa.array(rng.integers(0, 90, size), pa.int32()),
            "weight": rng.random(size),
            "city": [f"city {at % 40}" for at in range(size)],
            "email": [f"{handle}@x.org" for handle in handles],
        }
    )


def _edges(handles: Any, size: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    ends = [handles.take(pa.array(rng.integers(0, len(handles), size))) for _ in range(2)]
    since = pa.array(rng.integers(1990, 2020, size), pa.int32())
    return pa.table({"from": ends[0], "to": ends[1], "since": since})


def main() -> None:
    """Per line: the name of a case and how often to repeat it; answers with the ms per call."""
    with tempfile.TemporaryDirectory() as where:
        known = cases(Path(where))
        open_: dict[str, Iterator[Round]] = {}
        print(json.dumps(list(known)), flush=True)
        for line in sys.stdin:
            name, repeat = json.loads(line)
            if name not in open_:
                open_[name] = known[name]()
            took = 0.0
            for _ in range(repeat):
                act = next(open_[name])
                before = process_time()
                act()
                took += process_time() - before
            print(json.dumps(took * 1_000 / repeat), flush=True)


if __name__ == "__main__":
    main()
