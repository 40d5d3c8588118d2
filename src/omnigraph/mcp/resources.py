"""Resources: what a model may read before it calls a tool."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError
from mcp.server.mcpserver.resources import TextResource

from omnigraph.errors import OmnigraphError
from omnigraph.mcp.session import McpSession

QUERYING: Final = """\
# Querying an Omnigraph graph

1. Read the schema first (`schema_get`): names of types, properties and edges are case-sensitive.
2. A query names a pattern and what to return:

       query friends($name: String) {
         match {
           $p: Person { name: $name }
           $p knows $friend
         }
         return { $friend.name, $friend.age }
         order { $friend.age desc }
         limit 20
       }

   The edge `Knows: Person -> Person` is written `knows` between two variables, in the direction of
   its declaration.
3. Values come as parameters (`params: {"name": "ana"}`), never pasted into the text.
4. Ask for what you need: aggregates (`count`, `avg`, ...) and `limit` instead of all rows.
5. A refused query says where it is wrong and what would be right: correct it and call again.
6. `rest` in an answer holds the arguments that get what was left out.
"""

WRITING: Final = """\
# Writing to an Omnigraph graph

1. Work on a branch of your own (`branches_create`); main and other branches do not change.
2. `load` with mode `upsert` sets what you give and keeps the rest; repeating it changes nothing.
   `mutate` runs `insert`, `update` and `delete` statements. Each call is one commit, or nothing.
3. Give every write a `message` that says why, and an `idempotency_key` if you may repeat it.
4. A failed write lists every problem with its place; nothing of it was written.
5. `expected_head` refuses the write if somebody else committed meanwhile.
"""

REVIEWING: Final = """\
# Reviewing and merging a branch

1. `diff` from main to the branch shows every entity before and after.
2. `merge_preview` shows what a merge would do, and every conflict with the values of base, ours
   (the target) and theirs (the source).
3. Decide each conflict: pass its entry back in `resolutions` with a `take` of ours, theirs, base or
   delete, or give the values to set in `properties`. `strategy` decides all the others.
4. `branches_merge` makes one commit with two parents; the commits of the branch stay in history.
5. `blame` and `entity_history` say who set a value, when and why.
"""

GUIDES: Final = {"querying": QUERYING, "writing": WRITING, "reviewing": REVIEWING}


def add_resources(server: MCPServer, session: McpSession) -> None:
    """Register the resources of a server."""

    def schema() -> str:
        """The schema of the graph (of each graph, where several are served)."""
        texts = {id: graph.schema().source for id, graph in session.graphs.items()}
        if len(texts) == 1:
            return next(iter(texts.values()))
        return "\n".join(f"// graph {id}\n{text}" for id, text in sorted(texts.items()))

    def branches() -> str:
        """The branches of every graph, by graph id."""
        found = {id: sorted(graph.branches.list()) for id, graph in session.graphs.items()}
        return json.dumps(found, ensure_ascii=False)

    def graphs() -> str:
        """The graphs that this server serves."""
        return json.dumps([{"graph_id": id} for id in sorted(session.graphs)], ensure_ascii=False)

    for name, function, mime_type in (
        ("schema", schema, "text/plain"),
        ("branches", branches, "application/json"),
        ("graphs", graphs, "application/json"),
    ):
        server.resource(
            f"omnigraph://{name}", name=name, description=function.__doc__, mime_type=mime_type
        )(_typed_failure(function))
    for name, text in GUIDES.items():
        server.add_resource(
            TextResource(
                uri=f"omnigraph://best-practices/{name}",
                name=f"best-practices-{name}",
                description=text.partition("\n")[0].removeprefix("# "),
                mime_type="text/markdown",
                text=text,
            )
        )


def _typed_failure(function: Callable[[], str]) -> Callable[[], str]:
    """The function, with errors of ours as failures that the client is told about."""

    def read() -> str:
        try:
            return function()
        except OmnigraphError as error:
            raise ResourceError(f"{error.message} ({error.remedy})") from error

    return read
