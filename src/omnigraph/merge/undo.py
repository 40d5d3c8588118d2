"""Revert, cherry-pick and restore, as merges with a chosen base (ADR 8).

They are checked and committed like any other merge.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from omnigraph.catalog.references import locate_commit, resolve
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit
from omnigraph.catalog.schemas import cached_schema
from omnigraph.errors import InvalidInput, SchemasDiffer
from omnigraph.merge.conflicts import MergeConflict, raise_conflicts
from omnigraph.merge.entity_decisions import MergeRules
from omnigraph.merge.merge import merge_rules, plan_merge, stage_plan, state_at
from omnigraph.merge.resolutions import accept_dropped
from omnigraph.merge.target import dropped_and_changed
from omnigraph.model.requests import MergeDecisions
from omnigraph.prepare.committer import Attempt, Committer, Prepared, WriteOptions
from omnigraph.prepare.preparer import Preparer
from omnigraph.snapshots.entity_delta import State


@dataclass(frozen=True, slots=True)
class UndoResult:
    """The commit (None: there was nothing to change) and the rows it wrote, by type key."""

    commit: Commit | None
    rows_written: Mapping[str, int]


class Undo:
    """Revert, cherry-pick and restore: merges into a branch with a chosen base."""

    def __init__(self, repository: Repository, committer: Committer) -> None:
        self._repository = repository
        self._committer = committer

    def revert(
        self, commit_id: str, options: WriteOptions, decisions: MergeDecisions
    ) -> UndoResult:
        """Undo the changes of a commit to its first parent; later changes stay."""
        made, before = self._commit_and_parent(commit_id, "reverted")
        return self._merge(options, decisions, made, before, f"revert of {commit_id}")

    def cherry_pick(
        self, commit_id: str, options: WriteOptions, decisions: MergeDecisions
    ) -> UndoResult:
        """Apply the changes of a commit to its first parent."""
        made, before = self._commit_and_parent(commit_id, "picked")

        accepted = accept_dropped(decisions.resolutions)

        def missing(target: State) -> list[MergeConflict]:
            """Conflicts about properties that the commit changed and the branch does not have."""
            states = {"base": before, "source": made, "target": before}
            return dropped_and_changed(self._repository, states, target.schema, accepted)

        return self._merge(options, decisions, before, made, f"cherry-pick of {commit_id}", missing)

    def restore(
        self, target: str, only: Mapping[str, Collection[str] | None], options: WriteOptions
    ) -> UndoResult:
        """Restore entities, or whole types, from an older state."""
        old = self._state(target)
        chosen = {
            old.schema.type(key).key: None if ids is None else frozenset(ids)
            for key, ids in only.items()
        }
        if not chosen:
            raise InvalidInput("no type to restore was given", remedy="Name a type.")
        rules = MergeRules(only=chosen)
        return self._merge(options, rules, None, old, f"restore from {target}")

    def _merge(
        self,
        options: WriteOptions,
        merge: MergeDecisions | MergeRules,
        base: State | None,
        source: State,
        doing: str,
        missing: Callable[[State], Sequence[MergeConflict]] = lambda _: (),
    ) -> UndoResult:
        """Merge ``source`` into the branch; without a base, it replaces the target's values.

        ``missing`` returns the conflicts about properties that the target does not have.
        """

        def prepare(attempt: Attempt) -> Prepared[None]:
            target = State(attempt.snapshot, attempt.schema)
            states = {"base": base or target, "source": source, "target": target}
            rules = merge if isinstance(merge, MergeRules) else merge_rules(merge, target)
            preparer = Preparer(self._repository, attempt.snapshot, attempt.schema)
            _require_comparable(states, rules)
            plan = plan_merge(preparer, self._repository, states, rules)
            conflicts = [*missing(target), *plan.conflicts]
            resolvable = isinstance(merge, MergeDecisions)
            raise_conflicts(conflicts, doing, level=rules.level, resolvable=resolvable)
            if not plan.has_effect:
                return Prepared(None)
            staged = stage_plan(preparer, plan, attempt.snapshot, options.info)
            return Prepared(staged, rows_written=plan.rows_written)

        outcome = self._committer.run(options, prepare, digest=lambda: f"{doing} {merge!r}")
        return UndoResult(outcome.commit, outcome.rows_written)

    def _commit_and_parent(self, commit_id: str, what: str) -> tuple[State, State]:
        branch, commit = locate_commit(self._repository, commit_id)
        if commit.parent is None:
            raise InvalidInput(
                f"the first commit of a graph cannot be {what}", remedy="Name a later commit."
            )
        return (
            state_at(self._repository, branch, commit_id),
            state_at(self._repository, branch, commit.parent),
        )

    def _state(self, target: str) -> State:
        snapshot = resolve(self._repository, target)
        manifest = self._repository.manifest(snapshot.branch).current()
        return State(snapshot, cached_schema(manifest, snapshot.schema_hash))


def _require_comparable(states: Mapping[str, State], rules: MergeRules) -> None:
    """Raise for a commit that changed the schema, and for a type that was dropped since."""
    base, source, target = (states[name] for name in ("base", "source", "target"))
    if base is not target and base.schema.digest != source.schema.digest:
        raise SchemasDiffer(
            "a commit that changed the schema cannot be reverted or applied to another branch",
            remedy="Change the schema with `schema apply` instead.",
        )
    living = {item.incarnation for item in target.schema.types()}
    for key in rules.only or ():
        if source.schema.type(key).incarnation not in living:
            raise SchemasDiffer(
                f"{key} was dropped since", remedy="Restore it with `schema apply --undrop`."
            )
