"""An S3 protocol server for tests that counts requests and injects faults.

Owns a moto server in a process of its own, on a free loopback port, that stops when its parent
does. A layer in front of it keeps a log of every request (from whatever process it came, Lance's
own requests included) and injects faults by rule. moto is a fake: this proves that the protocol
is handled, not how Amazon's S3 behaves. Never use it outside tests; it keeps everything in memory.

``python -m tests.support.s3server`` starts one by hand.
"""

from __future__ import annotations

import contextlib
import fnmatch
import http.client
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import IO, Any, Literal, cast

RequestClass = Literal["GET", "HEAD", "PUT", "COPY", "LIST", "DELETE", "DELETE_MANY", "MULTIPART"]

CONTROL = "/_control"
REQUEST_SECONDS_MAX = 60
STOP_SECONDS_MAX = 10


@dataclass(frozen=True, slots=True)
class Request:
    """A request the server received. ``key`` is ``bucket/key``; a listing's key is its prefix."""

    kind: RequestClass
    key: str
    status: int


@dataclass(frozen=True, slots=True)
class S3Fault:
    """Which requests misbehave, and how.

    ``key`` is a shell pattern over ``bucket/key``. The rule skips ``skip`` matching requests and
    acts on the ``times`` after them (``None``: on all). ``status`` answers with an error, ``drop``
    closes the connection without an answer, ``delay`` answers late; ``when`` says whether the
    request takes effect first.
    """

    kind: RequestClass | Literal["*"] = "*"
    key: str = "*"
    action: Literal["status", "drop", "delay"] = "status"
    when: Literal["before", "after"] = "before"
    status: int = 503
    delay_ms: int = 0
    skip: int = 0
    times: int | None = 1

    def matches(self, kind: str, key: str) -> bool:
        return self.kind in ("*", kind) and fnmatch.fnmatchcase(key, self.key)


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server, by its port: picklable, usable from any process of this machine."""

    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """What a client process needs in its environment."""
        return {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }

    def create_bucket(self, name: str) -> str:
        """Create a bucket and return its URI; an existing one is fine."""
        self._send("PUT", f"/{name}")
        return f"s3://{name}"

    def load(self, directory: str | os.PathLike[str], uri: str) -> None:
        """Put every file below a directory into the store, below ``uri``: no requests, no log."""
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        order = {"directory": os.fspath(directory), "bucket": bucket, "prefix": prefix}
        self._send("POST", f"{CONTROL}/load", json.dumps(order).encode())

    def requests(self, prefix: str = "") -> list[Request]:
        """Every request since the last reset whose ``bucket/key`` starts with ``prefix``."""
        log = cast(list[list[Any]], json.loads(self._send("GET", f"{CONTROL}/requests")))
        return [Request(*entry) for entry in log if entry[1].startswith(prefix)]

    def counts(self, prefix: str = "") -> dict[str, int]:
        """The same, counted by class."""
        return dict(Counter(str(request.kind) for request in self.requests(prefix)))

    def reset(self) -> None:
        """Forget the requests made so far."""
        self._send("POST", f"{CONTROL}/reset")

    def inject(self, *faults: S3Fault) -> None:
        """Add rules; the first that acts on a request acts alone."""
        body = json.dumps([asdict(fault) for fault in faults])
        self._send("POST", f"{CONTROL}/faults", body.encode())

    def clear_faults(self) -> None:
        self._send("DELETE", f"{CONTROL}/faults")

    def _send(self, method: str, path: str, body: bytes = b"") -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=REQUEST_SECONDS_MAX)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            content = response.read()
            if response.status >= 300:
                raise RuntimeError(f"{method} {path}: {response.status} {content!r}")
            return content
        finally:
            connection.close()


@contextlib.contextmanager
def s3_server() -> Iterator[S3Server]:
    """Start a server, wait until it listens, and stop it at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.s3server", "--until-stdin-closes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    stdin, stdout = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
    try:
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"the S3 test server did not start (exit {process.wait()})")
        yield S3Server(int(line))
    finally:
        stdin.close()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        stdout.close()


if __name__ == "__main__":
    from tests.support.s3backend import serve

    serve(until_stdin_closes="--until-stdin-closes" in sys.argv[1:])
