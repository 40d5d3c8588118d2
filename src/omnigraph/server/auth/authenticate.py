"""Who sends a request: the actor that its bearer token proves."""

from __future__ import annotations

from typing import Final, Protocol

from starlette.datastructures import Headers

from omnigraph.errors import Unauthorized
from omnigraph.server.auth.tokens import TokenStore

SCHEME: Final = "Bearer "
TOKEN_CHARACTERS_MAX: Final = 8_192
"""Longer ones are no tokens; hashing them would be work for nothing."""


class IdentityProvider(Protocol):
    """Verifies tokens of somebody else."""

    def may_have_issued(self, token: str) -> bool: ...

    async def actor_of(self, token: str) -> str | None: ...


class Authenticator:
    """Static tokens first, then those of an identity provider."""

    def __init__(self, tokens: TokenStore, provider: IdentityProvider | None = None) -> None:
        self._tokens = tokens
        self._provider = provider

    async def actor_of(self, headers: Headers) -> str:
        """The actor of a request.

        Raises:
            Unauthorized: There is no token, or none that is valid.
        """
        given = headers.getlist("authorization")
        if len(given) != 1 or not given[0].startswith(SCHEME):
            raise Unauthorized("missing bearer token")
        token = given[0][len(SCHEME) :]
        if len(token) <= TOKEN_CHARACTERS_MAX:
            actor = self._tokens.actor_of(token)
            provider = self._provider
            if actor is None and provider is not None and provider.may_have_issued(token):
                actor = await provider.actor_of(token)
            if actor is not None:
                return actor
        raise Unauthorized("invalid bearer token")
