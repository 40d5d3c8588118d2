"""Graph algorithms. A job runs in this process when it is small, and on Spark when it is large."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from msgspec import Struct

from omnigraph.errors import InvalidInput
from omnigraph.server.auth.access import GraphAction
from omnigraph.server.http.answers import AnyAnswer, json_answer
from omnigraph.server.http.exchange import Exchange, one_state
from omnigraph.server.http.operation import Body, Operation, Success
from omnigraph.server.http.shapes import AnalysisAnswer

TOP_MAX: Final = 1_000
"""Nodes that an answer shows; all values are written to a property."""


class AnalyzeBody(Struct, forbid_unknown_fields=True):
    """An algorithm, what it looks at, and where its values go."""

    algorithm: str
    branch: str | None = None
    snapshot: str | None = None
    nodes: list[str] | None = None
    edges: list[str] | None = None
    settings: dict[str, Any] = {}
    limit: int = 10
    write: dict[str, str] | None = None
    message: str | None = None


async def analyze(call: Exchange) -> AnyAnswer:
    body = await call.json(AnalyzeBody)
    branch, at = one_state(body.branch, body.snapshot)
    if not 0 <= body.limit <= TOP_MAX:
        raise InvalidInput(f"`limit` must be from 0 to {TOP_MAX}")
    known = {"nodes", "edges", "branch", "at", "progress", "algorithm"} & body.settings.keys()
    if known:
        raise InvalidInput(f"{', '.join(sorted(known))} cannot be settings of an algorithm")
    await call.allow_state(GraphAction.READ, branch, at)
    if body.write:
        call.allow(GraphAction.CHANGE, branch=branch or "main")
    work = partial(_analyzed, call, body, branch, at)
    if body.write:
        return json_answer(await call.write(work, len(body.algorithm)))
    return json_answer(await call.read(work))


def _analyzed(
    call: Exchange, body: AnalyzeBody, branch: str | None, at: str | None
) -> dict[str, Any]:
    job = call.graph.spark.analyze(
        body.algorithm,
        nodes=body.nodes,
        edges=body.edges,
        branch=branch,
        at=at,
        **body.settings,
    )
    with job as found:
        commit = None
        if body.write:
            commit = found.write(body.write, message=body.message, actor=call.actor)
        return found.facts.to_json() | {
            "top": found.top(body.limit),
            "commit": None if commit is None else commit.to_json(),
        }


OPERATIONS: Final = (
    Operation(
        "POST",
        "/graphs/{graph_id}/analyze",
        "analyzeGraph",
        "queries",
        "Run a graph algorithm over a branch or an older state.",
        analyze,
        GraphAction.READ,
        {200: Success("What it found, and the nodes with the largest values.", AnalysisAnswer)},
        (410, 501),
        (),
        Body(AnalyzeBody),
        writes=True,
    ),
)
