"""Every tool does what the handle does, within the bounds of one answer."""

from __future__ import annotations

from pathlib import Path

from tests.mcp.conftest import in_process, run

import omnigraph
from omnigraph import Graph
from omnigraph.mcp.access import AnswerLimits, McpAccess

NAMES = "query q() { match { $p: Person } return { $p.name as name } order { $p.name } }"

ORIGINAL_NAMES = {
    "health",
    "snapshot",
    "query",
    "schema_get",
    "branches_list",
    "graphs_list",
    "commits_list",
    "commits_get",
    "commits_changes",
    "changes_poll",
    "mutate",
    "load",
    "branches_create",
    "branches_delete",
    "branches_merge",
}


def test_every_tool_has_schemas_a_description_and_annotations(graph: Graph) -> None:
    async def check() -> None:
        async with in_process(graph) as tools:
            listed = {tool.name: tool for tool in (await tools.client.list_tools()).tools}
        assert listed.keys() > ORIGINAL_NAMES
        for tool in listed.values():
            assert tool.description
            assert tool.output_schema
            assert tool.output_schema["type"] == "object"
            assert tool.annotations
            assert tool.annotations.read_only_hint is not None
            assert "deadline" not in tool.input_schema["properties"]
        destructive = {
            n for n, t in listed.items() if t.annotations and t.annotations.destructive_hint
        }
        assert destructive == {"mutate", "load", "branches_delete"}

    run(check)


def test_reading_tools_answer_as_the_handle_does(graph: Graph) -> None:
    async def check() -> None:
        async with in_process(graph) as tools:
            health = await tools.call("health")
            assert (health["status"], health["graphs"]) == ("ok", ["people"])
            assert (await tools.call("graphs_list"))["graphs"][0]["graph_id"] == "people"
            schema = await tools.call("schema_get")
            assert schema["schema_source"] == graph.schema().source
            assert await tools.call("snapshot") == graph.snapshot().to_json()
            found = await tools.call("query", query=NAMES)
            assert found == graph.query(NAMES).to_json()
            assert (await tools.call("explain", query=NAMES))["steps"]
            entity = await tools.call("entity_get", type="Person", id="ana")
            assert entity["properties"] == graph.entity("node:Person", "ana")
            edge = graph.query("query q() { match { $a $e:knows $b } return { $e.since as s } }")
            assert edge.rows() == [{"s": 2020}]

    run(check)


def test_history_tools_answer_as_the_handle_does(graph: Graph) -> None:
    async def check() -> None:
        head = graph.history.commits(limit=1)[0]
        async with in_process(graph) as tools:
            listed = await tools.call("commits_list", limit=2)
            assert [item["message"] for item in listed["commits"]] == ["ties", "people"]
            older = await tools.call("commits_list", **listed["rest"]["next_call"])
            assert [item["kind"] for item in older["commits"]] == ["init"]
            assert "rest" not in older
            assert await tools.call("commits_get", commit_id=head.commit_id) == head.to_json()
            changes = await tools.call("commits_changes", commit_id=head.commit_id)
            assert changes == graph.history.commit_changes(head.commit_id).to_json()
            feed = await tools.call("changes_poll", start="beginning")
            assert feed == graph.history.changes(start="beginning").to_json()
            again = await tools.call("changes_poll", cursor=feed["cursor"])
            assert (again["blocks"], again["caught_up"]) == ([], True)
            events = await tools.call("entity_history", type="Person", id="ana")
            assert [event["op"] for event in events["events"]] == ["insert"]
            blame = await tools.call("blame", type="Person", id="ana")
            assert {item["commit"]["message"] for item in blame["properties"]} == {"people"}

    run(check)


def test_a_long_result_is_paged_at_one_state(graph: Graph) -> None:
    with graph.write() as w:
        for number in range(25):
            w.insert("Person", {"name": f"p{number:02}"})
    expected = [row["name"] for row in graph.query(NAMES).rows()]

    async def check() -> None:
        limits = AnswerLimits(rows_max=10)
        async with in_process(graph, McpAccess(limits=limits)) as tools:
            arguments: dict[str, object] = {}
            found: list[str] = []
            calls = 0
            while True:
                answer = await tools.call("query", query=NAMES, **arguments)
                found += [row["name"] for row in answer["rows"]]
                assert answer["row_count"] == len(expected)
                calls += 1
                if calls == 1:
                    with graph.write() as w:  # does not show up between two pages
                        w.insert("Person", {"name": "aaa"})
                if "rest" not in answer:
                    break
                arguments = answer["rest"]["next_call"]
        assert (found, calls) == (expected, 3)

    run(check)


def test_an_answer_stays_below_its_bytes_and_has_at_least_one_row(graph: Graph) -> None:
    with graph.write() as w:
        w.insert("Person", {"name": "x" * 5_000})
        w.insert("Person", {"name": "y" * 5_000})

    async def check() -> None:
        async with in_process(graph, McpAccess(limits=AnswerLimits(bytes_max=1_000))) as tools:
            small = await tools.call("query", query=NAMES)
            assert [row["name"] for row in small["rows"]] == ["ana", "bo"]
            large = await tools.call("query", query=NAMES, **small["rest"]["next_call"])
            assert [len(row["name"]) for row in large["rows"]] == [5_000]
            page = await tools.call("diff", old=graph.history.commits()[-1].commit_id, new="main")
            seen = len(page["changes"])
            while "next_page_token" in page:
                token = page["next_page_token"]
                page = await tools.call(
                    "diff",
                    old=graph.history.commits()[-1].commit_id,
                    new="main",
                    page_token=token,
                )
                seen += len(page["changes"])
            assert seen == 7

    run(check)


def test_search_ranks_texts_of_a_type(tmp_path: Path) -> None:
    schema = "node Doc { slug: String @key\n title: String\n body: String? }"
    graph = omnigraph.init(tmp_path / "docs", schema)
    with graph.write() as w:
        w.insert("Doc", {"slug": "a", "title": "kettles", "body": "how to boil water"})
        w.insert("Doc", {"slug": "b", "title": "water", "body": "water, water everywhere"})
        w.insert("Doc", {"slug": "c", "title": "ships"})

    async def check() -> None:
        async with in_process(graph) as tools:
            found = await tools.call("search", type="Doc", text="water")
            assert [row["entity"]["id"] for row in found["rows"]] == ["b", "a"]
            titles = await tools.call("search", type="Doc", text="kettles", properties=["title"])
            assert [row["property"] for row in titles["rows"]] == ["title"]
            wrong = await tools.refused("search", type="Doc", text="x", properties=["size"])
            assert "body, slug, title" in wrong["explanation"]

    run(check)


def test_several_graphs_are_told_apart(graph: Graph, tmp_path: Path) -> None:
    other = omnigraph.init(tmp_path / "other", "node City { name: String @key }")

    async def check() -> None:
        async with in_process({"people": graph, "other": other}) as tools:
            refused = await tools.refused("snapshot")
            assert "other, people" in refused["explanation"]
            found = await tools.call("schema_get", graph="other")
            assert found["schema_source"] == other.schema().source
            assert (await tools.refused("schema_get", graph="nope"))["status"] == 404

    run(check)


def test_resources_and_prompts_are_there(graph: Graph) -> None:
    async def check() -> None:
        async with in_process(graph) as tools:
            listed = (await tools.client.list_resources()).resources
            for resource in listed:
                read = await tools.client.read_resource(resource.uri)
                assert read.contents[0].text  # type: ignore[union-attr]
            names = {str(resource.uri) for resource in listed}
            assert {"omnigraph://schema", "omnigraph://branches", "omnigraph://graphs"} < names
            assert sum("best-practices" in name for name in names) == 3
            prompts = (await tools.client.list_prompts()).prompts
            assert {prompt.name for prompt in prompts} == {
                "tour_of_the_schema",
                "review_a_branch",
                "explain_a_diff",
            }
            asked = await tools.client.get_prompt("review_a_branch", {"branch": "work"})
            assert "`work`" in asked.messages[0].content.text  # type: ignore[union-attr]

    run(check)


def test_a_long_history_of_an_entity_is_paged_by_its_size(graph: Graph) -> None:
    for age in range(5):
        with graph.write(message="x" * 400) as w:
            w.update("Person", "ana", {"age": age})

    async def check() -> None:
        async with in_process(graph, McpAccess(limits=AnswerLimits(bytes_max=1_000))) as tools:
            page = await tools.call("entity_history", type="Person", id="ana")
            assert 0 < len(page["events"]) < 6
            seen = len(page["events"])
            while "next_page_token" in page:
                token = page["next_page_token"]
                page = await tools.call("entity_history", type="Person", id="ana", page_token=token)
                seen += len(page["events"])
            assert seen == 6

    run(check)
