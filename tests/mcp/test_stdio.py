"""``omnigraph mcp`` as a client starts it, and an agent's whole job."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.graphs import people_graph
from tests.mcp.conftest import over_stdio, run

import omnigraph


def test_an_agent_reads_writes_corrects_itself_and_asks_for_a_merge(tmp_path: Path) -> None:
    where = tmp_path / "people"
    people_graph(where)

    async def job() -> None:
        async with over_stdio(where, "--branch-prefix", "agents/one/") as tools:
            schema = await tools.call("schema_get")
            assert "node Person" in schema["schema_source"]
            found = await tools.call("search", type="Person", text="ana")
            assert found["rows"][0]["entity"]["age"] == 30
            await tools.call("branches_create", name="agents/one/work")
            wrong = await tools.refused(
                "mutate",
                query='query q() { update Person set { aeg: 31 } where name = "ana" }',
                branch="agents/one/work",
            )
            assert "age" in wrong["explanation"]
            right = await tools.call(
                "mutate",
                query='query q() { update Person set { age: 31 } where name = "ana" }',
                branch="agents/one/work",
                message="a birthday",
            )
            assert right["affected_nodes"] == 1
            diff = await tools.call("diff", old="main", new="agents/one/work")
            assert diff["stats"]["updates"] == 1
            preview = await tools.call("merge_preview", source="agents/one/work")
            assert preview["merge_conflicts"] == []
            assert (await tools.refused("branches_merge", source="agents/one/work"))[
                "code"
            ] == "forbidden"

    run(job)
    graph = omnigraph.open(where)
    graph.merge("agents/one/work", actor="a person", delete_branch=True)
    assert graph.entity("node:Person", "ana")["age"] == 31
    assert graph.history.blame("Person", "ana")[0].commit.message == "a birthday"


def test_conflicts_are_shown_and_resolved(tmp_path: Path) -> None:
    where = tmp_path / "people"
    graph = people_graph(where)
    graph.branches.create("work")
    for branch, age in (("work", 31), ("main", 32)):
        with graph.write(branch) as w:
            w.update("Person", "ana", {"age": age})

    async def job() -> None:
        async with over_stdio(where) as tools:
            refused = await tools.refused("branches_merge", source="work")
            assert refused["status"] == 409
            preview = await tools.call("merge_preview", source="work")
            (conflict,) = preview["merge_conflicts"]
            assert (conflict["ours"]["age"], conflict["theirs"]["age"]) == (32, 31)
            decided = [{**conflict, "take": "theirs"}]
            merged = await tools.call("branches_merge", source="work", resolutions=decided)
            assert merged["commit"]["kind"] == "merge"

    run(job)
    assert graph.entity("node:Person", "ana")["age"] == 31


def test_the_server_ends_when_its_client_goes_away(tmp_path: Path) -> None:
    where = tmp_path / "people"
    people_graph(where)
    program = str(Path(sys.executable).parent / "omnigraph")
    ended = subprocess.run(
        [program, "mcp", str(where)], input=b"", capture_output=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, b"")


def test_a_wrong_limit_is_a_typed_error(tmp_path: Path) -> None:
    people_graph(tmp_path / "people")
    program = str(Path(sys.executable).parent / "omnigraph")
    ended = subprocess.run(
        [program, "mcp", str(tmp_path / "people"), "--max-rows", "0"],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert b"rows_max must be at least 1" in ended.stderr
