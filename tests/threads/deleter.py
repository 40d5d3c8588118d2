"""A process that deletes branches for as long as names come in: ``NAME`` or ``NAME again``."""

from __future__ import annotations

import sys

import omnigraph


def main(where: str) -> None:
    graph = omnigraph.open(where)
    for line in sys.stdin:
        name, _, again = line.strip().partition(" ")
        for tag in [tag.name for tag in graph.tags() if tag.name == f"tag-{name}"]:
            graph.delete_tag(tag)
        for branch in (f"from-{name}", name):
            if branch in graph.branches():
                graph.delete_branch(branch, force=True)
        if again:
            graph.create_branch(name)
        print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
