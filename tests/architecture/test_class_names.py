"""One name, one class: no two modules of ``src`` define a class of the same name.

A leading underscore makes no difference, since a reader who searches for ``Step`` finds ``_Step``
as well.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping

from tests.architecture.source_tree import trees

SYNTAX_TREES = ("lang/query/parse/ast.py", "lang/schema/parse/ast.py")
"""Both languages name their syntax nodes after the grammar, so these two may share names."""

REASONS: dict[str, str] = {}
"""Names that two classes share, and why."""

REMAINING: frozenset[str] = frozenset([])
"""Duplicates that are yet to be renamed. This list only shrinks."""


def duplicates(modules: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Names that more than one module gives to a class, without the leading underscore."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for module, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].add(module)
    return {
        name: sorted(where)
        for name, where in sorted(found.items())
        if len(where) > 1 and not where <= set(SYNTAX_TREES)
    }


def test_no_two_modules_define_a_class_of_one_name() -> None:
    found = duplicates(trees())
    allowed = REMAINING | REASONS.keys()
    assert {name: where for name, where in found.items() if name not in allowed} == {}


def test_every_exception_is_still_needed() -> None:
    assert set(duplicates(trees())) >= REASONS.keys()


def test_a_duplicate_would_be_noticed() -> None:
    planted = {"merge/a.py": ast.parse("class Step: ..."), "b.py": ast.parse("class _Step: ...")}
    assert duplicates(planted) == {"Step": ["b.py", "merge/a.py"]}


def test_syntax_trees_may_share_words_of_the_grammar() -> None:
    planted = dict.fromkeys(SYNTAX_TREES, ast.parse("class Name: ..."))
    assert duplicates(planted) == {}
    assert duplicates(planted | {"merge/a.py": ast.parse("class Name: ...")}) != {}
