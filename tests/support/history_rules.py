"""The rules a history must keep, one generator each, over one shared index of it.

The names follow Adya's phenomena where they have one (G0 … G2) and plain words where they do not.
Every rule is close to linear in the size of the history. Cycles are found elsewhere
(``tests.support.history_checker``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from tests.support.history import History, Operation, Outcome

SHOWN_MAX = 20  # elements of a list that are shown


class Name(StrEnum):
    """What can be wrong with a history."""

    DUPLICATE_ELEMENT = "duplicate element"
    PHANTOM_ELEMENT = "phantom element"
    INCOMPATIBLE_ORDER = "incompatible order"
    LOST_APPEND = "lost append"
    LOST_UPDATE = "lost update"
    PARTIAL_WRITE = "partial write"
    RESURRECTED_WRITE = "resurrected write"
    DUPLICATE_COMMIT = "duplicate commit"
    TORN_READ = "torn read"
    STALE_READ = "stale read"
    NON_MONOTONIC_READ = "non-monotonic read"
    G0 = "G0 dirty write"
    G1A = "G1a aborted read"
    G1B = "G1b intermediate read"
    G1C = "G1c circular information flow"
    G_SINGLE = "G-single read skew"
    G2 = "G2 anti-dependency cycle"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One thing that no serial history could show."""

    name: Name
    message: str
    operations: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"


class Index:
    """What every check looks up: who appended a value, what is visible in the end."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.final = history.final
        self.by_number = {o.number: o for o in history.operations}
        self.appended_by: dict[int, Operation] = {}
        self.last_of_operation: dict[tuple[int, str], int] = {}
        for operation in history.operations:
            for append in operation.appends:
                if append.value in self.appended_by:
                    raise ValueError(f"value {append.value} is appended twice: not a history")
                self.appended_by[append.value] = operation
                self.last_of_operation[operation.number, append.key] = append.value
        self.visible = {key: set(values) for key, values in self.final.items()}
        self.committed = [o for o in history.operations if self.is_committed(o)]

    def is_committed(self, operation: Operation) -> bool:
        """Whether it took effect: acknowledged, or of unknown outcome and visible in the end."""
        if operation.outcome is Outcome.UNKNOWN:
            return any(a.value in self.visible.get(a.key, ()) for a in operation.appends)
        return operation.outcome is Outcome.OK

    def reads(self) -> Iterator[tuple[Operation, str, tuple[int, ...]]]:
        for operation in self.history.operations:
            for key, seen in operation.read.items():
                yield operation, key, seen

    def is_prefix(self, key: str, seen: tuple[int, ...]) -> bool:
        return self.final.get(key, ())[: len(seen)] == seen


# -- elements --------------------------------------------------------------------------------------


def final_elements(index: Index) -> Iterator[Anomaly]:
    """The lists in the end hold what was appended, once, and nothing that failed."""
    for key, values in index.final.items():
        yield from _repeated(key, values, "in the end", ())
        for value in dict.fromkeys(values):
            operation = index.appended_by.get(value)
            if operation is None:
                yield Anomaly(Name.PHANTOM_ELEMENT, f"{key} ends with {value}: nobody appended it")
            elif operation.outcome is Outcome.FAILED:
                yield Anomaly(
                    Name.RESURRECTED_WRITE,
                    f"{key} ends with {value} of the refused {operation.describe()}",
                    (operation.number,),
                )


def appends_survive(index: Index) -> Iterator[Anomaly]:
    """Acknowledged appends are there; those of unknown outcome all or not at all."""
    for operation in index.history.operations:
        missing = [
            a for a in operation.appends if a.value not in index.visible.get(a.key, frozenset())
        ]
        if not missing or operation.outcome is Outcome.FAILED:
            continue
        where = ", ".join(f"{a.value} of {a.key}" for a in missing)
        if operation.outcome is Outcome.OK:
            yield Anomaly(
                Name.LOST_APPEND, f"{where} is gone: {operation.describe()}", (operation.number,)
            )
        elif len(missing) < len(operation.appends):
            yield Anomaly(
                Name.PARTIAL_WRITE,
                f"{where} is missing, the rest is there: {operation.describe()}",
                (operation.number,),
            )


def read_elements(index: Index) -> Iterator[Anomaly]:
    """Every read list is a beginning of the final one; if not, say in which way."""
    judged: set[tuple[str, tuple[int, ...]]] = set()
    for operation, key, seen in index.reads():
        yield from _intermediate(index, operation, key, seen)
        if index.is_prefix(key, seen) or (key, seen) in judged:
            continue
        judged.add((key, seen))
        yield from _explain(index, operation, key, seen)


def _intermediate(
    index: Index, reader: Operation, key: str, seen: tuple[int, ...]
) -> Iterator[Anomaly]:
    """The newest element a read sees must be the last its writer appended."""
    writer = index.appended_by.get(seen[-1]) if seen else None
    if writer is None or writer.number == reader.number:
        return
    last = index.last_of_operation.get((writer.number, key), seen[-1])
    if last != seen[-1]:
        yield Anomaly(
            Name.G1B,
            f"{reader.describe()} saw {key} end in {seen[-1]}, but {writer.describe()}",
            (reader.number, writer.number),
        )


def _explain(index: Index, reader: Operation, key: str, seen: tuple[int, ...]) -> Iterator[Anomaly]:
    explained = list(_repeated(key, seen, f"in {reader.describe()}", (reader.number,)))
    visible = index.visible.get(key, set())
    for value in dict.fromkeys(seen):
        writer = index.appended_by.get(value)
        if writer is None:
            explained.append(
                Anomaly(
                    Name.PHANTOM_ELEMENT,
                    f"{reader.describe()} saw {value} in {key}: nobody appended it",
                    (reader.number,),
                )
            )
        elif writer.outcome is not Outcome.OK and value not in visible:
            explained.append(
                Anomaly(
                    Name.G1A,
                    f"{reader.describe()} saw {value} in {key}, which never committed: "
                    f"{writer.describe()}",
                    (reader.number, writer.number),
                )
            )
        elif value not in visible:
            explained.append(
                Anomaly(
                    Name.LOST_APPEND,
                    f"{reader.describe()} saw {value} in {key}, in the end it is gone: "
                    f"{writer.describe()}",
                    (reader.number, writer.number),
                )
            )
    yield from explained
    if not explained:
        yield Anomaly(
            Name.INCOMPATIBLE_ORDER,
            f"{reader.describe()} saw {key} as {_short(seen)}, in the end it is "
            f"{_short(index.final.get(key, ()))}",
            (reader.number,),
        )


def _repeated(
    key: str, values: tuple[int, ...], where: str, operations: tuple[int, ...]
) -> Iterator[Anomaly]:
    if len(set(values)) != len(values):
        twice = sorted({v for v in values if values.count(v) > 1})
        yield Anomaly(
            Name.DUPLICATE_ELEMENT, f"{key} holds {twice} more than once {where}", operations
        )


def _short(values: tuple[int, ...]) -> str:
    return str(list(values)) if len(values) <= SHOWN_MAX else f"[… {list(values[-SHOWN_MAX:])}"


# -- updates and commits ---------------------------------------------------------------------------


def lost_updates(index: Index) -> Iterator[Anomaly]:
    """No two operations that took effect append to the same version of a key."""
    based_on: dict[tuple[str, tuple[int, ...]], Operation] = {}
    for operation in index.committed:
        for key in dict.fromkeys(a.key for a in operation.appends):
            if key not in operation.read:
                continue
            other = based_on.setdefault((key, operation.read[key]), operation)
            if other is not operation:
                yield Anomaly(
                    Name.LOST_UPDATE,
                    f"both appended to the same version of {key} (length "
                    f"{len(operation.read[key])}): {other.describe()} and {operation.describe()}",
                    (other.number, operation.number),
                )


def commits_of_operations(index: Index) -> Iterator[Anomaly]:
    """Acknowledged commits are in the chain, refused ones are not, and each has one operation."""
    chain = index.history.commits
    if chain is None:
        return
    known = set(chain)
    if len(known) != len(chain):
        yield Anomaly(Name.DUPLICATE_COMMIT, "the chain of commits names a commit twice")
    made_by: dict[str, Operation] = {}
    for operation in index.history.operations:
        if operation.commit is None:
            continue
        other = made_by.setdefault(operation.commit, operation)
        if other is not operation:
            yield Anomaly(
                Name.DUPLICATE_COMMIT,
                f"{operation.commit} was made by {other.describe()} and {operation.describe()}",
                (other.number, operation.number),
            )
        if operation.outcome is Outcome.OK and operation.commit not in known:
            yield Anomaly(
                Name.LOST_APPEND,
                f"the chain has no commit {operation.commit} of {operation.describe()}",
                (operation.number,),
            )
        if operation.outcome is Outcome.FAILED and operation.commit in known:
            yield Anomaly(
                Name.RESURRECTED_WRITE,
                f"the chain has the commit {operation.commit} of the refused "
                f"{operation.describe()}",
                (operation.number,),
            )


# -- snapshots -------------------------------------------------------------------------------------


def torn_reads(index: Index) -> Iterator[Anomaly]:
    """Every read is the state of exactly the commit it names."""
    seen_at: dict[tuple[str, str], tuple[int, ...]] = {}
    chain = index.history.commits
    place = {commit: n for n, commit in enumerate(chain or ())}
    bounds = {key: _bounds(index, key, place) for key in index.final}
    for operation in index.history.operations:
        if operation.at is None:
            continue
        if chain is not None and operation.at not in place:
            yield Anomaly(
                Name.TORN_READ,
                f"{operation.describe()}: the chain has no such commit",
                (operation.number,),
            )
            continue
        for key, seen in operation.read.items():
            if seen_at.setdefault((operation.at, key), seen) != seen:
                yield Anomaly(
                    Name.TORN_READ,
                    f"{operation.describe()} saw another {key} than an earlier read of that commit",
                    (operation.number,),
                )
            elif chain is not None and key in bounds:
                certain, possible = bounds[key]
                at = place[operation.at]
                least, most = bisect_right(certain, at), bisect_right(possible, at)
                if not least <= len(seen) <= most:
                    yield Anomaly(
                        Name.TORN_READ,
                        f"{operation.describe()} saw {len(seen)} elements of {key}; the commit "
                        f"has {least if least == most else f'{least} to {most}'}",
                        (operation.number,),
                    )


def _bounds(index: Index, key: str, place: dict[str, int]) -> tuple[list[int], list[int]]:
    """For each element of a key: the commit by which it is surely, and may be, in the list.

    Both are the element's own commit where that is known, otherwise the nearest known one after
    and before it in the list.
    """
    after_all = len(place)
    known: list[int | None] = []
    for value in index.final[key]:
        writer = index.appended_by.get(value)
        commit = writer.commit if writer is not None else None
        known.append(None if commit is None else place.get(commit))
    possible = list(accumulate((-1 if at is None else at for at in known), max))
    backwards = accumulate((after_all if at is None else at for at in reversed(known)), min)
    return list(backwards)[::-1], possible


def order_of_commits(index: Index) -> Iterator[Anomaly]:
    """The elements of a list are in the order of the commits that appended them."""
    place = {commit: n for n, commit in enumerate(index.history.commits or ())}
    for key, values in index.final.items():
        newest: tuple[int, Operation] | None = None
        for value in values:
            writer = index.appended_by.get(value)
            if writer is None or writer.commit not in place:
                continue
            at = place[writer.commit]
            if newest is not None and at < newest[0]:
                yield Anomaly(
                    Name.INCOMPATIBLE_ORDER,
                    f"{key} has {value} after an element of the later commit of "
                    f"{newest[1].describe()}: {writer.describe()}",
                    (newest[1].number, writer.number),
                )
            else:
                newest = (at, writer)


# -- real time -------------------------------------------------------------------------------------


def stale_reads(index: Index) -> Iterator[Anomaly]:
    """A read sees at least every append that was acknowledged before it began."""
    acknowledged: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for key, values in index.final.items():
        for place, value in enumerate(values):
            writer = index.appended_by.get(value)
            if writer is not None and writer.outcome is Outcome.OK and writer.completed is not None:
                acknowledged[key].append((writer.completed, place + 1))
    times = {}
    for key, found in acknowledged.items():
        found.sort()
        times[key] = ([t for t, _ in found], list(accumulate((n for _, n in found), max)))
    for operation, key, seen in index.reads():
        completed, lengths = times.get(key, ([], []))
        before = bisect_right(completed, operation.invoked)
        if before and len(seen) < lengths[before - 1] and index.is_prefix(key, seen):
            yield Anomaly(
                Name.STALE_READ,
                f"{operation.describe()} saw {len(seen)} elements of {key}, "
                f"{lengths[before - 1]} were acknowledged before it began",
                (operation.number,),
            )


def non_monotonic_reads(index: Index) -> Iterator[Anomaly]:
    """No process sees a list shrink."""
    longest: dict[tuple[str, str], int] = {}
    for operation in sorted(index.history.operations, key=lambda o: o.invoked):
        for key, seen in operation.read.items():
            known = longest.get((operation.process, key), 0)
            if len(seen) < known:
                yield Anomaly(
                    Name.NON_MONOTONIC_READ,
                    f"{operation.describe()} saw {len(seen)} elements of {key} after {known}",
                    (operation.number,),
                )
            longest[operation.process, key] = max(known, len(seen))
