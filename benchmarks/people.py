"""A made-up graph of people who know each other, and one query of every family, in the words of
every engine. Seeded: the same size is always the same graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.engines import Call, Open, cypher_call, graph_call

SEED: Final = 5
CITIES: Final = 20
AGES: Final = (18, 78)
DEGREE: Final = (1.8, 1.0)  # lognormal: median 6, a long tail, scaled to the number of edges

SCHEMA: Final = """
node Person { handle: String @key  name: String  age: I32  city: String }
edge Knows: Person -> Person { since: I32  weight: F64 }
"""
GQ: Final = {
    "point": """query q($h: String) { match { $p: Person { handle: $h } }
        return { $p.name, $p.age, $p.city } }""",
    "hop1_out": """query q($h: String) { match { $p: Person { handle: $h }  $p knows $q }
        return { $q.handle, $q.name, $q.age } }""",
    "hop1_in": """query q($h: String) { match { $p: Person { handle: $h }  $q knows $p }
        return { $q.handle, $q.name, $q.age } }""",
    "hop2": """query q($h: String) { match { $p: Person { handle: $h }  $p knows $m  $m knows $q }
        return { $q.handle, $q.age } }""",
    "hop3_count": """query q($h: String) {
        match { $p: Person { handle: $h }  $p knows $l  $l knows $m  $m knows $q }
        return { count($q) as n } }""",
    "reach": """query q($h: String) { match { $p: Person { handle: $h }  $p knows{1,3} $q }
        return { count($q) as n } }""",
    "filter": """query q($low: I32, $high: I32, $c: String) {
        match { $p: Person  $p.age >= $low  $p.age <= $high  $p.city = $c }
        return { $p.handle, $p.name, $p.age } }""",
    "anti_join": """query q($a: I32) { match { $p: Person  $p.age = $a
        not { $p $e:knows $_  $e.since >= 2015 } } return { $p.handle } }""",
    "aggregate": """query q($a: I32) { match { $p: Person  $p.age >= $a }
        return { $p.city as city, count($p) as n, avg($p.age) as mean } order { city } }""",
    "top_k": """query q($a: I32) { match { $p: Person  $p.age >= $a }
        return { $p.handle as handle, $p.age as age } order { age desc, handle } limit 10 }""",
}
_START: Final = "MATCH (p:Person {handle: $h})"
CYPHER: Final = {
    "point": f"{_START} RETURN p.name, p.age, p.city",
    "hop1_out": f"{_START}-[:Knows]->(q:Person) RETURN q.handle, q.name, q.age",
    "hop1_in": f"{_START}<-[:Knows]-(q:Person) RETURN q.handle, q.name, q.age",
    "hop2": f"{_START}-[:Knows]->(:Person)-[:Knows]->(q:Person) RETURN q.handle, q.age",
    "hop3_count": f"{_START}-[:Knows]->(:Person)-[:Knows]->(:Person)-[:Knows]->(q:Person) "
    "RETURN count(*)",
    "reach": f"{_START}-[:Knows* SHORTEST 1..3]->(q:Person) RETURN count(*)",
    "filter": """MATCH (p:Person) WHERE p.age >= $low AND p.age <= $high AND p.city = $c
        RETURN p.handle, p.name, p.age""",
    "anti_join": """MATCH (p:Person) WHERE p.age = $a
        AND NOT EXISTS { MATCH (p)-[e:Knows]->(:Person) WHERE e.since >= 2015 } RETURN p.handle""",
    "aggregate": """MATCH (p:Person) WHERE p.age >= $a
        RETURN p.city AS city, count(*), avg(p.age) ORDER BY city""",
    "top_k": """MATCH (p:Person) WHERE p.age >= $a RETURN p.handle AS handle, p.age AS age
        ORDER BY age DESC, handle LIMIT 10""",
}
SQL: Final = {
    "point": "SELECT name, age, city FROM person WHERE handle = $h",
    "hop1_out": """SELECT q.handle, q.name, q.age FROM knows k JOIN person q ON q.handle = k.dst
        WHERE k.src = $h""",
    "hop1_in": """SELECT q.handle, q.name, q.age FROM knows k JOIN person q ON q.handle = k.src
        WHERE k.dst = $h""",
    "hop2": """SELECT q.handle, q.age FROM knows k JOIN knows l ON l.src = k.dst
        JOIN person q ON q.handle = l.dst WHERE k.src = $h""",
    "hop3_count": """SELECT count(*) FROM knows k JOIN knows l ON l.src = k.dst
        JOIN knows m ON m.src = l.dst WHERE k.src = $h""",
    "reach": """WITH RECURSIVE r(node, hop) AS (SELECT $h, 0 UNION
        SELECT k.dst, r.hop + 1 FROM r JOIN knows k ON k.src = r.node WHERE r.hop < 3)
        SELECT count(DISTINCT node) FROM r WHERE node <> $h""",
    "filter": """SELECT handle, name, age FROM person
        WHERE age >= $low AND age <= $high AND city = $c""",
    "anti_join": """SELECT handle FROM person p WHERE age = $a AND NOT EXISTS
        (SELECT 1 FROM knows k WHERE k.src = p.handle AND k.since >= 2015)""",
    "aggregate": """SELECT city, count(*), avg(age) FROM person WHERE age >= $a
        GROUP BY city ORDER BY city""",
    "top_k": """SELECT handle, age FROM person WHERE age >= $a
        ORDER BY age DESC, handle LIMIT 10""",
}


def parameters(query: str, nodes: int) -> Iterator[dict[str, Any]]:
    """Values for one query after the other, the same for every engine."""
    rng = Random(f"{SEED}/{query}")
    while True:
        low = rng.randint(AGES[0], AGES[1] - 4)
        yield {
            "filter": {"low": low, "high": low + 2, "c": f"city{rng.randrange(CITIES)}"},
            "anti_join": {"a": low},
            "aggregate": {"a": rng.randint(AGES[0], AGES[0] + 10)},
            "top_k": {"a": rng.randint(AGES[0], AGES[0] + 10)},
        }.get(query, {"h": handle(rng.randrange(nodes))})


def handle(number: int) -> str:
    return f"p{number:08d}"


def make_files(folder: Path, nodes: int, edges: int) -> None:
    """Write the graph as Parquet, unless it is there."""
    if (folder / "knows.parquet").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(SEED)
    handles = pa.array([handle(at) for at in range(nodes)])
    people = {
        "handle": handles,
        "name": pa.array([f"Name {at % 9973}" for at in range(nodes)]),
        "age": pa.array(rng.integers(*AGES, nodes), pa.int32()),
        "city": pa.array([f"city{at}" for at in rng.integers(0, CITIES, nodes)]),
    }
    pq.write_table(pa.table(people), folder / "person.parquet")
    source, target = _ends(rng, nodes, edges)
    known = {
        "src": handles.take(pa.array(source)),
        "dst": handles.take(pa.array(target)),
        "since": pa.array(rng.integers(2000, 2026, len(source)), pa.int32()),
        "weight": pa.array(rng.random(len(source))),
    }
    pq.write_table(pa.table(known), folder / "knows.parquet")


def _ends(rng: np.random.Generator, nodes: int, edges: int) -> tuple[Any, Any]:
    """Different pairs of different people: engines disagree about repeated edges, not these."""
    wanted = rng.lognormal(*DEGREE, nodes)
    degrees = np.maximum(1, np.round(wanted * (edges / wanted.sum()))).astype(np.int64)
    source = np.repeat(np.arange(nodes), degrees)
    target = rng.integers(0, nodes, len(source))
    keys = np.unique((source * nodes + target)[source != target])
    rng.shuffle(keys)
    return keys // nodes, keys % nodes


# How each engine opens it


def _open_omnigraph(data: Path, where: Path) -> Call:
    def fill(graph: Any) -> None:
        known = pq.read_table(data / "knows.parquet")
        known = known.rename_columns(["from", "to", *known.column_names[2:]])
        tables = {"Person": pq.read_table(data / "person.parquet"), "Knows": known}
        graph.load(tables, mode="append")

    return graph_call(where / "omnigraph", {"schema": SCHEMA, **GQ}, fill)


def _open_cypher(module: str) -> Open:
    def open_(data: Path, where: Path) -> Call:
        engine: Any = __import__(module)
        path = where / module
        fresh = not path.exists()
        connection = engine.Connection(engine.Database(str(path)))
        if fresh:
            connection.execute(
                "CREATE NODE TABLE Person(handle STRING, name STRING, age INT32, city STRING, "
                "PRIMARY KEY(handle))"
            )
            connection.execute(
                "CREATE REL TABLE Knows(FROM Person TO Person, since INT32, weight DOUBLE)"
            )
            connection.execute(f'COPY Person FROM "{data / "person.parquet"}"')
            connection.execute(f'COPY Knows FROM "{data / "knows.parquet"}"')
        return cypher_call(connection, CYPHER)

    return open_


def _open_duckdb(data: Path, where: Path) -> Call:
    import duckdb

    path = where / "duckdb"
    fresh = not path.exists()
    connection = duckdb.connect(str(path))
    if fresh:
        connection.execute(
            "CREATE TABLE person(handle VARCHAR PRIMARY KEY, name VARCHAR, age INT, city VARCHAR)"
        )
        for name in ("person", "knows"):
            source = f"SELECT * FROM '{data / name}.parquet'"
            verb = "INSERT INTO person" if name == "person" else "CREATE TABLE knows AS"
            connection.execute(f"{verb} {source}")

    def call(name: str, params: Any) -> Any:
        return connection.execute(SQL[name], dict(params)).fetchall()

    return call


OPEN: Final[dict[str, Open]] = {
    "omnigraph": _open_omnigraph,
    "kuzu": _open_cypher("kuzu"),
    "ladybug": _open_cypher("ladybug"),
    "duckdb": _open_duckdb,
}
