"""The awkward schema: names that somebody else uses, too.

Every word that our formats, the query language, SQL, Python, Arrow, Spark or Lance give a meaning
is a legal name of a property, a type or an edge as long as the schema language does not refuse it.
``OMNIGRAPH_TEST_AWKWARD=full`` makes a type of every word; without it every word is a property and
a handful of them are types, which keeps the suite within its budget.
"""

from __future__ import annotations

import json
import keyword
import os
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import cycle
from typing import Any, Final

from omnigraph import Graph
from omnigraph.lang.query.functions import FUNCTIONS
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType, accept_schema, entity_id
from omnigraph.lang.schema.names import reserved_problem
from omnigraph.lang.schema.parse.ast import TypeKind
from omnigraph.model.ids import new_ulid
from omnigraph.model.types import PropertyType

FULL: Final = os.environ.get("OMNIGRAPH_TEST_AWKWARD") == "full"


def _words(text: str) -> list[str]:
    return text.split()


SYSTEM: Final = _words(
    "src dst from to source target type edge node data id_ ids key keys base ours theirs op kind "
    "before after endpoints properties entity entity_id entity_kind type_name value values cause "
    "at at_max id_count count_all row rows row_id rowid line file place part block own other "
    "weight rank score degree component community distance label sweep version commit branch main "
    "actor message set where match return nodes edges interface implements final origin stored "
    "mode append merge overwrite upsert take image images by_type stats changes baseline cursor "
    "published_dataset_version graph_commit_id __id __src __dst __type __node _from _to _id _src "
    "_dst _type _op _key _value _row_id _rowId _rowid_ _row_addr _distance _distance_ _score _rank "
    "_relevance_score _change_type _commit_version _metadata _partition _fragment_id _batch "
    "_indices _versions _deletions _a __ _ ___a"
)
QUERY: Final = _words(
    "query and or not in contains is null true false asc desc order by limit as having exists "
    "optional contains_any starts_with now distinct with now_ fuzzy bm25 nearest rrf match_text "
    "search count sum avg min max insert update delete values_ interval"
)
SQL: Final = _words(
    "select group having_ union all join on left right inner outer full cross natural using case "
    "when then else end cast between like ilike regexp table view index primary foreign references "
    "unique check constraint default create drop alter add column date time timestamp datetime "
    "year user current_user current_date current_timestamp sum_ window over partition rows_ range "
    "unnest lateral exists_ any some array map struct row_number interval_ grouping extract "
    "position trim substring overlay true_ unknown escape offset fetch for_ with_ recursive"
)
ARROW_SPARK_LANCE: Final = _words(
    "field fields schema names name metadata column columns chunk chunks schema_ dictionary "
    "indices index_ list item element key_value entries data_type nullable spark sql context "
    "sc df col lit explode alias dtypes rdd show filter map_ toDF write read join_ crossJoin "
    "na stat isEmpty cache persist storageLevel isStreaming sparkSession sampleBy blob blob_uri "
    "position_ size offset_ vector fragment fragments manifest tree dataset uri blob_size lance"
)
PYTHON: Final = _words(
    "self cls print object int str float bool dict set_ tuple len repr hash iter next property "
    "items get pop append_ keys_ copy __class__ __dict__ __init__ __len__ __slots__ __name__ "
    "__module__ __doc__ __eq__ __hash__ __getattr__ mro"
)
SHAPES: Final = _words(
    "a z x1 aB ab abC abc aBC name_ nAme naMe src_ sRc dSt frOm tO iD "
    "c0 c1 x_y x__y x___ e1 e10 inf nan infinity none nil undefined"
)
LONG: Final = ("l" + "o" * 198 + "g", "l" + "o" * 198 + "G")
"""Two names of two hundred letters that differ in the case of the last one."""

MEMBERS: Final = ("src", "null", "true", "from", "True", "id", "0", "1e9", "-", "_", "a-b", "A-b")
"""Members of an enum: letters, digits, `_` and `-`."""

KINDS: Final = (
    "String?",
    "I32?",
    "F64?",
    "Bool?",
    "Date?",
    "DateTime?",
    "[String]?",
    "U64?",
    "[I64]?",
    "F32?",
)
_TYPE_WORDS: Final = (
    *("src", "dst", "from", "to", "id", "type", "edge", "node", "data", "select", "null", "none"),
    *("twin", "twIn", "tWIN", "a"),
)
_EDGE_WORDS: Final = _words(
    "in or and as contains starts_with match return order limit where insert delete update set "
    "true false now count search nearest asc desc query by is with exists group union join"
)
LONG_TYPE: Final = "L" + "o" * 198 + "g"
KEYED: Final = "Every"
"""A node type with a property of every word."""
LINK: Final = "Link"
"""An edge type with a property of every word."""


def legal(kind: TypeKind) -> list[str]:
    """Every word that is a legal property name on this kind of type."""
    every = (*SYSTEM, *QUERY, *SQL, *ARROW_SPARK_LANCE, *PYTHON, *FUNCTIONS, *SHAPES, *LONG)
    keywords = (word for word in (*keyword.kwlist, *keyword.softkwlist) if not word[0].isupper())
    return list(dict.fromkeys(w for w in (*every, *keywords) if reserved_problem(w, kind) is None))


def capital(word: str) -> str:
    """A word as the name of a type, which starts with a capital letter."""
    bare = word.lstrip("_")
    return bare[0].upper() + bare[1:] if bare else "Blank" + "_" * len(word)


def type_names() -> dict[str, str]:
    """Names of node types, each with the word that is its key."""
    chosen = legal("node") if FULL else [w for w in _TYPE_WORDS if w != "id"]
    found = {capital(word): word for word in chosen}
    return {**found, "Id": "src", LONG_TYPE: LONG[0]}


def edge_names() -> list[str]:
    """Names of edge types: those of node types, and the words of the query language."""
    found: dict[str, str] = {}
    shared = list(type_names()) if FULL else list(type_names())[:6]
    words = _EDGE_WORDS if FULL else _EDGE_WORDS[::4]
    for name in (KEYED, LONG_TYPE, *shared, *map(capital, words)):
        found.setdefault(name.lower(), name)
    return list(found.values())


def thinned(words: Iterable[str]) -> list[str]:
    """All of the words in a full run; otherwise the system's own and some of the others."""
    return [w for n, w in enumerate(words) if FULL or w in SYSTEM[:40] or n % 8 == 0]


def schema_text(renamed: Mapping[str, str] | None = None) -> str:
    """The schema; ``renamed`` gives properties of the wide node type other names."""
    wide = legal("node")
    hints = renamed or {}

    def declared(word: str, kind: str) -> str:
        hint = f' @rename_from("{word}")' if word in hints else ""
        return f"  {hints.get(word, word)}: {kind}{hint}"

    members = ", ".join(MEMBERS)
    parts = [
        "interface Src { src: String? @index\n dst: I32?\n from: String?\n to: String? }",
        f"interface Every {{ edge: enum({members})? }}",
        f"node {KEYED} {{",
        "  every: String @key",
        *(declared(word, kind) for word, kind in zip(wide, cycle(KINDS))),
        "}",
        "node Pair implements Src, Every {",
        "  type: String\n  data: I32\n  @key(type, data)",
        "  node: String? @unique\n  count_all: String? @unique\n  at: String? @unique",
        '  weight: F64?\n  @range(weight, -9..9)\n  @check(from, "^[^!]*$")',
        "  @unique(src, dst)\n  @unique(at, count_all, node)",
        "}",
        "node Found {",
        "  _score: String? @index\n  _rowid_: String? @index\n  score: String? @index",
        "  _distance: Vector(3)? @index @embed(_score)\n  distance: Vector(3)? @embed(score)",
        "  blob: Blob?\n  data: Blob?\n  uri: Blob?",
        "}",
    ]
    for name, word in type_names().items():
        parts.append(f"node {name} {{ {word}: String @key\n {_OTHER}: I64? @unique }}")
    parts += [
        f"edge {LINK}: {KEYED} -> Pair {{",
        *(f"  {word}: {kind}" for word, kind in zip(legal("edge"), cycle(KINDS))),
        "  @unique(src, edge)",
        "}",
    ]
    ends = list(type_names())
    for number, name in enumerate(edge_names()):
        target = ends[number % len(ends)]
        parts.append(f"edge {name}: {target} -> {KEYED} {{ type: String?\n data: I32? }}")
    return "\n".join(parts) + "\n"


_OTHER: Final = "other_value"


@cache
def schema() -> AcceptedSchema:
    return accept_schema(schema_text(), mint=new_ulid)


# Values


def value(kind: PropertyType, number: int) -> Any:
    """A value of a type, another one for every number."""
    if kind.enum is not None:
        return kind.enum[number % len(kind.enum)]
    if kind.is_vector:
        return [float(number % 7), 1.0, 0.5][: kind.dimensions]
    one = _VALUES[kind.scalar.name](number)
    return [one, one] if kind.is_list else one


_VALUES: Final[Mapping[str, Callable[[int], Any]]] = {
    "String": lambda n: ("é", "e\u0301", "from", "it's", 'q"`', "", " x ")[n % 7] + f"-{n}",
    "Bool": lambda n: n % 2 == 0,
    "I32": lambda n: n - 5,
    "I64": lambda n: 2**53 + n,
    "U32": lambda n: n,
    "U64": lambda n: n + 7,
    "F32": lambda n: n / 4,
    "F64": lambda n: n / 3,
    "Date": lambda n: f"2020-01-{n % 27 + 1:02d}",
    "DateTime": lambda n: f"2021-03-04T05:06:{n % 60:02d}Z",
    "Blob": lambda n: "base64:" + b64encode(f"b{n}".encode()).decode(),
}

Record = dict[str, Any]


def records(count: int = 3) -> list[Record]:
    """Nodes and edges of every type, in the form of a load; a third of the values is null."""
    accepted = schema()
    found: list[Record] = []
    ids: dict[str, list[str]] = {}
    for owner in accepted.nodes.values():
        for number in range(count):
            data = _data(owner, number)
            id = entity_id(owner, {n: owner.properties[n].type.accept(v) for n, v in data.items()})
            data["id"] = f"{owner.name[:20]} {number}" if id is None else id
            ids.setdefault(owner.name, []).append(data["id"])
            found.append({"type": owner.name, "data": data})
    for edge in accepted.edges.values():
        for number in range(count):
            data = {"id": f"{edge.name[:20]} {number}", **_data(edge, number)}
            ends = {"from": ids[edge.source][number], "to": ids[edge.target][number]}
            found.append({"edge": edge.name, **ends, "data": data})
    return found


def _data(owner: NodeType | EdgeType, number: int) -> Record:
    return {
        name: value(item.type, number + at)
        for at, (name, item) in enumerate(owner.properties.items())
        if not item.type.nullable or (at + number) % 3
    }


# Comparing

Content = dict[tuple[str, str], Record]


def content(lines: Iterable[Record]) -> Content:
    """Records by type key and id, every value as it is stored and every property present."""
    accepted = schema()
    found: Content = {}
    for record in lines:
        edge = "edge" in record
        key = f"edge:{record['edge']}" if edge else f"node:{record['type']}"
        owner, data = accepted.type(key), record["data"]
        row = {name: _stored(item.type, data.get(name)) for name, item in owner.properties.items()}
        if edge:
            row = {"#from": record["from"], "#to": record["to"], **row}
        assert not data.keys() - owner.properties.keys() - {"id"}
        assert (key, data["id"]) not in found
        found[key, data["id"]] = row
    return found


def _stored(kind: PropertyType, given: Any) -> Any:
    if given is None or kind.is_blob:
        return given
    accepted = kind.accept(given)
    return tuple(accepted) if isinstance(accepted, list) else accepted


def exported(graph: Graph, branch: str = "main") -> Content:
    """What a graph holds, by way of its export."""
    lines = b"".join(graph.export(branch)).splitlines()
    return content(json.loads(line) for line in lines)


def as_ndjson(lines: Iterable[Record]) -> bytes:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


EXPECTED: Final = content(records())
"""What a graph holds that was loaded with all records."""
