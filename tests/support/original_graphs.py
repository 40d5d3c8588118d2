"""Graphs of the Rust original: real ones, and older ones made from them by undoing its migrations.

The archives in ``tests/cases/original`` were written by the original, version 0.8 (internal schema
version 4). ``aged`` takes one back to version 1, 2 or 3: the commits move out of the manifest of
every branch into the datasets that kept them then, staging branches of runs appear, and the
primary key of the manifest goes away. Only for tests: nothing here is atomic.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import lance
import pyarrow as pa

from omnigraph import Graph
from omnigraph.model.types import PropertyType
from omnigraph.settings import StorageSettings
from omnigraph.storage.lance.files.relocation import relocate
from omnigraph.storage.lance.files.version_files import content, edited, members, of_bytes
from omnigraph.storage.locations import parse_location
from omnigraph.storage.objects.obstore_store import open_objects

CASES: Final = Path(__file__).parent.parent / "cases" / "original"
EXPECTED: Final = CASES / "expected"
NAMES: Final = ("museum", "evolved", "pending")
STAMP: Final = "omnigraph:internal_schema_version"
RUNS: Final = ("__run__01", "__run__02")
_KEY: Final = b"lance-schema:unenforced-primary-key"
_FIELDS, _METADATA = 1, 10  # of a version's message: fields; of a field: its metadata


def unpacked(name: str, where: Path) -> Path:
    """One of the original's graphs, unpacked below a directory it was never at before."""
    with tarfile.open(CASES / f"{name}.omni.tar.gz") as archive:
        archive.extractall(where, filter="data")
    return where / f"{name}.omni"


@dataclass(frozen=True, slots=True)
class Told:
    """What the original printed about one branch of one of its graphs."""

    name: str
    branch: str
    stage: str = ""

    def _path(self, what: str) -> Path:
        return EXPECTED / f"{self.name}-{self.branch.replace('/', '_')}{self.stage}.{what}"

    @property
    def entities(self) -> list[dict[str, Any]]:
        lines = self._path("export.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    @property
    def commits(self) -> list[tuple[Any, ...]]:
        found = json.loads(self._path("commits.json").read_text())["commits"]
        return [
            (
                c["graph_commit_id"],
                c["parent_commit_id"],
                c["merged_parent_commit_id"],
                c["actor_id"],
                c["created_at"],
                c["manifest_branch"] or "main",
                c["manifest_version"],
            )
            for c in found
        ]

    @property
    def snapshot(self) -> list[tuple[Any, ...]]:
        found = json.loads(self._path("snapshot.json").read_text())["tables"]
        names = ("table_key", "table_path", "table_version", "table_branch", "row_count")
        return [tuple(table[name] for name in names) for table in found]


TOLD: Final = (
    Told("museum", "main"),
    Told("museum", "feature/x"),
    Told("evolved", "main"),
    Told("pending", "main", ".before-recovery"),
)
"""Of every branch of every graph what it exports before anything is done to it."""


def exported(graph: Graph, branch: str = "main", at: str | None = None) -> list[dict[str, Any]]:
    """An export, with the values as the original's exports spell them."""
    schema = graph.schema(branch, at=at)
    blocks = graph.export(at=at) if at else graph.export(branch=branch)
    lines = b"".join(blocks).splitlines()
    return sorted((_plain(json.loads(line), schema) for line in lines), key=sort_key)


def sort_key(entity: dict[str, Any]) -> str:
    return json.dumps(entity, sort_keys=True)


def _plain(entity: dict[str, Any], schema: Any) -> dict[str, Any]:
    kind = "edge" if "edge" in entity else "node"
    owner = schema.type(f"{kind}:{entity.get('edge') or entity['type']}")
    data = {
        name: value if name == "id" else _stored(owner.properties[name].type, value)
        for name, value in entity["data"].items()
    }
    return {**entity, "data": data}


def _stored(declared: PropertyType, value: Any) -> Any:
    """The original spells instants without their zone, which is UTC."""
    instant = declared.scalar.family == "datetime" and isinstance(value, str)
    return declared.accept(value if not instant or value.endswith("Z") else f"{value}Z")


def parsed(entities: list[dict[str, Any]], graph: Graph, branch: str = "main") -> list[Any]:
    """Exported entities of the original, with stored values."""
    schema = graph.schema(branch)
    return sorted((_plain(entity, schema) for entity in entities), key=sort_key)


def lineage(graph: Graph, branch: str = "main") -> list[tuple[Any, ...]]:
    """Commits as ``Told.commits`` has them, oldest first."""
    return [
        (
            c.commit_id,
            c.parent,
            c.merged_parent,
            c.actor,
            c.created_at_us,
            c.branch,
            c.manifest_version,
        )
        for c in graph.history.commits(branch=branch)[::-1]
    ]


def pinned(graph: Graph, branch: str) -> list[tuple[Any, ...]]:
    """The tables of a snapshot as ``Told.snapshot`` has them."""
    return sorted(
        (
            f"{t['entity_kind']}:{t['type_name']}",
            t["dataset_path"],
            t["published_dataset_version"],
            t["native_dataset_branch"],
            t["entity_count"],
        )
        for t in graph.snapshot(branch).to_json()["datasets"]
    )


def by_id(entities: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Exported entities by id."""
    return {entity["data"]["id"]: entity for entity in entities}


def exported_form(kind: Any, row: dict[str, Any]) -> dict[str, Any]:
    """A stored row as ``exported`` has it."""
    ends = {} if kind.kind == "node" else {"from": row["src"], "to": row["dst"]}
    word = "type" if kind.kind == "node" else "edge"
    values = {
        name: None if row[name] is None else item.type.accept(row[name])
        for name, item in kind.properties.items()
    }
    return {word: kind.name, **ends, "data": {"id": row["id"], **values}}


def relocated(name: str, where: Path) -> Path:
    """One of the original's graphs whose branches Lance can open by itself."""
    where.mkdir()
    root = unpacked(name, where)
    relocate(open_objects(parse_location(root), StorageSettings()))
    return root


def stored_rows(root: Path, branch: str, version: int) -> dict[str, list[dict[str, Any]]]:
    """The rows of every table at a manifest version, read with Lance alone."""
    manifest = lance.dataset(_dataset(root / "__manifest", branch))
    columns = ["object_type", "table_key", "table_version", "table_branch", "location"]
    rows = manifest.to_table([*columns, "_row_created_at_version"]).to_pylist()
    paths = {r["table_key"]: r["location"] for r in rows if r["object_type"] == "table"}
    newest: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["object_type"] == "table_version" and row["_row_created_at_version"] <= version:
            known = newest.get(row["table_key"])
            if known is None or known["table_version"] < row["table_version"]:
                newest[row["table_key"]] = row
    return {
        key: _rows(
            lance.dataset(
                _dataset(root / paths[key], row["table_branch"] or "main"),
                version=row["table_version"],
            ).to_table()
        )
        for key, row in newest.items()
    }


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows with dates and instants as the numbers that are stored: Python would cut instants."""
    numbers = {pa.date32(): pa.int32(), pa.date64(): pa.int64()}
    fields = [pa.field(f.name, numbers.get(f.type, f.type)) for f in table.schema]
    return table.cast(pa.schema(fields)).to_pylist()


def _dataset(table: Path, branch: str) -> str:
    return str(table if branch == "main" else table / "tree" / branch)


# -- older versions --------------------------------------------------------------------------------


def aged(root: Path, version: int, *, runs: bool = True, legacy: bool = True) -> None:
    """Take a graph of version 4 back; without ``legacy`` the datasets of commits are missing."""
    relocate(open_objects(parse_location(root), StorageSettings()))
    branches = ["main", *_branches(root)]
    chains = {branch: _without_lineage(root, branch, version) for branch in branches}
    if legacy:
        _record(root, chains)
    if version < 3 and runs:
        manifest = lance.dataset(root / "__manifest")
        for name in RUNS:
            manifest.create_branch(name)
    if version == 1:
        for path in (root / "__manifest").rglob("*.manifest"):
            path.write_bytes(edited(path.read_bytes(), _without_key))


def _branches(root: Path) -> list[str]:
    return sorted(lance.dataset(root / "__manifest").branches.list())


def _without_lineage(root: Path, branch: str, version: int) -> list[dict[str, Any]]:
    """Remove commits and heads from a manifest and stamp it; returns the commits."""
    manifest = lance.dataset(_dataset(root / "__manifest", branch))
    rows = manifest.to_table(filter="object_type = 'graph_commit'").to_pylist()
    manifest.delete("object_type in ('graph_commit', 'graph_head')")
    manifest.update_schema_metadata({STAMP: None if version == 1 else str(version)})
    return [
        {
            "graph_commit_id": row["object_id"],
            "manifest_branch": row["table_branch"],
            "manifest_version": row["table_version"],
            **{
                name: json.loads(row["metadata"]).get(name)
                for name in (
                    "parent_commit_id",
                    "merged_parent_commit_id",
                    "actor_id",
                    "created_at",
                )
            },
        }
        for row in rows
    ]


def _record(root: Path, chains: dict[str, list[dict[str, Any]]]) -> None:
    text = pa.string()
    commit_schema = pa.schema(
        [
            pa.field("graph_commit_id", text, nullable=False),
            pa.field("manifest_branch", text),
            pa.field("manifest_version", pa.uint64(), nullable=False),
            pa.field("parent_commit_id", text),
            pa.field("merged_parent_commit_id", text),
            pa.field("created_at", pa.timestamp("us"), nullable=False),
        ]
    )
    actor_schema = pa.schema(
        [
            pa.field("graph_commit_id", text, nullable=False),
            pa.field("actor_id", text, nullable=False),
            pa.field("created_at", pa.timestamp("us"), nullable=False),
        ]
    )
    everyone = {c["graph_commit_id"]: c for chain in chains.values() for c in chain}
    authored = [c for c in everyone.values() if c["actor_id"] is not None]
    _write(root / "_graph_commit_actors.lance", authored, actor_schema)
    where = root / "_graph_commits.lance"
    commits = _write(where, chains["main"], commit_schema)
    for branch, chain in chains.items():
        if branch != "main":
            commits.create_branch(branch)
            _write(_dataset(where, branch), chain, commit_schema, mode="overwrite")


def _write(
    where: Path | str, rows: list[dict[str, Any]], schema: pa.Schema, mode: str = "create"
) -> lance.LanceDataset:
    table = pa.Table.from_pylist([{n: r[n] for n in schema.names} for r in rows], schema=schema)
    return lance.write_dataset(table, where, mode=mode, enable_stable_row_ids=True)


def _without_key(message: Iterator[tuple[int, bytes]]) -> Iterator[bytes]:
    """The message of a version without the primary key of its fields."""
    for number, raw in message:
        if number != _FIELDS:
            yield raw
            continue
        kept = [
            part
            for member, part in members(content(raw))
            if not (member == _METADATA and _KEY in part) and member not in (12, 13)
        ]
        yield of_bytes(_FIELDS, b"".join(kept))


# -- unfinished writes -----------------------------------------------------------------------------


def record_path(root: Path) -> Path:
    """The recovery record of a graph that has one."""
    (found,) = (root / "__recovery").glob("*.json")
    return found


def move_tables(root: Path, count: int) -> list[str]:
    """Do what the killed writer of a record was doing: move its first tables by one version each.

    Returns the ids of the rows that this adds.
    """
    record = json.loads(record_path(root).read_text())
    added = []
    for number, plan in enumerate(record["tables"][:count]):
        path = root / "/".join(plan["table_path"].split("/")[-2:])
        table = lance.dataset(path).to_table().slice(0, 1)
        new = f"moved-{number}"
        at = table.schema.get_field_index("id")
        row = table.set_column(at, table.schema.field(at), pa.array([new]))
        lance.write_dataset(row, path, mode="append")
        added.append(new)
    return added


def change_record(root: Path, **entries: Any) -> None:
    """Overwrite entries of the recovery record of a graph."""
    path = record_path(root)
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))
