"""Merging one branch into another: the base, the outcome, the checks, and one commit.

The merge itself is an ordinary write: it is prepared against the head of the target, states what it
relied on, and is prepared again when somebody else was faster. Nothing is visible before it is
published, and everything that is in its way is reported at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, TypedDict

from omnigraph.catalog.branches.deleted import deletion_noticed
from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.history.ancestry import Ancestry, load_ancestry
from omnigraph.catalog.history.attribution import object_path
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.constraints import Image, Report
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.merge.authorship import MergedLine
from omnigraph.merge.conflicts import MergeConflict, in_order, raise_conflicts
from omnigraph.merge.content import Merging, TypeMerge
from omnigraph.merge.contested import MergeRules
from omnigraph.merge.engine import ChooseEngine, Composition, MergeEngine, in_process
from omnigraph.merge.merged_rows import previewed
from omnigraph.merge.resolutions import Dropped, accept_dropped, accept_resolutions
from omnigraph.merge.target import dropped_and_changed, merged_schema, take_over
from omnigraph.merge.three_way import Level, Strategy
from omnigraph.merge.violation_conflicts import Violated
from omnigraph.prepare.committer import Attempt, Committer, WriteOptions, cached_schema
from omnigraph.prepare.preparer import Preparer
from omnigraph.snapshots.diff import EntityChange
from omnigraph.snapshots.entity_delta import State, TypeDelta
from omnigraph.transaction.prepared import PreparedWrite, WriteInfo


class MergeOutcome(StrEnum):
    """What a merge came to."""

    ALREADY_UP_TO_DATE = "already_up_to_date"
    FAST_FORWARD = "fast_forward"
    MERGED = "merged"
    CONFLICTS = "conflicts"
    """Only of a dry run: the merge itself would raise ``MergeConflicts``."""


class Decisions(TypedDict, total=False):
    """How callers say what counts where both sides changed something; see ``MergeOptions``."""

    level: Level
    strategy: Strategy | None
    by_type: Mapping[str, Strategy] | None
    resolutions: Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """How to decide where both sides changed something, as callers say it."""

    level: Level = "property"
    strategy: Strategy | None = None
    by_type: Mapping[str, Strategy] | None = None
    """Strategies for single types, by name or type key."""
    resolutions: Iterable[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, decisions: Decisions) -> MergeOptions:
        given = cls(**decisions)
        return replace(given, resolutions=tuple(given.resolutions))

    def rules(self, state: State) -> MergeRules:
        """Checked against the schema of the target."""
        for given in (self.strategy, *(self.by_type or {}).values()):
            if given not in (None, "ours", "theirs"):
                raise InvalidInput(f"{given!r} is not a strategy", remedy="Use ours or theirs.")
        if self.level not in ("entity", "property"):
            raise InvalidInput(f"{self.level!r} is not a level", remedy="Use entity or property.")
        by_type = {
            key: strategy
            for name, strategy in (self.by_type or {}).items()
            for key in _type_keys(state, name)
        }
        resolutions = accept_resolutions(state.schema, self.resolutions)
        return MergeRules(self.level, self.strategy, by_type, resolutions)

    def dropped(self) -> Dropped:
        """What may be dropped whatever the other side changed of it."""
        return accept_dropped(self.resolutions)


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What was done, or, for a dry run, what would be done and what is in the way."""

    source: str
    target: str
    outcome: MergeOutcome
    commit: Commit | None = None
    base_commit_id: str | None = None
    dry_run: bool = False
    conflicts: tuple[MergeConflict, ...] = ()
    changes: tuple[EntityChange, ...] = ()
    checked: bool = True
    """False for a dry run that would change the target's schema: the merge itself checks."""
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None
    rows_written: Mapping[str, int] | None = None

    def to_json(self, actor: str | None = None) -> dict[str, Any]:
        body: dict[str, Any] = {
            "source": self.source,
            "target": self.target,
            "outcome": str(self.outcome),
            "actor_id": actor,
            "base_commit_id": self.base_commit_id,
        }
        if self.commit is not None:
            body["commit"] = self.commit.to_json()
        if self.dry_run:
            body["dry_run"] = True
            body["merge_conflicts"] = [conflict.to_json() for conflict in self.conflicts]
            body["changes"] = [change.to_json() for change in self.changes]
            body["checked"] = self.checked
        if self.branch_deleted is not None:
            body["branch_deleted"] = self.branch_deleted
        if self.branch_delete_error is not None:
            body["branch_delete_error"] = self.branch_delete_error
        return body


@dataclass(frozen=True, slots=True)
class MergePlan:
    """A merge computed and checked, but not staged."""

    types: tuple[TypeMerge, ...]
    visited: tuple[str, ...]
    made: Composition
    conflicts: tuple[MergeConflict, ...]
    engine: MergeEngine
    theirs: tuple[TypeDelta, ...] = ()
    """What differs between the base and the source."""

    @property
    def rows_written(self) -> dict[str, int]:
        return {
            key: len(known.written) + len(known.removed) for key, known in self.made.known.items()
        }

    @property
    def has_effect(self) -> bool:
        """Whether anything in the target would have another value afterwards."""
        return any(True for merge in self.types for _ in previewed(merge))

    def changes(self) -> tuple[EntityChange, ...]:
        """What it would change in the target."""
        return tuple(change for merge in self.types for change in previewed(merge))


def plan_merge(
    preparer: Preparer,
    repository: Repository,
    states: Mapping[str, State],
    rules: MergeRules,
    *,
    checked: bool = True,
    choose: ChooseEngine = in_process,
    also: Sequence[Callable[[Image], Report]] = (),
) -> MergePlan:
    """Compute a merge of three states and check its result.

    Where entities conflict, all their possible outcomes are checked together, so that everything in
    the way is known at once. Nothing is checked unless ``checked``, for a preview of a target that
    does not have the schema of the result yet. ``also`` checks what the target's own entities did
    not have to keep to before.
    """
    merging = Merging(repository, states, rules)
    engine = choose(merging.touched)
    types = tuple(merging.types(engine.decide))
    made = Composition({}, {}, Report())
    conflicts = merging.conflicts
    if checked:
        made = engine.compose(preparer, types)
        reports = [made.report, *(check(made.image) for check in also)]
        if any(reports):
            violated = Violated(repository, states, made.image, preparer.stored)
            conflicts = [*conflicts, *violated.conflicts(reports)]
    visited, found = tuple(merging.visited), tuple(in_order(conflicts))
    return MergePlan(types, visited, made, found, engine, merging.theirs)


def stage_plan(
    preparer: Preparer, plan: MergePlan, target: SnapshotPins, info: WriteInfo
) -> PreparedWrite:
    """Stage a merge that has no conflicts; it relies on every type it looked at."""
    prepared = plan.engine.stage(preparer, plan.made, info)
    return replace(prepared, reads={key: target.pin(key).ref for key in plan.visited})


class Merge:
    """One merge of a branch into another."""

    def __init__(
        self,
        repository: Repository,
        source: str,
        target: str,
        choose: ChooseEngine = in_process,
    ) -> None:
        if source == target:
            raise InvalidInput(
                f"{source} cannot be merged into itself", remedy="Name two different branches."
            )
        self._repository = repository
        self._source = source
        self._target = target
        self._choose = choose
        self._engines: list[MergeEngine] = []
        self._plan: MergePlan | None = None
        self._attempted: str | None = None

    @property
    def rows_written(self) -> dict[str, int]:
        return {} if self._plan is None else self._plan.rows_written

    def run(self, committer: Committer, options: WriteOptions, merge: MergeOptions) -> MergeResult:
        """Merge, in one commit; raises ``MergeConflicts`` when that cannot be done by itself."""

        def prepare(attempt: Attempt) -> tuple[PreparedWrite | None, Mapping[str, Any]]:
            meeting = self._meet(attempt)
            if meeting.outcome is MergeOutcome.ALREADY_UP_TO_DATE:
                return None, meeting.facts
            doing = f"{self._source} cannot be merged into {self._target}"
            ground = take_over(self._repository, meeting.states["target"], meeting.schema)
            states = {**meeting.states, "target": ground.state}
            made = ground.state.snapshot
            preparer = Preparer(self._repository, made, ground.state.schema)
            rules = merge.rules(ground.state)
            choose = in_process if ground.taken_over else self._engine
            plan = plan_merge(
                preparer, self._repository, states, rules, choose=choose, also=[ground.check]
            )
            dropped = meeting.conflicts(self._repository, merge.dropped())
            raise_conflicts([*dropped, *plan.conflicts], doing, level=merge.level)
            self._plan = plan
            info = replace(options.info, merged_parent=meeting.source_head)
            prepared = ground.finish(stage_plan(preparer, plan, made, info))
            return self._with_history(prepared, meeting.line, plan), meeting.facts

        try:
            with deletion_noticed(self._repository, self._source):
                done = committer.run(
                    options, prepare, retry=lambda: True, digest=lambda: self._digest(merge)
                )
        finally:
            for engine in self._engines:
                engine.close()
        facts = done.result
        return MergeResult(
            self._source,
            self._target,
            MergeOutcome(facts["outcome"]),
            done.commit,
            facts["base"],
            rows_written=self.rows_written if not done.repeated else {},
        )

    def _with_history(
        self, prepared: PreparedWrite, line: MergedLine, plan: MergePlan
    ) -> PreparedWrite:
        """The same write, which also keeps who did what on the source."""
        objects = self._repository.objects
        if self._attempted is not None:
            objects.delete(object_path(self._attempted))  # that one was refused
        self._attempted = prepared.operation_id
        rows = line.rows(prepared.operation_id, plan.types, plan.theirs)
        return replace(prepared, put=(*prepared.put, *rows))

    def _engine(self, touched: int) -> MergeEngine:
        self._engines.append(self._choose(touched))
        return self._engines[-1]

    def preview(self, committer: Committer, merge: MergeOptions) -> MergeResult:
        """What a merge would do now. Writes nothing."""
        with deletion_noticed(self._repository, self._source, self._target):
            return self._preview(committer, merge)

    def _preview(self, committer: Committer, merge: MergeOptions) -> MergeResult:
        attempt = committer.attempt(self._target)
        meeting = self._meet(attempt)
        result = MergeResult(
            self._source,
            self._target,
            meeting.outcome,
            base_commit_id=meeting.facts["base"],
            dry_run=True,
        )
        if meeting.outcome is MergeOutcome.ALREADY_UP_TO_DATE:
            return result
        dropped = meeting.conflicts(self._repository, merge.dropped())
        preparer = Preparer(self._repository, attempt.snapshot, attempt.schema)
        target = meeting.states["target"]
        checked = meeting.schema.digest == target.schema.digest
        plan = plan_merge(
            preparer, self._repository, meeting.states, merge.rules(target), checked=checked
        )
        conflicts = (*dropped, *plan.conflicts)
        outcome = MergeOutcome.CONFLICTS if conflicts else meeting.outcome
        return replace(
            result,
            outcome=outcome,
            conflicts=conflicts,
            changes=plan.changes(),
            checked=checked,
        )

    def _meet(self, attempt: Attempt) -> _Meeting:
        """Where the two histories meet, and what that makes of the merge."""
        repository = self._repository
        source = repository.branch(self._source)
        state = repository.manifest(source).current()
        head, target_head = state.head.commit_id, attempt.state.head.commit_id
        ancestry = load_ancestry(repository, [source, attempt.branch])
        base = ancestry.base(head, target_head)
        if base is None:
            raise NotFound(
                f"{self._source} and {self._target} have no commit in common",
                remedy="Only branches with a common history can be merged.",
            )
        theirs = SnapshotPins.of(source, state)
        target = State(attempt.snapshot, attempt.schema)
        states = {
            "base": target
            if base.commit_id == target_head
            else _state_at(repository, ancestry, base),
            "source": State(theirs, cached_schema(state, theirs.schema_hash)),
            "target": target,
        }
        outcome = MergeOutcome.MERGED
        if base.commit_id == head:
            outcome = MergeOutcome.ALREADY_UP_TO_DATE
        elif base.commit_id == target_head:
            outcome = MergeOutcome.FAST_FORWARD
        line = MergedLine(repository, source, state, ancestry, base.commit_id, target_head)
        return _Meeting(outcome, head, base.commit_id, states, line)

    def _digest(self, merge: MergeOptions) -> str:
        return repr((self._source, self._target, merge))


@dataclass(frozen=True)
class _Meeting:
    outcome: MergeOutcome
    source_head: str
    base: str
    states: Mapping[str, State]
    line: MergedLine

    @cached_property
    def schema(self) -> AcceptedSchema:
        """The schema that both sides come together in."""
        return merged_schema(self.states)

    def conflicts(self, repository: Repository, accepted: Dropped) -> list[MergeConflict]:
        """What speaks against that schema."""
        return dropped_and_changed(repository, self.states, self.schema, accepted)

    @property
    def facts(self) -> dict[str, Any]:
        return {"outcome": str(self.outcome), "base": self.base}


def _state_at(repository: Repository, ancestry: Ancestry, commit: Commit) -> State:
    return state_at(repository, ancestry.holders[commit.commit_id], commit.commit_id)


def state_at(repository: Repository, branch: Branch, commit_id: str) -> State:
    """The state that a commit in a branch's history made."""
    snapshot = repository.snapshot_at_commit(branch, commit_id)
    return State(
        snapshot, cached_schema(repository.manifest(branch).current(), snapshot.schema_hash)
    )


def _type_keys(state: State, name: str) -> list[str]:
    """A type named by its key, or by a name that a node type, an edge type or both have."""
    keys = [item.key for item in state.schema.types() if name in (item.key, item.name)]
    return keys or [state.schema.type(name).key]  # raises: there is no such type
