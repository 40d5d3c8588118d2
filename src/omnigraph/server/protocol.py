"""HTTP/1.1 with bounds on what a client may send before it is a request.

The parser has none: a header without end would be collected, and a connection that sends a byte a
minute would stay.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADERS_BYTES_MAX: Final = 64 * 1024
"""Request line and headers. A token has at most 8 KiB, a URL at most 16 KiB."""
HEADERS_TIMEOUT_S: Final = 20.0
"""Seconds from the first byte of a request, or from the connection, to its last header."""


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with those bounds."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._headers_bytes = 0
        self._in_headers = True
        self._headers_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_headers:
            # Large bodies may follow in the same read: only what is surely header counts.
            self._headers_bytes += len(data)
            if self._headers_bytes > HEADERS_BYTES_MAX and b"\r\n\r\n" not in data:
                self.send_400_response("Request headers are too large.")
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_headers = True
        if self._headers_timer is None:
            self._start_timer()

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._headers_bytes = 0
        self._stop_timer()
        super().on_headers_complete()

    def _start_timer(self) -> None:
        self._headers_timer = self.loop.call_later(HEADERS_TIMEOUT_S, self._give_up)

    def _stop_timer(self) -> None:
        if self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def _give_up(self) -> None:
        self._headers_timer = None
        if self._in_headers and not self.transport.is_closing():
            self.transport.close()
