"""A process that deletes branches for as long as names come in: ``NAME`` or ``NAME again``."""

from __future__ import annotations

import sys

import omnigraph


def main(where: str) -> None:
    graph = omnigraph.open(where)
    for line in sys.stdin:
        name, _, again = line.strip().partition(" ")
        for tag in [tag.name for tag in graph.tags.list() if tag.name == f"tag-{name}"]:
            graph.tags.delete(tag)
        for branch in (f"from-{name}", name):
            if branch in graph.branches.list():
                graph.branches.delete(branch, force=True)
        if again:
            graph.branches.create(name)
        print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
