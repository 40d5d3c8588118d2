"""A graph as numbers: nodes numbered block by block, edges as arrays by source and by target.

The block of a node depends on its id, its number on the ids and types of its block, so the numbers
depend on what the graph holds and not on how it is stored.

    reading     tasks over stored rows: ids divided by id, edges by target
    numbering   one block each: ids sorted; edges whose target is here divided by source
    linking     one block each: edges by source, divided by the block of the target
    arranging   one block each: edges by target
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.repository import Repository
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.constraints.edges import ends
from omnigraph.errors import InvalidInput
from omnigraph.lang.schema import DST, SRC, EdgeType, NodeType
from omnigraph.spark.analytics.scratch import Scratch
from omnigraph.spark.load.partitions import fragment_groups, open_table
from omnigraph.spark.load.shuffle import BUCKETS_MAX, Shelf, Shelving, bucket_paths, read_bucket
from omnigraph.spark.tasks import Tasks
from omnigraph.storage.lance.arrays import as_array
from omnigraph.storage.lance.tables import TableRef

EDGES_PER_BLOCK: Final = 2 << 20
"""Some hundred megabytes as strings on their way, sixteen bytes each as numbers."""

NODES_PER_BLOCK: Final = 2 << 20
ROWS_PER_TASK: Final = 2 << 20

WEIGHT: Final = "weight"


@dataclass(frozen=True, slots=True)
class Selection:
    """The part of a graph that is analysed."""

    nodes: tuple[NodeType, ...]
    edges: tuple[EdgeType, ...]
    weight: str | None = None

    @property
    def node_keys(self) -> tuple[str, ...]:
        return tuple(owner.key for owner in self.nodes)


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Some stored rows of one type."""

    scratch: Scratch
    graph_uri: str
    ref: TableRef
    fragment_ids: tuple[int, ...]
    owner: NodeType | EdgeType
    weight: str | None
    blocks: int


@dataclass(frozen=True, slots=True)
class BlockTask:
    """One block in the making: what was left for it."""

    scratch: Scratch
    selection: Selection
    block: int
    blocks: int
    paths: tuple[str, ...]
    starts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Numbered:
    nodes: int
    shelf: Shelf


@dataclass(frozen=True, slots=True)
class Linked:
    edges: int
    shelf: Shelf


@dataclass(frozen=True, slots=True)
class Network:
    """A numbered graph. Block ``b`` holds the nodes ``starts[b]`` to ``starts[b + 1]``.

    ``names/b`` has type and id of its nodes; ``out/b`` and ``in/b`` the edges that begin and end
    there, each with the node's place in the block (``own``, ascending) and the number of the
    ``other`` end.
    """

    scratch: Scratch
    selection: Selection
    starts: tuple[int, ...]
    edges: int

    @property
    def blocks(self) -> int:
        return len(self.starts) - 1

    @property
    def nodes(self) -> int:
        return self.starts[-1]

    def size(self, block: int) -> int:
        return self.starts[block + 1] - self.starts[block]

    def links(self, block: int, *, undirected: bool = False, reverse: bool = False) -> Links:
        """The edges into a block: from ``other``, which is read, to ``own``, which is written."""
        kinds = ("in", "out") if undirected else ("out",) if reverse else ("in",)
        found = [self.scratch.get(f"{kind}/{block}") for kind in kinds]
        weights = [part[WEIGHT] for part in found]
        return Links(
            np.concatenate([part["own"] for part in found]),
            np.concatenate([part["other"] for part in found]),
            None if weights[0] is None else np.concatenate(weights),
        )


@dataclass(frozen=True, slots=True)
class Links:
    own: np.ndarray[Any, Any]
    other: np.ndarray[Any, Any]
    weight: np.ndarray[Any, Any] | None = None


def block_count(selection: Selection, snapshot: SnapshotPins) -> int:
    """As many blocks as the size of the graph asks for: never as the cluster has cores."""
    nodes = sum(snapshot.pin(owner.key).rows for owner in selection.nodes)
    edges = sum(snapshot.pin(owner.key).rows for owner in selection.edges)
    wanted = max(1, math.ceil(nodes / NODES_PER_BLOCK), math.ceil(edges / EDGES_PER_BLOCK))
    return min(wanted, BUCKETS_MAX)


def build_network(
    tasks: Tasks,
    repository: Repository,
    snapshot: SnapshotPins,
    selection: Selection,
    scratch: Scratch,
    blocks: int,
) -> Network:
    """Number the nodes of a snapshot and arrange its edges."""
    reading = list(_read_tasks(repository, snapshot, selection, scratch, blocks))
    shelves = tasks.run("reading the graph", shelve_rows, reading)
    numbered = tasks.run(
        "numbering nodes",
        number_block,
        [
            BlockTask(scratch, selection, block, blocks, tuple(bucket_paths(shelves, block)))
            for block in range(blocks)
        ],
    )
    starts = [0]
    for answer in numbered:
        starts.append(starts[-1] + answer.nodes)
    left = [answer.shelf for answer in numbered]
    linked = tasks.run(
        "linking nodes", link_block, _block_tasks(scratch, selection, blocks, left, starts)
    )
    left = [answer.shelf for answer in linked]
    tasks.run(
        "arranging edges", arrange_block, _block_tasks(scratch, selection, blocks, left, starts)
    )
    scratch.remove(("read", "numbered", "linked"))
    return Network(scratch, selection, tuple(starts), sum(answer.edges for answer in linked))


def _block_tasks(
    scratch: Scratch,
    selection: Selection,
    blocks: int,
    shelves: Sequence[Shelf],
    starts: Sequence[int],
) -> list[BlockTask]:
    return [
        BlockTask(
            scratch, selection, block, blocks, tuple(bucket_paths(shelves, block)), tuple(starts)
        )
        for block in range(blocks)
    ]


def _read_tasks(
    repository: Repository,
    snapshot: SnapshotPins,
    selection: Selection,
    scratch: Scratch,
    blocks: int,
) -> Iterator[ReadTask]:
    uri = repository.location.uri
    owners: list[NodeType | EdgeType] = [*selection.nodes, *selection.edges]
    for owner in owners:
        ref = snapshot.pin(owner.key).ref
        weight = selection.weight if isinstance(owner, EdgeType) else None
        for group in fragment_groups(repository.tables.open(ref), ROWS_PER_TASK):
            yield ReadTask(scratch, uri, ref, group, owner, weight, blocks)


# -- on executors ----------------------------------------------------------------------------------


def shelve_rows(task: ReadTask) -> Shelf:
    """Ids of nodes by id, edges by target."""
    table = open_table(task.graph_uri, task.ref)
    shelving = Shelving(task.blocks)
    if isinstance(task.owner, NodeType):
        rows = table.scan(["id"], fragment_ids=task.fragment_ids)
        shelving.add(task.owner.key, rows, rows["id"])
    else:
        names = [SRC, DST, *([task.weight] if task.weight else [])]
        rows = table.scan(names, fragment_ids=task.fragment_ids)
        if task.weight:
            rows = rows.set_column(2, WEIGHT, _weights(task.owner, task.weight, rows))
        shelving.add(task.owner.key, rows, rows[DST])
    return shelving.write(task.scratch.objects, f"{task.scratch.prefix}/read")


def _weights(edge: EdgeType, name: str, rows: pa.Table) -> pa.Array:
    """Weights as floats (the nearest, for large whole numbers): all there, finite, not negative."""
    found = as_array(rows[name].cast(pa.float64(), safe=False))
    usable = pc.and_(pc.is_finite(found), pc.greater_equal(found, 0.0))
    if found.null_count or not pc.all(usable).as_py():
        raise InvalidInput(
            f"some {edge.name}.{name} is null or negative or not finite, and cannot be a weight",
            remedy="Fill the property in, or analyse without weights.",
            details={"type_key": edge.key, "property": name},
        )
    return found


def number_block(task: BlockTask) -> Numbered:
    """Sort the ids of a block; divide the edges that end here by their source."""
    tables = read_bucket(task.scratch.objects, task.paths)
    names = [_sorted_ids(tables.get(key)) for key in task.selection.node_keys]
    kinds = np.repeat(np.arange(len(names), dtype=np.int16), [len(ids) for ids in names])
    table = pa.table({"type": pa.array(kinds), "id": pa.concat_arrays(names)})
    task.scratch.put_table(f"names/{task.block}", table)
    shelving = Shelving(task.blocks)
    for edge in task.selection.edges:
        rows = tables.get(edge.key)
        if rows is None:
            continue
        rows, places = _placed(task.selection, names, rows, dict(ends(edge))[DST], DST)
        block = pa.array(np.full(len(places), task.block, dtype=np.uint16))
        rows = rows.drop_columns([DST]).append_column("block", block)
        shelving.add(edge.key, rows.append_column("place", pa.array(places)), rows[SRC])
    shelf = shelving.write(task.scratch.objects, f"{task.scratch.prefix}/numbered")
    return Numbered(table.num_rows, shelf)


def link_block(task: BlockTask) -> Linked:
    """The edges that begin here, with both ends as numbers; divided by the block they end in."""
    tables = read_bucket(task.scratch.objects, task.paths)
    known = task.scratch.get_table(f"names/{task.block}")
    kinds = known["type"].to_numpy()
    names = [
        as_array(known["id"]).slice(*_range(kinds, number))
        for number in range(len(task.selection.nodes))
    ]
    starts = np.array(task.starts)
    found: list[pa.Table] = []
    for edge in task.selection.edges:
        rows = tables.get(edge.key)
        if rows is not None:
            rows, own = _placed(task.selection, names, rows, dict(ends(edge))[SRC], SRC)
            found.append(rows.drop_columns([SRC]).append_column("own", pa.array(own)))
    shelving = Shelving(task.blocks)
    if not found:
        _put_links(task, "out", _no_links(task.selection))
        return Linked(0, {})
    rows = pa.concat_tables(found, promote_options="default").combine_chunks()
    blocks = rows["block"].to_numpy()
    other = starts[blocks] + rows["place"].to_numpy()
    _put_links(task, "out", _links(rows["own"].to_numpy(), other, rows))
    columns = {"own": rows["place"], "other": pa.array(rows["own"].to_numpy() + starts[task.block])}
    if task.selection.weight:
        columns[WEIGHT] = rows[WEIGHT]
    shelving.add_to("in", pa.table(columns), blocks)
    shelf = shelving.write(task.scratch.objects, f"{task.scratch.prefix}/linked")
    return Linked(rows.num_rows, shelf)


def arrange_block(task: BlockTask) -> None:
    """The edges that end here."""
    rows = read_bucket(task.scratch.objects, task.paths).get("in")
    links = _no_links(task.selection)
    if rows is not None:
        links = _links(rows["own"].to_numpy(), rows["other"].to_numpy(), rows)
    _put_links(task, "in", links)


def _sorted_ids(table: pa.Table | None) -> pa.Array:
    if table is None:
        return pa.array([], pa.string())
    ids = as_array(table["id"])
    return ids.take(pc.sort_indices(ids))


def _range(kinds: np.ndarray[Any, Any], kind: int) -> tuple[int, int]:
    """Where the ids of one type begin in a block, and how many there are."""
    first, last = np.searchsorted(kinds, [kind, kind + 1])
    return int(first), int(last - first)


def _placed(
    selection: Selection, names: Sequence[pa.Array], rows: pa.Table, node_key: str, column: str
) -> tuple[pa.Table, np.ndarray[Any, Any]]:
    """Edges of which one end is here, and its place; ends outside the selection are left out."""
    if node_key not in selection.node_keys:
        return rows.slice(0, 0), np.zeros(0, dtype=np.int64)
    number = selection.node_keys.index(node_key)
    before = sum(len(ids) for ids in names[:number])
    found = pc.index_in(as_array(rows[column]), value_set=names[number])
    here = pc.is_valid(found)
    places = found.filter(here).to_numpy(zero_copy_only=False).astype(np.int64)
    return rows.filter(here), places + before


def _links(own: np.ndarray[Any, Any], other: np.ndarray[Any, Any], rows: pa.Table) -> Links:
    """In an order that depends on the numbers (and weights) alone."""
    weight = rows[WEIGHT].to_numpy() if WEIGHT in rows.column_names else None
    order = np.lexsort((other, own) if weight is None else (weight, other, own))
    return Links(own[order], other[order], None if weight is None else weight[order])


def _no_links(selection: Selection) -> Links:
    none = np.zeros(0, dtype=np.int64)
    return Links(none, none, np.zeros(0) if selection.weight else None)


def _put_links(task: BlockTask, kind: str, links: Links) -> None:
    task.scratch.put(f"{kind}/{task.block}", own=links.own, other=links.other, weight=links.weight)
