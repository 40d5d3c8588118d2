"""The random schedule: writers and readers of one graph, killed and stopped at random times.

Everything random comes from one seed, which a run prints; the operating system's timing is its own.
The ledgers of all processes (``tests.support.ledger``) and the graph as it is in the end are
put together and judged by the history checker and by the promises of a graph at rest.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import omnigraph
from omnigraph.catalog.history.commits import list_commits
from omnigraph.catalog.repository import Repository
from omnigraph.storage.locations import parse_location
from omnigraph.transaction.recovery.audit import Cause, read_audit
from tests.support import schedule_worker
from tests.support.children import child_environment
from tests.support.history import History, Operation, Outcome
from tests.support.history_checker import check, report
from tests.support.ledger import Account, read_ledgers, with_commits
from tests.support.promises import Expected, broken_promises
from tests.support.schedule_worker import TYPES, read_lists

POLL_S = 0.005
READY_S_MAX = 120.0  # a worker that has not begun by then is stuck
END_S_MAX = 120.0  # and so is one that does not end when asked to
REREAD_MAX = 40  # commits of the finished graph that are read back
# A writer can lose to another, and one that was stopped can lose its write. Nothing else happens.
EXPECTED_ERRORS = frozenset(
    {
        "published_dataset_version_conflict",
        "read_set_conflict",
        "precondition_failed",
        "contention",
        "ownership_lost",
    }
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of what: the run ends when both the kills and the operations are reached."""

    seed: int
    writers: int = 4
    readers: int = 2
    kills: int = 300
    stops: int = 0  # SIGSTOP for longer than a lease, then SIGCONT
    operations: int = 0
    lease_s: float = 0.5
    alive_s_max: float = 1.5  # a process is killed within this time of being ready
    seconds_max: float = 3600.0


@dataclass(slots=True)
class Run:
    """What happened."""

    plan: Plan
    account: Account
    kills: int = 0
    stops: int = 0
    seconds: float = 0.0
    recovered: int = 0
    taken_over: int = 0  # of these: from owners that lived, and were told
    violations: list[str] = field(default_factory=list)

    def describe(self) -> str:
        counts = Counter(operation.outcome for operation in self.account.operations)
        told = ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome)
        return (
            f"random schedule, seed {self.plan.seed}: {self.kills} kills, {self.stops} stops, "
            f"{len(self.account.operations)} operations ({told}), {self.recovered} recovered "
            f"({self.taken_over} from live owners), "
            f"{len(self.violations)} violations, {self.seconds:.0f} s"
        )


@dataclass(slots=True)
class _Worker:
    role: str
    number: int
    process: subprocess.Popen[bytes]
    ledger: Path
    stderr: Path
    began: bool = False

    @property
    def is_ready(self) -> bool:
        """Whether it has begun its first operation (the first line only says hello)."""
        if not self.began:
            self.began = self.ledger.exists() and self.ledger.read_bytes().count(b"\n") > 1
        return self.began


class Schedule:
    """Runs one plan on a fresh graph at ``uri``, with its ledgers in ``room``."""

    def __init__(self, plan: Plan, uri: str, room: Path) -> None:
        self._plan = plan
        self._uri = uri
        self._room = room
        self._rng = random.Random(plan.seed)
        self._workers: list[_Worker] = []
        self._started = 0
        self._violations: list[str] = []
        self._run = Run(plan, Account())

    def run(self) -> Run:
        began = time.monotonic()
        schedule_worker.create(self._uri)
        roles = ["writer"] * self._plan.writers + ["reader"] * self._plan.readers
        self._workers = [self._start(role) for role in roles]
        try:
            while not self._is_done(began):
                self._disturb()
            self._end()
        finally:
            for worker in self._workers:
                worker.process.kill()
                worker.process.wait()
        self._run.violations = self._violations
        self._judge()
        self._run.seconds = time.monotonic() - began
        return self._run

    # -- disturbing --------------------------------------------------------------------------------

    def _disturb(self) -> None:
        """Kill or stop one process at a random time after it has begun to work."""
        victim = self._rng.choice(self._workers)
        moment = self._rng.uniform(0, self._plan.alive_s_max)
        stopping = victim.role == "writer" and self._run.stops < self._plan.stops
        stopping = stopping and self._rng.random() < self._plan.stops / max(self._plan.kills, 1)
        if not self._wait(lambda: victim.is_ready, READY_S_MAX):
            self._violations.append(f"{victim.role}{victim.number} did not begin to work")
        self._let_pass(moment / len(self._workers))
        if stopping:
            self._stop(victim)
        elif self._run.kills < self._plan.kills:
            self._run.kills += 1
            victim.process.kill()
            victim.process.wait()
            self._replace(victim)

    def _stop(self, victim: _Worker) -> None:
        """Stop a writer for three leases while the others go on."""
        self._run.stops += 1
        victim.process.send_signal(signal.SIGSTOP)
        self._let_pass(3 * self._plan.lease_s)
        victim.process.send_signal(signal.SIGCONT)

    def _let_pass(self, seconds: float) -> None:
        self._wait(lambda: False, seconds)

    def _wait(self, condition: Callable[[], bool], seconds_max: float) -> bool:
        """Wait for a condition, and notice meanwhile if a process ends that should not."""
        deadline = time.monotonic() + seconds_max
        while not condition():
            if time.monotonic() > deadline:
                return False
            for worker in self._workers:
                if worker.process.poll() is not None:
                    told = worker.stderr.read_text().strip()
                    self._violations.append(f"{worker.role}{worker.number} gave up: {told}")
                    self._replace(worker)
                    return False
            time.sleep(POLL_S)
        return True

    def _is_done(self, began: float) -> bool:
        if time.monotonic() - began > self._plan.seconds_max:
            self._violations.append("the run did not reach its plan in time")
            return True
        if self._run.kills < self._plan.kills or self._run.stops < self._plan.stops:
            return False
        return self._operations_so_far() >= self._plan.operations

    def _operations_so_far(self) -> int:
        return sum(p.read_bytes().count(b'"begin"') for p in self._room.glob("*.jsonl"))

    def _end(self) -> None:
        """Ask all processes to end, so that the last operations are complete."""
        (self._room / "stop").touch()
        for worker in self._workers:
            try:
                if worker.process.wait(END_S_MAX) != 0:
                    told = worker.stderr.read_text().strip()
                    self._violations.append(f"{worker.role}{worker.number} gave up: {told}")
            except subprocess.TimeoutExpired:
                self._violations.append(f"{worker.role}{worker.number} did not end")

    def _start(self, role: str) -> _Worker:
        number, self._started = self._started, self._started + 1
        ledger = self._room / f"{role}{number}.jsonl"
        stderr = self._room / f"{role}{number}.err"
        environment = child_environment(OMNIGRAPH_LEASE_SECONDS=str(self._plan.lease_s))
        arguments = [role, self._uri, str(ledger), str(number), str(self._plan.seed)]
        with stderr.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", schedule_worker.__name__, *arguments, self._stop_file],
                env=environment,
                stderr=errors,
            )
        return _Worker(role, number, process, ledger, stderr)

    @property
    def _stop_file(self) -> str:
        return str(self._room / "stop")

    def _replace(self, worker: _Worker) -> None:
        self._workers[self._workers.index(worker)] = self._start(worker.role)

    # -- judging -----------------------------------------------------------------------------------

    def _judge(self) -> None:
        account = self._run.account = read_ledgers(self._room.glob("*.jsonl"))
        unexpected = Counter(e for e in account.errors if e not in EXPECTED_ERRORS)
        self._violations += [f"{n} operations ended in {code}" for code, n in unexpected.items()]
        omnigraph.open(self._uri)
        repository = Repository.open(parse_location(self._uri))
        audit = {row.operation_id: row for row in read_audit(repository.tables)}
        self._run.recovered = len(audit)
        expected = Expected(account.acknowledged, frozenset(audit))
        self._violations += broken_promises(self._uri, expected)
        # An owner that was stopped, or starved of the store, may learn that others finished its
        # write. One that was found dead cannot have learned anything.
        both = account.acknowledged & audit.keys()
        self._run.taken_over = len(both)
        self._violations += [
            f"operation {o} was acknowledged by a dead process{self._told_of(o)}"
            for o in both
            if audit[o].cause is Cause.OWNER_GONE
        ]
        anomalies = check(history_of(repository, account))
        if anomalies:
            self._violations.append(report(anomalies))
        self._write_once_more()

    def _told_of(self, operation_id: str) -> str:
        """What the processes themselves had to say about an operation."""
        told = [
            f"\n  {path.stem}: {line}"
            for path in sorted(self._room.glob("*.err"))
            for line in path.read_text().splitlines()
            if operation_id in line
        ]
        return "".join(told)

    def _write_once_more(self) -> None:
        """No stuck state: every type can be written."""
        graph = omnigraph.open(self._uri)
        with graph.write(message="afterwards") as w:
            for type_name in TYPES:
                w.update(type_name, f"{type_name}0", {"values": []})


def history_of(repository: Repository, account: Account) -> History:
    """The ledgers and the graph's own account of itself, as one history to check."""
    main = repository.branch("main")
    commits = list_commits(repository.manifest(main).current())[::-1]
    made = {int(c.message): c.commit_id for c in commits if c.message and c.message.isdigit()}
    operations = with_commits(account.operations, made)
    step = max(1, len(commits) // REREAD_MAX)
    for n, commit in enumerate(commits[2::step]):  # after init and the empty lists
        snapshot = repository.snapshot_at_commit(main, commit.commit_id)
        read = read_lists(repository, snapshot, TYPES)
        # Read back long after: bound to its commit, but not to the order of real time.
        operations.append(
            Operation(-1 - n, f"reread{n}", Outcome.OK, invoked=0, read=read, at=commit.commit_id)
        )
    final = read_lists(repository, repository.snapshot(main), TYPES)
    return History(tuple(operations), final, tuple(c.commit_id for c in commits))
