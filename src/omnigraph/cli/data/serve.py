"""``omnigraph serve``."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated, Any

import typer

from omnigraph.cli.addressing import server_verb
from omnigraph.cli.commands import Invocation, command, single
from omnigraph.cli.output import CommandResult, say
from omnigraph.errors import InvalidInput, NotAvailable

app = single("Serve graphs over HTTP.")


@command(app, server_verb("serve"))
def serve(
    call: Invocation,
    graphs: Annotated[
        list[str],
        typer.Argument(metavar="[ID=]URI...", help="The graphs; an id is the name of its folder."),
    ],
    bind: Annotated[
        str | None,
        typer.Option(
            "--bind", metavar="HOST:PORT", help="Where to listen (127.0.0.1:8080); port 0: any."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", min=1, help="Processes.", show_default=False),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="builtin: who has a token may do everything; none: may only read.",
        ),
    ] = "builtin",
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every write.")] = False,
    unauthenticated: Annotated[
        bool, typer.Option("--unauthenticated", help="Serve everybody who can connect.")
    ] = False,
    tls_cert: Annotated[
        str | None,
        typer.Option("--tls-cert", metavar="FILE", help="A certificate chain (PEM)."),
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option("--tls-key", metavar="FILE", help="Its private key (PEM).")
    ] = None,
) -> CommandResult:
    """Serve one graph or several over HTTP, on this machine unless --bind says otherwise.

    Without configured tokens, one is made for this run and printed.
    """
    try:
        from omnigraph.server import config, process, registry
    except ImportError as problem:
        raise NotAvailable(
            f"the server is not installed ({problem.name} is missing)",
            remedy="Run `pip install 'omnigraph[server]'`.",
        ) from None
    if (tls_cert is None) != (tls_key is None):
        raise InvalidInput("--tls-cert and --tls-key go together", remedy="Give both, or none.")
    if policy not in ("builtin", "none"):
        raise InvalidInput(f"{policy!r} is not a policy", remedy="Use builtin or none.")
    given: dict[str, Any] = {"bind": bind, "workers": workers}
    given = {name: value for name, value in given.items() if value is not None}
    if unauthenticated:
        given["unauthenticated"] = True
    chosen = config.ServerConfig(
        tuple(registry.GraphAddress.parse(text) for text in graphs),
        replace(call.settings, server=replace(call.settings.server, **given)),
        built_in_policy=policy == "builtin",
        read_only=read_only,
        tls=None if tls_cert is None or tls_key is None else config.TlsFiles(tls_cert, tls_key),
    )
    if policy == "builtin":
        chosen = chosen.with_a_token()

    def announce(address: str) -> None:
        print(f"OMNIGRAPH_LISTEN_ADDR={address}", flush=True)
        if not call.flags.quiet:
            _welcome(address, chosen)

    process.serve(chosen, announce)
    return CommandResult(None, [])


def _welcome(address: str, config: Any) -> None:
    scheme = "http" if config.tls is None else "https"
    url, id = f"{scheme}://{address}", config.graphs[0].id
    token, header = config.generated_token, ""
    say(f"serving {', '.join(item.id for item in config.graphs)} at {url}")
    if token is not None:
        say(f"token of this run: {token}")
    if config.has_tokens:
        header = f" -H 'Authorization: Bearer {token or '$TOKEN'}'"
    say(f"try: curl{header} {url}/graphs/{id}/snapshot")
    say(f"     {url}/openapi.json describes every route; stop with Ctrl-C")
    sys.stderr.flush()
