"""The ASGI application of a configuration: opens the graphs when the server starts."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from omnigraph.server.application import Application
from omnigraph.server.config import ServerConfig
from omnigraph.server.logs import configure_logs
from omnigraph.server.registry import GraphRegistry, ServedGraph, open_graphs
from omnigraph.server.routes.inventory import OPERATIONS
from omnigraph.server.services import Services


class ServerApp:
    """Everything that one worker process serves. Also runs under other ASGI servers."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self._application = Application(OPERATIONS)

    @property
    def services(self) -> Services:
        """The parts of the running server."""
        assert self._application.services is not None
        return self._application.services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await self._application(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                self.services.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def start(self) -> None:
        """Open the graphs; the first request can come."""
        config = self.config
        configure_logs(config.settings.server.log_level)
        graphs = open_all(config)
        services = Services.of(
            config.settings, GraphRegistry(graphs), config.policy(), config.authenticator()
        )
        for item in graphs:
            if item.handle is not None and not config.read_only:
                report = item.handle.maintenance.recovered_at_open
                done = len(report.resolved)
                services.metrics.recoveries.labels(item.id).inc(done)
        self._application.services = services


def open_all(config: ServerConfig) -> list[ServedGraph]:
    """Open the graphs of a configuration."""
    return open_graphs(
        config.graphs,
        config.settings,
        read_only=config.read_only,
        require_all=config.settings.server.require_all_graphs,
    )


def create_app(config: ServerConfig) -> ServerApp:
    """The application of one worker process."""
    return ServerApp(config)
