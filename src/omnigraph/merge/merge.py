"""Merges a branch into another: merge base, three-way merge, checks, and one commit.

A merge is an ordinary write: it is prepared on the head of the target, states its read set, and is
prepared again after an optimistic conflict. Nothing is visible before the publish, and all merge
conflicts are reported at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, cast, get_args

from omnigraph.catalog.branches.concurrent_deletion import deletion_checked
from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.history.ancestry import Ancestry, load_ancestry
from omnigraph.catalog.history.attribution import object_path
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit
from omnigraph.catalog.schemas import cached_schema
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.constraints import Image, Report
from omnigraph.errors import InvalidInput, NotFound
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.merge.authorship import MergedHistory
from omnigraph.merge.conflicts import MergeConflict, in_order, raise_conflicts
from omnigraph.merge.engine import ChooseEngine, Composition, MergeEngine, local_engine
from omnigraph.merge.entity_decisions import MergeRules
from omnigraph.merge.merged_rows import preview_changes
from omnigraph.merge.resolutions import Dropped, accept_dropped, accept_resolutions
from omnigraph.merge.target import dropped_and_changed, merged_schema, migrate_target
from omnigraph.merge.three_way import MergeLevel, MergeStrategy
from omnigraph.merge.type_merges import ThreeWayMerge, TypeMerge
from omnigraph.merge.violation_conflicts import ViolationConflicts
from omnigraph.model.requests import MergeDecisions
from omnigraph.prepare.committer import Attempt, Committer, Prepared, WriteOptions
from omnigraph.prepare.preparer import Preparer
from omnigraph.snapshots.diff import EntityChange
from omnigraph.snapshots.entity_delta import State, TypeDelta
from omnigraph.transaction.prepared import PreparedWrite, WriteInfo


class MergeOutcome(StrEnum):
    """The outcome of a merge."""

    ALREADY_UP_TO_DATE = "already_up_to_date"
    FAST_FORWARD = "fast_forward"
    MERGED = "merged"
    CONFLICTS = "conflicts"
    """Of a dry run only: the merge itself raises ``MergeConflicts``."""


def merge_rules(decisions: MergeDecisions, state: State) -> MergeRules:
    """The decisions as rules of a merge into a state; raises on values that its schema lacks."""
    by_type = decisions.by_type or {}
    for strategy in (decisions.strategy, *by_type.values()):
        if strategy not in (None, *get_args(MergeStrategy)):
            raise InvalidInput(
                f"{strategy!r} is not a strategy",
                remedy=f"Use {' or '.join(get_args(MergeStrategy))}.",
            )
    if decisions.level not in get_args(MergeLevel):
        raise InvalidInput(
            f"{decisions.level!r} is not a merge level",
            remedy=f"Use {' or '.join(get_args(MergeLevel))}.",
        )
    return MergeRules(
        cast(MergeLevel, decisions.level),
        cast("MergeStrategy | None", decisions.strategy),
        {
            key: cast(MergeStrategy, strategy)
            for name, strategy in by_type.items()
            for key in _type_keys(state, name)
        },
        accept_resolutions(state.schema, decisions.resolutions),
    )


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The result of a merge; of a dry run, what it would change and its conflicts."""

    source: str
    target: str
    outcome: MergeOutcome
    commit: Commit | None = None
    base_commit_id: str | None = None
    dry_run: bool = False
    conflicts: tuple[MergeConflict, ...] = ()
    changes: tuple[EntityChange, ...] = ()
    checked: bool = True
    """False for a dry run that would change the target's schema: only a merge itself checks the
    constraints then."""
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None
    rows_written: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    """Rows by type key, for upkeep."""

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
    """A merge that was computed and checked, but not staged."""

    types: tuple[TypeMerge, ...]
    visited: tuple[str, ...]
    made: Composition
    conflicts: tuple[MergeConflict, ...]
    engine: MergeEngine
    theirs: tuple[TypeDelta, ...] = ()
    """The differences between base and source."""

    @property
    def rows_written(self) -> dict[str, int]:
        return {
            key: len(known.written) + len(known.removed) for key, known in self.made.known.items()
        }

    @property
    def has_effect(self) -> bool:
        """Whether the merge changes any value in the target."""
        return any(True for merge in self.types for _ in preview_changes(merge))

    def changes(self) -> tuple[EntityChange, ...]:
        """The entities that it changes in the target."""
        return tuple(change for merge in self.types for change in preview_changes(merge))


def plan_merge(
    preparer: Preparer,
    repository: Repository,
    states: Mapping[str, State],
    rules: MergeRules,
    *,
    checked: bool = True,
    choose: ChooseEngine = local_engine,
    also: Sequence[Callable[[Image], Report]] = (),
) -> MergePlan:
    """Compute a merge of three states and check its result.

    All possible outcomes of entities in conflict are checked together, so that all conflicts are
    found at once. ``checked`` is False for the preview of a target without the merged schema.
    ``also`` are further checks, of constraints that are new to the target's own entities.
    """
    merging = ThreeWayMerge(repository, states, rules)
    engine = choose(merging.touched)
    types = tuple(merging.types(engine.decide))
    made = Composition({}, {}, Report())
    conflicts = merging.conflicts
    if checked:
        made = engine.compose(preparer, types)
        reports = [made.report, *(check(made.image) for check in also)]
        if any(reports):
            violated = ViolationConflicts(repository, states, made.image, preparer.stored)
            conflicts = [*conflicts, *violated.conflicts(reports)]
    visited, found = tuple(merging.visited), tuple(in_order(conflicts))
    return MergePlan(types, visited, made, found, engine, merging.theirs)


def stage_plan(
    preparer: Preparer, plan: MergePlan, target: SnapshotPins, info: WriteInfo
) -> PreparedWrite:
    """Stage a merge without conflicts; its read set has every visited type."""
    prepared = plan.engine.stage(preparer, plan.made, info)
    return replace(prepared, reads={key: target.pin(key).ref for key in plan.visited})


class Merge:
    """One merge of a branch into another."""

    def __init__(
        self,
        repository: Repository,
        source: str,
        target: str,
        choose: ChooseEngine = local_engine,
    ) -> None:
        if source == target:
            raise InvalidInput(
                f"{source} cannot be merged into itself", remedy="Name two different branches."
            )
        self._repository = repository
        self._source = source
        self._target = target
        self._choose = choose

    def run(
        self, committer: Committer, options: WriteOptions, decisions: MergeDecisions
    ) -> MergeResult:
        """Merge in one commit; raises ``MergeConflicts`` if there are unresolved conflicts."""
        with ExitStack() as engines, deletion_checked(self._repository, self._source):

            def choose(touched: int) -> MergeEngine:
                engine = self._choose(touched)
                engines.callback(engine.close)
                return engine

            outcome = committer.run(
                options,
                lambda attempt: self._prepare(attempt, options.info, decisions, choose),
                digest=lambda: self._digest(decisions),
            )
        return MergeResult(
            self._source,
            self._target,
            MergeOutcome(outcome.result["outcome"]),
            outcome.commit,
            outcome.result["base"],
            rows_written=outcome.rows_written,
        )

    def _prepare(
        self, attempt: Attempt, info: WriteInfo, decisions: MergeDecisions, choose: ChooseEngine
    ) -> Prepared[None]:
        inputs = self._inputs(attempt)
        if inputs.outcome is MergeOutcome.ALREADY_UP_TO_DATE:
            return Prepared(None, inputs.result)
        migrated = migrate_target(self._repository, inputs.states["target"], inputs.schema)
        states = {**inputs.states, "target": migrated.state}
        made = migrated.state.snapshot
        preparer = Preparer(self._repository, made, migrated.state.schema)
        rules = merge_rules(decisions, migrated.state)
        plan = plan_merge(
            preparer,
            self._repository,
            states,
            rules,
            choose=local_engine if migrated.is_migrated else choose,
            also=[migrated.check],
        )
        dropped = inputs.conflicts(self._repository, accept_dropped(decisions.resolutions))
        doing = f"{self._source} cannot be merged into {self._target}"
        raise_conflicts([*dropped, *plan.conflicts], doing, level=rules.level)
        info = replace(info, merged_parent=inputs.source_head)
        prepared = migrated.finish(stage_plan(preparer, plan, made, info))
        rows = inputs.history.rows(prepared.operation_id, plan.types, plan.theirs)
        attribution = object_path(prepared.operation_id)
        return Prepared(
            replace(prepared, put=(*prepared.put, *rows)),
            inputs.result,
            plan.rows_written,
            discard=lambda: self._repository.objects.delete(attribution),
        )

    def preview(self, committer: Committer, decisions: MergeDecisions) -> MergeResult:
        """What a merge would change now. Writes nothing."""
        with deletion_checked(self._repository, self._source, self._target):
            return self._preview(committer, decisions)

    def _preview(self, committer: Committer, decisions: MergeDecisions) -> MergeResult:
        attempt = committer.attempt(self._target)
        inputs = self._inputs(attempt)
        result = MergeResult(
            self._source,
            self._target,
            inputs.outcome,
            base_commit_id=inputs.result["base"],
            dry_run=True,
        )
        if inputs.outcome is MergeOutcome.ALREADY_UP_TO_DATE:
            return result
        dropped = inputs.conflicts(self._repository, accept_dropped(decisions.resolutions))
        preparer = Preparer(self._repository, attempt.snapshot, attempt.schema)
        target = inputs.states["target"]
        checked = inputs.schema.digest == target.schema.digest
        plan = plan_merge(
            preparer,
            self._repository,
            inputs.states,
            merge_rules(decisions, target),
            checked=checked,
        )
        conflicts = (*dropped, *plan.conflicts)
        outcome = MergeOutcome.CONFLICTS if conflicts else inputs.outcome
        return replace(
            result,
            outcome=outcome,
            conflicts=conflicts,
            changes=plan.changes(),
            checked=checked,
        )

    def _inputs(self, attempt: Attempt) -> _MergeInputs:
        """The merge base, and the states of the three sides."""
        repository = self._repository
        source = repository.branch(self._source)
        state = repository.manifest(source).current()
        head, target_head = state.head.commit_id, attempt.state.head.commit_id
        ancestry = load_ancestry(repository, [source, attempt.branch])
        base = ancestry.base(head, target_head)
        if base is None:
            raise NotFound(
                f"{self._source} and {self._target} have no commit in common",
                remedy="Merge branches with a common history.",
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
        history = MergedHistory(repository, source, state, ancestry, base.commit_id, target_head)
        return _MergeInputs(outcome, head, base.commit_id, states, history)

    def _digest(self, decisions: MergeDecisions) -> str:
        return repr((self._source, self._target, decisions))


@dataclass(frozen=True)
class _MergeInputs:
    """The merge base, the states of the three sides, and the kind of merge."""

    outcome: MergeOutcome
    source_head: str
    base: str
    states: Mapping[str, State]
    history: MergedHistory

    @cached_property
    def schema(self) -> AcceptedSchema:
        """The merged schema; raises where both sides changed it differently."""
        return merged_schema(self.states)

    def conflicts(self, repository: Repository, accepted: Dropped) -> list[MergeConflict]:
        """Conflicts between the merged schema and changes of entities."""
        return dropped_and_changed(repository, self.states, self.schema, accepted)

    @property
    def result(self) -> dict[str, Any]:
        return {"outcome": str(self.outcome), "base": self.base}


def _state_at(repository: Repository, ancestry: Ancestry, commit: Commit) -> State:
    return state_at(repository, ancestry.holders[commit.commit_id], commit.commit_id)


def state_at(repository: Repository, branch: Branch, commit_id: str) -> State:
    """The state of a commit in the history of a branch."""
    snapshot = repository.snapshot_at_commit(branch, commit_id)
    return State(
        snapshot, cached_schema(repository.manifest(branch).current(), snapshot.schema_hash)
    )


def _type_keys(state: State, name: str) -> list[str]:
    """The keys of the types with this name or key; a node and an edge type may share a name."""
    keys = [item.key for item in state.schema.types() if name in (item.key, item.name)]
    return keys or [state.schema.type(name).key]  # raises: there is no such type
