"""Decisions by Cedar are those of an independent evaluator, on random bundles and questions."""

from __future__ import annotations

import os
import random
from typing import Any

import yaml
from tests.support.policy_reference import decide

from omnigraph.policy.access import AccessScope, PolicyAction
from omnigraph.policy.decision import PolicyEvaluator

DECISIONS = int(os.environ.get("OMNIGRAPH_TEST_DECISIONS", "3000"))
PER_BUNDLE = 250
ACTORS = ["ana", "bo", "act-x", "a*", "zoë", 'q"uote', "agents/1", "*", "nobody"]
BRANCHES = [
    None, "main", "dev", "agents/ana/1", "agents/bo", "agents/", "release/1", "a*b", "zoë/ü",
    "agents/a*/x", "agents/*/x", 'q"uote\\', "ma", "mainn",
]  # fmt: skip
BRANCH_PATTERNS = [
    "main", "agents/*", "agents/{actor}/*", "*", "release/*", "*/1", "a*b*", "ag*nts/*o",
    "{actor}/*", 'q"*\\', "agents/**",
]  # fmt: skip
NAMES = [None, "Person", "Secret", "SecretNote", "Knows", "x"]
NAME_PATTERNS = ["Person", "Secret*", "*", "*Note", "Kn*s"]
BRANCHED = ["read", "export", "change"]
TARGETED = ["schema_apply", "branch_create", "branch_delete", "branch_merge"]
TRANSITIONS = ["branch_create", "branch_merge"]


def random_bundle(rng: random.Random) -> dict[str, Any]:
    version = rng.choice([1, 2, 2])
    names = ["readers", "writers", 'gr"oup', "*"]
    groups = {
        name: rng.sample(ACTORS[:-1], rng.randint(1, 5)) for name in names[: rng.randint(1, 4)]
    }
    protected = ["main", "release/1"] if version == 1 else ["main", "release/*", "{actor}", "*u*"]
    bundle = {
        "version": version,
        "groups": groups,
        "protected_branches": rng.sample(protected, rng.randint(0, len(protected))),
        "rules": [],
    }
    if rng.random() < 0.08:
        rules = [_rule(rng, version, groups, 0, ["graph_list"], [])]
    else:
        rules = [_graph_rule(rng, version, groups, n) for n in range(rng.randint(1, 6))]
    bundle["rules"] = rules
    return bundle


def _graph_rule(
    rng: random.Random, version: int, groups: dict[str, list[str]], number: int
) -> dict[str, Any]:
    family = rng.choice(
        [BRANCHED, TARGETED, TRANSITIONS, ["admin"], ["invoke_query"], [*BRANCHED, *TARGETED]]
    )
    actions = rng.sample(family, rng.randint(1, len(family)))
    keys = []
    if set(actions) <= set(BRANCHED):
        keys += ["branch_scope"] + (["branches", "types"] if version == 2 else [])
    if set(actions) <= set(TARGETED):
        keys += ["target_branch_scope"] + (["target_branches"] if version == 2 else [])
    if version == 2 and set(actions) <= set(TRANSITIONS):
        keys += ["branches"]
    if version == 2 and actions == ["invoke_query"]:
        keys += ["queries"]
    return _rule(rng, version, groups, number, actions, keys)


def _rule(
    rng: random.Random,
    version: int,
    groups: dict[str, list[str]],
    number: int,
    actions: list[str],
    keys: list[str],
) -> dict[str, Any]:
    body: dict[str, Any] = {"actors": {"group": rng.choice(list(groups))}, "actions": actions}
    for key in keys:
        if rng.random() < 0.45:
            continue
        if key.endswith("scope"):
            body[key] = rng.choice(["any", "protected", "unprotected"])
        else:
            choices = BRANCH_PATTERNS if "branches" in key else NAME_PATTERNS
            body[key] = rng.sample(choices, rng.randint(1, 3))
    effect = "deny" if version == 2 and rng.random() < 0.3 else "allow"
    return {"id": f"{rng.choice('zab')}:rule {number}", effect: body}


def test_cedar_and_an_independent_evaluator_decide_alike() -> None:
    rng = random.Random(20261118)
    allowed = 0
    for _ in range(max(1, DECISIONS // PER_BUNDLE)):
        document = random_bundle(rng)
        evaluator = PolicyEvaluator.of_text(yaml.safe_dump(document, allow_unicode=True), "g-1")
        for _ in range(PER_BUNDLE):
            actor, action = rng.choice(ACTORS), rng.choice(list(PolicyAction))
            places = (rng.choice(BRANCHES), rng.choice(BRANCHES))
            names = (rng.choice(NAMES), rng.choice(NAMES))
            found = evaluator.decide(actor, action, AccessScope(*places, *names))
            expected = decide(document, actor, str(action), *places, *names)
            assert (found.allowed, found.rule) == expected, (document, actor, action, places, names)
            allowed += found.allowed
    assert allowed > DECISIONS // 50, "too few questions are answered with yes to prove anything"
