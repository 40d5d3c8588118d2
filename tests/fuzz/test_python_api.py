"""A fuzz of the public Python API: whatever it is given, only errors of our own tree come out.

Every public method of ``Graph``, its groups and views, of a batch and of what calls return is found
by introspection, so a new one takes part by itself. Each argument is either one that makes sense or
an odd value.
``OMNIGRAPH_TEST_FUZZ_CALLS`` says how many calls (1,500 unless said; 50,000 for a full run),
``OMNIGRAPH_TEST_FUZZ_SEED`` the first of the seeds.
"""

from __future__ import annotations

import inspect
import itertools
import os
import random
import shutil
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OmnigraphError
from tests.fuzz.values import odd_value
from tests.graphs import people_graph
from tests.support.inline_tasks import InlineTasks

CALLS = int(os.environ.get("OMNIGRAPH_TEST_FUZZ_CALLS", "1500"))
SEED = int(os.environ.get("OMNIGRAPH_TEST_FUZZ_SEED", "1"))
CALLS_PER_GRAPH = 150
ITEMS_MAX = 3
CALL_S_MAX = 60.0  # a call that takes longer hangs
RESULTS_DEPTH = 2

NOT_CALLED = {
    "stream": "needs a streaming DataFrame; its arguments are those of load",
    "frame": "starts Java",
    "embed": "asks a provider of embeddings",
}
VALUES = {
    "AcceptedSchema": "a value of the engine, which calls its methods itself",
    "SnapshotPins": "the same",
}
PATHS = ("target", "uri", "checkpoint", "quarantine", "path")

QUERY = "query q() { match { $p: Person } return { $p.name } }"
INSERT = 'query m() { insert City { name: "X" } }'
SCHEMA = "node Person { name: String @key  age: I32? }"
GOOD: dict[str, list[Any]] = {
    "text": [QUERY],
    "query": [INSERT],
    "schema": [SCHEMA],
    "source": [
        b'{"type": "City", "data": {"name": "Y"}}',
        [{"type": "City", "data": {"name": "Z"}}],
    ],
    "mode": ["append", "merge", "overwrite"],
    "branch": ["main", "dev"],
    "from_": ["main", "dev"],
    "old": ["main"],
    "new": ["dev"],
    "name": ["dev", "fresh", "v1"],
    "type": ["node:Person", "Person"],
    "type_name": ["Person", "City"],
    "type_key": ["node:Person", "edge:Knows"],
    "id": ["ana", "bo"],
    "entity": ["node", "edge"],
    "kind": ["node", "edge"],
    "property": ["name", "age"],
    "properties": [{"name": "new"}, {"age": 3}],
    "values": [{"age": 3}],
    "algorithm": ["degrees", "pagerank"],
    "limit": [1, 10],
    "version": [1, 2],
    "params": [{}, {"n": "ana"}],
    "metadata": [{"run": "7"}],
    "older_than": [timedelta(days=1)],
    "keep": [1],
    "kinds": [["node"], ()],
    "types": [["Person"], ()],
    "ops": [["insert"], ()],
    "only": [{"node:Person": ["ana"]}],
    "src": ["ana"],
    "dst": ["bo"],
    "interval_s": [0.01],
    "format": ["ndjson", "csv"],
    "engine": ["local", None],
    "to": ["age", {"degree": "age"}],
    "rows": [1],
    "offset": [0],
    "length": [1],
}


class Fuzz:
    """One run: a graph, a random choice, and what went wrong."""

    def __init__(self, template: Path, sandbox: Path) -> None:
        self.template = template
        self.sandbox = sandbox
        self.wrong: Counter[str] = Counter()
        self.shown: dict[str, str] = {}
        self.calls = 0
        self.named: Counter[str] = Counter()

    def run(self, calls: int, seed: int, step: Callable[[Graph, random.Random], None]) -> None:
        for number in itertools.count():
            chance = random.Random(f"{seed}.{number}")
            graph = self._fresh(number)
            until = min(self.calls + CALLS_PER_GRAPH, calls)
            while self.calls < until:
                step(graph, chance)
            if self.calls >= calls:
                return

    def report(self) -> str:
        found = self.wrong.most_common()
        lines = (f"{times} × {what}\n    {self.shown[what]}" for what, times in found)
        return "\n".join((f"{self.calls} calls", *lines))

    def _fresh(self, number: int) -> Graph:
        place = self.sandbox / f"graph{number}"
        shutil.copytree(self.template, place)
        with suppress(FileNotFoundError):
            shutil.rmtree(self.sandbox / f"graph{number - 1}")
        return omnigraph.open(place, read_only=number % 5 == 4)

    def call_graph(self, graph: Graph, chance: random.Random) -> None:
        roll = chance.random()
        if roll < 0.08:
            self._call(chance.choice([omnigraph.init, omnigraph.open]), chance)
        else:
            self._call(chance.choice(methods(graph)), chance)

    def call_batch(self, graph: Graph, chance: random.Random) -> None:
        def write() -> None:
            with graph.write("main") as batch:
                for name in chance.choices(public(batch), k=2):
                    method = getattr(batch, name)
                    if callable(method):
                        arguments = self.arguments(method, chance)
                        self.named[f"Batch.{name}"] += 1
                        method(**arguments)

        self._guarded("Batch", write)

    def _call(self, function: Callable[..., Any], chance: random.Random, depth: int = 0) -> None:
        name = getattr(function, "__qualname__", repr(function))
        arguments = self.arguments(function, chance)
        self.named[name] += 1

        def call() -> Any:
            found = function(**arguments)
            if isinstance(found, AbstractContextManager) and not public(found):
                with found:
                    return None
            if inspect.isgenerator(found) or isinstance(found, Iterator):
                if function.__name__ != "follow":  # waits for changes
                    list(itertools.islice(found, ITEMS_MAX))
                return None
            return found

        found = self._guarded(f"{name}({_shown(arguments)})", call)
        if depth < RESULTS_DEPTH and type(found).__module__.startswith("omnigraph."):
            self._look_at(found, chance, depth)

    def _look_at(self, found: Any, chance: random.Random, depth: int) -> None:
        """What a call returned, with its own methods."""
        what = type(found).__name__
        if what in VALUES:
            return
        self._guarded(f"repr({what})", lambda: repr(found))
        for name in chance.sample(public(found), min(3, len(public(found)))):
            if name in NOT_CALLED:
                continue
            member = self._guarded(f"{what}.{name}", lambda name=name: getattr(found, name))
            if inspect.ismethod(member) and member.__self__ is found:
                self._call(member, chance, depth + 1)

    def arguments(self, function: Callable[..., Any], chance: random.Random) -> dict[str, Any]:
        chosen: dict[str, Any] = {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            required = parameter.default is parameter.empty
            if not required and chance.random() < 0.7:
                continue
            chosen[parameter.name] = self._argument(parameter.name, chance)
        return chosen

    def _argument(self, name: str, chance: random.Random) -> Any:
        odd = chance.random() < 0.4
        if name in PATHS:
            here = str(self.sandbox / f"place{chance.randrange(40)}")
            value = odd_value(chance) if odd else here
            # Nothing may be written outside of the sandbox.
            return here if isinstance(value, str) and value.strip("./ ") == "" else value
        if odd or name not in GOOD:
            value = odd_value(chance)
            # What a function of the caller raises is the caller's business.
            return (lambda *_, **__: True) if callable(value) else value
        return chance.choice(GOOD[name])

    def _guarded(self, what: str, call: Callable[[], Any]) -> Any:
        self.calls += 1
        signal.setitimer(signal.ITIMER_REAL, CALL_S_MAX)
        try:
            return call()
        except OmnigraphError as error:
            problem = text_problem(error)
            if problem:
                self._note(what, f"{type(error).__name__}: {problem}")
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)
            ours = [frame for frame in last if "/omnigraph/" in frame.filename]
            frame = ours[-1] if ours else last[-1]
            where = f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
            self._note(what, f"{type(error).__name__} at {where}")
            self.shown.setdefault(f"{type(error).__name__} at {where}", f"{what}: {error!r:.300}")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return None

    def _note(self, what: str, problem: str) -> None:
        self.wrong[problem] += 1
        self.shown.setdefault(problem, what)


def methods(graph: Graph) -> list[Callable[..., Any]]:
    """The public methods of a handle, of its groups and of a view of a branch."""
    groups = (graph.branches, graph.tags, graph.history, graph.maintenance, graph.spark)
    found = [
        getattr(owner, name)
        for owner in (graph, *groups, graph.branch("dev"))
        for name in public(owner)
        if name not in NOT_CALLED
    ]
    return [method for method in found if callable(method)]


def public(found: Any) -> list[str]:
    return [name for name in dir(type(found)) if not name.startswith("_")]


def text_problem(error: OmnigraphError) -> str | None:
    """Whether an error can be shown: to a person, and as JSON."""
    import json

    try:
        str(error)
        json.dumps(error.to_json())
    except Exception as second:
        return f"cannot be shown: {type(second).__name__} {second}"
    return "a defect" if "This is a defect" in error.remedy else None


def _shown(arguments: dict[str, Any]) -> str:
    try:
        return ", ".join(f"{name}={value!a:.80}" for name, value in arguments.items())
    except RecursionError:
        return "something deep"


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "sandbox").mkdir()
    monkeypatch.chdir(tmp_path / "sandbox")
    monkeypatch.setattr("omnigraph.spark.engine_choice.start_tasks", lambda *_: InlineTasks())

    def hangs(*_: object) -> None:
        raise TimeoutError("the call hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    yield tmp_path / "sandbox"
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def template(tmp_path: Path) -> Path:
    graph = people_graph(tmp_path / "template")
    graph.branches.create("dev")
    with graph.write("dev") as w:
        w.insert("City", {"name": "Rome"})
    graph.tags.create("v1")
    return tmp_path / "template"


def test_only_errors_of_our_own_tree_come_out(template: Path, sandbox: Path) -> None:
    fuzz = Fuzz(template, sandbox)
    fuzz.run(CALLS, SEED, fuzz.call_graph)
    assert not fuzz.wrong, fuzz.report()


def test_only_errors_of_our_own_tree_come_out_of_a_batch(template: Path, sandbox: Path) -> None:
    fuzz = Fuzz(template, sandbox)
    fuzz.run(CALLS // 8, SEED, fuzz.call_batch)
    assert not fuzz.wrong, fuzz.report()


def test_every_public_method_takes_part(template: Path, sandbox: Path) -> None:
    """What is left out is left out for a reason, and exists."""
    graph = omnigraph.open(template)
    assert {"stream", "embed"} <= set(public(graph.spark))
    assert len(methods(graph)) > 60
