"""Bulk loads: a JSON body with the records as text, or a body that is the data itself."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, cast

from msgspec import Struct

from omnigraph import LoadFormat, LoadMode, LoadResult
from omnigraph.errors import BranchNotFound, InvalidInput, OmnigraphError
from omnigraph.server.auth.access import GraphAction
from omnigraph.server.http.answers import AnyAnswer, json_answer
from omnigraph.server.http.bodies import temporary_file
from omnigraph.server.http.exchange import Exchange
from omnigraph.server.http.operation import (
    BRANCH,
    BYTES,
    IDEMPOTENCY,
    NDJSON,
    Body,
    Operation,
    Success,
    WireParameter,
)
from omnigraph.server.http.shapes import LoadAnswer

PARQUET: Final = "application/vnd.apache.parquet"
CSV: Final = "text/csv"
MODES: Final = ("merge", "append", "upsert", "overwrite")
_FORMATS: Final = {PARQUET: ("parquet", ".parquet"), CSV: ("csv", ".csv"), BYTES: (None, "")}

FROM: Final = WireParameter("from", "The branch to create the branch from, if it is missing.")
MODE: Final = WireParameter("mode", "What happens to entities that exist.", choices=MODES)
IF_HEAD: Final = WireParameter("if_commit", "The commit that must be the head of the branch.")
MESSAGE: Final = WireParameter("message", "Kept with the commit.")


class LoadBody(Struct, rename={"from_": "from"}, forbid_unknown_fields=True):
    """NDJSON records as one text."""

    data: str
    branch: str | None = None
    from_: str | None = None
    mode: str | None = None


async def load(call: Exchange) -> AnyAnswer:
    """The records as text in a JSON body, with the lenient parser."""
    body = await call.json(LoadBody, call.services.settings.load_body_bytes_max)
    branch = "main" if body.branch is None else body.branch
    await _allow(call, branch, body.from_)
    mode = _mode("merge" if body.mode is None else body.mode)
    source = body.data.encode()
    work = partial(_loaded, call, source, mode, branch, body.from_, strict=False, format="ndjson")
    return json_answer(await call.write(work, len(source)))


async def load_ndjson(call: Exchange) -> AnyAnswer:
    """The body is NDJSON, and is parsed strictly."""
    call.require_media(NDJSON)
    found = await _load_body(call, "ndjson", ".ndjson")
    del found["uri"]
    return json_answer(found)


async def load_table(call: Exchange) -> AnyAnswer:
    """The body is a Parquet or CSV file with the rows of one type."""
    media = call.require_media(PARQUET, CSV)
    form, suffix = _FORMATS[media]
    return json_answer(await _load_body(call, form, suffix))


async def _load_body(call: Exchange, form: str | None, suffix: str) -> dict[str, Any]:
    branch = call.text("branch") or "main"
    base = call.text("from")
    mode = _mode(call.text("mode") or "merge")
    await _allow(call, branch, base)
    columns = None
    if "column" in call.query:
        columns = dict(_pair(text) for text in call.texts("column"))
    declared = call.headers.get("content-length", "")
    size = int(declared) if declared.isdigit() else 0
    with call.admitted(size), temporary_file(suffix) as path:
        await call.spooled(path)
        options: dict[str, Any] = {"format": form, "type": call.text("type"), "columns": columns}
        work = partial(_loaded, call, path, mode, branch, base, strict=True, **options)
        try:
            return await call.write_admitted(work)
        except OmnigraphError as problem:
            _forget_file(problem, path)
            raise


def _forget_file(error: OmnigraphError, path: str) -> None:
    """Say nothing of the temporary file that held the body: the client does not know it."""
    error.message = error.message.replace(path, "the body")
    for problem in error.details.get("violations", ()):
        if problem.get("file") == path:
            del problem["file"]
        problem["message"] = problem["message"].replace(path, "the body")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise InvalidInput(f"column {text[:80]!r} is not COLUMN=PROPERTY")
    return name, value


def _mode(text: str) -> LoadMode:
    if text not in MODES:
        raise InvalidInput(f"{text[:40]!r} is not a mode", remedy=f"Use one of {', '.join(MODES)}.")
    return cast("LoadMode", text)


async def _allow(call: Exchange, branch: str, base: str | None) -> None:
    """Ask the policy about the load, and about the branch that it would create."""
    graph = call.graph
    missing = branch not in await call.read(graph.branches.list)
    if missing and base is not None:
        call.allow(GraphAction.BRANCH_CREATE, branch=base, target=branch)
    call.allow(GraphAction.CHANGE, branch=branch)
    if missing and base is None:
        raise BranchNotFound(
            f"branch '{branch}' not found; pass `from` to create it",
            details={"branch": branch},
        )


def _loaded(
    call: Exchange,
    source: bytes | str,
    mode: LoadMode,
    branch: str,
    base: str | None,
    *,
    strict: bool,
    format: str | None,
    type: str | None = None,
    columns: dict[str, str] | None = None,
) -> dict[str, Any]:
    graph = call.graph
    found: LoadResult = graph.load(
        source,
        mode=mode,
        branch=branch,
        from_=base,
        type=type,
        columns=columns,
        format=cast("LoadFormat | None", format),
        strict=strict,
        message=call.text("message"),
        actor=call.actor,
        expected_head=call.text("if_commit"),
        idempotency_key=call.idempotency_key,
        engine=None if isinstance(source, str) else "local",
    )
    return found.to_json(graph.uri)


_DONE: Final = {200: Success("How many records of which types, and the commit.", LoadAnswer)}
_WHERE: Final = (BRANCH, FROM, MODE, IF_HEAD, MESSAGE, IDEMPOTENCY)

OPERATIONS: Final = (
    Operation(
        "POST",
        "/graphs/{graph_id}/load",
        "cluster_load",
        "mutations",
        "Load records that a JSON body holds as one text.",
        load,
        GraphAction.CHANGE,
        _DONE,
        (412, 424),
        (IDEMPOTENCY,),
        Body(LoadBody),
        writes=True,
    ),
    Operation(
        "POST",
        "/graphs/{graph_id}/ingest",
        "cluster_ingest",
        "mutations",
        "Load records that a JSON body holds as one text.",
        load,
        GraphAction.CHANGE,
        _DONE,
        (412, 424),
        (IDEMPOTENCY,),
        Body(LoadBody),
        writes=True,
        successor="/load",
    ),
    Operation(
        "POST",
        "/graphs/{graph_id}/load/ndjson",
        "cluster_loadNdjson",
        "mutations",
        "Load a body of NDJSON, of any length. All of it is checked before anything is written.",
        load_ndjson,
        GraphAction.CHANGE,
        _DONE,
        (412, 424),
        _WHERE,
        Body(media=(NDJSON,)),
        writes=True,
    ),
    Operation(
        "POST",
        "/graphs/{graph_id}/load/table",
        "loadTable",
        "mutations",
        "Load a Parquet or CSV file with the rows of one type.",
        load_table,
        GraphAction.CHANGE,
        _DONE,
        (412, 424),
        (
            *_WHERE,
            WireParameter("type", "The type of the rows.", required=True),
            WireParameter(
                "column", "COLUMN=PROPERTY; nothing after `=` leaves it out.", repeated=True
            ),
        ),
        Body(media=(PARQUET, CSV)),
        writes=True,
    ),
)
