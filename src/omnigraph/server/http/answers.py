"""What handlers return: a whole body, or a stream of chunks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from omnigraph.server.http.operation import JSON

Headers: TypeAlias = tuple[tuple[str, str], ...]

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Answer:
    """A response whose body is known. ``length`` is announced where there is no body (HEAD)."""

    body: bytes = b""
    status: int = 200
    media: str | None = JSON
    headers: Headers = ()
    length: int | None = None
    commit_id: str | None = None
    """The commit that was read or made, for the log."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A response whose chunks are made while it is sent.

    A failure after the first chunk breaks the connection: no error object is appended to data.
    """

    chunks: AsyncIterator[bytes]
    media: str
    status: int = 200
    headers: Headers = ()
    length: int | None = None


AnyAnswer: TypeAlias = Answer | Stream


def encoded(value: Any) -> bytes:
    """A value as JSON."""
    return _encoder.encode(value)


def json_answer(value: Any, *, status: int = 200, headers: Headers = ()) -> Answer:
    """An object as the body of a response."""
    return Answer(_encoder.encode(value), status, headers=headers, commit_id=_commit_of(value))


def _commit_of(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    commit = value.get("commit")
    if isinstance(commit, dict):
        return str(commit.get("graph_commit_id"))
    found = value.get("graph_commit_id")
    return None if found is None else str(found)
