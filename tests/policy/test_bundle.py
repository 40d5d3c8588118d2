"""A bundle is read strictly: a mistyped scope must not widen access."""

from __future__ import annotations

import pytest

from omnigraph.errors import Forbidden, InvalidInput
from omnigraph.policy.access import AccessScope, PolicyAction
from omnigraph.policy.bundle import parse_bundle
from omnigraph.policy.decision import PolicyEvaluator

HEAD = "version: 1\ngroups: {g: [ana]}\nprotected_branches: [main]\n"


def rule(body: str, version: int = 1, effect: str = "allow") -> str:
    head = HEAD.replace("version: 1", f"version: {version}")
    return f"{head}rules: [{{id: r, {effect}: {{actors: {{group: g}}, {body}}}}}]\n"


def test_the_format_of_the_original_is_read() -> None:
    bundle = parse_bundle(rule("actions: [read, export], branch_scope: any"))
    assert bundle.version == 1
    assert bundle.kind == "graph"
    assert bundle.rules[0].actions == (PolicyAction.READ, PolicyAction.EXPORT)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version: 3", "version: must be 1 or 2"),
        ("version: true", "version: must be 1 or 2"),
        ("[]", "must be a mapping"),
        ("version: 1\nversion: 1", "stands twice"),
        ("version: 1\ngroups: &x {}\nrules: *x", "aliases are not supported"),
        ("version: 1\nrule: []", "rule: unknown key"),
        ("version: 1\ngroups: {g: []}", "groups.g: must not be empty"),
        ("version: 1\ngroups: {g: ['  ']}", "groups.g[0]: must not be blank"),
        ("version: 1\ngroups: {g: [7]}", "groups.g[0]: must be a text"),
        ("version: 1\nrequired_approvals: []", "required_approvals: unknown key"),
        (HEAD + "rules: [{id: r}]", "rules[0]: must have allow"),
        (HEAD + "rules: [{id: ' ', allow: {}}]", "rules[0].id: must not be blank"),
        (rule("actions: []"), "at least one action"),
        (rule("actions: [fly]"), "unknown action 'fly'"),
        (rule("actions: [read], branch_scop: any"), "branch_scop: unknown key"),
        (rule("actions: [read], branch_scope: all"), "must be one of any, protected"),
        (rule("actions: [branch_merge], branch_scope: any"), "does not apply to branch_merge"),
        (rule("actions: [read], target_branch_scope: any"), "does not apply to read"),
        (rule("actions: [admin], branch_scope: any"), "does not apply to admin"),
        (rule("actions: [invoke_query], branch_scope: any"), "does not apply to invoke_query"),
        (rule("actions: [graph_list], branch_scope: any"), "does not apply to graph_list"),
        (rule("actions: [graph_list, read]"), "cannot be combined"),
        (rule("actions: [read], branches: [dev]"), "branches: unknown key"),
        (rule("actions: [read]", effect="deny"), "deny: unknown key"),
        (rule("actions: [change], branch_scope: any, target_branch_scope: any"), "cannot be comb"),
        (rule("actions: [read], branches: []", 2), "must not be empty"),
        (rule("actions: [schema_apply], branches: [x]", 2), "does not apply to schema_apply"),
        (rule("actions: [branch_merge], types: [x]", 2), "does not apply to branch_merge"),
        (rule("actions: [read], queries: [x]", 2), "does not apply to read"),
        (rule("actions: [read]").replace("group: g", "group: h"), "there is no group 'h'"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_bundle(text)
    assert problem in refused.value.message
    assert refused.value.details["problems"]


def test_rule_ids_are_unique() -> None:
    one = "{id: r, allow: {actors: {group: g}, actions: [read]}}"
    with pytest.raises(InvalidInput, match="'r' stands twice"):
        parse_bundle(f"{HEAD}rules: [{one}, {one}]")


def test_more_approvals_than_people_are_refused() -> None:
    text = rule("actions: [read]", 2)
    text += (
        "required_approvals: [{id: a, target_branches: [main], approvals: 2,"
        " approvers: {group: g}}]\n"
    )
    with pytest.raises(InvalidInput, match="has fewer members"):
        parse_bundle(text)


def test_a_denial_names_action_branches_and_actor() -> None:
    evaluator = PolicyEvaluator.of_text(rule("actions: [read]"), "g1")
    with pytest.raises(Forbidden) as refused:
        evaluator.require("ana", PolicyAction.BRANCH_MERGE, AccessScope("dev", "main"))
    assert refused.value.message == (
        "policy denied action 'branch_merge' on branch 'dev' targeting branch 'main' "
        "for actor 'ana'"
    )
    assert refused.value.status == 403


def test_an_unknown_actor_and_no_actor_are_denied() -> None:
    evaluator = PolicyEvaluator.of_text(rule("actions: [read]"), "g1")
    unknown = evaluator.decide("eve", PolicyAction.READ, AccessScope("main"))
    assert not unknown.allowed
    assert unknown.message == "policy denied action 'read' for unknown actor 'eve'"
    assert not evaluator.decide(None, PolicyAction.READ, AccessScope("main")).allowed


def test_a_scope_of_protected_branches_needs_a_branch() -> None:
    text = rule("actions: [read], branch_scope: unprotected")
    evaluator = PolicyEvaluator.of_text(text, "g1")
    assert evaluator.decide("ana", PolicyAction.READ, AccessScope("dev")).allowed
    assert not evaluator.decide("ana", PolicyAction.READ, AccessScope("main")).allowed
    assert not evaluator.decide("ana", PolicyAction.READ, AccessScope()).allowed


def test_a_server_bundle_says_nothing_about_graphs() -> None:
    evaluator = PolicyEvaluator.of_text(rule("actions: [graph_list]"))
    assert evaluator.bundle.kind == "server"
    assert evaluator.decide("ana", PolicyAction.GRAPH_LIST, AccessScope()).allowed
    assert not evaluator.decide("ana", PolicyAction.READ, AccessScope("main")).allowed


def test_the_own_branches_of_an_actor_are_a_pattern() -> None:
    text = rule("actions: [change], branches: ['agents/{actor}/*']", 2)
    evaluator = PolicyEvaluator.of_text(text.replace("[ana]", "[ana, bo]"), "g1")
    assert evaluator.decide("ana", PolicyAction.CHANGE, AccessScope("agents/ana/1")).allowed
    assert not evaluator.decide("ana", PolicyAction.CHANGE, AccessScope("agents/bo/1")).allowed


def test_an_asterisk_in_the_id_of_an_actor_is_no_pattern() -> None:
    text = rule("actions: [change], branches: ['{actor}/x']", 2).replace("[ana]", "['a*']")
    evaluator = PolicyEvaluator.of_text(text, "g1")
    assert evaluator.decide("a*", PolicyAction.CHANGE, AccessScope("a*/x")).allowed
    assert not evaluator.decide("a*", PolicyAction.CHANGE, AccessScope("ana/x")).allowed
