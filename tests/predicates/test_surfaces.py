"""Every way to ask for a condition, against brute force: all types, edge values and operators.

Queries, updates and deletes, checks and filters of tables have to agree with the model of
``tests/predicates/model.py``. ``OMNIGRAPH_TEST_PREDICATES`` is how many cases are drawn for the
surfaces that commit or start cold (300 unless said); 0, or more than there are, stands for every
case there is.
``OMNIGRAPH_TEST_PREDICATES_SEED`` draws others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

import omnigraph
from omnigraph.engine.engine import ReadOptions
from omnigraph.errors import ConstraintViolation
from tests.predicates.model import (
    NUMBERS,
    OPERATORS,
    VALUES,
    satisfies,
    satisfies_pair,
    stored,
)
from tests.predicates.surfaces import (
    COLD,
    KINDS,
    TAGS,
    WARM,
    Case,
    Held,
    answer,
    cases,
    make,
    reads,
)

DRAWN = int(os.environ.get("OMNIGRAPH_TEST_PREDICATES", "300"))
SEED = int(os.environ.get("OMNIGRAPH_TEST_PREDICATES_SEED", "1"))
WORDS = 45  # copies of every value: more rows than strings are held one by one


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Held:
    return make(tmp_path_factory.mktemp("few") / "graph", 1)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Held:
    return make(tmp_path_factory.mktemp("many") / "graph", WORDS)


def _drawn(salt: int) -> list[Case]:
    return _some(list(cases()), DRAWN, SEED * 1_000 + salt)


def _some(every: list[Case], count: int, seed: int) -> list[Case]:
    """As many cases as asked for, or all there are."""
    return every if not count or count >= len(every) else Random(seed).sample(every, count)


def _expected(held: Held, case: Case) -> list[str]:
    return sorted(
        held.keys(lambda values: satisfies(case.kind, values[case.kind], case.op, case.value))
    )


def _compare_reads(held: Held, chosen: list[Case], options: ReadOptions) -> None:
    for case in chosen:
        wanted = _expected(held, case)
        for name, text, params in reads(case):
            found = answer(held.graph, text, params, options)
            assert found == wanted, (name, case, text, sorted(set(found) ^ set(wanted))[:5])


def test_queries_agree_with_the_model_in_every_wording_q47(few: Held) -> None:
    _compare_reads(few, _some(list(cases()), 4 * DRAWN, SEED), WARM)


def test_queries_agree_where_strings_are_held_as_words(many: Held) -> None:
    _compare_reads(many, _drawn(1)[: DRAWN // 6 or None], WARM)


def test_probed_queries_agree_before_and_after_indexes(few: Held) -> None:
    _compare_reads(few, [case for case in _drawn(2) if case.op == "="], COLD)
    few.graph.maintenance.build_indexes()
    few.graph.maintenance.optimize()
    equalities = [case for case in cases() if case.op == "="]
    _compare_reads(few, _some(equalities, DRAWN, SEED), COLD)


def test_properties_compare_with_properties(few: Held) -> None:
    pairs = [(kind, kind) for kind in KINDS]
    pairs += [(one, other) for one in NUMBERS for other in NUMBERS if one != other]
    for left, right in pairs:
        for op in OPERATORS:
            text = (
                "query q() { match { $a: Thing  $b: Thing  "
                f"$a.p{left} {op} $b.x{right} }} return {{ $a.k as k, $b.k as l }} }}"
            )
            found = {(row["k"], row["l"]) for row in few.graph.query(text, options=WARM).rows()}
            wanted = {
                (a, b)
                for a, ones in few.things.items()
                for b, others in few.things.items()
                if satisfies_pair((left, right), (ones[left], others[right]), op)
            }
            assert found == wanted, (left, op, right, sorted(found ^ wanted)[:5])


def test_keys_of_every_type_are_found_by_value(few: Held) -> None:
    for case in cases():
        held = {stored(case.kind, value) for value in VALUES[case.kind]}
        wanted = sum(satisfies(case.kind, value, case.op, case.value) for value in held)
        text = (
            f"query q($v: {case.given_as}) {{ match {{ $n: Key{case.kind}  "
            f"$n.k {case.op} $v }} return {{ count($n) as n }} }}"
        )
        for options in (WARM, COLD) if case.op == "=" else (WARM,):
            found = few.graph.query(text, params=case.params, options=options).rows()[0]["n"]
            assert found == wanted, (case, options.access)


def _batches(drawn: list[Case]) -> Iterator[list[Case]]:
    for start in range(0, len(drawn), TAGS):
        yield drawn[start : start + TAGS]


def test_updates_touch_what_a_query_finds(tmp_path: Path) -> None:
    held = make(tmp_path / "graph", 1)
    for number, batch in enumerate(_batches(_drawn(3)), start=1):
        head = ", ".join(f"$v{at}: {case.given_as}" for at, case in enumerate(batch))
        body = "\n".join(
            f"update Thing set {{ tag{at}: $tag }} where "
            f"{'px'[(number + at) % 2]}{case.kind} {case.op} $v{at}"
            for at, case in enumerate(batch)
        )
        params = {f"v{at}": case.params["v"] for at, case in enumerate(batch)}
        expected = [_expected(held, case) for case in batch]
        result = held.graph.mutate(
            f"query w($tag: I64, {head}) {{ {body} }}", params={**params, "tag": number}
        )
        assert result.affected_nodes == sum(map(len, expected)), batch
        for at, case in enumerate(batch):
            tagged = f"match {{ $n: Thing {{ tag{at}: $t }} }} return {{ $n.k as k }}"
            text = f"query q($t: I64) {{ {tagged} }}"
            assert answer(held.graph, text, {"t": number}, WARM) == expected[at], case
        if number == 3:
            held.graph.maintenance.build_indexes()


def test_deletes_remove_what_a_query_finds(tmp_path: Path) -> None:
    held = make(tmp_path / "graph", 1)
    every = "query q() { match { $n: Thing  $n $e:link $m } return { $n.k as k } }"
    drawn = _drawn(4)[: max(1, DRAWN // 4) if DRAWN else None]
    for number, case in enumerate(drawn):
        what = ("Link", "Thing")[number % 2]
        before = answer(held.graph, every, {}, WARM)
        gone = _expected(held, case)
        text = f"query w($v: {case.given_as}) {{ delete {what} where p{case.kind} {case.op} $v }}"
        branch = f"b{number}"
        held.graph.branches.create(branch)
        result = held.graph.mutate(text, params=case.params, branch=branch)
        assert result.affected_edges == len(gone), case
        assert result.affected_nodes == (len(gone) if what == "Thing" else 0), case
        rows = held.graph.query(every, branch=branch, options=WARM).rows()
        assert sorted(row["k"] for row in rows) == sorted(set(before) - set(gone)), case


BOUNDS = (0.1, 2.5, 16777217.0, 2.0**53, 2.0**63)


@pytest.mark.parametrize("kind", NUMBERS)
def test_ranges_mean_what_a_condition_means(tmp_path: Path, kind: str) -> None:
    """A bound is a literal of the schema: what ``>=`` and ``<=`` find is inside."""
    ranges = [(bound, op) for bound in BOUNDS for op in (">=", "<=")]
    body = "".join(
        f"  v{at}: {kind}?\n  @range(v{at}, {f'{bound:f}..' if op == '>=' else f'..{bound:f}'})\n"
        for at, (bound, op) in enumerate(ranges)
    )
    graph = omnigraph.init(tmp_path / "graph", f"node N {{ k: String @key\n{body}}}")
    outside = 0
    for at, (bound, op) in enumerate(ranges):
        held = {f"{at}": stored(kind, value) for at, value in enumerate(VALUES[kind])}
        wrong = {key for key, v in held.items() if not satisfies(kind, v, op, bound)}
        outside += len(wrong)
        rows = [{"k": key, f"v{at}": value} for key, value in held.items()]
        if wrong:
            with pytest.raises(ConstraintViolation) as problem:
                graph.load({"N": rows}, mode="overwrite")
            assert {item["id"] for item in problem.value.details["violations"]} == wrong
        kept = [row for row in rows if row["k"] not in wrong]
        graph.load({"N": kept}, mode="overwrite")
    assert outside
