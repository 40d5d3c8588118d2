"""Worker processes are killed under load: what was acknowledged is there exactly once."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

import omnigraph
from tests.graphs import people_graph
from tests.support.http_server import TOKEN, RunningServer, running

KILLS = int(os.environ.get("OMNIGRAPH_TEST_SERVER_KILLS", "2"))
CLIENTS = 8
WORKERS = 2
ROOM = {
    "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": f'{{"ana": "{TOKEN}"}}',
    "OMNIGRAPH_LEASE_SECONDS": "5",
}


@dataclass(slots=True)
class Load:
    """Clients that write and read until they are told to stop, and what they were told."""

    server: RunningServer
    stop: threading.Event = field(default_factory=threading.Event)
    acknowledged: dict[str, dict[str, object]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def client(self, number: int) -> None:
        count = 0
        while not self.stop.is_set():
            count += 1
            self._write(f"c{number}-{count}")
            self._read()

    def _write(self, name: str) -> None:
        """Insert a city; repeat with the same key until there is an answer."""
        body = {
            "query": "query add($n: String) { insert City { name: $n } }",
            "params": {"n": name},
        }
        headers = {"Idempotency-Key": name}
        ends = time.monotonic() + 120
        while time.monotonic() < ends:
            try:
                with self.server.client() as client:
                    found = client.post("/graphs/g/mutate", json=body, headers=headers)
            except httpx.TransportError:
                continue
            if found.status_code == 200:
                self.acknowledged[name] = found.json()["commit"]
                return
            if found.status_code not in (409, 429, 503):
                self.wrong.append(f"{found.status_code} {found.text}")
                return
        self.wrong.append(f"{name} was never answered")

    def _read(self) -> None:
        text = "query q() { match { $c: City } return { count($c) as n } }"
        try:
            with self.server.client() as client:
                found = client.post("/graphs/g/query", json={"query": text})
        except httpx.TransportError:
            return
        if found.status_code not in (200, 503):
            self.wrong.append(f"{found.status_code} {found.text}")

    def run(self, during: object) -> None:
        threads = [threading.Thread(target=self.client, args=(n,)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            during()  # type: ignore[operator]
        finally:
            self.stop.set()
            for thread in threads:
                thread.join(180)


def workers(server: RunningServer) -> list[psutil.Process]:
    """The processes that serve requests: those that have opened the graph."""
    found = []
    for item in psutil.Process(server.process.pid).children():
        with suppress(psutil.Error):  # one that has just died
            if "spawn_main" in " ".join(item.cmdline()):
                found.append(item)
    return found


def check(folder: Path, load: Load) -> None:
    """Every acknowledged write is there once, with the commit that its receipt named."""
    graph = omnigraph.open(folder / "g")
    rows = graph.query("query q() { match { $c: City } return { $c.name as name } }").rows()
    counted = Counter(row["name"] for row in rows)
    assert {name: counted[name] for name in load.acknowledged} == dict.fromkeys(
        load.acknowledged, 1
    )
    commits = {item.commit_id: item.to_json() for item in graph.history.commits()}
    for name, commit in load.acknowledged.items():
        assert commits[str(commit["graph_commit_id"])] == commit, name
    made = [item for item in commits.values() if item["kind"] == "mutation"]
    assert len(made) == sum(counted[name] for name in counted if name.startswith("c"))
    report = graph.maintenance.check()
    assert report.healthy, report.findings


def test_acknowledged_writes_survive_killed_workers(tmp_path: Path) -> None:
    people_graph(tmp_path / "g")
    rng = random.Random(7)
    with running(tmp_path, ["g", "--workers", str(WORKERS)], ROOM) as server:
        load = Load(server)

        def kill() -> None:
            for _ in range(KILLS):
                before = len(load.acknowledged)
                ends = time.monotonic() + 60
                while len(load.acknowledged) < before + CLIENTS and time.monotonic() < ends:
                    time.sleep(rng.random() * 0.05)
                alive = workers(server)
                if alive:
                    os.kill(rng.choice(alive).pid, signal.SIGKILL)

        load.run(kill)
        server.stop()
    assert load.wrong == []
    assert len(load.acknowledged) >= KILLS * CLIENTS
    check(tmp_path, load)


def test_two_workers_lose_no_update(tmp_path: Path) -> None:
    """Clients read a counter and write the next value on the condition that nobody else has."""
    people_graph(tmp_path / "g")
    done: list[int] = []
    rounds = 3
    with running(tmp_path, ["g", "--workers", "2"], ROOM) as server:

        def count() -> None:
            for _ in range(rounds):
                while not increment(server):
                    pass
                done.append(1)

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
    graph = omnigraph.open(tmp_path / "g", read_only=True)
    assert graph.entity("node:Person", "ana")["age"] == 30 + len(done) == 30 + 4 * rounds


def increment(server: RunningServer) -> bool:
    with server.client() as client:
        text = 'query q() { match { $p: Person { name: "ana" } } return { $p.age as age } }'
        found = client.post("/graphs/g/query", json={"query": text}).json()
        age = found["rows"][0]["age"] + 1
        body = {"query": f'query u() {{ update Person set {{ age: {age} }} where name = "ana" }}'}
        headers = {"Omnigraph-If-Graph-Commit": found["graph_commit_id"]}
        answer = client.post("/graphs/g/mutate/if-graph-commit", json=body, headers=headers)
        assert answer.status_code in (200, 409, 412), answer.text
        return answer.status_code == 200
