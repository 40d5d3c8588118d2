"""The server as processes: the socket, the workers, signals and a graceful stop."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

import uvicorn
from uvicorn.supervisors import Multiprocess

from omnigraph.errors import InvalidInput
from omnigraph.server.asgi import ServerApp, create_app, open_all
from omnigraph.server.config import ServerConfig
from omnigraph.server.logs import configure_logs
from omnigraph.server.process_environment import shared_metrics
from omnigraph.server.protocol import BoundedProtocol

try:
    import resource
except ImportError:  # Windows: there is no such limit
    resource = None  # type: ignore[assignment]

BACKLOG: Final = 2_048
KEEP_ALIVE_S: Final = 75
"""Longer than the idle time of common load balancers, so that they close first."""
HEALTHCHECK_S: Final = 30
"""A worker that holds its interpreter for longer is replaced; imports and large merges do so for
seconds."""


class WorkerServer(uvicorn.Server):
    """One worker. When its time to stop has come, reads are cancelled instead of waited for."""

    def handle_exit(self, sig: int, frame: object) -> None:
        app = self._app
        if app is not None:
            app.services.begin_stop()
            grace = app.config.settings.server.shutdown_grace_s
            timer = threading.Timer(max(0.0, grace * 0.8), app.services.cancel_reads)
            timer.daemon = True
            timer.start()
        super().handle_exit(sig, frame)  # type: ignore[arg-type]

    @property
    def _app(self) -> ServerApp | None:
        app = self.config.loaded_app if self.config.loaded else None
        return app if isinstance(app, ServerApp) and self.started else None


def serve(config: ServerConfig, announce: Callable[[str], None]) -> None:
    """Serve until a signal stops the process.

    ``announce`` gets the address when the socket is bound and the graphs can be opened.

    Raises:
        InvalidInput: The configuration is refused, or the address is in use.
    """
    configure_logs(config.settings.server.log_level)
    _allow_many_files()
    config.policy()
    config.authenticator()
    listening = _listening(config)
    with listening:
        if config.settings.server.workers == 1:
            _serve_here(config, listening, announce)
        else:
            open_all(config)  # what is wrong with the graphs is said once, here
            announce(_shown(listening))
            _serve_in_workers(config, listening)


def _serve_here(
    config: ServerConfig, listening: socket.socket, announce: Callable[[str], None]
) -> None:
    app = create_app(config)
    app.start()
    announce(_shown(listening))
    # uvicorn raises the signal again when it has stopped: by then there is nothing left to do.
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)
    WorkerServer(_uvicorn_config(app, config)).run([listening])


def _serve_in_workers(config: ServerConfig, listening: socket.socket) -> None:
    settings = _uvicorn_config(partial(create_app, config), config, factory=True)
    with shared_metrics():
        Supervisor(settings, [listening]).run()


class Supervisor(Multiprocess):
    """Starts the workers, and replaces one that dies."""


def _uvicorn_config(app: object, config: ServerConfig, *, factory: bool = False) -> uvicorn.Config:
    server = config.settings.server
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        factory=factory,
        http=BoundedProtocol,
        ws="none",
        workers=server.workers,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(server.shutdown_grace_s)),
        timeout_worker_healthcheck=HEALTHCHECK_S,
        ssl_certfile=None if config.tls is None else config.tls.certificate,
        ssl_keyfile=None if config.tls is None else config.tls.key,
    )


def _listening(config: ServerConfig) -> socket.socket:
    host, port = config.address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(BACKLOG)
    except OSError as problem:
        found.close()
        raise InvalidInput(
            f"cannot listen on {host}:{port}: {problem.strerror}",
            remedy="Choose another address with --bind HOST:PORT; port 0 takes a free one.",
        ) from None
    found.set_inheritable(True)
    return found


def _shown(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _allow_many_files() -> None:
    """Raise the soft limit of open files: every connection is one."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
