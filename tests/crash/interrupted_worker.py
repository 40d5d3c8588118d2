"""Writes numbered notes, each until it is committed, while the test sends SIGINT at random times.

    python interrupted_worker.py URI COUNT

Prints ``go`` before every attempt. What an interrupt did to a write is learned from the batch's
result or the note on the exception, as a program would; only "nothing was written" is repeated.
"""

from __future__ import annotations

import signal
import sys

from tests.support.internals import repository_of

import omnigraph
from omnigraph import Graph
from omnigraph.catalog.history.commits import find_commit
from omnigraph.model.outcome import NOTHING


def attempt(graph: Graph, number: int) -> bool:
    """Try once; whether the note is there now."""
    batch = None
    try:
        print("go", flush=True)
        with graph.write() as batch:
            batch.insert("Note", {"text": str(number)})
            batch.insert("Person", {"name": str(number)})
        return True
    except KeyboardInterrupt as stop:
        if batch is not None and batch.result is not None:
            return True
        told = "".join(getattr(stop, "__notes__", ()))
        if not told or NOTHING in told:
            return False
        if "was committed as" in told:
            return True
        commit_id = told.split("whether ")[1].split()[0]
        return find_commit(repository_of(graph).main.current(), commit_id) is not None


def is_stored(graph: Graph, number: int) -> bool:
    pin = graph.snapshot().pin("node:Note")
    notes = repository_of(graph).tables.open(pin.ref).scan(["text"])["text"].to_pylist()
    return str(number) in notes


def main(uri: str, count: int) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    graph = omnigraph.open(uri)
    for number in range(count):
        there = False
        while not there:
            try:
                there = attempt(graph, number)
            except KeyboardInterrupt:  # between two attempts: nobody was there to be told
                there = is_stored(graph, number)
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
