"""Read queries: run, explain, profile, as JSON, NDJSON or Arrow."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Final

import pyarrow as pa
from msgspec import Meta, Raw, Struct, field

from omnigraph import Explanation, ReadOptions, Result
from omnigraph.errors import InvalidInput, OmnigraphError, ParameterError
from omnigraph.lang.query import read_parameters
from omnigraph.model.deadline import Deadline
from omnigraph.server.auth.access import GraphAction
from omnigraph.server.http.answers import AnyAnswer, Headers, encoded, json_answer
from omnigraph.server.http.exchange import Exchange, one_state
from omnigraph.server.http.operation import ARROW, JSON, NDJSON, TIMEOUT, Body, Operation, Success
from omnigraph.server.http.shapes import ExplainAnswer, QueryAnswer
from omnigraph.server.logs import log_with

slow = logging.getLogger("omnigraph.server.slow")

ROWS_PER_CHUNK: Final = 4_096
"""Rows that are encoded at a time: a chunk of some hundred kilobytes."""

Parameters = Annotated[
    Raw, Meta(extra_json_schema={"type": ["object", "null"], "description": "By name."})
]
"""Kept as text: numbers of parameters must not pass through a float."""


def no_parameters() -> Raw:
    """What stands for a member that is not there."""
    return Raw(b"null")


class QueryBody(Struct, forbid_unknown_fields=True):
    """A read query."""

    query: str
    name: str | None = None
    params: Parameters = field(default_factory=no_parameters)
    branch: str | None = None
    snapshot: str | None = None


class OldQueryBody(Struct, forbid_unknown_fields=True):
    """A read query, with the names of before."""

    query_source: str
    query_name: str | None = None
    params: Parameters = field(default_factory=no_parameters)
    branch: str | None = None
    snapshot: str | None = None


class ExplainBody(Struct, forbid_unknown_fields=True):
    """A read query whose plan is wanted; with ``analyze`` it is run and measured."""

    query: str
    name: str | None = None
    params: Parameters = field(default_factory=no_parameters)
    branch: str | None = None
    snapshot: str | None = None
    analyze: bool = False


def parameters(raw: Raw) -> Any:
    """Parameters as the language reads them from text; None when there are none."""
    text = bytes(raw)
    if text == b"null":
        return None
    try:
        found = read_parameters(text.decode())
    except UnicodeDecodeError:
        raise ParameterError([{"name": "", "message": "the parameters are not UTF-8"}]) from None
    if not isinstance(found, dict):
        raise InvalidInput("`params` must be an object", remedy="Give the parameters by name.")
    return found


async def query(call: Exchange) -> AnyAnswer:
    body = await call.json(QueryBody)
    return await _answered(call, body)


async def read(call: Exchange) -> AnyAnswer:
    given = await call.json(OldQueryBody)
    body = QueryBody(
        given.query_source, given.query_name, given.params, given.branch, given.snapshot
    )
    return await _answered(call, body, with_commit=False)


async def _answered(call: Exchange, body: QueryBody, *, with_commit: bool = True) -> AnyAnswer:
    branch, at = one_state(body.branch, body.snapshot)
    media = call.accepts(JSON, NDJSON, ARROW)
    await call.allow_state(GraphAction.READ, branch, at)
    ends = call.deadline

    def answer() -> Any:
        result = run(call, body, ends)
        if media != JSON:
            return result
        shown = result.to_json()
        if not with_commit:
            del shown["graph_commit_id"]
        return json_answer(shown)

    found = await call.read(answer, ends)
    if media == JSON:
        return found  # type: ignore[no-any-return]
    pieces = partial(arrow_chunks if media == ARROW else ndjson_chunks, found)
    return await call.stream(pieces, media, result_headers(found))


def run(call: Exchange, body: QueryBody, ends: Deadline) -> Result:
    """Run a query in this thread, within a deadline; a slow one is logged with its plan."""
    options = ReadOptions(limits=call.services.limits(ends.remaining_ms), cancelled=ends.cancelled)
    graph = call.graph
    started = time.perf_counter()
    try:
        return graph.query(
            body.query, body.name, parameters(body.params), body.branch, body.snapshot, options
        )
    finally:
        ms = (time.perf_counter() - started) * 1000
        most = call.services.settings.slow_query_ms
        if most and ms > most:
            _log_slow(call, body, ms)


def _log_slow(call: Exchange, body: QueryBody, ms: float) -> None:
    try:
        plan = call.graph.explain(body.query, body.name, body.branch, body.snapshot).lines()
    except OmnigraphError as problem:
        plan = [problem.message]
    facts = {"request_id": call.request_id, "actor": call.actor, "ms": round(ms, 1)}
    assert call.served is not None
    shown = {"graph": call.served.id, "query": body.query[:4_000], "plan": plan}
    log_with(slow, logging.WARNING, "slow query", facts | shown)


def result_headers(result: Result) -> Headers:
    """What the envelope of a JSON answer says, for answers that are only rows."""
    found = [
        ("omnigraph-query-name", result.query_name),
        ("omnigraph-graph-commit-id", result.commit_id),
        ("omnigraph-row-count", str(len(result))),
    ]
    if result.target.branch is not None:
        found.append(("omnigraph-branch", ascii_text(result.target.branch)))
    if result.target.snapshot is not None:
        found.append(("omnigraph-snapshot-id", ascii_text(result.target.snapshot)))
    return tuple(found)


def ascii_text(text: str) -> str:
    """A text as the value of a header; what is not ASCII is escaped as in JSON."""
    return text.encode("ascii", "backslashreplace").decode()


def ndjson_chunks(result: Result) -> Iterator[bytes]:
    """One object per row."""
    rows = result.rows()
    for at in range(0, len(rows), ROWS_PER_CHUNK):
        yield b"".join(encoded(row) + b"\n" for row in rows[at : at + ROWS_PER_CHUNK])


def arrow_chunks(result: Result) -> Iterator[bytes]:
    """The Arrow IPC stream of the rows."""
    table = result.to_arrow()
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches(ROWS_PER_CHUNK):
            writer.write_batch(batch)
            yield _taken(sink)
    yield _taken(sink)


def _taken(sink: io.BytesIO) -> bytes:
    data = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return data


async def explain(call: Exchange) -> AnyAnswer:
    body = await call.json(ExplainBody)
    branch, at = one_state(body.branch, body.snapshot)
    await call.allow_state(GraphAction.READ, branch, at)
    graph, ends = call.graph, call.deadline

    def answer() -> dict[str, Any]:
        if body.analyze:
            options = ReadOptions(
                limits=call.services.limits(ends.remaining_ms),
                profile=True,
                cancelled=ends.cancelled,
            )
            given = parameters(body.params)
            return graph.query(body.query, body.name, given, branch, at, options).profile_json()
        found: Explanation = graph.explain(body.query, body.name, branch, at)
        return found.to_json()

    return json_answer(await call.read(answer, ends))


_ROWS: Final = Success(
    "The rows. As NDJSON or Arrow, headers name the query, the commit and the number of rows.",
    QueryAnswer,
    (JSON, NDJSON, ARROW),
)

OPERATIONS: Final = (
    Operation(
        "POST",
        "/graphs/{graph_id}/query",
        "cluster_query",
        "queries",
        "Run a read query.",
        query,
        GraphAction.READ,
        {200: _ROWS},
        (406, 413),
        (TIMEOUT,),
        Body(QueryBody),
    ),
    Operation(
        "POST",
        "/graphs/{graph_id}/read",
        "cluster_read",
        "queries",
        "Run a read query.",
        read,
        GraphAction.READ,
        {200: _ROWS},
        (406, 413),
        (TIMEOUT,),
        Body(OldQueryBody),
        successor="/query",
    ),
    Operation(
        "POST",
        "/graphs/{graph_id}/explain",
        "explainQuery",
        "queries",
        "The plan of a read query, or with `analyze` what each step of it took.",
        explain,
        GraphAction.READ,
        {200: Success("The plan, or the profile.", ExplainAnswer)},
        (413,),
        (TIMEOUT,),
        Body(ExplainBody),
    ),
)
