"""Cursors and page tokens: positions in a stream of changes, as opaque text.

A token contains its scope (graph, branch, filter) and a checksum. A damaged token, or one of
another scope, is rejected with the reason. The server keeps no state per token.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Any, Final, Literal

from omnigraph.errors import CursorRejected, ResourceLimit

TOKEN_CHARACTERS_MAX: Final = 4_096
"""Tokens are passed in URLs, whose length servers and proxies limit."""
_DIGEST_BYTES: Final = 32

TokenKind = Literal["cursor", "page", "commit", "log", "history"]
_KINDS: Final = {
    "cursor": "a cursor of the feed",
    "page": "a page token of the feed",
    "commit": "a page token of a commit",
    "log": "a page token of the log",
    "history": "a page token of an entity's history",
}


@dataclass(frozen=True, slots=True)
class TokenScope:
    """The request that a token belongs to: every other request rejects it."""

    graph: str
    genesis: str
    branch: str
    """The incarnation of the branch, which a recreated branch does not share."""
    filter: str = ""
    subject: str = ""
    """The commit or entity that is paged through, if it is not the whole branch."""

    def encode(self, kind: TokenKind, place: dict[str, Any]) -> str:
        """A token for a position."""
        body = {"kind": kind, **self._parts(), "place": place}
        data = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        raw = data + hashlib.sha256(data).digest()
        text = urlsafe_b64encode(raw).decode().rstrip("=")
        if len(text) > TOKEN_CHARACTERS_MAX:
            resource = "change_continuation_token_encoded_bytes"
            raise ResourceLimit(
                resource,
                TOKEN_CHARACTERS_MAX,
                len(text),
                remedy="An entity id is too long for a page token: request a larger page.",
            )
        return text

    def decode(self, kind: TokenKind, token: str) -> dict[str, Any]:
        """The position in a token of this kind and scope."""
        body = _open(token)
        if body.get("kind") != kind:
            found = _KINDS.get(str(body.get("kind")), "an unknown token")
            raise rejected(f"it is {found}, not {_KINDS[kind]}")
        for name, value in self._parts().items():
            if body.get(name) != value:
                raise rejected(f"it belongs to another {_SCOPE_WORDS[name]}")
        place: dict[str, Any] = body["place"]
        return place

    def _parts(self) -> dict[str, str]:
        return {
            "graph": self.graph,
            "genesis": self.genesis,
            "branch": self.branch,
            "subject": self.subject,
            "filter": self.filter,
        }


_SCOPE_WORDS: Final = {
    "graph": "graph",
    "genesis": "graph",
    "branch": "branch, or to a deleted one of the same name",
    "subject": "request",
    "filter": "filter",
}


def rejected(why: str) -> CursorRejected:
    """The error for a token that cannot be used."""
    return CursorRejected(
        f"the cursor or page token cannot be used: {why}",
        remedy="Use it with the graph, branch and filter it was issued for, or start again.",
    )


def _open(token: str) -> dict[str, Any]:
    if len(token) > TOKEN_CHARACTERS_MAX or not token.isascii():
        raise rejected("it is damaged")
    try:
        raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
        data, digest = raw[:-_DIGEST_BYTES], raw[-_DIGEST_BYTES:]
        if hashlib.sha256(data).digest() != digest:
            raise rejected("it is damaged")
        body: dict[str, Any] = json.loads(data)
    except ValueError as error:
        raise rejected("it is damaged") from error
    return body
