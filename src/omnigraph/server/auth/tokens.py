"""Bearer tokens: where they come from, and how one is recognised.

Tokens are kept as SHA-256 digests and compared in constant time with every entry. A file of tokens
is read again when it changes; a file that is wrong then leaves the former tokens in force.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omnigraph.errors import InvalidInput, OmnigraphError

log = logging.getLogger("omnigraph.server.tokens")

DEFAULT_ACTOR: Final = "default"
RELOAD_INTERVAL_S: Final = 1.0
"""How often the file is looked at: one ``stat``, on a request."""
FILE_BYTES_MAX: Final = 4 * 1024 * 1024
"""Some 40,000 tokens: more is a wrong file."""


@dataclass(frozen=True, slots=True)
class Credential:
    """The digest of a token, and whose it is."""

    actor: str
    digest: bytes

    @classmethod
    def of(cls, actor: str, token: str) -> Credential:
        return cls(actor, hashlib.sha256(token.encode()).digest())


@dataclass(frozen=True, slots=True)
class TokenSources:
    """Where tokens come from; ``file`` counts before ``json``."""

    single: str | None = None
    file: str | None = None
    json: str | None = None

    @property
    def given(self) -> bool:
        return any(item is not None for item in (self.single, self.file, self.json))

    def read(self) -> tuple[Credential, ...]:
        """All credentials.

        Raises:
            InvalidInput: A source cannot be read, or an actor or token is blank or not unique.
        """
        entries: list[tuple[str, str]] = []
        if self.single is not None:
            entries.append((DEFAULT_ACTOR, self.single))
        if self.file is not None:
            entries += _entries(_file_text(self.file), f"the file of tokens {self.file}")
        elif self.json is not None:
            entries += _entries(self.json.encode(), "the tokens in the environment")
        return _checked(entries)


def _file_text(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            text = file.read(FILE_BYTES_MAX + 1)
    except OSError as problem:
        raise InvalidInput(
            f"the file of tokens {path} cannot be read: {problem.strerror}",
            remedy="Name a readable file that holds a JSON object of actors and tokens.",
        ) from None
    if len(text) > FILE_BYTES_MAX:
        raise InvalidInput(f"the file of tokens {path} has more than {FILE_BYTES_MAX} bytes")
    return text


def _entries(text: bytes, what: str) -> list[tuple[str, str]]:
    try:
        # As pairs: an actor that stands there twice must not silently be the last one.
        pairs = json.loads(text, object_pairs_hook=list)
    except ValueError as problem:
        pairs, why = None, f": {problem}"
    else:
        why = ""
    if not isinstance(pairs, list) or not all(_is_pair(item) for item in pairs):
        raise InvalidInput(
            f"{what} must be a JSON object of actors and tokens{why}",
            remedy='Write {"ACTOR": "TOKEN", ...}.',
        )
    return [(actor, token) for actor, token in pairs]


def _is_pair(item: object) -> bool:
    return isinstance(item, tuple) and all(isinstance(part, str) for part in item)


def _checked(entries: list[tuple[str, str]]) -> tuple[Credential, ...]:
    remedy = "Give every actor one token of its own."
    actors: set[str] = set()
    tokens: set[str] = set()
    for actor, token in entries:
        if not actor.strip() or not token.strip():
            raise InvalidInput("a bearer token or its actor is blank", remedy=remedy)
        if actor.strip() in actors:
            raise InvalidInput(f"the actor {actor!r} has two bearer tokens", remedy=remedy)
        if token.strip() in tokens:
            raise InvalidInput("two actors have the same bearer token", remedy=remedy)
        actors.add(actor.strip())
        tokens.add(token.strip())
    return tuple(Credential.of(actor.strip(), token.strip()) for actor, token in entries)


class TokenStore:
    """The credentials in force."""

    def __init__(self, sources: TokenSources, generated: tuple[Credential, ...] = ()) -> None:
        self._sources = sources
        self._generated = generated
        self._credentials = (*sources.read(), *generated)
        self._stamp = self._file_stamp()
        self._looked_at = time.monotonic()

    def __len__(self) -> int:
        return len(self._credentials)

    def actor_of(self, token: str) -> str | None:
        """Whose token this is; every entry is compared, so that the time tells nothing."""
        self._reload()
        digest = hashlib.sha256(token.encode()).digest()
        found = None
        for item in self._credentials:
            if hmac.compare_digest(item.digest, digest):
                found = item.actor
        return found

    def _reload(self) -> None:
        if self._sources.file is None or time.monotonic() - self._looked_at < RELOAD_INTERVAL_S:
            return
        self._looked_at = time.monotonic()
        stamp = self._file_stamp()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._credentials = (*self._sources.read(), *self._generated)
        except OmnigraphError as problem:
            log.error("the former tokens stay in force: %s", problem.message)
            return
        log.info("read %d bearer tokens again", len(self._credentials))

    def _file_stamp(self) -> tuple[int, int, int] | None:
        if self._sources.file is None:
            return None
        try:
            found = Path(self._sources.file).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
