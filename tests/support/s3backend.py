"""The server process behind :mod:`tests.support.s3server`: moto behind a counting layer.

Owns the request log, the fault rules and the control routes. It serves one request to moto at a
time, because moto's conditional writes are only atomic then. It must never be imported by
anything but its own process: moto costs seconds to load and belongs to the development tools.
"""

from __future__ import annotations

import io
import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import astuple
from typing import Any
from urllib.parse import parse_qs, unquote

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import make_server

from tests.support.s3server import CONTROL, Request, RequestClass, S3Fault

# A run that forgets to reset stops recording with an error instead of eating all memory.
REQUESTS_MAX = 1_000_000

Environ = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], object]


class CountingLayer:
    """The WSGI layer: control routes, the log, faults, and one request to moto at a time."""

    def __init__(self, application: Callable[[Environ, Any], Iterable[bytes]]) -> None:
        self._application = application
        self._moto_lock = threading.Lock()
        self._lock = threading.Lock()
        self._log: list[Request] = []
        self._rules: list[S3Fault] = []
        self._seen: list[int] = []

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        if environ["PATH_INFO"].startswith(CONTROL):
            return self._control(environ, body, start_response)
        kind, key = classify(environ)
        fault = self._due(kind, key)
        status, content = "", b""
        headers: list[tuple[str, str]] = []
        if fault is None or fault.when == "after" or fault.action == "delay":
            _delay(fault, "before")
            status, headers, content = self._ask_moto(environ)
            _delay(fault, "after")
        if fault is not None and fault.action == "status":
            status, headers, content = f"{fault.status} Injected", [("Content-Length", "0")], b""
        dropped = fault is not None and fault.action == "drop"
        self._record(Request(kind, key, 0 if dropped else int(status[:3])))
        if dropped:
            return _drop(environ)
        start_response(status, headers)
        return [content]

    def _ask_moto(self, environ: Environ) -> tuple[str, list[tuple[str, str]], bytes]:
        answer: list[Any] = []

        def start(status: str, headers: list[tuple[str, str]], *_: object) -> None:
            answer[:] = [status, headers]

        with self._moto_lock:
            content = b"".join(self._application(environ, start))
        return answer[0], answer[1], content

    def _due(self, kind: str, key: str) -> S3Fault | None:
        due: S3Fault | None = None
        with self._lock:
            for index, rule in enumerate(self._rules):
                if not rule.matches(kind, key):
                    continue
                position = self._seen[index] - rule.skip
                self._seen[index] += 1
                if due is None and position >= 0 and (rule.times is None or position < rule.times):
                    due = rule
        return due

    def _record(self, request: Request) -> None:
        with self._lock:
            if len(self._log) >= REQUESTS_MAX:
                raise RuntimeError(f"more than {REQUESTS_MAX} requests without a reset")
            self._log.append(request)

    def _control(
        self, environ: Environ, body: bytes, start_response: StartResponse
    ) -> Iterable[bytes]:
        route = environ["REQUEST_METHOD"], environ["PATH_INFO"].removeprefix(CONTROL)
        content = b"{}"
        with self._lock:
            if route == ("GET", "/requests"):
                content = json.dumps([astuple(request) for request in self._log]).encode()
            elif route == ("POST", "/reset"):
                self._log.clear()
            elif route == ("POST", "/faults"):
                rules = [S3Fault(**rule) for rule in json.loads(body)]
                self._rules.extend(rules)
                self._seen.extend(0 for _ in rules)
            elif route == ("POST", "/load"):
                with self._moto_lock:
                    _load(**json.loads(body))
            elif route == ("DELETE", "/faults"):
                self._rules.clear()
                self._seen.clear()
            else:
                start_response("404 Not Found", [("Content-Length", str(len(content)))])
                return [content]
        start_response("200 OK", [("Content-Length", str(len(content)))])
        return [content]


def classify(environ: Environ) -> tuple[RequestClass, str]:
    """The class of a request and the ``bucket/key`` it is about."""
    method, query = environ["REQUEST_METHOD"], parse_qs(environ["QUERY_STRING"], True)
    # WSGI hands paths over as latin-1.
    path = unquote(environ["PATH_INFO"].encode("latin-1").decode()).lstrip("/")
    bucket, _, key = path.partition("/")
    if "uploads" in query or "uploadId" in query:
        return "MULTIPART", path
    if method == "GET" and not key:
        return "LIST", f"{bucket}/{query.get('prefix', [''])[0]}"
    if method == "POST" and "delete" in query:
        return "DELETE_MANY", f"{bucket}/"
    if method == "PUT" and "HTTP_X_AMZ_COPY_SOURCE" in environ:
        return "COPY", path
    if method in ("GET", "HEAD", "PUT", "DELETE"):
        return method, path
    raise ValueError(f"unexpected request {method} {path}")


def _load(directory: str, bucket: str, prefix: str) -> None:
    """Put files into moto's store from the inside: thousands of objects in a second."""
    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            key = f"{prefix}/{os.path.relpath(path, directory)}"
            with open(path, "rb") as file:
                backend.put_object(bucket, key, file.read())


def _delay(fault: S3Fault | None, when: str) -> None:
    if fault is not None and fault.action == "delay" and fault.when == when:
        time.sleep(fault.delay_ms / 1000)


def _drop(environ: Environ) -> Iterable[bytes]:
    """Close the connection without a byte of answer."""
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionAbortedError("dropped on purpose")


def serve(*, until_stdin_closes: bool) -> None:
    """Listen on a free loopback port, print it, and serve until told to stop."""

    class Handler(MotoRequestHandler):
        protocol_version = "HTTP/1.1"  # keep connections: clients pool them

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    application = CountingLayer(create_backend_app("s3"))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Handler)
    print(server.server_port, flush=True)
    if until_stdin_closes:
        threading.Thread(target=_exit_at_end_of_input, daemon=True).start()
    server.serve_forever()


def _exit_at_end_of_input() -> None:
    """The parent holds the other end of the pipe: it is gone when nothing more can come."""
    sys.stdin.buffer.read()
    os._exit(0)
