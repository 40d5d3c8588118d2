"""An object store with injected faults.

Owns faults at the object adapter: it wraps a real store and fails, delays, holds or loses the
answer of chosen calls. Rules are data (:class:`Fault`), every call is on record. It must never
change what an object says: a fault decides whether an effect happens and what the caller hears of
it, nothing else. Faults inside Lance or below the adapter are injected at the S3 test server
(:mod:`tests.support.s3server`).
"""

from __future__ import annotations

import builtins
import fnmatch
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from omnigraph.errors import OmnigraphError, OutcomeUnknown, StorageFailure
from omnigraph.storage.locations import Location
from omnigraph.storage.objects.store import ObjectInfo, ObjectStore

CallClass = Literal[
    "put", "put_if_absent", "get", "exists", "list", "delete", "replace", "rename", "*"
]
WRITES: frozenset[str] = frozenset({"put", "put_if_absent", "replace", "rename"})

# A forgotten gate fails the test instead of hanging it.
HOLD_SECONDS_MAX = 60.0

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Fault:
    """One rule: which calls, which of them, and what happens.

    ``path`` is a shell pattern over the object's path (a rename's source, a listing's prefix).
    The rule skips the first ``skip`` matching calls and then acts on ``times`` of them (``None``:
    on all). ``when`` says whether the effect has happened by the time the fault shows.
    """

    call: CallClass = "*"
    path: str = "*"
    action: Literal["fail", "delay", "hold"] = "fail"
    when: Literal["before", "after"] = "before"
    error: Callable[[str], OmnigraphError] | None = None
    delay_ms: int = 0
    skip: int = 0
    times: int | None = 1

    @staticmethod
    def fail(
        call: CallClass,
        path: str = "*",
        *,
        error: Callable[[str], OmnigraphError] = StorageFailure,
        skip: int = 0,
        times: int | None = 1,
    ) -> Fault:
        """The store refuses: no effect, and it says so."""
        return Fault(call, path, error=error, skip=skip, times=times)

    @staticmethod
    def lose_answer(
        call: CallClass, path: str = "*", *, skip: int = 0, times: int | None = 1
    ) -> Fault:
        """The store does it, the caller is not told: a time-out after the effect."""
        return Fault(call, path, when="after", skip=skip, times=times)

    @staticmethod
    def time_out(
        call: CallClass, path: str = "*", *, skip: int = 0, times: int | None = 1
    ) -> Fault:
        """The request never arrives, and the caller cannot know that."""
        return Fault(call, path, error=_timed_out(call), skip=skip, times=times)

    @staticmethod
    def delay(
        call: CallClass, path: str = "*", *, delay_ms: int, skip: int = 0, times: int | None = 1
    ) -> Fault:
        """The store answers late."""
        return Fault(call, path, action="delay", delay_ms=delay_ms, skip=skip, times=times)

    @staticmethod
    def hold(
        call: CallClass,
        path: str = "*",
        *,
        when: Literal["before", "after"] = "before",
        skip: int = 0,
        times: int | None = 1,
    ) -> Fault:
        """The call waits until :meth:`FaultyStore.release`."""
        return Fault(call, path, action="hold", when=when, skip=skip, times=times)

    def matches(self, call: str, path: str) -> bool:
        return self.call in ("*", call) and fnmatch.fnmatchcase(path, self.path)


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call that was made: whether it took effect, and the code of the error it ended with."""

    call: str
    path: str
    effective: bool
    error: str | None


class FaultyStore:
    """An :class:`ObjectStore` around another one. Thread-safe; not picklable, it is one place."""

    def __init__(self, inner: ObjectStore, *faults: Fault) -> None:
        self.inner = inner
        self._lock = threading.Lock()
        self._rules: builtins.list[Fault] = []
        self._seen: builtins.list[int] = []
        self._log: builtins.list[CallRecord] = []
        self._gate = threading.Condition()
        self._held = 0
        self._releases = 0
        self.inject(*faults)

    # -- the test's side

    def inject(self, *faults: Fault) -> None:
        """Add rules; each counts matching calls from now on. The first that acts, acts alone."""
        with self._lock:
            self._rules.extend(faults)
            self._seen.extend(0 for _ in faults)

    def clear(self) -> None:
        """Remove every rule: the store is healthy again."""
        with self._lock:
            self._rules.clear()
            self._seen.clear()
        self.release()

    @property
    def log(self) -> builtins.list[CallRecord]:
        with self._lock:
            return list(self._log)

    def counts(self, path: str = "*") -> dict[str, int]:
        """Calls made so far by class, for the paths that match."""
        return dict(Counter(r.call for r in self.log if fnmatch.fnmatchcase(r.path, path)))

    def reset_log(self) -> None:
        with self._lock:
            self._log.clear()

    def wait_until_held(self, calls: int = 1) -> None:
        """Return when that many calls wait at the gate."""
        with self._gate:
            if not self._gate.wait_for(lambda: self._held >= calls, HOLD_SECONDS_MAX):
                raise TimeoutError(f"{self._held} of {calls} calls arrived at the gate")

    def release(self) -> None:
        """Let the held calls go on. Later ones wait again."""
        with self._gate:
            self._releases += 1
            self._gate.notify_all()

    # -- the store's side

    @property
    def location(self) -> Location:
        return self.inner.location

    def ensure_writable(self) -> None:
        self.inner.ensure_writable()

    def put(self, path: str, data: bytes) -> None:
        self._call("put", path, lambda: self.inner.put(path, data))

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._call("put_if_absent", path, lambda: self.inner.put_if_absent(path, data))

    def get(self, path: str) -> bytes:
        return self._call("get", path, lambda: self.inner.get(path))

    def get_range(self, path: str, start: int, size: int) -> bytes:
        return self._call("get", path, lambda: self.inner.get_range(path, start, size))

    def get_tagged(self, path: str) -> tuple[bytes, str]:
        return self._call("get", path, lambda: self.inner.get_tagged(path))

    def replace(self, path: str, data: bytes, tag: str) -> None:
        self._call("replace", path, lambda: self.inner.replace(path, data, tag))

    def exists(self, path: str) -> bool:
        return self._call("exists", path, lambda: self.inner.exists(path))

    def size(self, path: str) -> int:
        return self._call("exists", path, lambda: self.inner.size(path))

    def list(self, prefix: str = "") -> builtins.list[ObjectInfo]:
        return self._call("list", prefix, lambda: self.inner.list(prefix))

    def delete(self, path: str) -> None:
        self._call("delete", path, lambda: self.inner.delete(path))

    def delete_prefix(self, prefix: str) -> None:
        self._call("delete", prefix, lambda: self.inner.delete_prefix(prefix))

    def rename(self, source: str, target: str) -> None:
        self._call("rename", source, lambda: self.inner.rename(source, target))

    # -- how

    def _call(self, call: str, path: str, effect: Callable[[], _T]) -> _T:
        fault = self._due(call, path)
        effective = False
        try:
            if fault is not None and fault.when == "before":
                self._misbehave(fault, call, path)
            result = effect()
            effective = True
            if fault is not None and fault.when == "after":
                self._misbehave(fault, call, path)
        except OmnigraphError as error:
            self._record(CallRecord(call, path, effective, error.code))
            raise
        self._record(CallRecord(call, path, effective, None))
        return result

    def _due(self, call: str, path: str) -> Fault | None:
        """The rule that acts on this call. Every matching rule counts it."""
        due: Fault | None = None
        with self._lock:
            for index, rule in enumerate(self._rules):
                if not rule.matches(call, path):
                    continue
                position = self._seen[index] - rule.skip
                self._seen[index] += 1
                if due is None and position >= 0 and (rule.times is None or position < rule.times):
                    due = rule
        return due

    def _misbehave(self, fault: Fault, call: str, path: str) -> None:
        if fault.action == "delay":
            time.sleep(fault.delay_ms / 1000)
        elif fault.action == "hold":
            self._wait_at_gate()
        else:
            error = fault.error or _timed_out(call)
            raise error(f"injected fault: {call} {path} ({fault.when} its effect)")

    def _wait_at_gate(self) -> None:
        with self._gate:
            arrived = self._releases
            self._held += 1
            self._gate.notify_all()
            try:
                if not self._gate.wait_for(lambda: self._releases > arrived, HOLD_SECONDS_MAX):
                    raise TimeoutError("a held call was never released")
            finally:
                self._held -= 1

    def _record(self, record: CallRecord) -> None:
        with self._lock:
            self._log.append(record)


def _timed_out(call: str) -> type[StorageFailure]:
    """What a caller hears when no answer came: for a write that is all it can know."""
    return OutcomeUnknown if call in WRITES else StorageFailure
