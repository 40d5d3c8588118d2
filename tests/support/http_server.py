"""A real server process for tests: started as a user starts it, on a free port."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

TOKEN = "secret-of-ana"
TOKENS = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": f'{{"ana": "{TOKEN}", "bo": "secret-of-bo"}}'}
START_S = 60


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that listens."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def client(self, token: str | None = TOKEN, **options: Any) -> httpx.Client:
        """A client of this server; ``token`` None sends none."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, **options)

    def lines(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def stop(self) -> int:
        """Ask it to stop, and wait; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "omnigraph.cli.main", "serve", "--bind", "127.0.0.1:0", *words]


@contextmanager
def running(
    folder: Path, words: Sequence[str], environment: Mapping[str, str] = TOKENS
) -> Iterator[RunningServer]:
    """A server on the given graphs, with the given options, while the block runs."""
    log = folder / f"server-{time.monotonic_ns()}.log"
    out = folder / f"{log.name}.out"
    with log.open("wb") as errors, out.open("wb") as output:
        process = subprocess.Popen(
            command(*words),
            stdout=output,
            stderr=errors,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **environment},
            cwd=folder,
        )
    try:
        yield RunningServer(f"http://{_address(process, out, log)}", process, log)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(40)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _address(process: subprocess.Popen[bytes], out: Path, log: Path) -> str:
    ends = time.monotonic() + START_S
    while time.monotonic() < ends:
        text = out.read_text()
        if text.endswith("\n"):
            assert text.startswith("OMNIGRAPH_LISTEN_ADDR="), text
            return text.strip().partition("=")[2]
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise AssertionError(f"the server did not start: {log.read_text()}")
