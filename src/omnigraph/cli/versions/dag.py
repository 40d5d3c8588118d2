"""Draws the commit graph with ASCII characters.

Each lineage has a column, called a lane. A commit is a ``*`` in its lane; a merge opens a lane for
its second parent (``\\``), and a lane ends (``/``) where it joins another lane at a common commit.
Commits come newest first, each before its parents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Lanes = list[str | None]
"""The next commit of each lane; None for a free lane."""


def draw(commits: Iterable[tuple[str, tuple[str, ...], str]]) -> Iterator[str]:
    """Lines for commits given as id, parents that are part of the drawing, and text."""
    lanes: Lanes = []
    for commit_id, parents, text in commits:
        at = lanes.index(commit_id) if commit_id in lanes else _free(lanes, 0)
        lanes[at] = commit_id
        marks = ["*" if lane == at else _bar(to) for lane, to in enumerate(lanes)]
        yield f"{' '.join(marks).rstrip()}  {text}".rstrip()
        yield from _lead_on(lanes, at, parents)


def _lead_on(lanes: Lanes, at: int, parents: tuple[str, ...]) -> Iterator[str]:
    """Continue the lane of a commit at its parents; yields the lines that open or join lanes."""
    for parent in parents[1:]:
        known = parent in lanes
        to = lanes.index(parent) if known else _free(lanes, at + 1)
        left, right = sorted((at, to))
        drawn = list(lanes) if known else [None if n == to else c for n, c in enumerate(lanes)]
        yield _joint(drawn, left, right, "\\" if to > at else "/")
        lanes[to] = parent
    first = parents[0] if parents else None
    if first is not None and first in lanes:
        left, right = sorted((at, lanes.index(first)))
        lanes[left], lanes[right] = first, None
        yield _joint(lanes, left, right, "/")
    else:
        lanes[at] = first
    while lanes and lanes[-1] is None:
        lanes.pop()


def _free(lanes: Lanes, start: int) -> int:
    """The first free lane at or after ``start``; a new one if all are taken."""
    for at in range(start, len(lanes)):
        if lanes[at] is None:
            return at
    lanes.append(None)
    return len(lanes) - 1


def _joint(lanes: Lanes, left: int, right: int, mark: str) -> str:
    """The lanes, and a line between two of them whose right end is ``mark``."""
    cells = [_bar(lanes[at // 2]) if at % 2 == 0 else " " for at in range(2 * len(lanes))]
    for at in range(2 * left + 1, 2 * right - 1):
        cells[at] = "-" if cells[at] == " " else cells[at]
    cells[2 * right - 1] = mark
    return "".join(cells).rstrip()


def _bar(to: str | None) -> str:
    return " " if to is None else "|"
