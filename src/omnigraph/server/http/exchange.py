"""One request on its way through a handler.

Owns what a handler may ask for: its parameters, its body, the policy's decision, and a thread for
engine work. It knows no route.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.datastructures import Headers
from starlette.types import Receive
from starlette.types import Scope as HttpScope

from omnigraph import Graph
from omnigraph.errors import (
    InvalidInput,
    NotAcceptable,
    OmnigraphError,
    UnsupportedMediaType,
)
from omnigraph.model.deadline import Deadline
from omnigraph.model.integers import whole_number
from omnigraph.server.auth.access import GraphAction, Scope, require
from omnigraph.server.http import bodies
from omnigraph.server.http.answers import Headers as AnswerHeaders
from omnigraph.server.http.answers import Stream
from omnigraph.server.http.operation import IDEMPOTENCY, IF_COMMIT, JSON, TIMEOUT, Operation

if TYPE_CHECKING:
    from omnigraph.server.registry import ServedGraph
    from omnigraph.server.services import Services

Value = TypeVar("Value")

WATCH_AFTER_S: Final = 0.05
"""A call that takes longer is watched for its client going away; quick ones save the task."""
QUERY_FIELDS_MAX: Final = 1_000
"""Parameters in the query of a URL."""


class Exchange:
    """One request, from its checks to its answer."""

    def __init__(
        self,
        services: Services,
        operation: Operation,
        scope: HttpScope,
        receive: Receive,
        request_id: str,
    ) -> None:
        self.services = services
        self.operation = operation
        self.request_id = request_id
        self.path: Mapping[str, str] = scope.get("path_params", {})
        self.headers = Headers(scope=scope)
        self.actor: str | None = None
        self.served: ServedGraph | None = None
        self.refusal_headers: AnswerHeaders = ()
        """What a refusal also says, such as the ETag that a condition missed."""
        self._query_string: bytes = scope["query_string"]
        self._receive = receive
        self._body_is_read = False

    # -- what was asked for ------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """The graph of the path."""
        assert self.served is not None
        return self.served.graph

    @cached_property
    def query(self) -> Mapping[str, list[str]]:
        """The query of the URL, checked against the declared parameters."""
        try:
            pairs = parse_qsl(
                self._query_string.decode("ascii"),
                keep_blank_values=True,
                strict_parsing=False,
                errors="strict",
                max_num_fields=QUERY_FIELDS_MAX,
            )
        except ValueError as problem:
            raise InvalidInput(f"the query of the URL cannot be read: {problem}") from None
        known = {item.name: item for item in self.operation.parameters if item.place == "query"}
        found: dict[str, list[str]] = {}
        for name, value in pairs:
            if name not in known:
                raise InvalidInput(
                    f"there is no query parameter {name[:80]!r}",
                    remedy=f"Use {', '.join(known) or 'none'}.",
                )
            found.setdefault(name, []).append(value)
            if len(found[name]) > 1 and not known[name].repeated:
                raise InvalidInput(f"the query parameter {name!r} is given twice")
        for name, item in known.items():
            if item.required and name not in found:
                raise InvalidInput(f"the query parameter {name!r} is missing")
            if item.choices and not set(found.get(name, ())) <= set(item.choices):
                raise InvalidInput(
                    f"the query parameter {name!r} must be one of {', '.join(item.choices)}",
                    remedy=f"Use one of {', '.join(item.choices)}.",
                )
        return found

    def text(self, name: str) -> str | None:
        """A query parameter that stands at most once."""
        found = self.query.get(name)
        return None if found is None else found[0]

    def needed(self, name: str) -> str:
        """A query parameter that must be there."""
        return self.query[name][0]

    def texts(self, name: str) -> list[str]:
        """A query parameter that may be repeated."""
        return self.query.get(name, [])

    def whole(self, name: str) -> int | None:
        """A query parameter that is a whole number."""
        text = self.text(name)
        return None if text is None else _whole(name, text)

    def truth(self, name: str) -> bool:
        """A query parameter that is ``true`` or ``false``; false unless given."""
        text = self.text(name)
        if text not in (None, "true", "false"):
            raise InvalidInput(f"{name!r} must be true or false, not {text!r}")
        return text == "true"

    def state(self) -> tuple[str | None, str | None]:
        """The parameters ``branch`` and ``snapshot``, which exclude each other."""
        return one_state(self.text("branch"), self.text("snapshot"))

    @property
    def idempotency_key(self) -> str | None:
        found = self.headers.getlist(IDEMPOTENCY.name)
        if len(found) > 1:
            raise InvalidInput(f"the header {IDEMPOTENCY.name} is given twice")
        return found[0] if found else None

    @property
    def expected_head(self) -> str:
        """The raw commit id of ``Omnigraph-If-Graph-Commit``, which must be there once."""
        found = self.headers.getlist(IF_COMMIT.name)
        if len(found) != 1:
            raise InvalidInput(
                f"the header {IF_COMMIT.name} is required exactly once",
                remedy="Send the id of the commit that must be the head.",
            )
        text = found[0]
        if not text or not text.isascii() or text == "*" or any(c in text for c in '",/ '):
            raise InvalidInput(
                f"the header {IF_COMMIT.name} must be one raw commit id",
                remedy="Send the id as it is: no quotes, no list, no `*`, no `W/`.",
            )
        return text

    def refuse_condition(self, conditional: str) -> None:
        """Raise when a request without condition carries one: it would be ignored."""
        if IF_COMMIT.name in self.headers:
            raise InvalidInput(
                f"the header {IF_COMMIT.name} belongs to {conditional}",
                remedy=f"Send the request to {conditional}.",
            )

    def accepts(self, *offered: str) -> str:
        """Which of the media types the client prefers; the first one unless it says otherwise."""
        header = self.headers.get("accept")
        if header is None:
            return offered[0]
        ranges = [_media_range(part) for part in header.split(",") if part.strip()]
        best, best_quality = None, 0.0
        for media in offered:
            quality = max((q for pattern, q in ranges if _matches(pattern, media)), default=0.0)
            if quality > best_quality:
                best, best_quality = media, quality
        if best is None:
            if not ranges:
                return offered[0]
            raise NotAcceptable(
                f"this route answers with {', '.join(offered)}",
                remedy=f"Accept {' or '.join(offered)}.",
            )
        return best

    # -- the body ----------------------------------------------------------------------------------

    async def raw_body(self, bytes_max: int | None = None) -> bytes:
        """The body, whatever it is."""
        settings = self.services.settings
        limits = bodies.BodyLimits(
            settings.body_bytes_max if bytes_max is None else bytes_max,
            "request_body_bytes",
            settings.body_timeout_s,
        )
        found = await bodies.whole(self._receive, self.headers, limits)
        self._body_is_read = True
        return found

    async def json(self, shape: type[Value], bytes_max: int | None = None) -> Value:
        """The JSON body."""
        self.require_media(JSON)
        return decoded(await self.raw_body(bytes_max), shape)

    def require_media(self, *allowed: str) -> str:
        """The media type of the body; raises unless it is one of these."""
        media = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media not in allowed:
            raise UnsupportedMediaType(
                f"the content type {media[:80]!r} is not supported here"
                if media
                else "the request has no content type",
                remedy=f"Send `Content-Type: {' or '.join(allowed)}`.",
            )
        return media

    async def spooled(self, path: str) -> int:
        """Write the body to a file, as it arrives."""
        settings = self.services.settings
        limits = bodies.BodyLimits(
            settings.bulk_body_bytes_max, "graph_batch_request_bytes", settings.body_timeout_s
        )
        size = await bodies.spool(self._receive, self.headers, limits, path)
        self._body_is_read = True
        return size

    # -- decisions ---------------------------------------------------------------------------------

    def allow(
        self, action: GraphAction, *, branch: str | None = None, target: str | None = None
    ) -> None:
        """Ask the policy; raises ``Forbidden`` when it says no."""
        graph_id = None if self.served is None else self.served.id
        require(self.services.policy, self.actor, action, Scope(graph_id, branch, target))

    async def allow_state(self, action: GraphAction, branch: str | None, at: str | None) -> None:
        """Ask the policy about a state: its branch, which a commit has too."""
        if at is None:
            self.allow(action, branch="main" if branch is None else branch)
            return
        graph = self.graph
        try:
            found = await self.read(lambda: graph.history.commit(graph.at(at).commit_id).branch)
        except OmnigraphError:
            # What does not exist is on no branch; whoever may read main is told so.
            self.allow(action, branch="main")
            raise
        self.allow(action, branch=found)

    # -- engine work -------------------------------------------------------------------------------

    @property
    def deadline(self) -> Deadline:
        """A new deadline for a statement of this request."""
        most = self.services.settings.timeout_ms
        text = self.headers.get(TIMEOUT.name)
        if text is None:
            return Deadline(most)
        asked = _whole(TIMEOUT.name, text)
        if asked < 1:
            raise InvalidInput(f"{TIMEOUT.name} must be at least 1")
        return Deadline(min(asked, most) if most else asked)

    async def read(self, work: Callable[[], Value], deadline: Deadline | None = None) -> Value:
        """Run a read in a thread, until its deadline or until the client goes away."""
        ends = self.deadline if deadline is None else deadline
        with self._watched(ends):
            return await self.services.reads.run(ends.bounding(work))

    async def write(self, work: Callable[[], Value], size: int) -> Value:
        """Run an admitted write in a thread. It finishes, whoever waits for it."""
        with self.services.admission.admitted(self.actor, size):
            return await asyncio.shield(self.services.writes.run(work))

    def admitted(self, size: int) -> AbstractContextManager[None]:
        """Admission for a write whose body is still to be read."""
        return self.services.admission.admitted(self.actor, size)

    async def write_admitted(self, work: Callable[[], Value]) -> Value:
        """Run a write that was admitted already."""
        return await asyncio.shield(self.services.writes.run(work))

    async def stream(
        self, make: Callable[[], Iterator[bytes]], media: str, headers: Any = ()
    ) -> Stream:
        """A response of chunks. The first one is made now, so that refusals come in time.

        Every chunk is one call in the pool: a slow client holds no thread.
        """
        ends = self.deadline
        iterator, first = await self.read(lambda: _begun(make()), ends)
        return Stream(self._chunks(iterator, first, ends), media, headers=headers)

    async def _chunks(
        self, iterator: Iterator[bytes], first: bytes | None, deadline: Deadline
    ) -> AsyncIterator[bytes]:
        step = deadline.bounding(partial(next, iterator, None))
        try:
            with self._watched(deadline):
                while first is not None:
                    yield first
                    first = await self.services.reads.run(step)
        finally:
            close = getattr(iterator, "close", None)
            if close is not None:
                deadline.cancelled.set()
                with suppress(Exception):
                    await self.services.reads.run(close)

    @property
    def body_is_pending(self) -> bool:
        """Whether the body is still to be read."""
        return self.operation.body is not None and not self._body_is_read

    def _watched(self, deadline: Deadline) -> _Watch:
        return _Watch(self, deadline)

    async def disconnected(self) -> None:
        """Return when the client has gone away."""
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                return
            if self._body_is_read or not message.get("more_body", False):
                self._body_is_read = True


class _Watch:
    """Sets the event of a deadline when the client goes away or the server stops."""

    __slots__ = ("_deadline", "_exchange", "_task", "_timer")

    def __init__(self, exchange: Exchange, deadline: Deadline) -> None:
        self._exchange = exchange
        self._deadline = deadline
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(WATCH_AFTER_S, self._begin)
        self._exchange.services.running.add(self._deadline)

    def __exit__(self, *_: object) -> None:
        self._exchange.services.running.discard(self._deadline)
        assert self._timer is not None
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        if self._exchange.body_is_pending:
            return  # the next message is the body, which is not the watch's to take
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        await self._exchange.disconnected()
        self._deadline.cancelled.set()


def _begun(iterator: Iterator[bytes]) -> tuple[Iterator[bytes], bytes | None]:
    return iterator, next(iterator, None)


def one_state(branch: str | None, snapshot: str | None) -> tuple[str | None, str | None]:
    """A branch or a snapshot, not both."""
    if branch is not None and snapshot is not None:
        raise InvalidInput("`branch` and `snapshot` exclude each other", remedy="Keep one of them.")
    return branch, snapshot


def decoded(text: bytes, shape: type[Value]) -> Value:
    """JSON text as a value of a type, or a typed refusal."""
    try:
        return msgspec.json.decode(text, type=shape)
    except msgspec.ValidationError as problem:
        raise InvalidInput(f"the body does not match: {problem}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InvalidInput(f"the body is not JSON: {problem}") from None


def _whole(name: str, text: str) -> int:
    found = whole_number(text)
    if found is None:
        raise InvalidInput(f"{name} must be a whole number, not {text[:40]!r}")
    return found


def _media_range(text: str) -> tuple[str, float]:
    pattern, *options = (part.strip().lower() for part in text.split(";"))
    quality = 1.0
    for option in options:
        if option.startswith("q="):
            with suppress(ValueError):
                quality = min(1.0, max(0.0, float(option[2:])))
    return pattern, quality


def _matches(pattern: str, media: str) -> bool:
    if pattern in ("*/*", media):
        return True
    kind, _, rest = pattern.partition("/")
    return rest == "*" and media.startswith(f"{kind}/")
