"""A cluster is planned, approved and applied."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.folders import CONFIG, PEOPLE, cluster_folder

import omnigraph
from omnigraph.cli.main import run
from omnigraph.cluster.commands import Cluster
from omnigraph.cluster.diagnostics import Findings
from omnigraph.cluster.graphs import ClusterGraphs
from omnigraph.cluster.ledger import read_ledger, write_ledger
from omnigraph.errors import GraphNotFound, InvalidInput
from omnigraph.settings import Settings
from omnigraph.storage import failpoints

STEPS = [name for name in failpoints.NAMES if name.startswith("cluster.")]
WITHOUT_PLACES = CONFIG.replace("  places: {schema: places.pg}\n", "").replace(
    "[people, places]", "[people]"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return cluster_folder(tmp_path)


def cluster(folder: Path) -> Cluster:
    return Cluster(folder, Settings())


def codes(body: dict[str, Any]) -> list[str]:
    return [one["code"] for one in body["diagnostics"]]


def applied(folder: Path) -> Cluster:
    found = cluster(folder)
    assert found.import_state()["ok"]
    body = found.apply("ana")
    assert body["ok"]
    assert body["converged"], body
    return found


def files(folder: Path) -> list[Path]:
    """Every file but the lock file that local stores keep."""
    return sorted(p for p in folder.rglob("*") if p.is_file() and "#" not in p.name)


def remove_places(folder: Path) -> None:
    (folder / "cluster.yaml").write_text(WITHOUT_PLACES)


def test_the_layout_of_the_original_validates_and_applies(folder: Path) -> None:
    assert cluster(folder).validate()["ok"]
    found = applied(folder)
    people = omnigraph.open(folder / "graphs/people.omni")
    assert sorted(people.schema().nodes) == ["Person"]
    assert next(iter(people.history.commits())).actor == "ana"
    again = found.apply("ana")
    assert (again["converged"], again["state_written"], again["changes"]) == (True, False, [])
    assert found.plan()["changes"] == []
    assert found.status()["ok"]


def test_a_plan_changes_nothing_and_creates_everything(folder: Path) -> None:
    before = files(folder)
    body = cluster(folder).plan()
    assert {one["operation"] for one in body["changes"]} == {"create"}
    assert [one["resource"] for one in body["changes"]][:2] == ["graph.people", "graph.places"]
    assert files(folder) == before


def test_comments_and_layout_do_not_change_the_digest(folder: Path) -> None:
    found = applied(folder)
    (folder / "cluster.yaml").write_text(CONFIG.replace("graphs:", "# ours\ngraphs:"))
    assert found.plan()["changes"] == []


def test_a_schema_is_migrated(folder: Path) -> None:
    found = applied(folder)
    (folder / "people.pg").write_text(PEOPLE.replace("age: I32?", "age: I32?  email: String?"))
    schema = next(one for one in found.plan()["changes"] if one["resource"] == "schema.people")
    assert schema["migration"]["supported"]
    assert found.apply(None)["converged"]
    person = omnigraph.open(folder / "graphs/people.omni").schema().nodes["Person"]
    assert "email" in {one.name for one in person.properties.values()}


def test_a_schema_that_breaks_a_stored_query_is_refused_with_its_name(folder: Path) -> None:
    found = applied(folder)
    (folder / "people.pg").write_text("node Person { name: String @key }\n")
    body = found.plan()
    assert codes(body) == ["query_typecheck_error"]
    message = body["diagnostics"][0]["message"]
    assert "adults" in message
    assert "queries/adults.gq:1" in message


def test_a_removed_graph_is_kept_until_it_is_approved(folder: Path) -> None:
    found = applied(folder)
    remove_places(folder)
    assert found.plan()["approvals_required"] == [
        {
            "resource": "graph.places",
            "reason": "deleting a graph loses its data",
            "satisfied": False,
        }
    ]
    body = found.apply("ana")
    assert not body["converged"]
    assert "graph_delete_skipped" in codes(body)
    omnigraph.open(folder / "graphs/places.omni")
    approved = found.approve("graph.places", "bo")
    assert approved["ok"]
    assert found.plan()["approvals_required"][0]["satisfied"]
    assert found.apply("ana")["converged"]
    with pytest.raises(GraphNotFound):
        omnigraph.open(folder / "graphs/places.omni")
    approval = folder / f"__cluster/approvals/{approved['approval_id']}.json"
    assert "consumed_at" in json.loads(approval.read_text())


def test_a_deletion_is_not_recorded_over_another_command(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without locks, the other command wins the ledger, and the next one records the deletion."""
    found = applied(folder)
    remove_places(folder)
    approved = found.approve("graph.places", "bo")
    delete = ClusterGraphs.delete

    def overtaken(graphs: ClusterGraphs, id: str) -> None:
        delete(graphs, id)
        ledger = read_ledger(graphs.store, Findings())
        assert ledger is not None
        revision = ledger.revision + 1
        assert write_ledger(graphs.store, replace(ledger, revision=revision), Findings())

    with monkeypatch.context() as patch:
        patch.setattr(ClusterGraphs, "delete", overtaken)
        body = found.apply("ana")
    assert "state_cas_mismatch" in codes(body)
    approval = folder / f"__cluster/approvals/{approved['approval_id']}.json"
    assert "consumed_at" not in json.loads(approval.read_text())
    assert found.apply("ana")["converged"]
    assert "graph.places" not in found.status()["resource_digests"]


def test_an_approval_is_for_one_state_only(folder: Path) -> None:
    found = applied(folder)
    remove_places(folder)
    assert found.approve("graph.places", "bo")["ok"]
    (folder / "cluster.yaml").write_text(WITHOUT_PLACES.replace("brain", "other"))
    body = found.apply("ana")
    assert {"approval_stale", "graph_delete_skipped"} <= set(codes(body))
    omnigraph.open(folder / "graphs/places.omni")


def test_only_what_loses_data_is_approved_and_by_somebody(folder: Path) -> None:
    found = applied(folder)
    assert codes(found.approve("graph.people", "bo")) == ["approval_not_required"]
    with pytest.raises(InvalidInput, match="needs an actor"):
        found.approve("graph.people", None)


def test_apply_needs_a_ledger_and_import_needs_none(folder: Path) -> None:
    assert codes(cluster(folder).apply(None)) == ["state_missing"]
    assert codes(cluster(folder).refresh()) == ["state_missing"]
    status = cluster(folder).status()
    assert (status["ok"], codes(status)) == (True, ["state_missing"])
    assert cluster(folder).import_state()["ok"]
    assert codes(cluster(folder).import_state()) == ["state_already_exists"]


def test_a_lost_graph_and_a_lost_text_are_planned_again_after_a_refresh(folder: Path) -> None:
    found = applied(folder)
    stored = next((folder / "__cluster/resources/query").rglob("*.gq"))
    stored.unlink()
    assert "catalog_payload_missing" in codes(found.status())
    shutil.rmtree(folder / "graphs/places.omni")
    assert found.refresh()["ok"]
    planned = {one["resource"] for one in found.plan()["changes"]}
    assert {"graph.places", "query.people.adults"} <= planned
    assert found.apply(None)["converged"]
    assert stored.exists()


def test_a_lock_is_gone_after_a_clean_stop_and_respected_before(folder: Path) -> None:
    found = applied(folder)
    lock = folder / "__cluster/lock.json"
    assert not lock.exists()
    held = {"version": 1, "lock_id": "L", "operation": "apply", "created_at": "?", "pid": 1}
    lock.write_text(json.dumps(held))
    assert codes(found.apply(None)) == ["state_lock_held"]
    assert codes(found.force_unlock("other")) == ["state_lock_id_mismatch"]
    assert found.force_unlock("L")["lock_removed"]
    assert codes(found.force_unlock("L")) == ["state_lock_missing"]
    assert found.apply(None)["converged"]


def test_a_foreign_change_of_the_ledger_is_noticed(folder: Path) -> None:
    applied(folder)
    state = folder / "__cluster/state.json"
    for text, code in [
        ("[]", "invalid_state_json"),
        ('{"version": 2}', "unsupported_state_version"),
        ('{"version": 1, "mine": 1}', "invalid_state_json"),
    ]:
        state.write_text(text)
        assert codes(cluster(folder).apply(None)) == [code]


def killed(folder: Path, failpoint: str) -> int:
    """``cluster apply`` in a process that dies at a failpoint."""
    environment = {**os.environ, failpoints.ENVIRONMENT: f"{failpoint}=kill"}
    command = [sys.executable, "-m", "omnigraph.cli.main", "cluster", "apply"]
    where = ["--config", str(folder), "--as", "ana"]
    done = subprocess.run([*command, *where], env=environment, check=False, capture_output=True)
    return done.returncode


FULL = os.environ.get("OMNIGRAPH_TEST_CLUSTER") == "full"
MATRIX = STEPS if FULL else ["cluster.after_create", "cluster.after_schema", "cluster.after_delete"]


@pytest.mark.parametrize("step", MATRIX)
def test_the_next_command_finishes_what_a_killed_one_began(folder: Path, step: str) -> None:
    found = cluster(folder)
    assert found.import_state()["ok"]
    changing = not step.endswith(("create", "payload", "lock"))
    if changing:
        assert found.apply("ana")["converged"]
        (folder / "people.pg").write_text(PEOPLE.replace("age: I32?", "age: I32?  x: String?"))
        remove_places(folder)
        assert found.approve("graph.places", "bo")["ok"]
    for _ in range(2):  # killed again in what finishes the first
        assert killed(folder, step) in (-9, 0)
    body = found.apply("ana")
    assert body["ok"], body
    assert body["converged"], body
    assert found.apply("ana")["state_written"] is False
    assert not list((folder / "__cluster/recoveries").glob("*.json"))
    assert (folder / "graphs/places.omni/__manifest").exists() != changing
    properties = omnigraph.open(folder / "graphs/people.omni").schema().nodes["Person"].properties
    assert ("x" in {one.name for one in properties.values()}) == changing
    assert found.status()["ok"]


def test_the_plan_is_drawn_with_signs_and_a_sum(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["cluster", "plan", "--config", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "+ graph.people" in shown
    assert "Plan: 7 to create, 0 to update, 0 to delete." in shown
    assert run(["cluster", "apply", "--config", str(folder), "--json"]) == 1
    assert codes(json.loads(capsys.readouterr().out)) == ["state_missing"]
