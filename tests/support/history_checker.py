"""The history checker: was what several processes saw and did one serial history of commits?

Pure: takes a ``History``, returns the anomalies in it, touches nothing. 20,000 operations take
seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from tests.support import dependencies, history_rules
from tests.support.dependencies import Edge, Step
from tests.support.history import History
from tests.support.history_rules import Anomaly, Index, Name

SHOWN_MAX = 20  # anomalies of one name that are reported in full
CYCLES_TRIED_MAX = 500  # rw edges from which a component is searched for its simplest cycle


def check(history: History) -> list[Anomaly]:
    """Every anomaly of the history, by name; an empty list means it could have been serial."""
    index = Index(history)
    found: list[Anomaly] = []
    for rule in RULES:
        found += rule(index)
    return found


def report(anomalies: Iterable[Anomaly]) -> str:
    """The anomalies as text: counted by name, the first of each in full."""
    by_name: dict[Name, list[Anomaly]] = defaultdict(list)
    for anomaly in anomalies:
        by_name[anomaly.name].append(anomaly)
    lines = []
    for name, group in by_name.items():
        lines.append(f"{name} x {len(group)}")
        lines += [f"  {anomaly.message}" for anomaly in group[:SHOWN_MAX]]
    return "\n".join(lines)


# -- cycles ----------------------------------------------------------------------------------------


def cycles(index: Index) -> Iterator[Anomaly]:
    """No operation comes, through any dependencies, before itself. One report per tangle."""
    committed = {o.number for o in index.committed}
    writers = {v: o.number for v, o in index.appended_by.items() if o.number in committed}
    graph = dependencies.build(index.committed, index.final, writers)
    nodes = graph.nodes()
    reported: set[int] = set()
    for name, kinds in (
        (Name.G0, (Edge.WW,)),
        (Name.G1C, (Edge.WW, Edge.WR)),
        (Name.G2, (Edge.WW, Edge.WR, Edge.RW)),
    ):
        for members in dependencies.components(nodes, graph.successors(kinds)):
            if members & reported:
                continue  # the same tangle, seen through more kinds of edges
            reported |= members
            yield _cycle(index, graph, name, members)


def _cycle(
    index: Index, graph: dependencies.Dependencies, name: Name, members: set[int]
) -> Anomaly:
    """The simplest cycle of a component: with one rw edge if there is such a one."""
    last = {Name.G0: Edge.WW, Name.G1C: Edge.WR, Name.G2: Edge.RW}[name]
    plain = (Edge.WW,) if name is Name.G0 else (Edge.WW, Edge.WR)
    for tried, step in enumerate(graph.inside(last, members)):
        if tried >= CYCLES_TRIED_MAX:
            break
        path = dependencies.shortest_path(
            step.target, step.source, members, graph.successors(plain)
        )
        if path is not None:
            simple = Name.G_SINGLE if name is Name.G2 else name
            return _cycle_report(index, simple, [step, *graph.steps(path, plain)])
    every = (Edge.WW, Edge.WR, Edge.RW)
    for step in graph.inside(Edge.RW, members):
        path = dependencies.shortest_path(
            step.target, step.source, members, graph.successors(every)
        )
        if path is not None:
            return _cycle_report(index, Name.G2, [step, *graph.steps(path, every)])
    raise AssertionError("a strongly connected component has a cycle")


def _cycle_report(index: Index, name: Name, steps: list[Step]) -> Anomaly:
    told = " ".join(f"[{index.by_number[s.source].describe()}] -{s.kind} {s.key}->" for s in steps)
    return Anomaly(name, f"{told} [#{steps[0].source}]", tuple(s.source for s in steps))


RULES: tuple[Callable[[Index], Iterable[Anomaly]], ...] = (
    history_rules.final_elements,
    history_rules.appends_survive,
    history_rules.read_elements,
    history_rules.lost_updates,
    history_rules.commits_of_operations,
    history_rules.torn_reads,
    history_rules.order_of_commits,
    history_rules.stale_reads,
    history_rules.non_monotonic_reads,
    cycles,
)
