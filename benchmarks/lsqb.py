"""The nine patterns of LSQB, the labelled subgraph query benchmark: Omnigraph and DuckDB.

Numbers are times in ms and shares: our time divided by DuckDB's. Every pattern is only counted, as
LSQB wants it. ``q7`` has optional parts; in our language it is the sum of four queries.
DuckDB reads friendships from a table that holds each of them in both directions, as in LSQB.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.engines import Call, Engine, Open, graph_call
from benchmarks.folders import bench_folder
from benchmarks.lsqb_data import make_files
from benchmarks.record import progress, spread

DATA: Final = "made-up social network in LSQB's shape, about a million nodes and edges"
WARM_UP: Final = "three calls of each query and engine"
REPETITIONS: Final = 11
SLOWEST: Final = 1.0
BARS: Final = {"total/duckdb": 0.5, "answers_that_differ": 0} | {
    f"q{number}/duckdb": SLOWEST for number in range(1, 10)
}

SCHEMA: Final = """
node Country { id_: I64 @key }
node City { id_: I64 @key }
node TagClass { id_: I64 @key }
node Tag { id_: I64 @key }
node Person { id_: I64 @key }
node Forum { id_: I64 @key }
node Message { id_: I64 @key  post: Bool }
edge CityIn: City -> Country
edge LivesIn: Person -> City
edge Knows: Person -> Person
edge TagType: Tag -> TagClass
edge Interest: Person -> Tag
edge Member: Forum -> Person
edge Contains: Forum -> Message
edge Created: Message -> Person
edge Reply: Message -> Message
edge HasTag: Message -> Tag
edge Likes: Person -> Message
"""
NODES: Final = {
    "Country": "country",
    "City": "city",
    "TagClass": "tagclass",
    "Tag": "tag",
    "Person": "person",
    "Forum": "forum",
    "Message": "message",
}
EDGES: Final = {
    "CityIn": "city_in",
    "LivesIn": "lives_in",
    "Knows": "knows",
    "TagType": "tag_type",
    "Interest": "interest",
    "Member": "member",
    "Contains": "contains",
    "Created": "created",
    "Reply": "reply",
    "HasTag": "has_tag",
    "Likes": "likes",
}
_LIKED: Final = "$m hasTag $t  $m created $w"
GQ: Final = {
    "q1": (
        """$city cityIn $country  $person livesIn $city  $forum member $person
           $forum contains $post  $comment reply $post  $comment hasTag $tag
           $tag tagType $class""",
    ),
    "q2": (
        """$p <knows> $q  $c reply $m  $m: Message { post: true }  $c created $p
           $m created $q""",
    ),
    "q3": (
        """$p <knows> $q  $q <knows> $r  $r <knows> $p  $p livesIn $a  $q livesIn $b
           $r livesIn $c  $a cityIn $country  $b cityIn $country  $c cityIn $country""",
    ),
    "q4": (f"{_LIKED}  $l likes $m  $c reply $m",),
    "q5": ("$m hasTag $s  $c reply $m  $c hasTag $t  $s.id_ != $t.id_",),
    "q6": ("$p <knows> $q  $q <knows> $r  $r interest $t  $p.id_ != $r.id_",),
    "q7": (
        f"{_LIKED}  $l likes $m  $c reply $m",
        f"{_LIKED}  $l likes $m  not {{ $_ reply $m }}",
        f"{_LIKED}  $c reply $m  not {{ $_ likes $m }}",
        f"{_LIKED}  not {{ $_ likes $m }}  not {{ $_ reply $m }}",
    ),
    "q8": ("$m hasTag $s  $c reply $m  $c hasTag $t  $s.id_ != $t.id_  not { $c hasTag $s }",),
    "q9": (
        """$p <knows> $q  $q <knows> $r  $r interest $t  $p.id_ != $r.id_
           not { $p <knows> $r }""",
    ),
}
_COUNTED: Final = {"q4": "m", "q5": "m", "q7": "m", "q8": "m", "q1": "post", "q2": "m", "q3": "p"}
SQL: Final = {
    "q1": """SELECT count(*) FROM city_in, lives_in, member, contains, reply, has_tag, tag_type
        WHERE city_in.src = lives_in.dst AND lives_in.src = member.dst
        AND member.src = contains.src AND contains.dst = reply.dst AND reply.src = has_tag.src
        AND has_tag.dst = tag_type.src""",
    "q2": """SELECT count(*) FROM knows, created a, reply_to_post reply, created b
        WHERE knows.src = a.dst AND knows.dst = b.dst AND a.src = reply.src
        AND b.src = reply.dst""",
    "q3": """SELECT count(*) FROM city_in a JOIN city_in b ON b.dst = a.dst
        JOIN city_in c ON c.dst = a.dst JOIN lives_in p ON p.dst = a.src
        JOIN lives_in q ON q.dst = b.src JOIN lives_in r ON r.dst = c.src
        JOIN knows x ON x.src = p.src AND x.dst = q.src
        JOIN knows y ON y.src = q.src AND y.dst = r.src
        JOIN knows z ON z.src = r.src AND z.dst = p.src""",
    "q4": """SELECT count(*) FROM has_tag JOIN created ON created.src = has_tag.src
        JOIN likes ON likes.dst = has_tag.src JOIN reply ON reply.dst = has_tag.src""",
    "q5": """SELECT count(*) FROM has_tag a JOIN reply ON reply.dst = a.src
        JOIN has_tag b ON b.src = reply.src WHERE a.dst <> b.dst""",
    "q6": """SELECT count(*) FROM knows a JOIN knows b ON a.dst = b.src AND a.src <> b.dst
        JOIN interest ON interest.src = b.dst""",
    "q7": """SELECT count(*) FROM has_tag JOIN created ON created.src = has_tag.src
        LEFT JOIN likes ON likes.dst = has_tag.src LEFT JOIN reply ON reply.dst = has_tag.src""",
    "q8": """SELECT count(*) FROM has_tag a JOIN reply ON reply.dst = a.src
        JOIN has_tag b ON b.src = reply.src
        LEFT JOIN has_tag c ON c.src = reply.src AND c.dst = a.dst
        WHERE a.dst <> b.dst AND c.src IS NULL""",
    "q9": """SELECT count(*) FROM knows a JOIN knows b ON a.dst = b.src AND a.src <> b.dst
        JOIN interest ON interest.src = b.dst
        LEFT JOIN knows c ON c.src = a.src AND c.dst = b.dst WHERE c.src IS NULL""",
}


def run() -> dict[str, Any]:
    with bench_folder("lsqb") as folder, ExitStack() as stack:
        make_files(folder)
        engines = []
        for name in OPEN:
            progress(f"  {name}")
            engines.append(stack.enter_context(Engine("lsqb", name, folder, folder)))
        return _measure(engines)


def _measure(engines: list[Engine]) -> dict[str, Any]:
    numbers: dict[str, Any] = {"answers_that_differ": 0}
    totals = dict.fromkeys((engine.name for engine in engines), 0.0)
    for query in GQ:
        answers = [engine.rows(query, {}) for engine in engines]
        numbers["answers_that_differ"] += any(answer != answers[0] for answer in answers)
        for engine in engines:
            engine.measure(query, [{}, {}])
        times: dict[str, list[float]] = {engine.name: [] for engine in engines}
        for _ in range(REPETITIONS):
            for engine in engines:
                times[engine.name] += engine.measure(query, [{}])
        ours, *peers = times
        for name in peers:
            numbers[f"{query}/{name}"] = round(median(times[ours]) / median(times[name]), 4)
        for name, found in times.items():
            totals[name] += median(found)
        numbers[f"{query}/ms"] = {name: spread(found) for name, found in times.items()}
        numbers[f"{query}/count"] = answers[0][0][0]
    ours, *peers = totals
    numbers |= {f"total/{name}": round(totals[ours] / totals[name], 4) for name in peers}
    numbers["total_ms"] = {name: round(total, 2) for name, total in totals.items()}
    return numbers


# How each engine opens it


def _open_omnigraph(data: Path, where: Path) -> Call:
    import pyarrow.parquet as pq

    def fill(graph: Any) -> None:
        tables = {}
        for name, file in NODES.items():
            found = pq.read_table(data / f"{file}.parquet")
            tables[name] = found.rename_columns(["id_", *found.column_names[1:]])
        for name, file in EDGES.items():
            found = pq.read_table(data / f"{file}.parquet")
            ends = [found[column].cast("string") for column in ("src", "dst")]
            tables[name] = found.from_arrays(ends, names=["from", "to"])
        graph.load(tables, mode="append")

    def text(name: str, pattern: str) -> str:
        counted = _COUNTED.get(name, "q")
        return f"query q() {{ match {{ {pattern} }} return {{ count(${counted}) as n }} }}"

    queries = {
        f"{name}/{at}": text(name, pattern)
        for name, patterns in GQ.items()
        for at, pattern in enumerate(patterns)
    }
    one: Any = graph_call(where / "omnigraph", {"schema": SCHEMA, **queries}, fill)

    def call(name: str, params: Any) -> Any:
        found = [one(f"{name}/{at}", params) for at in range(len(GQ[name]))]
        return [[sum(next(iter(row.values())) for rows in found for row in rows)]]

    return call


def _open_duckdb(data: Path, where: Path) -> Call:
    import duckdb

    connection = duckdb.connect()
    for name in (*NODES.values(), *EDGES.values()):
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM '{data / name}.parquet'")
    connection.execute("INSERT INTO knows SELECT dst, src FROM knows")
    connection.execute(
        "CREATE TABLE reply_to_post AS SELECT reply.* FROM reply JOIN message ON id = dst AND post"
    )

    def call(name: str, params: Any) -> Any:
        return connection.execute(SQL[name]).fetchall()

    return call


OPEN: Final[dict[str, Open]] = {"omnigraph": _open_omnigraph, "duckdb": _open_duckdb}
