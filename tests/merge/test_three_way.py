"""The pure part of merging: every cell of the truth table, and histories against a naive model.

The model here is written from the rules alone: it finds ancestors by walking everything and decides
every entity by the literal table of B-22. ``OMNIGRAPH_TEST_HISTORIES`` raises the number of random
histories (20,000 is what the project promises).
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from omnigraph.catalog.history.ancestry import merge_base
from omnigraph.merge.three_way import (
    SIDE_OF,
    Choice,
    Clash,
    Image,
    Keep,
    MergeLevel,
    MergeStrategy,
    Mix,
    Remove,
    Settled,
    SideName,
    Take,
    alternatives,
    decide,
)

HISTORIES = int(os.environ.get("OMNIGRAPH_TEST_HISTORIES", "4000"))
IMAGES: list[Image] = [None, *({"p": p, "q": q} for p in (0, 1, 2) for q in (0, 1, 2))]
LEVELS: list[MergeLevel] = ["entity", "property"]
STRATEGIES: list[MergeStrategy | None] = [None, "ours", "theirs"]
GIVEN = "given"


def carried_out(
    decision: Any, base: Image, source: Image, target: Image, given: frozenset[str] = frozenset()
) -> Any:
    """What becomes of the entity; a string names the conflict."""
    images = {"base": base, "source": source, "target": target}
    if isinstance(decision, Keep):
        return target
    if isinstance(decision, Remove):
        return None
    if isinstance(decision, Take):
        return images[decision.side]
    if isinstance(decision, Mix):
        start = images[decision.start]
        assert start is not None
        taken = {name: (images[side] or {})[name] for name, side in decision.taken.items()}
        return {**start, **taken, **dict.fromkeys(given, GIVEN)}
    assert isinstance(decision, Clash)
    return str(decision.kind)


# -- the model, written from the rules ------------------------------------------------------------


def by_the_table(base: Image, source: Image, target: Image) -> Any:
    """B-22, row by row."""
    x, y, z = base, source, target
    if x is not None:
        if y == x:
            return z
        if z == x:
            return y
        if y is None and z is None:
            return None
        if y is None or z is None:
            return "delete_vs_update"
        return z if y == z else "divergent_update"
    if y is None:
        return z
    if z is None:
        return y
    return z if y == z else "divergent_insert"


def cells(base: Image, source: Image, target: Image) -> dict[str, Any]:
    """B-22 for every property by itself, for an entity that both sides have."""
    assert source is not None
    assert target is not None
    return {
        name: by_the_table(
            {"v": None if base is None else base[name]}, {"v": source[name]}, {"v": target[name]}
        )
        for name in target
    }


def contested(base: Image, source: Image, target: Image) -> set[str]:
    if source is None or target is None:
        return set()
    return {name for name, cell in cells(base, source, target).items() if isinstance(cell, str)}


def expected(
    base: Image, source: Image, target: Image, level: MergeLevel, strategy: MergeStrategy | None
) -> Any:
    """A strategy decides what is contested, at every level; without one the level says what is."""
    plain = by_the_table(base, source, target)
    if not isinstance(plain, str):
        return plain
    if source is None or target is None:
        return plain if strategy is None else source if strategy == "theirs" else target
    found = cells(base, source, target)
    disputed = contested(base, source, target)
    if strategy is None and (disputed or level == "entity"):
        return plain
    chosen = source if strategy == "theirs" else target
    return {name: chosen[name] if name in disputed else cell["v"] for name, cell in found.items()}


def expected_settled(
    images: dict[str, Image], settled: Settled, strategy: MergeStrategy | None
) -> Any:
    """What a person decided, from the rules: property by property, the person first."""
    base, source, target = (images[name] for name in ("base", "source", "target"))
    named = {*settled.given, *settled.picks}
    if settled.take == "delete":
        return None
    if any(images[side] is None for side in settled.picks.values()):
        return "delete_vs_update" if settled.given else None
    disputed = contested(base, source, target)
    chosen = SIDE_OF.get(settled.take or "")
    if chosen and (not disputed or images[chosen] is None):
        whole = images[chosen]
        if whole is None:
            return "delete_vs_update" if named else None
        result = dict(whole)
    else:
        side = chosen or (SIDE_OF[strategy] if strategy else None)
        if disputed - named and side is None:
            return "divergent_insert" if base is None else "divergent_update"
        if source is None or target is None:
            start = next((image for image in (target, source, base) if image is not None), None)
            if start is None:
                return None
            result = dict(start)
        else:
            result = {}
            for name, cell in cells(base, source, target).items():
                if not isinstance(cell, str):
                    result[name] = cell["v"]
                elif name not in named:
                    result[name] = (images[side or ""] or {})[name]
    for name, picked in settled.picks.items():
        result[name] = (images[picked] or {})[name]
    return {**result, **dict.fromkeys(settled.given, GIVEN)}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_b22_every_cell_of_the_truth_table(
    level: MergeLevel, strategy: MergeStrategy | None
) -> None:
    count = 0
    for base, source, target in itertools.product(IMAGES, repeat=3):
        found = decide(base, source, target, level=level, strategy=strategy)
        wanted = expected(base, source, target, level, strategy)
        assert carried_out(found, base, source, target) == wanted, (base, source, target)
        count += 1
    assert count == len(IMAGES) ** 3


@pytest.mark.parametrize("level", LEVELS)
def test_merging_a_side_with_itself_changes_nothing(level: MergeLevel) -> None:
    for base, side in itertools.product(IMAGES, repeat=2):
        assert decide(base, side, side, level=level) == Keep()


@pytest.mark.parametrize("level", LEVELS)
def test_where_nothing_conflicts_the_direction_does_not_matter(level: MergeLevel) -> None:
    for base, one, two in itertools.product(IMAGES, repeat=3):
        forth = carried_out(decide(base, one, two, level=level), base, one, two)
        back = carried_out(decide(base, two, one, level=level), base, two, one)
        assert forth == back


def test_a_strategy_leaves_no_conflict() -> None:
    for base, one, two in itertools.product(IMAGES, repeat=3):
        for level, strategy in itertools.product(LEVELS, ("ours", "theirs")):
            found = decide(base, one, two, level=level, strategy=strategy)  # type: ignore[arg-type]
            assert not isinstance(found, Clash)


def settlements() -> Iterator[Settled]:
    """Every way to decide an entity: as a whole, property by property, with values, in part."""
    takes: list[Choice | None] = [None, "ours", "theirs", "base", "delete"]
    sides: list[SideName | None] = [None, "target", "source", "base"]
    for take, p, q in itertools.product(takes, [*sides, GIVEN], [*sides, GIVEN]):
        chosen = {name: side for name, side in (("p", p), ("q", q)) if side is not None}
        given = frozenset(name for name, side in chosen.items() if side == GIVEN)
        picks = {name: side for name, side in chosen.items() if side != GIVEN}
        if take is not None or chosen:
            yield Settled(take, picks, given)  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_a_person_decided_counts_and_the_rest_stays_open(
    strategy: MergeStrategy | None,
) -> None:
    for base, source, target in itertools.product(IMAGES[:6], repeat=3):
        images = {"base": base, "source": source, "target": target}
        for settled in settlements():
            found = decide(base, source, target, strategy=strategy, settled=settled)
            wanted = expected_settled(images, settled, strategy)
            got = carried_out(found, base, source, target, settled.given)
            assert got == wanted, (images, settled)
            if isinstance(found, Clash) and found.properties:
                assert found.properties == contested(base, source, target) - {
                    *settled.given,
                    *settled.picks,
                }


def test_a_partial_resolution_leaves_the_other_property_open() -> None:
    images = {"p": 0, "q": 0}, {"p": 1, "q": 1}, {"p": 2, "q": 2}
    found = decide(*images, settled=Settled(given=frozenset({"p"})))
    assert found == Clash(found.kind, frozenset({"q"}))  # type: ignore[union-attr]


@pytest.mark.parametrize("level", LEVELS)
def test_a_strategy_overwrites_nothing_that_one_side_alone_changed(level: MergeLevel) -> None:
    base, source, target = {"p": 0, "q": 0}, {"p": 1, "q": 0}, {"p": 2, "q": 2}
    found = decide(base, source, target, level=level, strategy="theirs")
    assert carried_out(found, base, source, target) == {"p": 1, "q": 2}


def test_the_possible_outcomes_of_a_clash_are_those_of_taking_a_side() -> None:
    for base, source, target in itertools.product(IMAGES, repeat=3):
        if not isinstance(decide(base, source, target, level="entity"), Clash):
            continue
        options = alternatives(base, source, target)
        outcomes = [carried_out(option, base, source, target) for option in options]
        for take in ("ours", "theirs"):
            settled = Settled(take)  # type: ignore[arg-type]
            chosen = decide(base, source, target, settled=settled)
            assert carried_out(chosen, base, source, target) in outcomes
            by_strategy = decide(base, source, target, strategy=take)  # type: ignore[arg-type]
            assert carried_out(by_strategy, base, source, target) in outcomes


def test_the_properties_in_conflict_are_named() -> None:
    for level in LEVELS:
        found = decide({"p": 0, "q": 0}, {"p": 1, "q": 0}, {"p": 2, "q": 1}, level=level)
        assert found == Clash(found.kind, frozenset({"p"}))  # type: ignore[union-attr]

    clash = decide({"p": 0, "q": 0}, {"p": 1, "q": 1}, {"p": 2, "q": 1})
    assert clash == Clash(clash.kind, frozenset({"p"}))  # type: ignore[union-attr]


# -- histories ------------------------------------------------------------------------------------

State = dict[str, Any]


class History:
    """Commits and branches in memory, merged by the code under test."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.parents: dict[str, tuple[str, ...]] = {"c000": ()}
        self.states: dict[str, State] = {"c000": {f"e{n}": {"p": 0, "q": 0} for n in range(3)}}
        self.heads = {"main": "c000"}

    def commit(self, branch: str, state: State, *merged: str) -> str:
        id = f"c{len(self.parents):03d}"
        self.parents[id] = (self.heads[branch], *merged)
        self.states[id] = state
        self.heads[branch] = id
        return id

    def edit(self, branch: str) -> None:
        """Insert, update, delete, make again, or change something back."""
        state = dict(self.states[self.heads[branch]])
        for _ in range(self.rng.randint(1, 2)):
            id = f"e{self.rng.randint(0, 5)}"
            if id in state and self.rng.random() < 0.35:
                del state[id]
            else:
                state[id] = {"p": self.rng.randint(0, 2), "q": self.rng.randint(0, 1)}
        self.commit(branch, state)

    def merge(
        self, source: str, target: str, level: MergeLevel, strategy: MergeStrategy | None
    ) -> None:
        theirs, ours = self.heads[source], self.heads[target]
        versions = {id: int(id[1:]) for id in self.parents}
        base = merge_base(self.parents, theirs, ours, versions)
        assert base == naive_base(self.parents, theirs, ours)
        if base == theirs:
            return
        merged = self._merged(base, theirs, ours, level, strategy)
        if merged is not None:
            self.commit(target, merged, theirs)

    def revert(self, branch: str) -> None:
        """Undo a random commit of the branch: base is the commit, source its first parent."""
        chain = [self.heads[branch]]
        while self.parents[chain[-1]]:
            chain.append(self.parents[chain[-1]][0])
        undone = self.rng.choice(chain)
        if not self.parents[undone]:
            return
        before = self.parents[undone][0]
        level = self.rng.choice(LEVELS)
        merged = self._merged(undone, before, self.heads[branch], level, None)
        if merged is None:
            return
        if undone == self.heads[branch]:
            assert merged == self.states[before]
        self.commit(branch, merged)

    def _merged(
        self,
        base: str | None,
        theirs: str,
        ours: str,
        level: MergeLevel,
        strategy: MergeStrategy | None,
    ) -> State | None:
        assert base is not None
        x, y, z = self.states[base], self.states[theirs], self.states[ours]
        merged: State = {}
        conflicts = 0
        for id in x.keys() | y.keys() | z.keys():
            images = (x.get(id), y.get(id), z.get(id))
            found = carried_out(decide(*images, level=level, strategy=strategy), *images)
            assert found == expected(*images, level, strategy), images
            conflicts += isinstance(found, str)
            if found is not None:
                merged[id] = found
        return None if conflicts else merged


def naive_base(parents: dict[str, tuple[str, ...]], one: str, two: str) -> str:
    """B-20 by brute force: every way from both heads, then everything but what is left behind."""

    def ways(id: str) -> dict[str, int]:
        found = {id: 0}
        for parent in parents[id]:
            for ancestor, steps in ways(parent).items():
                found[ancestor] = min(found.get(ancestor, steps + 1), steps + 1)
        return found

    first, second = ways(one), ways(two)
    common = [id for id in first if id in second]
    best = [id for id in common if not any(id != o and id in ways(o) for o in common)]
    return min(best, key=lambda id: (first[id] + second[id], -int(id[1:])))


@pytest.mark.parametrize("part", range(4))
def test_random_histories_agree_with_the_model(part: int) -> None:
    for number in range(HISTORIES // 4):
        rng = random.Random(f"{part}/{number}")
        history = History(rng)
        for _ in range(rng.randint(4, 12)):
            names = sorted(history.heads)
            branch = rng.choice(names)
            action = rng.random()
            if action < 0.2 and len(names) < 4:
                history.heads[f"b{len(names)}"] = history.heads[branch]
            elif action < 0.55:
                history.edit(branch)
            elif action < 0.65:
                history.revert(branch)
            elif len(names) > 1:
                other = rng.choice([name for name in names if name != branch])
                level, strategy = rng.choice(LEVELS), rng.choice(STRATEGIES)
                history.merge(branch, other, level, strategy)
                if rng.random() < 0.3:  # criss-cross
                    history.merge(other, branch, level, strategy)


def test_b20_a_base_that_both_sides_left_behind_is_not_chosen() -> None:
    """A short way around an old merge leads to the fork; the merged commit is the better base."""
    parents: dict[str, tuple[str, ...]] = {
        "fork": (),
        "x1": ("fork",),
        "x2": ("x1",),
        "s1": ("fork",),
        "s2": ("x2",),
        "s3": ("s2",),
        "s": ("s1", "s3"),
        "t1": ("fork",),
        "t2": ("x2",),
        "t3": ("t2",),
        "t": ("t1", "t3"),
    }
    assert merge_base(parents, "s", "t", dict.fromkeys(parents, 0)) == "x2"


def test_b20_ties_go_to_the_higher_version() -> None:
    parents: dict[str, tuple[str, ...]] = {
        "root": (),
        "a": ("root",),
        "b": ("root",),
        "m": ("a", "b"),
        "n": ("b", "a"),
    }
    assert merge_base(parents, "m", "n", {"root": 1, "a": 2, "b": 3, "m": 4, "n": 5}) == "b"
    assert merge_base(parents, "m", "n", {"root": 1, "a": 3, "b": 2, "m": 4, "n": 5}) == "a"


def test_commits_of_a_deleted_branch_are_no_base() -> None:
    parents: dict[str, tuple[str, ...]] = {
        "root": (),
        "m": ("root", "gone"),
        "n": ("root", "gone"),
    }
    assert merge_base(parents, "m", "n", dict.fromkeys(parents, 0)) == "root"
