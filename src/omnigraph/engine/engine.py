"""The read engine: runs a query text on one pinned snapshot.

Pins a snapshot, compiles, chooses an access path for each type, executes, and returns the result.
Every surface (Python, command line, server) uses it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

from omnigraph.catalog.branches.concurrent_deletion import deletion_checked
from omnigraph.catalog.branches.registry import MAIN_BRANCH
from omnigraph.catalog.references import resolve
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MAIN
from omnigraph.catalog.schemas import cached_schema
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.catalog.state import ManifestState
from omnigraph.embed import Embedder, configured_embedder
from omnigraph.engine.cache.disk_store import ArrayStore, configured_store
from omnigraph.engine.cache.identity_cache import IdentityCache
from omnigraph.engine.cache.memory_cache import MemoryCache, shared_cache
from omnigraph.engine.exec.evaluator import Evaluator
from omnigraph.engine.exec.match import PatternMatcher
from omnigraph.engine.exec.profile import Profile
from omnigraph.engine.exec.project import Answer, EntityForm, Projection, needed_variables
from omnigraph.engine.exec.rank import Ranker
from omnigraph.engine.exec.sort import SortColumn
from omnigraph.engine.limits import Guard, Limits
from omnigraph.engine.plan.access_choice import Access, ProbeCounts, choose_access
from omnigraph.engine.plan.explain import Explanation, explain_read
from omnigraph.engine.prepared_query import PreparedQuery, PreparedRead
from omnigraph.engine.result import ReadTarget, Result
from omnigraph.engine.search.searcher import Searcher
from omnigraph.engine.short_query_queue import ShortQueryQueue
from omnigraph.engine.tables.access import ProbingTables, SnapshotTables, type_use
from omnigraph.engine.tables.loaded import LatestVersions
from omnigraph.engine.tables.prefetch import edges_prefetched
from omnigraph.engine.tables.probe import ProbeTooWide
from omnigraph.errors import InvalidInput, OmnigraphError, ResourceLimit
from omnigraph.lang.query import BoundParameters, bind_parameters, compile_cached
from omnigraph.lang.query.parameters import ParameterMode, Parameters
from omnigraph.lang.query.plan.logical import Pattern, ReadPlan
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.model.checkpoint import install, remove
from omnigraph.model.lru import LruCache
from omnigraph.snapshots.entity_delta import State

NearestMode = Literal["exact", "indexed"]

VARIABLES_MAX: Final = 500
"""Variables of one query: join ordering takes quadratic time in them."""
SNAPSHOTS_MAX: Final = 64
"""Snapshots whose table objects and join orders are cached; they hold no data."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to run a query.

    Only ``entity_form`` and ``nearest`` can change the result; the other options change how long
    it takes or which limits apply.
    """

    limits: Limits = field(default_factory=Limits)
    entity_form: EntityForm = "object"
    parameter_mode: ParameterMode = "standard"
    access: Access = "auto"
    nearest: NearestMode = "exact"
    """``indexed`` uses an approximate vector index where one exists: faster on many vectors, but
    some of the nearest may be missed. Without an index the search is exact."""
    profile: bool = False
    file: str = "<query>"
    """The name of the query text in error messages."""
    cancelled: threading.Event | None = None


STANDARD: Final = ReadOptions()


class Reader:
    """Runs queries on one graph. Thread-safe."""

    def __init__(
        self,
        repository: Repository,
        *,
        cache: MemoryCache | None = None,
        store: ArrayStore | None = None,
        embedder: Callable[[], Embedder] | None = None,
    ) -> None:
        self.repository = repository
        settings = repository.settings
        self.cache = cache if cache is not None else shared_cache(settings.cache.memory_bytes)
        self.store = store if store is not None else configured_store(settings.cache)
        self.embedder = embedder or partial(configured_embedder, settings.embed)
        self.probe_counts = ProbeCounts()
        self.latest = LatestVersions()
        self._queue = ShortQueryQueue()
        self._prepared: IdentityCache[PreparedRead] = IdentityCache()
        self._tables: LruCache[tuple[str, int, str], SnapshotTables] = LruCache(SNAPSHOTS_MAX)
        self._newest: LruCache[str, tuple[ManifestState, SnapshotTables]] = LruCache(SNAPSHOTS_MAX)

    def warm_up(self) -> None:
        """Load what every query of main needs: the schema of the state that was opened."""
        with suppress(OmnigraphError):  # the first query reports it
            self.tables(SnapshotPins.of(MAIN_BRANCH, self.repository.main.warm()))

    def query(
        self,
        text: str,
        name: str | None = None,
        params: Parameters | None = None,
        branch: str | None = None,
        at: str | None = None,
        options: ReadOptions | None = None,
    ) -> Result:
        """Run one read query of a text on a branch, or on the state of a commit."""
        return self.run(PreparedQuery(self, text, name, branch, at, options or STANDARD), params)

    def prepared(
        self,
        text: str,
        name: str | None = None,
        branch: str | None = None,
        at: str | None = None,
        options: ReadOptions | None = None,
    ) -> PreparedQuery:
        """One read query of a text, compiled, to be run many times."""
        found = PreparedQuery(self, text, name, branch, at, options or STANDARD)
        with deletion_checked(self.repository, branch, at):
            found.compiled(self._pinned(branch, at))
        return found

    def run(self, query: PreparedQuery, params: Parameters | None) -> Result:
        """Run a query with these parameters."""
        text, branch, at, options = query.text, query.branch, query.at, query.options
        guard = Guard(options.limits, options.cancelled)
        slot = self._queue.enter(text if isinstance(text, str) else None)
        checked = install(guard.check) if guard.can_stop else None
        try:
            started = time.perf_counter()
            with deletion_checked(self.repository, branch, at):
                tables = self._pinned(branch, at)
                prepared = query.compiled(tables)
                if not tables.is_loaded(prepared.use):
                    slot.leave()
                mode = options.parameter_mode
                bound = bind_parameters(prepared.plan.parameters, params, mode=mode)
                target = ReadTarget(None if at is not None else tables.snapshot.branch.name, at)
                plan = prepared.plan.bound(bound.values)
                run = _QueryRun(self, tables, prepared, plan, bound, options, guard)
                result = run.result(target)
            self._queue.record(text, time.perf_counter() - started)
            return result
        finally:
            slot.leave()
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
        """The execution plan of a read query, with estimates and reasons; the query is not run."""
        options = options or STANDARD
        with deletion_checked(self.repository, branch, at):
            tables = self.tables(self.pin(branch, at))
            prepared = self.prepare(text, name, tables, options.file)
            choice = choose_access(
                tables, prepared.plan, prepared.use, options.access, self.probe_counts, record=False
            )
            return explain_read(tables, prepared.plan, prepared.needed, choice)

    # Pinning and compiling

    def pin(self, branch: str | None = None, at: str | None = None) -> SnapshotPins:
        """The newest snapshot of a branch, or the one named by a commit, a tag or a time."""
        with deletion_checked(self.repository, branch, at):
            if at is None:
                name = MAIN if branch is None else branch
                return self.repository.snapshot(self.repository.branch(name))
            if branch is not None:
                return self.repository.snapshot_at_commit(self.repository.branch(branch), at)
            return resolve(self.repository, at)

    def state(self, target: str) -> State:
        """A target's snapshot with its schema."""
        with deletion_checked(self.repository, target):
            snapshot = resolve(self.repository, target)
            return State(snapshot, self.schema(snapshot))

    def schema(self, snapshot: SnapshotPins) -> AcceptedSchema:
        """The schema of a snapshot."""
        state = self.repository.manifest(snapshot.branch).warm()
        return cached_schema(state, snapshot.schema_hash)

    def _pinned(self, branch: str | None, at: str | None) -> SnapshotTables:
        """The tables of the newest snapshot of a branch, or of the one that ``at`` names."""
        if at is not None:
            return self.tables(self.pin(branch, at))
        return self.newest(MAIN if branch is None else branch)

    def newest(self, name: str) -> SnapshotTables:
        """The tables of the newest snapshot of a branch, cached until its manifest changes."""
        branch = self.repository.branch(name)
        state = self.repository.manifest(branch).current()
        known = self._newest.get(branch.incarnation)
        if known is not None and known[0] is state:
            return known[1]
        tables = self.tables(SnapshotPins.of(branch, state))
        self._newest.put(branch.incarnation, (state, tables))
        return tables

    def tables(self, snapshot: SnapshotPins) -> SnapshotTables:
        """The tables of a snapshot, shared by all its readers."""
        key = (snapshot.branch.incarnation, snapshot.manifest_version, snapshot.commit_id)
        found = self._tables.get(key)
        if found is None or found.snapshot != snapshot:  # a purge changes old snapshots
            schema = self.schema(snapshot)
            found = SnapshotTables(
                self.repository, snapshot, schema, self.cache, self.latest, self.store
            )
            self._tables.put(key, found)
        return found

    def drop_caches(self) -> None:
        """Drop everything that was read, in memory and on disk, for example after a purge."""
        self.cache.clear()
        if self.store is not None:
            self.store.invalidate(self.repository.graph_id)
        self.latest = LatestVersions()
        self._tables.clear()
        self._newest.clear()

    def prepare(
        self, text: str, name: str | None, tables: SnapshotTables, file: str = "<query>"
    ) -> PreparedRead:
        """The compiled form of a read query, cached."""
        if not isinstance(text, str) or not isinstance(name, str | None):
            raise InvalidInput("a query and its name must be strings")
        schema_hash = tables.snapshot.schema_hash
        compiled = compile_cached(text, tables.schema, schema_hash, name, file=file)
        found = self._prepared.get(compiled)
        if found is None:
            compiled.require_read()
            assert isinstance(compiled.plan, ReadPlan)
            plan = compiled.plan
            _limit_variables(plan.pattern)
            names = tuple(item.name for item in plan.columns)
            use = type_use(plan, tables.schema)
            found = PreparedRead(plan, use, needed_variables(plan), names)
            self._prepared.put(compiled, found)
        return found


def _limit_variables(pattern: Pattern) -> None:
    """Refuse a pattern with too many variables to order its joins."""
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
            remedy="Split the pattern into several queries.",
        )


@dataclass(frozen=True, slots=True)
class _QueryRun:
    """One execution of one query."""

    reader: Reader
    tables: SnapshotTables
    prepared: PreparedRead
    plan: ReadPlan
    """The plan of ``prepared`` with its numbers of rows."""
    bound: BoundParameters
    options: ReadOptions
    guard: Guard

    def result(self, target: ReadTarget) -> Result:
        now_ms = int(time.time() * 1000)
        profile = Profile(self.options.profile)
        try:
            data = self._answer(self._tables_to_use(), now_ms, profile)
        except ProbeTooWide:
            profile = Profile(self.options.profile)
            data = self._answer(self._load(), now_ms, profile)
        return Result(
            self.plan.query,
            target,
            self.tables.snapshot.commit_id,
            self.prepared.names,
            tuple(data),
            tuple(profile.steps),
            self.guard.remaining() if self.guard.can_stop else None,
            self.options.cancelled,
        )

    def _tables_to_use(self) -> SnapshotTables | ProbingTables:
        """The tables of this execution: cached, or probed where little of them is needed."""
        tables, use, access = self.tables, self.prepared.use, self.options.access
        if access != "probe" and tables.is_loaded(use):
            return tables
        probed = choose_access(tables, self.plan, use, access, self.reader.probe_counts).probed
        return ProbingTables(tables, use, probed) if probed else self._load()

    def _load(self) -> SnapshotTables:
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
        matcher = PatternMatcher(tables, evaluator, self.guard, profile)
        plan, needed = self.plan, self.prepared.needed
        ranks: SortColumn | None = None
        if plan.ranking is not None:
            frame, ranks = Ranker(plan, plan.ranking, matcher, evaluator, searcher).match(needed)
        elif tables.prefetches:
            with edges_prefetched(tables, plan.pattern, needed, evaluator):
                frame = matcher.match(plan.pattern, needed)
        else:
            frame = matcher.match(plan.pattern, needed)
        form = self.options.entity_form
        output = Projection(self.plan, evaluator, by_variable, self.guard, form)
        found = output.answer(frame, ranks)
        check()
        return found
