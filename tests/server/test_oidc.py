"""OpenID Connect against an issuer that the test starts."""

from __future__ import annotations

import base64
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from omnigraph import ServerSettings, Settings
from omnigraph.errors import InvalidInput
from omnigraph.server.auth.oidc import OidcSettings
from omnigraph.server.config import ServerConfig
from tests.graphs import people_graph
from tests.support.http_server import RunningServer, running

AUDIENCE = "omnigraph"


class Issuer:
    """An identity provider: a discovery document and keys."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        self.kid = "one"
        self.url = ""

    def documents(self) -> dict[str, dict[str, Any]]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {
            "/.well-known/openid-configuration": {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/keys",
            },
            "/keys": {"keys": [{**public, "kid": self.kid, "use": "sig", "alg": "RS256"}]},
        }

    def token(self, key: Any = None, algorithm: str = "RS256", **changed: Any) -> str:
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "carla",
            "exp": int(time.time()) + 60,
        } | changed
        claims = {name: value for name, value in claims.items() if value is not None}
        signer = self.key if key is None else key
        return jwt.encode(claims, signer, algorithm=algorithm, headers={"kid": self.kid})


@contextmanager
def issuing() -> Iterator[Issuer]:
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(issuer.documents().get(self.path, {})).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with issuing() as found:
        yield found


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("oidc")
    people_graph(folder / "g")
    environment = {
        "OMNIGRAPH_SERVER_OIDC_ISSUER": issuer.url,
        "OMNIGRAPH_SERVER_OIDC_AUDIENCE": AUDIENCE,
        "OMNIGRAPH_SERVER_BEARER_TOKEN": "static",
    }
    with running(folder, ["g"], environment) as found:
        yield found


def status(server: RunningServer, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.get(f"{server.url}/graphs", headers=headers, timeout=60).status_code


def test_the_actor_is_the_subject(guarded: RunningServer, issuer: Issuer) -> None:
    with guarded.client(issuer.token()) as client:
        text = 'query q() { insert City { name: "Rome" } }'
        done = client.post("/graphs/g/mutate", json={"query": text}).json()
    assert done["actor_id"] == "carla"
    assert status(guarded, "static") == 200


FAR_FUTURE = 4_102_444_800
"""The year 2100: a parameter that every process of a test run writes alike."""


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": 1},
        {"exp": None},
        {"aud": "other"},
        {"aud": None},
        {"iss": "https://example.org"},
        {"iss": None},
        {"nbf": FAR_FUTURE},
        {"sub": None},
        {"sub": " "},
    ],
    ids=str,
)
def test_a_token_for_somebody_else(
    guarded: RunningServer, issuer: Issuer, changed: dict[str, Any]
) -> None:
    assert status(guarded, issuer.token(**changed)) == 401


def test_a_tampered_or_foreign_token(guarded: RunningServer, issuer: Issuer) -> None:
    head, body, signature = issuer.token().split(".")
    other = issuer.token(sub="root").split(".")[1]
    foreign = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    public = json.dumps(issuer.documents()["/keys"]["keys"][0]).encode()
    for token in (
        f"{head}.{other}.{signature}",
        f"{head}.{body}.",
        f"{head}.{body}.{signature[::-1]}",
        issuer.token(foreign),
        signed_with(public, body),
        jwt.encode({"sub": "root", "aud": AUDIENCE}, "", algorithm="none"),
        "a.b.c",
    ):
        assert status(guarded, token) == 401


def signed_with(secret: bytes, body: str) -> str:
    """A token whose shared secret is the public key: a classic confusion of algorithms."""
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"one"}').rstrip(b"=").decode()
    made = hmac.digest(secret, f"{head}.{body}".encode(), "sha256")
    return f"{head}.{body}.{base64.urlsafe_b64encode(made).rstrip(b'=').decode()}"


@pytest.mark.parametrize("url", ["http://example.org", "ftp://example.org", "file:///keys", ""])
def test_keys_come_over_https(url: str) -> None:
    with pytest.raises(InvalidInput, match="issuer"):
        OidcSettings(url, AUDIENCE, None, "sub")


def test_an_issuer_needs_an_audience() -> None:
    server = ServerSettings(oidc_issuer="https://example.org")
    with pytest.raises(InvalidInput, match="AUDIENCE"):
        ServerConfig((), Settings(server=server)).authenticator()
