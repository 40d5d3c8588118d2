"""What a client may not do, and what it is told about it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import anyio
import pytest
from tests.graphs import PEOPLE
from tests.mcp.conftest import in_process, run

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidInput
from omnigraph.mcp.access import AnswerLimits, McpAccess

WRITES = {"mutate", "load", "branches_create", "branches_delete", "branches_merge"}
INSERT = 'query q() { insert City { name: "Rome" } }'


def test_a_reading_client_is_offered_no_tool_that_writes(graph: Graph) -> None:
    async def check() -> None:
        async with in_process(graph, McpAccess(read_only=True)) as tools:
            listed = {tool.name for tool in (await tools.client.list_tools()).tools}
            assert not listed & WRITES
            result = await tools.client.call_tool("mutate", {"query": INSERT})
            assert result.is_error

    run(check)
    assert len(graph.history.commits()) == 3


def test_writes_stay_below_the_prefix_of_the_client(graph: Graph) -> None:
    access = McpAccess(branch_prefix="agents/one/", actor="agent-one")

    async def check() -> None:
        async with in_process(graph, access) as tools:
            for tool, arguments in (
                ("mutate", {"query": INSERT}),
                ("load", {"data": '{"type":"City","data":{"name":"Rome"}}'}),
                ("branches_create", {"name": "agents/two/x"}),
                ("branches_delete", {"name": "main"}),
            ):
                refused = await tools.refused(tool, **arguments)
                assert (refused["code"], refused["status"]) == ("forbidden", 403)
                assert "agents/one/" in refused["explanation"]
            await tools.call("branches_create", name="agents/one/x")
            made = await tools.call("mutate", query=INSERT, branch="agents/one/x")
            assert made["actor_id"] == "agent-one"
            merge = await tools.refused("branches_merge", source="agents/one/x")
            assert "merge_preview" in merge["explanation"]
            preview = await tools.call("merge_preview", source="agents/one/x")
            assert preview["outcome"] == "fast_forward"
            await tools.call("branches_merge", source="main", target="agents/one/x")

    run(check)
    assert len(graph.history.commits()) == 3


def test_a_prefix_that_allows_everything_is_refused() -> None:
    for prefix in ("", "/"):
        with pytest.raises(InvalidInput, match="allows every branch"):
            McpAccess(branch_prefix=prefix)
    with pytest.raises(InvalidInput, match="rows_max must be at least 1"):
        AnswerLimits(rows_max=0)


def test_a_wrong_query_is_answered_with_the_place_and_the_nearest_name(graph: Graph) -> None:
    async def check() -> None:
        async with in_process(graph) as tools:
            wrong = "query q() { match { $p: Persn } return { $p.name } }"
            refused = await tools.refused("query", query=wrong)
            assert "did you mean `Person`?" in refused["explanation"]
            assert refused["body"]["details"]["diagnostics"][0]["column"] == 25
            missing = await tools.refused("entity_get", type="Person", id="nobody")
            assert missing["status"] == 404
            unknown = await tools.refused("entity_get", type="Persona", id="ana")
            assert "Person" in unknown["explanation"]

    run(check)


SLOW = (
    "query q() { match { $a: Person  $b: Person  $a.age < $b.age  not { $a knows $b } } "
    "return { count($a) as n, sum($b.age) as s } }"
)
"""Takes seconds where there are some thousand people."""


@pytest.fixture
def crowd(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "crowd", PEOPLE)
    with graph.write() as w:
        for number in range(4_000):
            w.insert("Person", {"name": f"p{number}", "age": number})
    return graph


def test_a_slow_query_ends_with_its_time(crowd: Graph) -> None:
    async def check() -> None:
        access = McpAccess(limits=AnswerLimits(timeout_ms=200))
        async with in_process(crowd, access) as tools:
            refused = await tools.refused("query", query=SLOW)
            assert refused["code"] == "query_timeout"

    run(check)


def test_a_cancelled_query_stops_its_thread(crowd: Graph) -> None:
    async def check() -> None:
        access = McpAccess(limits=AnswerLimits(timeout_ms=0))
        async with in_process(crowd, access) as tools:
            with anyio.move_on_after(0.5) as scope:
                await tools.client.call_tool("query", {"query": SLOW})
            assert scope.cancelled_caught
            with anyio.fail_after(3):
                while querying():
                    await anyio.sleep(0.02)
            assert (await tools.call("health"))["status"] == "ok"

    run(check)


def querying() -> bool:
    """Whether a thread of this process is inside the reading engine."""
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None:
            if "/omnigraph/engine/" in frame.f_code.co_filename:
                return True
            frame = frame.f_back
    return False
