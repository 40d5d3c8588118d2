"""The nine social-100k queries: Omnigraph, Kuzu, Ladybug and DuckDB on one data set, alternating.

``OMNIGRAPH_SOCIAL_DATA`` names the folder with the Parquet files (``nodes/`` and ``edges/``). All
engines must give the same answers, and the published ones. Rows are delivered as Python values.
Numbers are times in ms and shares: our total divided by a peer's.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.engines import Call, Engine, Open, cypher_call, graph_call
from benchmarks.record import progress, spread

DATA_ENVIRONMENT: Final = "OMNIGRAPH_SOCIAL_DATA"
DATA: Final = "social-100k: 100,000 persons, 2,417,738 follows"
WARM_UP: Final = "three calls of each query and engine"
REPETITIONS: Final = 15
BARS: Final = {"total/kuzu": 0.5, "total/duckdb": 1.0, "answers_that_differ": 0}

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

_KINDS: Final = {
    "int64": "INT64",
    "int32": "INT32",
    "double": "DOUBLE",
    "bool": "BOOL",
    "date32[day]": "DATE",
}


def unavailable() -> str | None:
    """Why it cannot run here, if so: the data are not part of the repository."""
    if (_data() / "nodes").is_dir():
        return None
    return f"{DATA_ENVIRONMENT} does not name the folder of the social-100k files"


def _data() -> Path:
    return Path(os.environ.get(DATA_ENVIRONMENT) or "no folder")


def run() -> dict[str, Any]:
    data = _data()
    with tempfile.TemporaryDirectory() as where, ExitStack() as stack:
        engines = []
        for name in OPEN:
            progress(f"  {name}")
            engines.append(stack.enter_context(Engine("social", name, data, Path(where))))
        return _measure(engines)


def _measure(engines: list[Engine]) -> dict[str, Any]:
    numbers: dict[str, Any] = {"answers_that_differ": 0}
    totals = dict.fromkeys((engine.name for engine in engines), 0.0)
    for query in GQ:
        answers = [_rounded(engine.rows(query, {})) for engine in engines]
        known = KNOWN.get(query, answers[0][0][0])
        if any(answer != answers[0] for answer in answers) or answers[0][0][0] != known:
            numbers["answers_that_differ"] += 1
        for engine in engines:
            engine.measure(query, [{}, {}])
        times: dict[str, list[float]] = {engine.name: [] for engine in engines}
        for _ in range(REPETITIONS):
            for engine in engines:
                times[engine.name] += engine.measure(query, [{}])
        for name, found in times.items():
            totals[name] += median(found)
        numbers[f"{query}/ms"] = {name: spread(found) for name, found in times.items()}
    ours, *peers = totals
    numbers |= {f"total/{name}": round(totals[ours] / totals[name], 4) for name in peers}
    numbers["total_ms"] = {name: round(total, 2) for name, total in totals.items()}
    return numbers


def _rounded(rows: list[list[Any]]) -> list[list[Any]]:
    return [[round(v, 6) if isinstance(v, float) else v for v in row] for row in rows]


# How each engine opens it


def _open_omnigraph(data: Path, where: Path) -> Call:
    import pyarrow.parquet as pq

    def fill(graph: Any) -> None:
        tables = {}
        for name, (file, key) in NODES.items():
            found = pq.read_table(data / "nodes" / f"{file}.parquet")
            names = [key if column == "id" else column for column in found.column_names]
            tables[name] = found.rename_columns(names)
        for name, (file, *_) in EDGES.items():
            found = pq.read_table(data / "edges" / f"{file}.parquet")
            for at, end in enumerate(("from", "to")):
                found = found.set_column(at, end, found[end].cast("string"))
            tables[name] = found
        graph.load(tables, mode="append")

    queries = {name: f"query {name}() {{ {body} }}" for name, body in GQ.items()}
    return graph_call(where / "omnigraph", {"schema": SCHEMA, **queries}, fill)


def _open_cypher(module: str) -> Open:
    def open_(data: Path, where: Path) -> Call:
        import pyarrow.parquet as pq

        engine: Any = __import__(module)
        connection = engine.Connection(engine.Database(str(where / module)))
        for name, (file, key) in NODES.items():
            path = data / "nodes" / f"{file}.parquet"
            columns = [
                f"{key if field.name == 'id' else field.name} "
                f"{_KINDS.get(str(field.type), 'STRING')}"
                for field in pq.read_schema(path)
            ]
            body = ", ".join(columns)
            connection.execute(f"CREATE NODE TABLE {name}({body}, PRIMARY KEY({key}))")
            connection.execute(f'COPY {name} FROM "{path}"')
        for name, (file, source, target) in EDGES.items():
            connection.execute(f"CREATE REL TABLE {name}(FROM {source} TO {target})")
            connection.execute(f'COPY {name} FROM "{data / "edges" / file}.parquet"')
        return cypher_call(connection, CYPHER)

    return open_


def _open_duckdb(data: Path, where: Path) -> Call:
    import duckdb

    connection = duckdb.connect()
    for path in data.glob("*/*.parquet"):
        connection.execute(f"CREATE TABLE {path.stem} AS SELECT * FROM '{path}'")

    def call(name: str, params: Any) -> Any:
        return connection.execute(SQL[name]).fetchall()

    return call


OPEN: Final[dict[str, Open]] = {
    "omnigraph": _open_omnigraph,
    "kuzu": _open_cypher("kuzu"),
    "ladybug": _open_cypher("ladybug"),
    "duckdb": _open_duckdb,
}
