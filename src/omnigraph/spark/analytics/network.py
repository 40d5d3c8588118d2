"""Adjacency of a graph for the algorithms: numbered nodes, edge arrays by source and by target.

Nodes are hash partitioned into blocks by id and numbered in each block by type and id, so the
numbers depend on the content of the graph and not on its storage. Four shuffles build the arrays:

    reading     scan stored rows; nodes partitioned by id, edges by target
    numbering   per block: sort ids, resolve targets; edges partitioned by source
    linking     per block: resolve sources, write edges by source; partition by block of the target
    arranging   per block: write edges by target
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.graph_storage import GraphStorage
from omnigraph.bulk.load.partitions import fragment_groups
from omnigraph.bulk.load.shuffle import Shuffled, ShuffleFile, ShuffleWriter
from omnigraph.bulk.scratch import Scratch
from omnigraph.bulk.tasks import Tasks
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.constraints.edge_checks import ends
from omnigraph.errors import InvalidInput
from omnigraph.lang.schema import DST, SRC, EdgeType, NodeType
from omnigraph.storage.lance.arrays import as_array
from omnigraph.storage.lance.tables import TableRef

EDGES_PER_BLOCK: Final = 2 << 20
"""Some hundred megabytes as strings in the shuffle, sixteen bytes per edge as numbers."""

NODES_PER_BLOCK: Final = 2 << 20
ROWS_PER_TASK: Final = 2 << 20

WEIGHT: Final = "weight"


@dataclass(frozen=True, slots=True)
class Selection:
    """The node and edge types that are analysed, and the weight property."""

    nodes: tuple[NodeType, ...]
    edges: tuple[EdgeType, ...]
    weight: str | None = None

    @property
    def node_keys(self) -> tuple[str, ...]:
        return tuple(owner.key for owner in self.nodes)


@dataclass(frozen=True, slots=True)
class GraphScan:
    """A scan of the stored rows: what all its tasks share."""

    scratch: Scratch
    graph: GraphStorage
    refs: Mapping[str, TableRef]
    selection: Selection
    blocks: int


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Some fragments of one type."""

    owner: NodeType | EdgeType
    fragment_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BlockStep:
    """One step over all blocks, and the shuffled rows that it reads."""

    scratch: Scratch
    selection: Selection
    shuffled: Shuffled
    starts: tuple[int, ...] = ()

    @property
    def blocks(self) -> int:
        return self.shuffled.buckets

    def tables(self, block: int) -> dict[str, pa.Table]:
        """The shuffled rows of one block."""
        if not self.shuffled.files:
            return {}
        return next(self.shuffled.read(self.scratch.objects, range(block, block + 1)), {})


@dataclass(frozen=True, slots=True)
class NumberedBlock:
    nodes: int
    shuffled: ShuffleFile | None


@dataclass(frozen=True, slots=True)
class LinkedBlock:
    edges: int
    shuffled: ShuffleFile | None


@dataclass(frozen=True, slots=True)
class Network:
    """A numbered graph. Block ``b`` holds the nodes ``starts[b]`` to ``starts[b + 1]``.

    ``names/b`` has type and id of its nodes; ``out/b`` and ``in/b`` the edges that begin and end
    there, with the node's position in the block (``own``, ascending) and the number of the
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

    def links(self, block: int, *, undirected: bool = False, reverse: bool = False) -> NetworkLinks:
        """The edges of a block, from ``other`` to ``own``; by default those that end in it."""
        kinds = ("in", "out") if undirected else ("out",) if reverse else ("in",)
        found = [self.scratch.get(f"{kind}/{block}") for kind in kinds]
        weights = [part[WEIGHT] for part in found]
        return NetworkLinks(
            np.concatenate([part["own"] for part in found]),
            np.concatenate([part["other"] for part in found]),
            None if weights[0] is None else np.concatenate(weights),
        )


@dataclass(frozen=True, slots=True)
class NetworkLinks:
    own: np.ndarray[Any, Any]
    other: np.ndarray[Any, Any]
    weight: np.ndarray[Any, Any] | None = None


def block_count(selection: Selection, snapshot: SnapshotPins) -> int:
    """The number of blocks: depends on the size of the graph alone, never on the cluster."""
    nodes = sum(snapshot.pin(owner.key).rows for owner in selection.nodes)
    edges = sum(snapshot.pin(owner.key).rows for owner in selection.edges)
    return max(1, math.ceil(nodes / NODES_PER_BLOCK), math.ceil(edges / EDGES_PER_BLOCK))


def build_network(
    tasks: Tasks,
    repository: Repository,
    snapshot: SnapshotPins,
    selection: Selection,
    scratch: Scratch,
    blocks: int,
) -> Network:
    """Number the nodes of a snapshot and build its edge arrays."""
    tasks = tasks.within(scratch)
    scan = _scan(repository, snapshot, selection, scratch, blocks)
    read = tasks.run(
        "reading the graph", partial(shuffle_rows, scan), _read_tasks(repository, scan)
    )

    def step(files: Iterable[ShuffleFile | None], starts: Sequence[int] = ()) -> BlockStep:
        return BlockStep(scratch, selection, Shuffled(blocks).and_(files), tuple(starts))

    numbered = tasks.run("numbering nodes", partial(number_block, step(read)), range(blocks))
    starts = [0]
    for result in numbered:
        starts.append(starts[-1] + result.nodes)
    linking = step((result.shuffled for result in numbered), starts)
    linked = tasks.run("linking nodes", partial(link_block, linking), range(blocks))
    arranging = step((result.shuffled for result in linked), starts)
    tasks.run("arranging edges", partial(arrange_block, arranging), range(blocks))
    scratch.remove(("read", "numbered", "linked"))
    return Network(scratch, selection, tuple(starts), sum(result.edges for result in linked))


def _scan(
    repository: Repository,
    snapshot: SnapshotPins,
    selection: Selection,
    scratch: Scratch,
    blocks: int,
) -> GraphScan:
    owners = (*selection.nodes, *selection.edges)
    refs = {owner.key: snapshot.pin(owner.key).ref for owner in owners}
    return GraphScan(scratch, GraphStorage.of(repository), refs, selection, blocks)


def _read_tasks(repository: Repository, scan: GraphScan) -> list[ReadTask]:
    owners: list[NodeType | EdgeType] = [*scan.selection.nodes, *scan.selection.edges]
    return [
        ReadTask(owner, group)
        for owner in owners
        for group in fragment_groups(repository.tables.open(scan.refs[owner.key]), ROWS_PER_TASK)
    ]


# -- on executors ----------------------------------------------------------------------------------


def shuffle_rows(scan: GraphScan, task: ReadTask) -> ShuffleFile | None:
    """Shuffle nodes by id, or edges by target (task)."""
    owner, weight = task.owner, scan.selection.weight
    table = scan.graph.table(scan.refs[owner.key])
    shuffle = ShuffleWriter(scan.blocks)
    if isinstance(owner, NodeType):
        rows = table.scan(["id"], fragment_ids=task.fragment_ids)
        shuffle.add(owner.key, rows, rows["id"])
    else:
        names = [SRC, DST, *([weight] if weight else [])]
        rows = table.scan(names, fragment_ids=task.fragment_ids)
        if weight:
            rows = rows.set_column(2, WEIGHT, _weights(owner, weight, rows))
        shuffle.add(owner.key, rows, rows[DST])
    return shuffle.write(scan.scratch.objects, f"{scan.scratch.prefix}/read")


def _weights(edge: EdgeType, name: str, rows: pa.Table) -> pa.Array:
    """Weights as 64-bit floats; raises ``InvalidInput`` unless all are finite and not negative."""
    found = as_array(rows[name].cast(pa.float64(), safe=False))
    usable = pc.and_(pc.is_finite(found), pc.greater_equal(found, 0.0))
    if found.null_count or not pc.all(usable).as_py():
        raise InvalidInput(
            f"{edge.name}.{name} has values that are null, negative or not finite: not a weight",
            remedy="Fill the property in, or analyse without weights.",
            details={"type_key": edge.key, "property": name},
        )
    return found


def number_block(step: BlockStep, block: int) -> NumberedBlock:
    """Sort the ids of a block; shuffle the edges that end in it by source (task)."""
    tables = step.tables(block)
    names = [_sorted_ids(tables.get(key)) for key in step.selection.node_keys]
    kinds = np.repeat(np.arange(len(names), dtype=np.int16), [len(ids) for ids in names])
    table = pa.table({"type": pa.array(kinds), "id": pa.concat_arrays(names)})
    step.scratch.put_table(f"names/{block}", table)
    shuffle = ShuffleWriter(step.blocks)
    for edge in step.selection.edges:
        rows = tables.get(edge.key)
        if rows is None:
            continue
        rows, places = _placed(step.selection, names, rows, dict(ends(edge))[DST], DST)
        here = pa.array(np.full(len(places), block, dtype=np.uint32))
        rows = rows.drop_columns([DST]).append_column("block", here)
        shuffle.add(edge.key, rows.append_column("place", pa.array(places)), rows[SRC])
    shuffled = shuffle.write(step.scratch.objects, f"{step.scratch.prefix}/numbered")
    return NumberedBlock(table.num_rows, shuffled)


def link_block(step: BlockStep, block: int) -> LinkedBlock:
    """Write the edges that begin in a block; shuffle them by the block they end in (task)."""
    tables = step.tables(block)
    known = step.scratch.get_table(f"names/{block}")
    kinds = known["type"].to_numpy()
    names = [
        as_array(known["id"]).slice(*_range(kinds, number))
        for number in range(len(step.selection.nodes))
    ]
    starts = np.array(step.starts)
    found: list[pa.Table] = []
    for edge in step.selection.edges:
        rows = tables.get(edge.key)
        if rows is not None:
            rows, own = _placed(step.selection, names, rows, dict(ends(edge))[SRC], SRC)
            found.append(rows.drop_columns([SRC]).append_column("own", pa.array(own)))
    shuffle = ShuffleWriter(step.blocks)
    if not found:
        _put_links(step, block, "out", _no_links(step.selection))
        return LinkedBlock(0, None)
    rows = pa.concat_tables(found, promote_options="default").combine_chunks()
    blocks = rows["block"].to_numpy()
    other = starts[blocks] + rows["place"].to_numpy()
    _put_links(step, block, "out", _links(rows["own"].to_numpy(), other, rows))
    columns = {"own": rows["place"], "other": pa.array(rows["own"].to_numpy() + starts[block])}
    if step.selection.weight:
        columns[WEIGHT] = rows[WEIGHT]
    shuffle.add_to_buckets("in", pa.table(columns), blocks)
    shuffled = shuffle.write(step.scratch.objects, f"{step.scratch.prefix}/linked")
    return LinkedBlock(rows.num_rows, shuffled)


def arrange_block(step: BlockStep, block: int) -> None:
    """Write the edges that end in a block (task)."""
    rows = step.tables(block).get("in")
    links = _no_links(step.selection)
    if rows is not None:
        links = _links(rows["own"].to_numpy(), rows["other"].to_numpy(), rows)
    _put_links(step, block, "in", links)


def _sorted_ids(table: pa.Table | None) -> pa.Array:
    if table is None:
        return pa.array([], pa.string())
    ids = as_array(table["id"])
    return ids.take(pc.sort_indices(ids))


def _range(kinds: np.ndarray[Any, Any], kind: int) -> tuple[int, int]:
    """Offset and number of the ids of one type in a block."""
    first, last = np.searchsorted(kinds, [kind, kind + 1])
    return int(first), int(last - first)


def _placed(
    selection: Selection, names: Sequence[pa.Array], rows: pa.Table, node_key: str, column: str
) -> tuple[pa.Table, np.ndarray[Any, Any]]:
    """Edges with one end in this block, and its position; other edges are left out."""
    if node_key not in selection.node_keys:
        return rows.slice(0, 0), np.zeros(0, dtype=np.int64)
    number = selection.node_keys.index(node_key)
    before = sum(len(ids) for ids in names[:number])
    found = pc.index_in(as_array(rows[column]), value_set=names[number])
    here = pc.is_valid(found)
    places = found.filter(here).to_numpy(zero_copy_only=False).astype(np.int64)
    return rows.filter(here), places + before


def _links(own: np.ndarray[Any, Any], other: np.ndarray[Any, Any], rows: pa.Table) -> NetworkLinks:
    """Edge arrays in an order that depends on node numbers and weights alone."""
    weight = rows[WEIGHT].to_numpy() if WEIGHT in rows.column_names else None
    order = np.lexsort((other, own) if weight is None else (weight, other, own))
    return NetworkLinks(own[order], other[order], None if weight is None else weight[order])


def _no_links(selection: Selection) -> NetworkLinks:
    none = np.zeros(0, dtype=np.int64)
    return NetworkLinks(none, none, np.zeros(0) if selection.weight else None)


def _put_links(step: BlockStep, block: int, kind: str, links: NetworkLinks) -> None:
    step.scratch.put(f"{kind}/{block}", own=links.own, other=links.other, weight=links.weight)
