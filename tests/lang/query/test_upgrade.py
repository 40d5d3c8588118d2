"""Texts of earlier versions: what they meant is what they mean when they are rewritten."""

from __future__ import annotations

import pytest
from tests.lang.query.loading import schema

from omnigraph.lang.query import check_query, compile_query, parse_queries, upgrade_queries
from omnigraph.lang.query.checked import CheckedRead
from omnigraph.lang.syntax import SourceError

OLD = """query q($x: Bool, $y: Bool, $n: String, $all: [String]) {
  match {
    $a: Person { nick: $n }
    $a in $b // in comments nothing changes: $a in $b
    $b /* in */ in
      $c
    not { $c or $d  $d or{1,2} $_ }
    ($x) or $y
    $n in $all
  }
  return { $c.nick as in } order { in desc }
}"""


def test_edges_called_like_operators_are_quoted_and_nothing_else() -> None:
    new = upgrade_queries(OLD)
    assert '$a "in" $b // in comments nothing changes: $a in $b' in new
    assert '$b /* in */ "in"\n' in new
    assert 'not { $c "or" $d  $d or{1,2} $_ }' in new
    assert new.count('"') == 6
    assert new.replace('"', "") == OLD
    assert upgrade_queries(new) == new


def test_the_rewritten_text_follows_the_edges() -> None:
    file = parse_queries(upgrade_queries(OLD))
    checked = check_query(file.queries[0], schema("world"), file.source)
    assert isinstance(checked, CheckedRead)
    edges = [item.edge.name for item in checked.block.traversals]
    assert edges == ["In", "In"]
    assert [item.edge.name for item in checked.block.negations[0].traversals] == ["Or", "Or"]


def test_the_old_text_is_refused_with_the_rewriting() -> None:
    with pytest.raises(SourceError, match="T7") as failed:
        compile_query(OLD, schema("world"))
    assert "fmt --upgrade" in failed.value.render()


def test_a_text_that_does_not_parse_is_refused() -> None:
    with pytest.raises(SourceError):
        upgrade_queries("query q() { match { $a in } return { $a } }")
