"""The nine social-100k queries: Omnigraph, Kuzu and DuckDB on the same data, calls alternating.

Each engine runs in a process of its own and answers one call at a time, so that all of them see the
same machine at the same moments. Rows are delivered as Python values. ``run()`` measures and
returns a record; peers that are not installed are left out and named.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, Final

SCHEMA: Final = """
node Person { pid: I64 @key  name: String  gender: String  age: I32  birthday: Date
              isMarried: Bool }
node City { cid: I64 @key  city: String  state: String  country: String  lat: F64  lng: F64
            population: I64? }
node State { sid: I64 @key  state: String  country: String }
node Country { nid: I64 @key  country: String }
node Interest { iid: I64 @key  interest: String }
edge Follows: Person -> Person
edge LivesIn: Person -> City
edge InterestedIn: Person -> Interest
edge CityIn: City -> State
edge StateIn: State -> Country
"""
NODES: Final = {
    "Person": ("persons", "pid"),
    "City": ("cities", "cid"),
    "State": ("states", "sid"),
    "Country": ("countries", "nid"),
    "Interest": ("interests", "iid"),
}
EDGES: Final = {
    "Follows": ("follows", "Person", "Person"),
    "LivesIn": ("lives_in", "Person", "City"),
    "InterestedIn": ("interested_in", "Person", "Interest"),
    "CityIn": ("city_in", "City", "State"),
    "StateIn": ("state_in", "State", "Country"),
}
GQ: Final = {
    "q1": """match { $f $e:follows $p } return { $p.pid as id, count($f) as n }
             order { n desc, id } limit 3""",
    "q2": """match { $f $e:follows $p  $p livesIn $c } return { $p.pid as id, $c.city as city,
             $c.state as state, $c.country as country, count($f) as n }
             order { n desc, id } limit 1""",
    "q3": """match { $p: Person  $p livesIn $c  $c.country = "United States" }
             return { $c.cid as id, $c.city as city, avg($p.age) as a } order { a, id } limit 5""",
    "q4": """match { $p: Person  $p.age >= 30  $p.age <= 40  $p livesIn $c  $c cityIn $s
             $s stateIn $n } return { $n.country as country, count($p) as n }
             order { n desc, country } limit 3""",
    "q5": """match { $p: Person { gender: "male" }  $p livesIn $c
             $c: City { city: "London", country: "United Kingdom" }
             $p interestedIn $i  $i: Interest { interest: "Fine Dining" } }
             return { count($p) as n }""",
    "q6": """match { $p: Person { gender: "female" }  $p livesIn $c  $p interestedIn $i
             $i: Interest { interest: "Tennis" } }
             return { $c.city as city, $c.country as country, count($p) as n }
             order { n desc, city, country } limit 5""",
    "q7": """match { $p: Person  $p.age >= 23  $p.age <= 30  $p livesIn $c  $c cityIn $s
             $s: State { country: "United States" }  $p interestedIn $i
             $i: Interest { interest: "Photography" } }
             return { $s.state as state, count($p) as n } order { n desc, state } limit 1""",
    "q8": """match { $a $e:follows $b  $b $f:follows $c } return { count($a) as n }""",
    "q9": """match { $a $e:follows $b  $b $f:follows $c  $b.age < 50  $c.age > 25 }
             return { count($a) as n }""",
}
CYPHER: Final = {
    "q1": """MATCH (f:Person)-[:Follows]->(p:Person) RETURN p.pid AS id, count(*) AS n
             ORDER BY n DESC, id LIMIT 3""",
    "q2": """MATCH (f:Person)-[:Follows]->(p:Person) WITH p, count(*) AS n ORDER BY n DESC, p.pid
             LIMIT 1 MATCH (p)-[:LivesIn]->(c:City)
             RETURN p.pid, c.city, c.state, c.country, n""",
    "q3": """MATCH (p:Person)-[:LivesIn]->(c:City) WHERE c.country = 'United States'
             RETURN c.cid AS id, c.city, avg(p.age) AS a ORDER BY a, id LIMIT 5""",
    "q4": """MATCH (p:Person)-[:LivesIn]->(:City)-[:CityIn]->(:State)-[:StateIn]->(n:Country)
             WHERE p.age >= 30 AND p.age <= 40 RETURN n.country AS country, count(*) AS n
             ORDER BY n DESC, country LIMIT 3""",
    "q5": """MATCH (p:Person)-[:LivesIn]->(c:City), (p)-[:InterestedIn]->(i:Interest)
             WHERE p.gender = 'male' AND c.city = 'London' AND c.country = 'United Kingdom'
             AND i.interest = 'Fine Dining' RETURN count(*)""",
    "q6": """MATCH (p:Person)-[:LivesIn]->(c:City), (p)-[:InterestedIn]->(i:Interest)
             WHERE p.gender = 'female' AND i.interest = 'Tennis'
             RETURN c.city AS city, c.country AS country, count(*) AS n
             ORDER BY n DESC, city, country LIMIT 5""",
    "q7": """MATCH (p:Person)-[:LivesIn]->(:City)-[:CityIn]->(s:State),
             (p)-[:InterestedIn]->(i:Interest)
             WHERE p.age >= 23 AND p.age <= 30 AND s.country = 'United States'
             AND i.interest = 'Photography'
             RETURN s.state AS state, count(*) AS n ORDER BY n DESC, state LIMIT 1""",
    "q8": """MATCH (a:Person)-[:Follows]->(b:Person)-[:Follows]->(c:Person) RETURN count(*)""",
    "q9": """MATCH (a:Person)-[:Follows]->(b:Person)-[:Follows]->(c:Person)
             WHERE b.age < 50 AND c.age > 25 RETURN count(*)""",
}
SQL: Final = {
    "q1": 'SELECT "to" id, count(*) n FROM follows GROUP BY 1 ORDER BY n DESC, id LIMIT 3',
    "q2": """WITH t AS (SELECT "to" id, count(*) n FROM follows GROUP BY 1
             ORDER BY n DESC, id LIMIT 1)
             SELECT t.id, c.city, c.state, c.country, n FROM t JOIN lives_in l ON l."from" = t.id
             JOIN cities c ON c.id = l."to" """,
    "q3": """SELECT c.id, c.city, avg(p.age) a FROM persons p JOIN lives_in l ON l."from" = p.id
             JOIN cities c ON c.id = l."to" WHERE c.country = 'United States'
             GROUP BY 1, 2 ORDER BY a, 1 LIMIT 5""",
    "q4": """SELECT n.country, count(*) k FROM persons p JOIN lives_in l ON l."from" = p.id
             JOIN city_in ci ON ci."from" = l."to" JOIN state_in si ON si."from" = ci."to"
             JOIN countries n ON n.id = si."to" WHERE p.age BETWEEN 30 AND 40
             GROUP BY 1 ORDER BY k DESC, 1 LIMIT 3""",
    "q5": """SELECT count(*) FROM persons p JOIN lives_in l ON l."from" = p.id
             JOIN cities c ON c.id = l."to" JOIN interested_in ii ON ii."from" = p.id
             JOIN interests i ON i.id = ii."to" WHERE p.gender = 'male' AND c.city = 'London'
             AND c.country = 'United Kingdom' AND i.interest = 'Fine Dining'""",
    "q6": """SELECT c.city, c.country, count(*) k FROM persons p
             JOIN lives_in l ON l."from" = p.id JOIN cities c ON c.id = l."to"
             JOIN interested_in ii ON ii."from" = p.id JOIN interests i ON i.id = ii."to"
             WHERE p.gender = 'female' AND i.interest = 'Tennis'
             GROUP BY 1, 2 ORDER BY k DESC, 1, 2 LIMIT 5""",
    "q7": """SELECT s.state, count(*) k FROM persons p JOIN lives_in l ON l."from" = p.id
             JOIN city_in ci ON ci."from" = l."to" JOIN states s ON s.id = ci."to"
             JOIN interested_in ii ON ii."from" = p.id JOIN interests i ON i.id = ii."to"
             WHERE p.age BETWEEN 23 AND 30 AND s.country = 'United States'
             AND i.interest = 'Photography' GROUP BY 1 ORDER BY k DESC, 1 LIMIT 1""",
    "q8": 'SELECT count(*) FROM follows a JOIN follows b ON a."to" = b."from"',
    "q9": """SELECT count(*) FROM follows a JOIN follows b ON a."to" = b."from"
             JOIN persons p ON p.id = a."to" JOIN persons q ON q.id = b."to"
             WHERE p.age < 50 AND q.age > 25""",
}
KNOWN: Final = {"q8": 58_431_994, "q9": 45_206_592}

OMNIGRAPH: Final = """
import omnigraph, pyarrow.parquet as pq, sys, time, json
sys.path.insert(0, sys.argv[3])
from benchmarks.social import SCHEMA, NODES, EDGES, GQ
data, where = sys.argv[1], sys.argv[2]
graph = omnigraph.init(where + "/omnigraph", SCHEMA)
tables = {}
for name, (file, key) in NODES.items():
    found = pq.read_table(f"{data}/nodes/{file}.parquet")
    tables[name] = found.rename_columns([key if c == "id" else c for c in found.column_names])
for name, (file, *_) in EDGES.items():
    found = pq.read_table(f"{data}/edges/{file}.parquet")
    tables[name] = found.set_column(0, "from", found["from"].cast("string")).set_column(
        1, "to", found["to"].cast("string"))
graph.load(tables, mode="append")
queries = {name: f"query {name}() {{ {body} }}" for name, body in GQ.items()}
def call(name): return [list(row.values()) for row in graph.query(queries[name]).rows()]
"""
KUZU: Final = """
import kuzu, sys, json, time
sys.path.insert(0, sys.argv[3])
from benchmarks.social import NODES, EDGES, CYPHER
data, where = sys.argv[1], sys.argv[2]
import pyarrow.parquet as pq, pyarrow as pa
con = kuzu.Connection(kuzu.Database(where + "/kuzu"))
kinds = {pa.int64(): "INT64", pa.string(): "STRING", pa.float64(): "DOUBLE", pa.bool_(): "BOOL",
         pa.date32(): "DATE", pa.int32(): "INT32"}
for name, (file, key) in NODES.items():
    schema = pq.read_schema(f"{data}/nodes/{file}.parquet")
    columns = [(key if f.name == "id" else f.name, kinds.get(f.type, "STRING")) for f in schema]
    body = ", ".join(f"{c} {t}" for c, t in columns)
    con.execute(f"CREATE NODE TABLE {name}({body}, PRIMARY KEY({key}))")
    con.execute(f'COPY {name} FROM "{data}/nodes/{file}.parquet"')
for name, (file, source, target) in EDGES.items():
    con.execute(f"CREATE REL TABLE {name}(FROM {source} TO {target})")
    con.execute(f'COPY {name} FROM "{data}/edges/{file}.parquet"')
ready = {name: con.prepare(text) for name, text in CYPHER.items()}
def call(name): return con.execute(ready[name]).get_all()
"""
DUCKDB: Final = """
import duckdb, sys, glob, os
sys.path.insert(0, sys.argv[3])
from benchmarks.social import SQL
data = sys.argv[1]
con = duckdb.connect()
for path in glob.glob(f"{data}/*/*.parquet"):
    name = os.path.splitext(os.path.basename(path))[0]
    con.execute(f"CREATE TABLE {name} AS SELECT * FROM '{path}'")
def call(name): return con.execute(SQL[name]).fetchall()
"""
LOOP: Final = """
import time, json
print("ready", flush=True)
for line in sys.stdin:
    started = time.perf_counter()
    rows = call(line.strip())
    passed = (time.perf_counter() - started) * 1000
    print(json.dumps({"ms": passed, "rows": [list(r) for r in rows]}, default=str), flush=True)
"""


class Engine:
    """One engine in a process of its own."""

    def __init__(self, name: str, python: str, code: str, data: Path, where: str) -> None:
        self.name = name
        root = str(Path(__file__).parents[1])
        self._process = subprocess.Popen(
            [python, "-c", code + LOOP, str(data), where, root],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self._line("ready") is None:
            raise RuntimeError(f"{name} did not start")

    def call(self, query: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{query}\n")
        self._process.stdin.flush()
        line = self._line("{")
        if line is None:
            raise RuntimeError(f"{self.name} ended during {query}")
        found: dict[str, Any] = json.loads(line)
        return found

    def _line(self, start: str) -> str | None:
        """The next line that begins so; engines print other things too."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(start):
                return line
        return None

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


def run(data: Path, peers_python: str | None, repetitions: int = 15) -> dict[str, Any]:
    """Medians and fastest times of every query and engine, and whether the answers agree."""
    with tempfile.TemporaryDirectory() as where:
        engines = [Engine("omnigraph", sys.executable, OMNIGRAPH, data, where)]
        missing = []
        for name, code in (("kuzu", KUZU), ("duckdb", DUCKDB)):
            try:
                engines.append(Engine(name, peers_python or sys.executable, code, data, where))
            except RuntimeError:
                missing.append(name)
        try:
            return {**_measure(engines, repetitions), "missing": missing}
        finally:
            for engine in engines:
                engine.close()


def _measure(engines: list[Engine], repetitions: int) -> dict[str, Any]:
    queries: dict[str, Any] = {}
    for query in GQ:
        answers = {engine.name: engine.call(query)["rows"] for engine in engines}
        for engine in engines:
            engine.call(query)
        times: dict[str, list[float]] = {engine.name: [] for engine in engines}
        for _ in range(repetitions):
            for engine in engines:
                times[engine.name].append(engine.call(query)["ms"])
        queries[query] = {
            "agree": len({json.dumps(_rounded(rows)) for rows in answers.values()}) == 1,
            "known": KNOWN.get(query) in (None, answers["omnigraph"][0][0]),
            "answer": answers["omnigraph"],
            "ms": {name: _spread(found) for name, found in times.items()},
        }
    totals = {
        engine.name: round(sum(q["ms"][engine.name]["median"] for q in queries.values()), 2)
        for engine in engines
    }
    return {"queries": queries, "total_ms": totals, "repetitions": repetitions}


def _rounded(rows: list[list[Any]]) -> list[list[Any]]:
    return [[round(v, 6) if isinstance(v, float) else v for v in row] for row in rows]


def _spread(found: list[float]) -> dict[str, float]:
    return {
        "median": round(median(found), 3),
        "fastest": round(min(found), 3),
        "slowest": round(max(found), 3),
    }
