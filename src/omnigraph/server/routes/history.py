"""Commits, what they changed, the change feed, differences, histories of entities."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from itertools import chain, islice
from typing import Any, Final

from msgspec import Struct

from omnigraph import Commit, Diff, EntityEvent
from omnigraph.errors import EntityNotFound, InvalidInput, OmnigraphError
from omnigraph.server.auth.access import GraphAction
from omnigraph.server.http.answers import AnyAnswer, Stream, encoded, json_answer
from omnigraph.server.http.exchange import Exchange
from omnigraph.server.http.operation import (
    BRANCH,
    EVENTS,
    JSON,
    NDJSON,
    Body,
    Operation,
    Success,
    WireParameter,
)
from omnigraph.server.http.shapes import (
    BlameAnswer,
    ChangesAnswer,
    CommitList,
    CommitShape,
    DiffAnswer,
    FeedAnswer,
    HistoryAnswer,
)

FOLLOW_INTERVAL_S: Final = 1.0
"""Seconds between two polls of a stream of events that has caught up."""
HEARTBEAT_S: Final = 15.0
"""Seconds without a change after which a comment is sent, so that proxies keep the connection."""
DIFF_CHUNK: Final = 256
"""Changes that are encoded at a time."""

KINDS: Final = WireParameter(
    "kind", "Only nodes or edges.", repeated=True, choices=("node", "edge")
)
TYPES: Final = WireParameter("type", "Only this type.", repeated=True)
OPS: Final = WireParameter(
    "op", "Only these operations.", repeated=True, choices=("insert", "update", "delete")
)
LIMIT: Final = WireParameter("limit", "Items per page.", kind="integer", low=1)
PAGE_TOKEN: Final = WireParameter("page_token", "The `next_page_token` of the page before.")
FILTERS: Final = (KINDS, TYPES, OPS)
START: Final = WireParameter("start", "`now`, `beginning` or `after:COMMIT`.")
CURSOR: Final = WireParameter("cursor", "The `cursor` of an earlier page.")


class BaselineBody(Struct, forbid_unknown_fields=True):
    """Which part of a branch is wanted, and the scope of the cursor that follows it."""

    branch: str | None = None
    kind: list[str] = []
    type: list[str] = []
    op: list[str] = []


def _filters(call: Exchange) -> dict[str, Any]:
    return {
        "kinds": call.texts("kind"),
        "types": call.texts("type"),
        "ops": call.texts("op"),
    }


# -- commits ---------------------------------------------------------------------------------------


async def commits(call: Exchange) -> AnyAnswer:
    branch = call.text("branch") or "main"
    call.allow(GraphAction.READ, branch=branch)
    limit = call.whole("limit")
    if limit is not None and limit < 1:
        raise InvalidInput("`limit` must be at least 1")
    log = partial(
        call.graph.history.log,
        branch,
        after=call.text("after"),
        actor=call.text("actor"),
        since=call.text("since"),
        until=call.text("until"),
        types=call.texts("type"),
        message=call.text("message"),
    )

    def answer() -> dict[str, Any]:
        named = _tags(call)
        # One more than asked for tells whether there is a next page.
        found = list(islice(log(), None if limit is None else limit + 1))
        shown = found if limit is None else found[:limit]
        body: dict[str, Any] = {"commits": [_with_tags(commit, named) for commit in shown]}
        if len(found) > len(shown):
            body["next_after"] = shown[-1].commit_id
        return body

    return json_answer(await call.read(answer))


def _tags(call: Exchange) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for tag in call.graph.tags.list():
        found.setdefault(tag.commit_id, []).append(tag.name)
    return found


def _with_tags(commit: Commit, tags: dict[str, list[str]]) -> dict[str, Any]:
    body = commit.to_json()
    if commit.commit_id in tags:
        body["tags"] = tags[commit.commit_id]
    return body


async def commit(call: Exchange) -> AnyAnswer:
    call.allow(GraphAction.READ)
    work = partial(call.graph.history.commit, call.path["commit_id"])
    return json_answer(await call.read(lambda: work().to_json()))


async def commit_changes(call: Exchange) -> AnyAnswer:
    history, id = call.graph.history, call.path["commit_id"]
    found = await call.read(lambda: history.commit(id))
    call.allow(GraphAction.READ, branch=found.branch)
    work = partial(
        history.commit_changes,
        id,
        limit=call.whole("limit"),
        page_token=call.text("page_token"),
        **_filters(call),
    )
    return json_answer(await call.read(lambda: work().to_json()))


# -- the change feed -------------------------------------------------------------------------------


async def changes(call: Exchange) -> AnyAnswer:
    branch = call.text("branch") or "main"
    call.allow(GraphAction.READ, branch=branch)
    if call.accepts(JSON, EVENTS) == EVENTS:
        return Stream(await _events(call, branch), EVENTS, headers=(("cache-control", "no-store"),))
    work = partial(
        call.graph.history.changes,
        branch,
        start=call.text("start"),
        cursor=call.text("cursor"),
        page_token=call.text("page_token"),
        limit=call.whole("limit"),
        commits_max=call.whole("commits_max"),
        **_filters(call),
    )
    return json_answer(await call.read(lambda: work().to_json()))


async def _events(call: Exchange, branch: str) -> AsyncIterator[bytes]:
    """The feed as server-sent events; the id of an event is the cursor to go on from.

    The first page is read before the answer begins, so that a wrong cursor is refused.
    """
    poll = partial(call.graph.history.changes, branch, **_filters(call))
    last_id = call.headers.get("last-event-id")
    if last_id:
        position: dict[str, Any] = {"cursor": last_id}
    else:
        names = ("start", "cursor", "page_token")
        position = {name: call.text(name) for name in names if call.text(name) is not None}
    first = await call.read(partial(poll, **position))
    gone = asyncio.create_task(call.disconnected())

    async def events() -> AsyncIterator[bytes]:
        page, quiet_s = first, 0.0
        try:
            while not gone.done() and not call.services.stopping:
                for block in page.blocks:
                    yield b"event: commit\ndata: " + encoded(block.to_json()) + b"\n\n"
                    quiet_s = 0.0
                if page.next_page_token is not None:
                    page = await call.read(partial(poll, page_token=page.next_page_token))
                    continue
                cursor = page.cursor
                assert cursor is not None
                if page.blocks or page is first:
                    told = encoded({"cursor": cursor, "caught_up": page.caught_up})
                    yield b"event: cursor\nid: " + cursor.encode() + b"\ndata: " + told + b"\n\n"
                if page.caught_up:
                    await asyncio.wait({gone}, timeout=FOLLOW_INTERVAL_S)
                    quiet_s += FOLLOW_INTERVAL_S
                    if quiet_s >= HEARTBEAT_S:
                        quiet_s = 0.0
                        yield b": waiting\n\n"
                page = await call.read(partial(poll, cursor=cursor))
        except OmnigraphError as problem:
            yield b"event: error\ndata: " + encoded(problem.to_json()) + b"\n\n"
        finally:
            gone.cancel()

    return events()


async def baseline(call: Exchange) -> AnyAnswer:
    body = await call.json(BaselineBody)
    branch = "main" if body.branch is None else body.branch.strip()
    call.allow(GraphAction.EXPORT, branch=branch)
    make = partial(
        call.graph.history.baseline, branch, kinds=body.kind, types=body.type, ops=body.op
    )
    return await call.stream(make, f"{NDJSON}; charset=utf-8")


# -- differences -----------------------------------------------------------------------------------


async def diff(call: Exchange) -> AnyAnswer:
    old, new = call.needed("from"), call.needed("to")
    from_base = call.truth("from_merge_base")
    media = call.accepts(JSON, NDJSON)
    await call.allow_state(GraphAction.READ, None, old)
    await call.allow_state(GraphAction.READ, None, new)
    graph, filters = call.graph, _filters(call)
    limit, token = call.whole("limit"), call.text("page_token")

    def found() -> Diff:
        base = graph.merge(new, old, dry_run=True).base_commit_id if from_base else None
        return graph.diff(old if base is None else base, new, **filters)

    def page() -> dict[str, Any]:
        difference = found()
        chosen = {} if limit is None else {"limit": limit}
        part = difference.page(**chosen, page_token=token)
        body = diff_head(difference) | {"changes": [change.to_json() for change in part.changes]}
        if part.next_page_token is not None:
            body["next_page_token"] = part.next_page_token
        return body

    def lines() -> Iterator[bytes]:
        difference = found()
        yield encoded(diff_head(difference)) + b"\n"
        changes = iter(difference)
        while part := list(islice(changes, DIFF_CHUNK)):
            yield b"".join(encoded(change.to_json()) + b"\n" for change in part)

    if media == NDJSON:
        return await call.stream(lines, NDJSON)
    if call.truth("summary"):
        return json_answer(await call.read(lambda: _summary(found())))
    return json_answer(await call.read(page))


def diff_head(found: Diff) -> dict[str, Any]:
    """What a difference is between."""
    return {
        "from_graph_manifest_version": found.old.snapshot.manifest_version,
        "to_graph_manifest_version": found.new.snapshot.manifest_version,
        "schema": [change.to_json() for change in found.schema],
    }


def _summary(found: Diff) -> dict[str, Any]:
    return diff_head(found) | {"stats": found.stats.to_json()}


# -- entities --------------------------------------------------------------------------------------


def _type_key(call: Exchange) -> str:
    return f"{call.path['entity']}:{call.path['type']}"


async def entity_history(call: Exchange) -> AnyAnswer:
    branch = call.text("branch") or "main"
    call.allow(GraphAction.READ, branch=branch)
    graph, key, id = call.graph, _type_key(call), call.needed("id")
    limit, token = call.whole("limit"), call.text("page_token")

    def answer() -> dict[str, Any]:
        found = graph.history.entity(key, id, branch)
        if limit is None and token is None:
            events: Iterator[EntityEvent] = iter(found)
            first = next(events, None)
            if first is None:
                raise EntityNotFound(
                    f"no commit of {branch} ever held a {call.path['type']} with id {id!r}",
                    details={"type_key": key, "id": id},
                )
            return {"events": [event.to_json() for event in chain([first], events)]}
        page = found.page(limit or 100, token)
        body: dict[str, Any] = {"events": [event.to_json() for event in page.events]}
        if page.next_page_token is not None:
            body["next_page_token"] = page.next_page_token
        return body

    return json_answer(await call.read(answer))


async def entity_blame(call: Exchange) -> AnyAnswer:
    branch = call.text("branch") or "main"
    call.allow(GraphAction.READ, branch=branch)
    work = partial(call.graph.history.blame, _type_key(call), call.needed("id"), branch)
    return json_answer(await call.read(lambda: {"properties": [item.to_json() for item in work()]}))


ID: Final = WireParameter("id", "The id of the entity.", required=True)
_ENTITY: Final = "/graphs/{graph_id}/entities/{entity}/{type}"

OPERATIONS: Final = (
    Operation(
        "GET",
        "/graphs/{graph_id}/commits",
        "cluster_listCommits",
        "commits",
        "The commits that lead to the head of a branch, newest first; all of them unless limited.",
        commits,
        GraphAction.READ,
        {200: Success("The commits, and where the next page goes on.", CommitList)},
        (),
        (
            BRANCH,
            WireParameter("limit", "Commits per page.", kind="integer", low=1),
            WireParameter("after", "Go on after this commit, the last one of a page."),
            WireParameter("actor", "Only commits of this author."),
            WireParameter("since", "Only commits from this time on (ISO 8601)."),
            WireParameter("until", "Only commits before this time (ISO 8601)."),
            WireParameter("type", "Only commits that wrote to this type.", repeated=True),
            WireParameter("message", "Only commits whose message contains this."),
        ),
    ),
    Operation(
        "GET",
        "/graphs/{graph_id}/commits/{commit_id}",
        "cluster_getCommit",
        "commits",
        "One commit, on whichever branch it is.",
        commit,
        GraphAction.READ,
        {200: Success("The commit.", CommitShape)},
    ),
    Operation(
        "GET",
        "/graphs/{graph_id}/commits/{commit_id}/changes",
        "cluster_getCommitChanges",
        "changes",
        "What a commit changed, relative to its first parent.",
        commit_changes,
        GraphAction.READ,
        {200: Success("A page of changes.", ChangesAnswer)},
        (409, 410, 413),
        (*FILTERS, LIMIT, PAGE_TOKEN),
    ),
    Operation(
        "GET",
        "/graphs/{graph_id}/changes",
        "cluster_pollChanges",
        "changes",
        "A page of the change feed; as `text/event-stream`, the feed while commits are made.",
        changes,
        GraphAction.READ,
        {200: Success("A page, or a stream of events.", FeedAnswer, (JSON, EVENTS))},
        (406, 409, 410, 413),
        (
            BRANCH,
            START,
            CURSOR,
            PAGE_TOKEN,
            *FILTERS,
            LIMIT,
            WireParameter("commits_max", "Commits per poll.", kind="integer", low=1),
            WireParameter("Last-Event-ID", "The cursor of the last event.", "header"),
        ),
    ),
    Operation(
        "POST",
        "/graphs/{graph_id}/changes/baseline",
        "cluster_captureChangeBaseline",
        "changes",
        "The state of a branch, then one line with the cursor of the feed that follows it.",
        baseline,
        GraphAction.EXPORT,
        {200: Success("Records, and the cursor on the last line.", media=(NDJSON,))},
        (),
        (),
        Body(BaselineBody),
    ),
    Operation(
        "GET",
        "/graphs/{graph_id}/diff",
        "diffStates",
        "changes",
        "What sets two states apart, by value.",
        diff,
        GraphAction.READ,
        {200: Success("A page; as NDJSON, everything.", DiffAnswer, (JSON, NDJSON))},
        (406, 409, 410, 413),
        (
            WireParameter("from", "A branch, a tag, a commit or a time.", required=True),
            WireParameter("to", "A branch, a tag, a commit or a time.", required=True),
            WireParameter(
                "from_merge_base",
                "Compare with the merge base of two branches: what `to` did since.",
                kind="boolean",
            ),
            WireParameter("summary", "Only count.", kind="boolean"),
            *FILTERS,
            LIMIT,
            PAGE_TOKEN,
        ),
    ),
    Operation(
        "GET",
        f"{_ENTITY}/history",
        "entityHistory",
        "changes",
        "Every commit that changed an entity, newest first.",
        entity_history,
        GraphAction.READ,
        {200: Success("The events.", HistoryAnswer)},
        (410, 413),
        (ID, BRANCH, LIMIT, PAGE_TOKEN),
    ),
    Operation(
        "GET",
        f"{_ENTITY}/blame",
        "entityBlame",
        "changes",
        "For every property of an entity, the commit that set its value.",
        entity_blame,
        GraphAction.READ,
        {200: Success("One entry per property.", BlameAnswer)},
        (410,),
        (ID, BRANCH),
    ),
)
