"""Tools that read one state: schemas, queries, entities, searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

import omnigraph
from omnigraph import Limits, ReadOptions, Result
from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.errors import InvalidInput, TypeNotFound
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.mcp import shapes
from omnigraph.mcp.access import RESULT_ROWS_MAX
from omnigraph.mcp.answers import fitting, rest_of
from omnigraph.mcp.calls import GraphTool
from omnigraph.mcp.session import McpSession
from omnigraph.mcp.tools.arguments import (
    BranchArgument,
    GraphArgument,
    LimitArgument,
    ParamsArgument,
    QueryNameArgument,
    StateArgument,
    TypeArgument,
)
from omnigraph.model.deadline import Deadline

QueryArgument = Annotated[
    str,
    Field(
        description="A read query, such as `query q($n: String) { match { $p: Person { name: $n } "
        "$p knows $f } return { $f.name } limit 20 }`. `schema_get` has the types and the "
        "properties."
    ),
]


class ReadingTools:
    """The tools that read one state."""

    def __init__(self, session: McpSession) -> None:
        self._session = session

    def health(self) -> dict[str, Any]:
        """Whether the server works, its version, and the graphs it serves."""
        return {
            "status": "ok",
            "version": omnigraph.__version__,
            "internal_schema_version": INTERNAL_VERSION,
            "graphs": sorted(self._session.graphs),
        }

    def graphs_list(self) -> dict[str, Any]:
        """The graphs that this server serves."""
        graphs = sorted(self._session.graphs.items())
        return {"graphs": [{"graph_id": id, "uri": graph.uri} for id, graph in graphs]}

    def schema_get(
        self,
        branch: BranchArgument = "main",
        snapshot: StateArgument = None,
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """The schema: every node and edge type with its properties. Read it before you query."""
        schema = self._session.graph(graph).schema(branch, at=snapshot)
        return {"schema_source": schema.source, "branch": None if snapshot else branch}

    def snapshot(
        self, branch: BranchArgument = "main", graph: GraphArgument = None
    ) -> dict[str, Any]:
        """The state of a branch: how many entities each type has."""
        return self._session.graph(graph).snapshot(branch).to_json()

    def query(
        self,
        deadline: Deadline,
        query: QueryArgument,
        params: ParamsArgument = None,
        name: QueryNameArgument = None,
        branch: BranchArgument = "main",
        snapshot: StateArgument = None,
        limit: LimitArgument = None,
        first_row: Annotated[
            int, Field(ge=0, description="Leave out the rows before this one.")
        ] = 0,
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """Run a read query. A long result is cut; `rest` says how to get what was left out."""
        found = self._session.graph(graph).query(
            query,
            name,
            params,
            None if snapshot else branch,
            snapshot,
            self._options(deadline),
        )
        return self._rows(found, first_row, limit)

    def explain(
        self,
        query: QueryArgument,
        name: QueryNameArgument = None,
        branch: BranchArgument = "main",
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """Check a read query and show its plan, without running it."""
        return self._session.graph(graph).explain(query, name, branch).to_json()

    def entity_get(
        self,
        type: TypeArgument,
        id: Annotated[str, Field(description="The id of the entity.")],
        branch: BranchArgument = "main",
        snapshot: StateArgument = None,
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """One node or edge with all its properties."""
        chosen = self._session.graph(graph)
        declared = find_type(chosen.schema(branch, at=snapshot), type)
        state = None if snapshot else branch
        found = chosen.entity(declared.key, id, state, at=snapshot)
        return {"type": declared.key, "id": id, "properties": found}

    def search(
        self,
        deadline: Deadline,
        type: Annotated[str, Field(description="The node type whose text is searched.")],
        text: Annotated[str, Field(description="What to look for.")],
        properties: Annotated[
            list[str] | None,
            Field(description="The text properties to search; all of the type unless given."),
        ] = None,
        branch: BranchArgument = "main",
        limit: LimitArgument = None,
        graph: GraphArgument = None,
    ) -> dict[str, Any]:
        """The entities of a type whose texts match best (BM25), best first."""
        chosen = self._session.graph(graph)
        declared = find_type(chosen.schema(branch), type)
        names = _text_properties(declared, properties)
        most = min(limit or 20, self._session.access.limits.rows_max)
        found: dict[str, dict[str, Any]] = {}
        for name in names:
            result = chosen.query(
                _search_query(declared, name, most),
                params={"text": text},
                branch=branch,
                options=self._options(deadline),
            )
            for row in result.rows():
                id, score = row["found"]["id"], row["score"]
                if id not in found or score > found[id]["score"]:
                    found[id] = {"score": score, "property": name, "entity": row["found"]}
        rows = sorted(found.values(), key=lambda row: (-row["score"], row["entity"]["id"]))[:most]
        shown = fitting(rows, self._session.access.limits)
        return {"query_name": "search", "row_count": len(shown), "rows": shown}

    def _options(self, deadline: Deadline) -> ReadOptions:
        limits = Limits(timeout_ms=deadline.remaining_ms, rows_max=RESULT_ROWS_MAX)
        return ReadOptions(limits=limits, cancelled=deadline.cancelled)

    def _rows(self, found: Result, first_row: int, limit: int | None) -> dict[str, Any]:
        body = found.to_json()
        rows = body["rows"][first_row:]
        shown = fitting(rows, self._session.access.limits, rows_max=limit)
        body["rows"] = shown
        # A page of the same state: the branch may have moved on by then.
        following = {"first_row": first_row + len(shown), "snapshot": found.commit_id}
        hint = "Repeat the call with these arguments, or ask for less."
        return body | rest_of(rows, len(shown), following, hint)


def find_type(schema: AcceptedSchema, name: str) -> NodeType | EdgeType:
    """The type of this name or key. Raises ``TypeNotFound`` with the names that there are."""
    kind, _, bare = name.rpartition(":")
    for declared in schema.types():
        if declared.name == bare and kind in ("", declared.kind):
            return declared
    names = ", ".join(declared.name for declared in schema.types())
    raise TypeNotFound(f"there is no type {name!r}", remedy=f"Use one of {names}.")


def _text_properties(declared: NodeType | EdgeType, names: Sequence[str] | None) -> list[str]:
    texts = [
        name
        for name, item in declared.properties.items()
        if item.type.is_single and item.type.scalar.name == "String" and not item.type.enum
    ]
    wrong = [name for name in names or () if name not in texts]
    if wrong or not texts or not isinstance(declared, NodeType):
        raise InvalidInput(
            f"{declared.name}.{wrong[0]} is not a text property"
            if wrong
            else f"{declared.name} is not a node type with text properties",
            remedy=f"Search one of {', '.join(texts)}." if texts else "Choose another type.",
        )
    return list(names) if names else texts


def _search_query(declared: NodeType | EdgeType, property: str, limit: int) -> str:
    """The query that ranks the entities of a type by one text; names come from the schema."""
    field = f"$found.{property}"
    pattern = f"$found: {declared.name}  search({field}, $text)"
    return (
        f"query search($text: String) {{ match {{ {pattern} }} "
        f"return {{ $found as found, bm25({field}, $text) as score }} "
        f"order {{ bm25({field}, $text) }} limit {limit} }}"
    )


def reading_tools(session: McpSession) -> list[GraphTool]:
    """The tools, as the server registers them."""
    tools = ReadingTools(session)
    return [
        GraphTool("health", "Health", tools.health, shapes.ToolHealth),
        GraphTool("graphs_list", "Graphs", tools.graphs_list, shapes.ToolGraphs),
        GraphTool("schema_get", "Schema", tools.schema_get, shapes.ToolSchema),
        GraphTool("snapshot", "Types and counts", tools.snapshot, shapes.ToolSnapshot),
        GraphTool("query", "Query", tools.query, shapes.ToolRows),
        GraphTool("explain", "Plan of a query", tools.explain, shapes.ToolPlan),
        GraphTool("entity_get", "One entity", tools.entity_get, shapes.ToolEntity),
        GraphTool("search", "Search texts", tools.search, shapes.ToolRows),
    ]
