"""OpenID Connect: tokens of an issuer, verified with its published keys.

The keys are fetched when they are first needed, again after an hour, and when a token names a key
that is not known; never more often than every ten seconds, whatever clients send.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import jwt
import msgspec

from omnigraph.errors import InvalidInput

log = logging.getLogger("omnigraph.server.oidc")

ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "EdDSA",
)
"""Signatures with a public key only: with a shared secret, a key of the issuer could be abused."""
CLOCK_SKEW_S: Final = 30
KEYS_AGE_MAX_S: Final = 3_600.0
KEYS_INTERVAL_MIN_S: Final = 10.0
FETCH_TIMEOUT_S: Final = 5.0
FETCH_BYTES_MAX: Final = 256 * 1024
KEYS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """Whose tokens are accepted, for which audience, and which claim is the actor."""

    issuer: str
    audience: str
    jwks_url: str | None
    actor_claim: str

    def __post_init__(self) -> None:
        for url in (self.issuer, self.jwks_url):
            if url is not None:
                _require_safe(url)


def _require_safe(url: str) -> None:
    """Keys must come over https; over http only from this machine."""
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and _is_loopback(parts.hostname or ""):
        return
    raise InvalidInput(
        f"{url!r} cannot be the address of an issuer", remedy="Use an https:// address."
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class OidcProvider:
    """Verifies tokens of one issuer. Used on the event loop; keys are fetched in a thread."""

    def __init__(self, settings: OidcSettings) -> None:
        self._settings = settings
        self._keys: dict[str, Any] = {}
        self._fetched_at: float | None = None
        self._tried_at: float | None = None
        self._fetching = asyncio.Lock()

    def may_have_issued(self, token: str) -> bool:
        """Whether a text has the form of a signed token."""
        return token.count(".") == 2

    async def actor_of(self, token: str) -> str | None:
        """The actor of a valid token; None when it is not valid."""
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            return None
        if header.get("alg") not in ALGORITHMS:
            return None
        key = await self._key(str(header.get("kid", "")))
        if key is None:
            return None
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[header["alg"]],
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                leeway=CLOCK_SKEW_S,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError:
            return None
        actor = claims.get(self._settings.actor_claim)
        return actor if isinstance(actor, str) and actor.strip() else None

    async def _key(self, kid: str) -> Any:
        now = time.monotonic()
        stale = self._fetched_at is None or now - self._fetched_at > KEYS_AGE_MAX_S
        if stale or kid not in self._keys:
            async with self._fetching:
                await self._fetch(kid)
        return self._keys.get(kid)

    async def _fetch(self, kid: str) -> None:
        now = time.monotonic()
        if self._tried_at is not None and now - self._tried_at < KEYS_INTERVAL_MIN_S:
            return
        self._tried_at = now
        try:
            found = await asyncio.to_thread(fetch_keys, self._settings)
        except (OSError, ValueError, jwt.PyJWTError, msgspec.MsgspecError) as problem:
            log.error("the keys of %s cannot be read: %s", self._settings.issuer, problem)
            return
        self._keys, self._fetched_at = found, time.monotonic()


def fetch_keys(settings: OidcSettings) -> dict[str, Any]:
    """The public keys of the issuer by id."""
    url = settings.jwks_url
    if url is None:
        known = _json(settings.issuer.rstrip("/") + "/.well-known/openid-configuration")
        if known.get("issuer") != settings.issuer:
            raise ValueError("the discovery document is of another issuer")
        url = str(known["jwks_uri"])
        _require_safe(url)
    found = {}
    for item in _json(url).get("keys", [])[:KEYS_MAX]:
        if item.get("use", "sig") == "sig" and item.get("kty") in ("RSA", "EC", "OKP"):
            found[str(item.get("kid", ""))] = jwt.PyJWK.from_dict(
                item, None if "alg" in item else _algorithm(item)
            ).key
    return found


def _algorithm(item: dict[str, Any]) -> str:
    """An algorithm of the key's family; the signature is checked with that of the token."""
    if item["kty"] == "RSA":
        return "RS256"
    if item["kty"] == "OKP":
        return "EdDSA"
    return "ES384" if item["crv"].endswith("384") else "ES256"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Keys come from where the configuration says, and from nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirect)


def _json(url: str) -> dict[str, Any]:
    with _opener.open(url, timeout=FETCH_TIMEOUT_S) as response:
        text = response.read(FETCH_BYTES_MAX + 1)
    if len(text) > FETCH_BYTES_MAX:
        raise ValueError(f"{url} has more than {FETCH_BYTES_MAX} bytes")
    return msgspec.json.decode(text, type=dict[str, Any])
