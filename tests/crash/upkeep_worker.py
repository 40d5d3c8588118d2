"""One process of ``test_upkeep.py``: writes, reads or maintains until its time is up.

A writer knows what it wrote (its part of the model) and tells it when it ends; a reader checks that
every state it sees is whole. Refusals that are typed and worth repeating are counted; any other
error ends the process.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable

import omnigraph
from omnigraph import Graph
from omnigraph.errors import Conflict, OmnigraphError, RecoveryRequired

BRANCHES = ("main", "side")
KEEP = 3
QUERY = (
    "query q() { match { $p: Person  $c: City  $p livesIn $c } "
    "return { $p.name, $p.age, $c.size } }"
)
NAMES_MAX = 40  # names are used again: rows are inserted, changed and deleted


class Worker:
    """What every process has: a graph, a random choice, and what it counted."""

    def __init__(self, uri: str, name: str) -> None:
        self.graph: Graph = omnigraph.open(uri)
        self.name = name
        self.rng = random.Random(name)
        self.done = 0
        self.refused = 0
        self.model: dict[str, dict[str, int]] = {branch: {} for branch in BRANCHES}

    def tell(self) -> str:
        told = {"name": self.name, "done": self.done, "refused": self.refused, "model": self.model}
        return json.dumps(told)

    def write(self) -> None:
        """Nodes of two types and an edge between them, always together."""
        branch = self.rng.choice(BRANCHES)
        mine = self.model[branch]
        name = f"{self.name}-{self.rng.randrange(NAMES_MAX)}"
        number = self.rng.randrange(1, 200)
        with self.graph.write(branch) as w:
            if name not in mine:
                w.insert("Person", {"name": name, "age": number})
                w.insert("City", {"name": name, "size": number})
                w.insert_edge("LivesIn", name, name)
            elif self.rng.random() < 0.3:
                w.delete("Person", name)
                w.delete("City", name)
                number = 0
            else:
                w.update("Person", name, {"age": number})
                w.update("City", name, {"size": number})
        if number:
            mine[name] = number
        else:
            del mine[name]

    def read(self) -> None:
        """Whatever a branch, or one of its newest commits, says is whole."""
        branch = self.rng.choice(BRANCHES)
        at = None
        if self.rng.random() < 0.5:
            at = self.rng.choice(self.graph.history.commits(branch, limit=KEEP)).commit_id
        rows = self.graph.query(QUERY, at=at, branch=None if at else branch).rows()
        torn = [row for row in rows if row["p.age"] != row["c.size"] and "-" in row["p.name"]]
        assert not torn, f"{branch} at {at}: {torn}"

    def optimize(self) -> None:
        branch = self.rng.choice(BRANCHES)
        if self.rng.random() < 0.3:
            self._drop(branch)
        if self.rng.random() < 0.5:
            self.graph.maintenance.build_indexes(branch)
        else:
            self.graph.maintenance.optimize(branch)

    def _drop(self, branch: str) -> None:
        found = [
            i
            for i in self.graph.maintenance.indexes(branch)
            if i.type_key == "node:Person" and i.parts
        ]
        if any(i.property == "name" and i.state != "inherited" for i in found):
            self.graph.maintenance.drop_indexes("node:Person", "name", branch)

    def cleanup(self) -> None:
        report = self.graph.maintenance.cleanup(keep=KEEP, confirm=True)
        wrong = [one for one in report.datasets if one.error]
        assert not wrong, wrong


def main(uri: str, name: str, seconds: float) -> None:
    worker = Worker(uri, name)
    step: Callable[[], None] = getattr(worker, name.partition(".")[0])
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            step()
            worker.done += 1
        except (Conflict, RecoveryRequired) as refusal:
            if not refusal.retryable:
                raise
            worker.refused += 1
        except OmnigraphError as error:
            sys.exit(f"{name}: {type(error).__name__}: {error.message} {error.details}")
    print(worker.tell())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
