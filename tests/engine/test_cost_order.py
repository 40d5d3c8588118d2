"""Join orders by cost: where they start, what they count, what they test, and what they say."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from omnigraph.engine.engine import Reader
from omnigraph.engine.plan import cost_order
from omnigraph.engine.plan.explain import Explanation
from tests.engine.graphs import reader_of

SCHEMA = """
node Person { k: String @key }
node Post { k: String @key  short: Bool }
node Town { k: String @key }
edge Knows: Person -> Person
edge Lives: Person -> Town
edge Wrote: Person -> Post
edge Answers: Post -> Post
"""
PERSONS, POSTS, TOWNS = 60, 400, 5


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    rng = Random(4)
    pairs = {(rng.randrange(PERSONS), rng.randrange(PERSONS)) for _ in range(900)}
    wrote = [(rng.randrange(PERSONS), post) for post in range(POSTS)]
    return reader_of(
        tmp_path_factory.mktemp("graph") / "g",
        SCHEMA,
        {
            "Person": [{"k": f"p{at}"} for at in range(PERSONS)],
            "Post": [{"k": f"m{at}", "short": at % 4 == 0} for at in range(POSTS)],
            "Town": [{"k": f"t{at}"} for at in range(TOWNS)],
            "Knows": [{"from": f"p{a}", "to": f"p{b}"} for a, b in sorted(pairs) if a != b],
            "Lives": [{"from": f"p{at}", "to": f"t{at % TOWNS}"} for at in range(PERSONS)],
            "Wrote": [{"from": f"p{a}", "to": f"m{b}"} for a, b in wrote],
            "Answers": [
                {"from": f"m{at}", "to": f"m{rng.randrange(at)}"} for at in range(100, POSTS)
            ],
        },
    )


def _explained(reader: Reader, pattern: str, answer: str = "count($a) as n") -> Explanation:
    return reader.explain(f"query q() {{ match {{ {pattern} }} return {{ {answer} }} }}")


def _words(found: Explanation) -> list[str]:
    return [step.text.split()[0] for step in found.steps]


def test_a_square_starts_where_few_rows_lead_around_it(reader: Reader) -> None:
    """Every answer has one author and one post that it answers: no list of friends is read."""
    square = "$a knows $b  $a wrote $x  $b wrote $y  $x answers $y"
    found = _explained(reader, square)
    assert _words(found)[-1] == "intersect"
    assert "[Knows]" in found.steps[-1].text
    assert max(step.rows for step in found.steps) < 2 * POSTS
    assert found.lines()[len(found.steps) + 2].startswith("start     by cost: $")
    costs = [start["cost"] for start in found.to_json()["starts"]]
    assert costs == sorted(costs)


def test_a_condition_that_two_nodes_differ_is_part_of_the_count(reader: Reader) -> None:
    found = _explained(reader, "$a knows $b  $b knows $c  $a.k != $c.k  $c lives $t")
    assert "different from" in found.steps[-1].text
    assert "filter" not in _words(found)


def test_an_edge_that_must_be_absent_is_part_of_the_count(reader: Reader) -> None:
    found = _explained(reader, "$a knows $b  $b knows $c  not { $a knows $c }")
    assert "not $a -[Knows]-> $c" in found.steps[-1].text
    assert "not" not in _words(found)


def test_a_pattern_that_starts_at_a_key_is_ordered_by_row_counts(reader: Reader) -> None:
    found = _explained(reader, '$a: Person { k: "p1" }  $a knows $b  $b knows $c  $c knows $a')
    assert not found.starts
    assert "intersect" not in _words(found)


def test_large_patterns_are_ordered_greedily(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost_order, "VARIABLES_MAX", 2)
    found = _explained(reader, "$a knows $b  $b knows $c  $c lives $u")
    assert not found.starts


def test_answers_are_those_of_the_greedy_order(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patterns = [
        "$a knows $b  $b knows $c  $c knows $a",
        "$a <knows> $b  $b <knows> $c  $c <knows> $a  $a lives $t  $b lives $t",
        "$a knows $b  $b knows $c  $c knows $d  $d knows $a",
        "$a wrote $x  $y answers $x  $b wrote $y  $a <knows> $b",
        "$a wrote $x  $y answers $x  not { $_ answers $y }  $x.short = true",
        "$a <knows> $b  $b <knows> $c  $a.k != $c.k  not { $a <knows> $c }  $c lives $t",
        "$a knows $b  $a knows $c  $b $e:knows $c  $a lives $t  $b lives $u  $t.k != $u.k",
    ]
    texts = [f"query q() {{ match {{ {one} }} return {{ count($a) as n }} }}" for one in patterns]
    texts += [
        f"query q() {{ match {{ {one} }} return {{ $a.k as k, count($b) as n }} order {{ k }} }}"
        for one in patterns
        if "$b" in one
    ]
    found = [reader.query(text).rows() for text in texts]
    assert all(reader.explain(text).starts for text in texts)
    monkeypatch.setattr(cost_order, "VARIABLES_MAX", 1)
    reader.drop_caches()
    assert not any(reader.explain(text).starts for text in texts)
    assert [reader.query(text).rows() for text in texts] == found
    assert all(rows[0]["n"] for rows in found)
