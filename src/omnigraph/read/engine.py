"""The read engine: from a text to a result on one pinned snapshot.

Compiles (and remembers what was compiled), pins, chooses how to reach each type, runs, and gives
the result. The same for every caller: Python, command line, server.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from omnigraph.embed import Embedder, embedder_from_environment
from omnigraph.errors import CommitNotFound, InvalidInput
from omnigraph.manifest import history
from omnigraph.manifest.branches import all_branches
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.schemas import load_schema
from omnigraph.manifest.snapshot import SnapshotPins
from omnigraph.query import BoundParameters, CompiledQuery, bind_parameters, compile_query
from omnigraph.query.params import ParameterMode
from omnigraph.query.plan import ReadPlan
from omnigraph.read.access import Access, SnapshotTables, Touches, choose_probed, type_use
from omnigraph.read.cache import Cache, shared_cache
from omnigraph.read.evaluate import Evaluator
from omnigraph.read.limits import Guard, Limits
from omnigraph.read.match import Matcher
from omnigraph.read.output import EntityForm, Output, needed_variables
from omnigraph.read.probe import TooWide
from omnigraph.read.profile import Profile
from omnigraph.read.rank import Ranker
from omnigraph.read.result import Result, Target
from omnigraph.read.search.searcher import Searcher
from omnigraph.schema import AcceptedSchema

COMPILED_MAX: Final = 512
"""Queries that are remembered in compiled form."""
SCHEMAS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to run a query; what it answers does not depend on any of it but ``entity_form``."""

    limits: Limits = field(default_factory=Limits)
    entity_form: EntityForm = "object"
    parameter_mode: ParameterMode = "standard"
    access: Access = "auto"
    profile: bool = False
    file: str = "<query>"
    """What messages call the text."""
    cancelled: threading.Event | None = None


class Reader:
    """Reads one graph. Thread-safe."""

    def __init__(
        self,
        repository: Repository,
        *,
        cache: Cache | None = None,
        embedder: Callable[[], Embedder] = embedder_from_environment,
    ) -> None:
        self.repository = repository
        self.cache = cache if cache is not None else shared_cache()
        self._embedder = embedder
        self._touches = Touches()
        self._lock = threading.Lock()
        self._compiled: OrderedDict[tuple[str, str | None, str], CompiledQuery] = OrderedDict()
        self._schemas: OrderedDict[str, AcceptedSchema] = OrderedDict()

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
        options = options or ReadOptions()
        guard = Guard(options.limits, options.cancelled)
        snapshot = self.pin(branch, at)
        schema = self.schema(snapshot)
        compiled = self.compile(text, name, schema, snapshot.schema_hash, options.file)
        compiled.require_read()
        bound = bind_parameters(compiled.plan.parameters, params, mode=options.parameter_mode)
        target = Target(None, at) if at is not None else Target(snapshot.branch.name, None)
        run = _Run(self, snapshot, schema, compiled, bound, options, guard)
        return run.result(target)

    # Pinning and compiling

    def pin(self, branch: str | None = None, at: str | None = None) -> SnapshotPins:
        """The newest state of a branch, or the state that a commit of any branch made."""
        if at is None:
            return self.repository.snapshot(self.repository.branch(branch or "main"))
        if branch is not None:
            return self.repository.snapshot_at_commit(self.repository.branch(branch), at)
        for candidate in all_branches(self.repository.main.current()).values():
            state = self.repository.manifest(candidate).current()
            if history.find_commit(state, at) is not None:
                return self.repository.snapshot_at_commit(candidate, at)
        raise CommitNotFound(f"no branch has a commit {at!r}", details={"commit_id": at})

    def schema(self, snapshot: SnapshotPins) -> AcceptedSchema:
        """The schema of a snapshot."""
        with self._lock:
            found = self._schemas.get(snapshot.schema_hash)
        if found is None:
            state = self.repository.manifest(snapshot.branch).warm()
            found = load_schema(state, snapshot.schema_hash)
            _remember(self._lock, self._schemas, snapshot.schema_hash, found, SCHEMAS_MAX)
        return found

    def compile(
        self,
        text: str,
        name: str | None,
        schema: AcceptedSchema,
        schema_hash: str,
        file: str = "<query>",
    ) -> CompiledQuery:
        """The compiled query, remembered by its text and schema."""
        if not isinstance(text, str):
            raise InvalidInput("a query is a text")
        key = (text, name, schema_hash)
        with self._lock:
            found = self._compiled.get(key)
            if found is not None:
                self._compiled.move_to_end(key)
                return found
        found = compile_query(text, schema, name, file=file)
        _remember(self._lock, self._compiled, key, found, COMPILED_MAX)
        return found


def _remember(
    lock: threading.Lock, kept: OrderedDict[Any, Any], key: object, value: object, most: int
) -> None:
    with lock:
        kept[key] = value
        while len(kept) > most:
            kept.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _Run:
    """One execution of one query."""

    reader: Reader
    snapshot: SnapshotPins
    schema: AcceptedSchema
    compiled: CompiledQuery
    bound: BoundParameters
    options: ReadOptions
    guard: Guard

    @property
    def plan(self) -> ReadPlan:
        assert isinstance(self.compiled.plan, ReadPlan)
        return self.compiled.plan

    def result(self, target: Target) -> Result:
        tables = self._tables()
        now_ms = int(time.time() * 1000)
        probed = choose_probed(tables, self.plan, self.options.access, self.reader._touches)
        profile = Profile(self.options.profile)
        try:
            tables.probed = probed
            table = self._answer(tables, now_ms, profile)
        except TooWide:
            profile = Profile(self.options.profile)
            table = self._answer(self._tables(), now_ms, profile)
        return Result(
            self.plan.query,
            target,
            self.snapshot.commit_id,
            table,
            self.plan.columns,
            self.schema,
            tuple(profile.steps),
        )

    def _tables(self) -> SnapshotTables:
        use = type_use(self.plan, self.schema)
        reader = self.reader
        return SnapshotTables(reader.repository, self.snapshot, self.schema, reader.cache, use)

    def _answer(self, tables: SnapshotTables, now_ms: int, profile: Profile) -> Any:
        searcher = Searcher(self.bound.values, self.reader._embedder)
        by_variable: dict[str, Any] = {
            item.name: (
                tables.nodes(item.type.name)
                if item.type.kind == "node"
                else tables.edges(item.type.name)
            )
            for item in self.plan.pattern.variables
        }
        evaluator = Evaluator(by_variable, self.bound.values, now_ms, searcher)
        matcher = Matcher(tables, evaluator, self.guard, profile)
        ranker = Ranker(self.plan, matcher, evaluator, searcher)
        frame, ranks = ranker.match(needed_variables(self.plan))
        output = Output(
            self.plan, self.schema, evaluator, by_variable, self.guard, self.options.entity_form
        )
        return output.answer(frame, ranks)
