"""The HTTP server: a warm point query against an empty route, latencies of 32 connections, a
streamed load against the same load in process, two workers against one.

Numbers with bars are ratios of one run, turned around so that less is better.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any, Final

import psutil

import omnigraph
from benchmarks.folders import bench_folder
from benchmarks.record import percentile, progress

DATA: Final = "200,000 people; a body of 1 GB of NDJSON"
WARM_UP: Final = "every request for a second"
TOKEN: Final = "token-of-the-benchmark"
PEOPLE: Final = int(os.environ.get("OMNIGRAPH_BENCH_PEOPLE", "200000"))
LOAD_BYTES: Final = int(os.environ.get("OMNIGRAPH_BENCH_LOAD_BYTES", str(1 << 30)))
SECONDS: Final = float(os.environ.get("OMNIGRAPH_BENCH_SECONDS", "4"))
ROUNDS: Final = 5
BARS: Final = {
    "empty_route/point_query": round(1 / 0.35, 4),
    "p99/p50_of_32_connections": 5.0,
    "streamed_load/load_in_process": round(1 / 0.8, 4),
    "server_rss_mib_during_load": 1_536.0,
    "one_worker/two_workers": round(1 / 1.5, 4),
}
SCHEMA: Final = "node Person { handle: String @key  name: String  age: I32 }"
POINT: Final = """query q($h: String) { match { $p: Person { handle: $h } }
    return { $p.name, $p.age } }"""
WIDE: Final = """query q() { match { $p: Person  $p.name contains "77" }
    return { count($p) as n, max($p.age) as age } }"""


def run() -> dict[str, Any]:
    with bench_folder(f"serving-{PEOPLE}") as folder:
        graph, data = _graph(folder)
        numbers: dict[str, Any] = {}
        with _server(folder, graph) as address:
            numbers |= _rates(address)
            numbers |= _latencies(address)
        numbers |= _workers(folder, graph)
        numbers |= _load(folder, data)
    return numbers


def _graph(folder: Path) -> tuple[Path, Path]:
    where = folder / "people"
    if not where.exists():
        graph = omnigraph.init(where, SCHEMA)
        rng = Random(5)
        rows = (
            {
                "type": "Person",
                "data": {"handle": f"h{n}", "name": f"n{rng.random()}", "age": n % 90},
            }
            for n in range(PEOPLE)
        )
        graph.load(rows, mode="append", engine="local")
    data = folder / "load.ndjson"
    if not data.exists() or data.stat().st_size < LOAD_BYTES:
        with data.open("w") as file:
            n = 0
            while file.tell() < LOAD_BYTES:
                for _ in range(10_000):
                    n += 1
                    file.write(
                        f'{{"type":"Person","data":{{"handle":"l{n}","name":"{n:060}","age":1}}}}\n'
                    )
    return where, data


@dataclass(frozen=True, slots=True)
class Address:
    """A server that listens, and its process."""

    host: str
    port: int
    process: psutil.Process

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        return head.encode() + content

    def cpu_s(self) -> float:
        every = [self.process, *self.process.children(recursive=True)]
        return sum(item.cpu_times().user + item.cpu_times().system for item in every)


@contextmanager
def _server(folder: Path, graph: Path, *words: str) -> Iterator[Address]:
    command = [sys.executable, "-m", "omnigraph.cli.main", "serve", "--quiet", f"people={graph}"]
    environment = {
        **os.environ,
        "OMNIGRAPH_SERVER_BEARER_TOKEN": TOKEN,
        "OMNIGRAPH_SERVER_LOG": "warning",
    }
    process = subprocess.Popen(
        [*command, "--bind", "127.0.0.1:0", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder,
    )
    try:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().partition("=")[2].rpartition(":")
        yield Address(host, int(port), psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait(60)


class Connection:
    """One kept connection, whose answers all have a ``Content-Length``."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection((address.host, address.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> bytes:
        self._socket.sendall(request)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._socket.recv(65_536)
        head, _, body = data.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), data
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        while len(body) < size:
            body += self._socket.recv(65_536)
        return body


def _flood(address: Address, request: bytes, connections: int, seconds: float) -> list[float]:
    """The times of all answers in ms, from several connections at once."""
    times: list[list[float]] = [[] for _ in range(connections)]
    ends = perf_counter() + seconds

    def ask(into: list[float]) -> None:
        connection = Connection(address)
        while (started := perf_counter()) < ends:
            connection.ask(request)
            into.append((perf_counter() - started) * 1000)

    threads = [threading.Thread(target=ask, args=(into,)) for into in times]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [item for part in times for item in part]


def _point(address: Address, n: int = 77) -> bytes:
    body = {"query": POINT, "params": {"h": f"h{n}"}}
    return address.request("POST", "/graphs/people/query", body)


def _rates(address: Address) -> dict[str, Any]:
    """Requests per second, and processor time per request, of both routes in turn."""
    routes = {"empty_route": address.request("GET", "/healthz"), "point_query": _point(address)}
    for request in routes.values():
        _flood(address, request, 4, 1.0)
    rates: dict[str, list[float]] = {name: [] for name in routes}
    cost: dict[str, list[float]] = {name: [] for name in routes}
    for _ in range(ROUNDS):
        for name, request in routes.items():
            before, started = address.cpu_s(), perf_counter()
            count = len(_flood(address, request, 4, SECONDS / 2))
            rates[name].append(count / (perf_counter() - started))
            cost[name].append((address.cpu_s() - before) / count * 1e6)
    best = {name: max(found) for name, found in rates.items()}
    return {
        **{f"{name}_per_s": round(value, 1) for name, value in best.items()},
        **{f"{name}_cpu_us": round(min(found), 1) for name, found in cost.items()},
        "empty_route/point_query": round(best["empty_route"] / best["point_query"], 4),
        "cpu_point_query/empty_route": round(
            min(cost["point_query"]) / min(cost["empty_route"]), 4
        ),
    }


def _latencies(address: Address) -> dict[str, Any]:
    found = sorted(_flood(address, _point(address), 32, SECONDS))
    p50, p99 = percentile(found, 50), percentile(found, 99)
    return {
        "p50_ms": round(p50, 3),
        "p99_ms": round(p99, 3),
        "p99/p50_of_32_connections": round(p99 / p50, 4),
    }


def _workers(folder: Path, graph: Path) -> dict[str, Any]:
    """A read that takes the engine some 20 ms, by one worker and by two."""
    rates = {}
    for workers in (1, 2):
        with _server(folder, graph, "--workers", str(workers)) as address:
            request = address.request("POST", "/graphs/people/query", {"query": WIDE})
            _flood(address, request, 8, 4.0)  # both workers have opened the graph and are warm
            count = len(_flood(address, request, 8, SECONDS * 2))
            rates[workers] = count / (SECONDS * 2)
    return {
        "wide_one_worker_per_s": round(rates[1], 1),
        "wide_two_workers_per_s": round(rates[2], 1),
        "one_worker/two_workers": round(rates[1] / rates[2], 4),
    }


def _load(folder: Path, data: Path) -> dict[str, Any]:
    """One file, loaded by the command line and as the body of a request."""
    schema = folder / "people.pg"
    schema.write_text(SCHEMA)
    program = [sys.executable, "-m", "omnigraph.cli.main"]
    seconds = {}
    for name in ("local", "served"):
        where = folder / f"loaded-{name}"
        subprocess.run(["rm", "-rf", str(where)], check=True)
        subprocess.run([*program, "init", "--schema", str(schema), str(where)], check=True)
    words = ["load", str(folder / "loaded-local"), "--data", str(data), "--mode", "append"]
    started = perf_counter()
    subprocess.run([*program, *words, "--engine", "local"], check=True)
    seconds["local"] = perf_counter() - started
    rss = 0
    with _server(folder, folder / "loaded-served") as address:
        stop = threading.Event()

        def watch() -> None:
            nonlocal rss
            while not stop.wait(0.1):
                rss = max(rss, address.process.memory_info().rss)

        watcher = threading.Thread(target=watch)
        watcher.start()
        started = perf_counter()
        subprocess.run(
            [
                *("curl", "--silent", "--fail", "--show-error", "-o", "/dev/null", "-T", str(data)),
                *("-X", "POST", "-H", f"Authorization: Bearer {TOKEN}"),
                *("-H", "Content-Type: application/x-ndjson"),
                f"http://{address.host}:{address.port}/graphs/people/load/ndjson?mode=append",
            ],
            check=True,
        )
        seconds["served"] = perf_counter() - started
        stop.set()
        watcher.join()
    progress(f"loads: {seconds}")
    return {
        "load_in_process_s": round(seconds["local"], 2),
        "load_streamed_s": round(seconds["served"], 2),
        "streamed_load/load_in_process": round(seconds["served"] / seconds["local"], 4),
        "server_rss_mib_during_load": round(rss / 2**20, 1),
    }
