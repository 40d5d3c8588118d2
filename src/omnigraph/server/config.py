"""What a server is started with. Plain values: worker processes get a copy."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace

from omnigraph import Settings
from omnigraph.errors import InvalidInput, NotAvailable
from omnigraph.server.auth.access import Policy, choose_policy
from omnigraph.server.auth.authenticate import Authenticator
from omnigraph.server.auth.oidc import OidcProvider, OidcSettings
from omnigraph.server.auth.tokens import DEFAULT_ACTOR, Credential, TokenSources, TokenStore
from omnigraph.server.registry import GraphAddress


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The certificate chain and the private key, as PEM files."""

    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Which graphs are served, to whom, and where."""

    graphs: tuple[GraphAddress, ...]
    settings: Settings
    built_in_policy: bool = True
    read_only: bool = False
    tls: TlsFiles | None = None
    generated_token: str | None = field(default=None, repr=False)
    """A token that was made for this run, of the actor ``default``."""

    @property
    def token_sources(self) -> TokenSources:
        server = self.settings.server
        return TokenSources(server.bearer_token, server.tokens_file, server.tokens_json)

    @property
    def has_tokens(self) -> bool:
        server = self.settings.server
        return (
            self.generated_token is not None
            or self.token_sources.given
            or server.oidc_issuer is not None
        )

    def with_a_token(self) -> ServerConfig:
        """This configuration; where nobody could call the server, with a token for this run."""
        if self.has_tokens or self.settings.server.unauthenticated:
            return self
        return replace(self, generated_token=secrets.token_urlsafe(24))

    def policy(self) -> Policy:
        """The policy in force, and with it the run state."""
        server = self.settings.server
        return choose_policy(
            tokens=self.has_tokens,
            built_in=self.built_in_policy,
            unauthenticated=server.unauthenticated and not self.has_tokens,
            read_only=self.read_only,
        )

    def authenticator(self) -> Authenticator:
        """Who recognises callers."""
        if self.settings.server.tokens_aws_secret is not None:
            raise NotAvailable(
                "tokens from AWS Secrets Manager are not supported",
                remedy="Mount the secret as a file and set OMNIGRAPH_SERVER_BEARER_TOKENS_FILE.",
            )
        generated = (
            ()
            if self.generated_token is None
            else (Credential.of(DEFAULT_ACTOR, self.generated_token),)
        )
        return Authenticator(TokenStore(self.token_sources, generated), self._identity_provider())

    def _identity_provider(self) -> OidcProvider | None:
        server = self.settings.server
        if server.oidc_issuer is None:
            return None
        if server.oidc_audience is None:
            raise InvalidInput(
                "OMNIGRAPH_SERVER_OIDC_ISSUER is set and OMNIGRAPH_SERVER_OIDC_AUDIENCE is not",
                remedy="Name the audience that tokens for this server have.",
            )
        return OidcProvider(
            OidcSettings(
                server.oidc_issuer,
                server.oidc_audience,
                server.oidc_jwks_url,
                server.oidc_actor_claim,
            )
        )

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen on."""
        host, colon, port = self.settings.server.bind.rpartition(":")
        if not colon or not port.isdigit() or int(port) > 65_535:
            raise InvalidInput(
                f"{self.settings.server.bind!r} is not an address to listen on",
                remedy="Write HOST:PORT, such as 127.0.0.1:8080; port 0 takes a free one.",
            )
        return host.strip("[]"), int(port)
