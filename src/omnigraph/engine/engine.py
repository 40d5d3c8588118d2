"""The read engine: from a text to a result on one pinned snapshot.

Compiles (and remembers what was compiled), pins, chooses how to reach each type, runs, and gives
the result. The same for every caller: Python, command line, server.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Generic, Literal, TypeVar

from omnigraph.catalog.branches.deleted import deletion_noticed
from omnigraph.catalog.branches.registry import MAIN_BRANCH
from omnigraph.catalog.references import resolve
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MAIN
from omnigraph.catalog.schemas import load_schema
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.catalog.state import ManifestState
from omnigraph.embed import Embedder, embedder_from_environment
from omnigraph.engine.cache.cache import Cache, shared_cache
from omnigraph.engine.cache.disk_store import ArrayStore, default_store
from omnigraph.engine.exec.evaluate import Evaluator
from omnigraph.engine.exec.match import Matcher
from omnigraph.engine.exec.profile import Profile
from omnigraph.engine.exec.project import Answer, EntityForm, Output, needed_variables
from omnigraph.engine.exec.rank import Ranker
from omnigraph.engine.exec.sort import SortColumn
from omnigraph.engine.limits import Guard, Limits
from omnigraph.engine.plan.access_choice import Access, Touches, choose_access
from omnigraph.engine.plan.explain import Explanation, explain_read
from omnigraph.engine.result import Result, Target
from omnigraph.engine.search.searcher import Searcher
from omnigraph.engine.short_query_queue import Turns
from omnigraph.engine.tables.access import ProbingTables, SnapshotTables, TypeUse, type_use
from omnigraph.engine.tables.loaded import Recent
from omnigraph.engine.tables.prefetch import looking_ahead
from omnigraph.engine.tables.probe import TooWide
from omnigraph.errors import InvalidInput, OmnigraphError, ResourceLimit
from omnigraph.lang.query import BoundParameters, bind_parameters, compile_query
from omnigraph.lang.query.parameters import ParameterMode
from omnigraph.lang.query.plan.logical import Pattern, ReadPlan
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.model.checkpoint import install, remove
from omnigraph.snapshots.entity_delta import State

NearestMode = Literal["exact", "indexed"]

VARIABLES_MAX: Final = 500
"""Nodes and edges that one query may ask for: finding a good order takes their square."""
PREPARED_MAX: Final = 512
"""Queries that are remembered in compiled form."""
SCHEMAS_MAX: Final = 64
SNAPSHOTS_MAX: Final = 64
"""Snapshots whose tables and orders of evaluation are remembered; they hold no data."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to run a query; what it answers does not depend on any of it but ``entity_form`` and,
    where an index is asked for the ``nearest``, on what that finds.
    """

    limits: Limits = field(default_factory=Limits)
    entity_form: EntityForm = "object"
    parameter_mode: ParameterMode = "standard"
    access: Access = "auto"
    nearest: NearestMode = "exact"
    """``indexed`` lets a vector index name the nearest: quick in very many, but some may be missed.
    Where there is no index it is exact all the same."""
    profile: bool = False
    file: str = "<query>"
    """What messages call the text."""
    cancelled: threading.Event | None = None


STANDARD: Final = ReadOptions()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A read query ready to run: its plan and what the plan looks at."""

    plan: ReadPlan
    use: TypeUse
    needed: frozenset[str]
    names: tuple[str, ...]
    """The columns of the answer."""


class Reader:
    """Reads one graph. Thread-safe."""

    def __init__(
        self,
        repository: Repository,
        *,
        cache: Cache | None = None,
        store: ArrayStore | None = None,
        embedder: Callable[[], Embedder] | None = None,
    ) -> None:
        self.repository = repository
        self.cache = cache if cache is not None else shared_cache()
        self.store = store if store is not None else default_store()
        self.embedder = embedder if embedder is not None else _embedder_from_environment
        self.touches = Touches()
        self.recent = Recent()
        self._turns = Turns()
        self._prepared: _Kept[tuple[str, str | None, str], Prepared] = _Kept(PREPARED_MAX)
        self._schemas: _Kept[str, AcceptedSchema] = _Kept(SCHEMAS_MAX)
        self._tables: _Kept[tuple[str, int, str], SnapshotTables] = _Kept(SNAPSHOTS_MAX)
        self._newest: _Kept[str, tuple[ManifestState, SnapshotTables]] = _Kept(SNAPSHOTS_MAX)

    def get_ready(self) -> None:
        """Load what every query of main needs: the schema of the state that was opened."""
        with suppress(OmnigraphError):  # said by whoever asks for it
            self.tables(SnapshotPins.of(MAIN_BRANCH, self.repository.main.warm()))

    def query(
        self,
        text: str,
        name: str | None = None,
        params: object = None,
        branch: str | None = None,
        at: str | None = None,
        options: ReadOptions | None = None,
    ) -> Result:
        """Run one read query of a text on a branch, or on the state a commit made."""
        options = options or STANDARD
        guard = Guard(options.limits, options.cancelled)
        turn = self._turns.of(text if isinstance(text, str) else None)
        checked = install(guard.check) if guard.can_stop else None
        try:
            started = time.perf_counter()
            with deletion_noticed(self.repository, branch, at):
                tables = (
                    self.tables(self.pin(branch, at))
                    if at is not None
                    else self.newest(MAIN if branch is None else branch)
                )
                prepared = self.prepare(text, name, tables, options.file)
                if not tables.is_loaded(prepared.use):
                    turn.end()
                mode = options.parameter_mode
                bound = bind_parameters(prepared.plan.parameters, params, mode=mode)
                target = Target(None if at is not None else tables.snapshot.branch.name, at)
                result = _Run(self, tables, prepared, bound, options, guard).result(target)
            self._turns.note(text, time.perf_counter() - started)
            return result
        finally:
            turn.end()
            if checked is not None:
                remove(checked)

    def explain(
        self,
        text: str,
        name: str | None = None,
        branch: str | None = None,
        at: str | None = None,
        options: ReadOptions | None = None,
    ) -> Explanation:
        """What a read query would do, and why; it is not run."""
        options = options or STANDARD
        with deletion_noticed(self.repository, branch, at):
            tables = self.tables(self.pin(branch, at))
            prepared = self.prepare(text, name, tables, options.file)
            choice = choose_access(
                tables, prepared.plan, prepared.use, options.access, self.touches, note=False
            )
            return explain_read(tables, prepared.plan, prepared.needed, choice)

    # Pinning and compiling

    def pin(self, branch: str | None = None, at: str | None = None) -> SnapshotPins:
        """The newest state of a branch, or the state that a commit, a tag or a moment names."""
        with deletion_noticed(self.repository, branch, at):
            if at is None:
                name = MAIN if branch is None else branch
                return self.repository.snapshot(self.repository.branch(name))
            if branch is not None:
                return self.repository.snapshot_at_commit(self.repository.branch(branch), at)
            return resolve(self.repository, at)

    def state(self, target: str) -> State:
        """A target with its schema, ready to be compared."""
        with deletion_noticed(self.repository, target):
            snapshot = resolve(self.repository, target)
            return State(snapshot, self.schema(snapshot))

    def schema(self, snapshot: SnapshotPins) -> AcceptedSchema:
        """The schema of a snapshot."""
        found = self._schemas.get(snapshot.schema_hash)
        if found is None:
            state = self.repository.manifest(snapshot.branch).warm()
            found = load_schema(state, snapshot.schema_hash)
            self._schemas.keep(snapshot.schema_hash, found)
        return found

    def newest(self, name: str) -> SnapshotTables:
        """The types of the newest snapshot of a branch: known as long as its state is the same."""
        branch = self.repository.branch(name)
        state = self.repository.manifest(branch).current()
        known = self._newest.get(branch.incarnation)
        if known is not None and known[0] is state:
            return known[1]
        tables = self.tables(SnapshotPins.of(branch, state))
        self._newest.keep(branch.incarnation, (state, tables))
        return tables

    def tables(self, snapshot: SnapshotPins) -> SnapshotTables:
        """The types of a snapshot, shared by everybody who reads it."""
        key = (snapshot.branch.incarnation, snapshot.manifest_version, snapshot.commit_id)
        found = self._tables.get(key)
        if found is None or found.snapshot != snapshot:  # a purge takes something from old states
            schema = self.schema(snapshot)
            found = SnapshotTables(
                self.repository, snapshot, schema, self.cache, self.recent, self.store
            )
            self._tables.keep(key, found)
        return found

    def forget(self) -> None:
        """Let go of everything that was read: some of it must not be known any more."""
        self.cache.clear()
        if self.store is not None:
            self.store.forget(self.repository.graph_id)
        self.recent = Recent()
        self._tables = _Kept(SNAPSHOTS_MAX)
        self._newest = _Kept(SNAPSHOTS_MAX)

    def prepare(
        self, text: str, name: str | None, tables: SnapshotTables, file: str = "<query>"
    ) -> Prepared:
        """A compiled read query, remembered by its text and schema."""
        if not isinstance(text, str) or not isinstance(name, str | None):
            raise InvalidInput("a query and its name are texts")
        key = (text, name, tables.snapshot.schema_hash)
        found = self._prepared.get(key)
        if found is None:
            compiled = compile_query(text, tables.schema, name, file=file)
            compiled.require_read()
            assert isinstance(compiled.plan, ReadPlan)
            plan = compiled.plan
            _require_reasonable(plan.pattern)
            names = tuple(item.name for item in plan.columns)
            use = type_use(plan, tables.schema)
            found = Prepared(plan, use, needed_variables(plan), names)
            self._prepared.keep(key, found)
        return found


def _embedder_from_environment() -> Embedder:
    return embedder_from_environment()


def _require_reasonable(pattern: Pattern) -> None:
    """Refuse a pattern whose order of evaluation would take longer than any answer is worth."""
    found, pending = 0, [pattern]
    while pending:
        part = pending.pop()
        found += len(part.variables)
        pending += [item.pattern for item in part.anti_joins]
    if found > VARIABLES_MAX:
        raise ResourceLimit(
            "query_variables",
            VARIABLES_MAX,
            found,
            remedy="Ask in several queries: a pattern of so many parts is rarely meant.",
        )


_K = TypeVar("_K")
_V = TypeVar("_V")


class _Kept(Generic[_K, _V]):
    """The last few of something. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[_K, _V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: _K) -> _V | None:
        with self._lock:
            found = self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
            return found

    def keep(self, key: _K, value: _V) -> None:
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _Run:
    """One execution of one query."""

    reader: Reader
    tables: SnapshotTables
    prepared: Prepared
    bound: BoundParameters
    options: ReadOptions
    guard: Guard

    @property
    def plan(self) -> ReadPlan:
        return self.prepared.plan

    def result(self, target: Target) -> Result:
        now_ms = int(time.time() * 1000)
        profile = Profile(self.options.profile)
        try:
            data = self._answer(self._reached(), now_ms, profile)
        except TooWide:
            profile = Profile(self.options.profile)
            data = self._answer(self._loaded(), now_ms, profile)
        return Result(
            self.plan.query,
            target,
            self.tables.snapshot.commit_id,
            self.prepared.names,
            tuple(data),
            tuple(profile.steps),
        )

    def _reached(self) -> SnapshotTables | ProbingTables:
        """The types as this execution reaches them."""
        tables, use, access = self.tables, self.prepared.use, self.options.access
        if access != "probe" and tables.is_loaded(use):
            return tables
        probed = choose_access(tables, self.plan, use, access, self.reader.touches).probed
        return ProbingTables(tables, use, probed) if probed else self._loaded()

    def _loaded(self) -> SnapshotTables:
        self.tables.prepare(self.prepared.use)
        return self.tables

    def _answer(
        self, tables: SnapshotTables | ProbingTables, now_ms: int, profile: Profile
    ) -> list[Answer]:
        by_index = self.options.nearest == "indexed"
        check = self.guard.check
        searcher = Searcher(self.bound.values, self.reader.embedder, by_index, check)
        by_variable = tables.by_variable(self.plan.pattern)
        evaluator = Evaluator(by_variable, self.bound.values, now_ms, searcher, check)
        matcher = Matcher(tables, evaluator, self.guard, profile)
        plan, needed = self.prepared.plan, self.prepared.needed
        ranks: SortColumn | None = None
        if plan.ranking is not None:
            frame, ranks = Ranker(plan, plan.ranking, matcher, evaluator, searcher).match(needed)
        elif isinstance(tables, ProbingTables):
            with looking_ahead(tables, plan.pattern, needed, evaluator):
                frame = matcher.match(plan.pattern, needed)
        else:
            frame = matcher.match(plan.pattern, needed)
        form = self.options.entity_form
        output = Output(self.plan, evaluator, by_variable, self.guard, form)
        found = output.answer(frame, ranks)
        check()
        return found
