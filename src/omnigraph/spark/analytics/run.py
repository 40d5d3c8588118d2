"""Running an algorithm: validation of the request, selection of types, choice of the engine.

Small graphs are analysed in process, because starting Java would take longer than the analysis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from omnigraph.bulk.load.shuffle import bucket_of
from omnigraph.bulk.tasks import InProcessTasks, Tasks
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.constraints.edge_checks import ends
from omnigraph.errors import EntityNotFound, InvalidInput
from omnigraph.ingest.tabular import find_type
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.lang.syntax import did_you_mean
from omnigraph.spark.analytics.analysis import Analysis, Facts, Write
from omnigraph.spark.analytics.degrees import degrees
from omnigraph.spark.analytics.distances import distances
from omnigraph.spark.analytics.labels import communities, components
from omnigraph.spark.analytics.network import Network, Selection, block_count, build_network
from omnigraph.spark.analytics.pagerank import pagerank
from omnigraph.spark.analytics.scratch import ScratchArea
from omnigraph.spark.analytics.sweeps import AlgorithmOptions, AlgorithmResult
from omnigraph.spark.analytics.triangles import triangles


@dataclass(frozen=True, slots=True)
class Algorithm:
    """An algorithm, the names of its settings, and whether results are sorted descending."""

    run: Callable[[Tasks, Network, AlgorithmOptions], AlgorithmResult]
    takes: frozenset[str]
    descending: bool = False


ALGORITHMS: Final[Mapping[str, Algorithm]] = {
    "pagerank": Algorithm(
        pagerank, frozenset({"damping", "tolerance", "sweeps_max", "weight"}), descending=True
    ),
    "components": Algorithm(components, frozenset()),
    "communities": Algorithm(communities, frozenset({"sweeps_max"})),
    "triangles": Algorithm(triangles, frozenset(), descending=True),
    "degrees": Algorithm(degrees, frozenset(), descending=True),
    "distances": Algorithm(distances, frozenset({"sources", "weight", "direction"})),
}
DIRECTIONS: Final = ("out", "in", "both")


@dataclass(frozen=True, slots=True)
class AlgorithmRequest:
    """An algorithm, the types it runs over, and its settings."""

    algorithm: str
    nodes: Sequence[str] | None
    edges: Sequence[str] | None
    settings: Mapping[str, Any]

    def checked(self) -> Algorithm:
        """The algorithm; raises ``InvalidInput`` for unknown or wrong settings."""
        found = ALGORITHMS.get(self.algorithm)
        if found is None:
            hint = did_you_mean(self.algorithm, ALGORITHMS)
            raise InvalidInput(
                f"there is no algorithm {self.algorithm!r}" + (f"; {hint}" if hint else ""),
                remedy=f"Use one of {', '.join(ALGORITHMS)}.",
            )
        for name in self.settings:
            if name not in found.takes:
                known = ", ".join(sorted(found.takes)) or "none"
                raise InvalidInput(
                    f"{self.algorithm} has no setting {name!r}",
                    remedy=f"Settings of {self.algorithm}: {known}.",
                )
        if "sources" in found.takes and not self.settings.get("sources"):
            raise InvalidInput(
                "distances need the nodes to measure from", remedy="Name one source or several."
            )
        _require_range(self.settings, "damping", 0.0, 1.0)
        _require_range(self.settings, "tolerance", 0.0, 1.0)
        _require_range(self.settings, "sweeps_max", 0, 10_000)
        if self.settings.get("direction", "out") not in DIRECTIONS:
            raise InvalidInput(
                f"{self.settings['direction']!r} is not a direction",
                remedy=f"Use one of {', '.join(DIRECTIONS)}.",
            )
        return found


def _require_range(settings: Mapping[str, Any], name: str, low: float, high: float) -> None:
    value = settings.get(name, low)
    if not isinstance(value, int | float) or not low <= value <= high:
        raise InvalidInput(f"{name} is {value!r}", remedy=f"Use a number from {low} to {high}.")


def select(schema: AcceptedSchema, request: AlgorithmRequest) -> Selection:
    """The analysed types: those named, or the ends of the named edge types."""
    edges = _edges(schema, request.edges)
    if request.nodes is None:
        touched = {key for edge in edges for _, key in ends(edge)}
        chosen = touched if request.edges is not None else {n.key for n in schema.nodes.values()}
        nodes = [node for node in schema.nodes.values() if node.key in chosen]
    else:
        nodes = [_node(schema, name) for name in request.nodes]
    weight: str | None = request.settings.get("weight")
    for edge in edges:
        if weight is None:
            break
        declared = edge.properties.get(weight)
        if declared is None or not declared.type.is_numeric:
            raise InvalidInput(
                f"edge {edge.name} has no numeric property {weight!r}",
                remedy="Name a numeric property of every edge type that is analysed.",
                details={"type_key": edge.key, "property": weight},
            )
    ordered = sorted({node.key: node for node in nodes}.items())
    return Selection(tuple(node for _, node in ordered), edges, weight)


def _edges(schema: AcceptedSchema, names: Sequence[str] | None) -> tuple[EdgeType, ...]:
    found = list(schema.types())
    if names is None:
        found = [owner for owner in found if isinstance(owner, EdgeType)]
    else:
        found = [_edge(schema, name) for name in names]
    every: dict[str, EdgeType] = {}
    for owner in found:
        if not isinstance(owner, EdgeType):
            raise InvalidInput(f"{owner.name} is not an edge type")
        every[owner.key] = owner
    return tuple(every[key] for key in sorted(every))


def _edge(schema: AcceptedSchema, name: str) -> NodeType | EdgeType:
    if ":" in name:
        return schema.type(name)
    return schema.edge(name) or schema.type(f"edge:{name}")


def _node(schema: AcceptedSchema, name: str) -> NodeType:
    owner = schema.nodes.get(name) or find_type(schema, name)
    if not isinstance(owner, NodeType):
        raise InvalidInput(f"{owner.name} is not a node type")
    return owner


def analyze(
    start_tasks: Callable[[], Tasks],
    is_shared: Callable[[Tasks], bool],
    repository: Repository,
    snapshot: SnapshotPins,
    schema: AcceptedSchema,
    request: AlgorithmRequest,
    write: Callable[[Tasks], Write],
) -> Analysis:
    """Run one algorithm over a snapshot.

    ``start_tasks`` is asked for Spark when the graph is large; ``is_shared`` says whether its
    executors see the files of this machine.
    """
    algorithm, selection = request.checked(), select(schema, request)
    if not selection.nodes:
        raise InvalidInput("there is no node type to analyse")
    blocks = block_count(selection, snapshot)
    tasks: Tasks = InProcessTasks() if blocks == 1 else start_tasks()
    area = ScratchArea(repository, on_this_machine=blocks == 1 or is_shared(tasks))
    try:
        network = build_network(tasks, repository, snapshot, selection, area.scratch, blocks)
        computed = algorithm.run(tasks, network, _options(network, request))
        facts = Facts(
            request.algorithm,
            snapshot.commit_id,
            network.nodes,
            network.edges,
            computed.sweeps,
            computed.converged,
            computed.statistics,
        )
        descending = algorithm.descending
        found = write(tasks)
        return Analysis(facts, network, computed, tasks, area, found, descending=descending)
    except BaseException:
        area.close()
        raise


def _options(network: Network, request: AlgorithmRequest) -> AlgorithmOptions:
    given = {
        name: value for name, value in request.settings.items() if name not in ("weight", "sources")
    }
    sources = request.settings.get("sources")
    if sources is None:
        return AlgorithmOptions(**given)
    names = [sources] if isinstance(sources, str) else list(sources)
    return AlgorithmOptions(**given, sources=_located(network, names))


def _located(network: Network, names: Sequence[str]) -> dict[int, tuple[int, ...]]:
    """Positions, by block, of nodes named by id or by type and id (``Person:ana``)."""
    found: dict[int, list[int]] = {}
    for name in names:
        kinds, places = range(len(network.selection.nodes)), 0
        for type_numbers, id in _readings(network.selection, name, kinds):
            block = int(bucket_of(pa.array([id]), network.blocks)[0])
            table = network.scratch.get_table(f"names/{block}")
            for at, known in enumerate(table["id"].to_pylist()):
                if known == id and table["type"][at].as_py() in type_numbers:
                    found.setdefault(block, []).append(at)
                    places += 1
            if places:
                break
        if not places:
            raise EntityNotFound(
                f"there is no node {name!r} in the analysed types", details={"id": name}
            )
    return {block: tuple(places) for block, places in found.items()}


def _readings(selection: Selection, name: str, kinds: Sequence[int]) -> Any:
    """Interpretations of a name: type and id, then an id of any type."""
    prefix, colon, rest = name.partition(":")
    typed = [number for number in kinds if selection.nodes[number].name == prefix]
    if colon and typed:
        yield typed, rest
    yield list(kinds), name
