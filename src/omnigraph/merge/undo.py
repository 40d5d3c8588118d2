"""Undoing and repeating: revert, cherry-pick, restore and reset.

The first three are merges with a base of their own choosing (ADR 8), checked and committed like any
other. A reset publishes forks of the versions a commit had: its cost does not depend on how much
there is to undo.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.branches.registry import is_protected
from omnigraph.catalog.history.commits import find_commit
from omnigraph.catalog.history.horizon import kept_version
from omnigraph.catalog.publication import Publication, Requirements, TableChange
from omnigraph.catalog.references import locate_commit, resolve
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit, Row, TablePin
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.errors import BranchProtected, InvalidInput, PreconditionFailed, SchemasDiffer
from omnigraph.merge.conflicts import MergeConflict, raise_conflicts
from omnigraph.merge.contested import MergeRules
from omnigraph.merge.merge import MergeOptions, MergePlan, plan_merge, stage_plan, state_at
from omnigraph.merge.target import dropped_and_changed
from omnigraph.model.ids import new_ulid
from omnigraph.prepare.committer import Attempt, Committer, WriteOptions, cached_schema
from omnigraph.prepare.preparer import Preparer
from omnigraph.snapshots.entity_delta import State
from omnigraph.storage.failpoints import hit
from omnigraph.transaction.prepared import PreparedWrite
from omnigraph.transaction.transaction import WriteTransaction


@dataclass(frozen=True, slots=True)
class UndoResult:
    """The commit that was made (None: there was nothing to do) and the rows it wrote."""

    commit: Commit | None
    rows_written: Mapping[str, int]


class Undo:
    """Merges with a chosen base into one branch."""

    def __init__(self, repository: Repository, committer: Committer) -> None:
        self._repository = repository
        self._committer = committer

    def revert(self, commit_id: str, options: WriteOptions, merge: MergeOptions) -> UndoResult:
        """Undo what a commit did to its first parent, keeping what came after."""
        made, before = self._commit_and_parent(commit_id, "reverted")
        return self._merge(options, merge, made, before, f"revert of {commit_id}")

    def cherry_pick(self, commit_id: str, options: WriteOptions, merge: MergeOptions) -> UndoResult:
        """Do again, here, what a commit did to its first parent."""
        made, before = self._commit_and_parent(commit_id, "picked")

        def missing(target: State) -> list[MergeConflict]:
            """Properties that the commit changed and the branch does not have."""
            states = {"base": before, "source": made, "target": before}
            return dropped_and_changed(self._repository, states, target.schema, merge.dropped())

        return self._merge(options, merge, before, made, f"cherry-pick of {commit_id}", missing)

    def restore(
        self, target: str, only: Mapping[str, Collection[str] | None], options: WriteOptions
    ) -> UndoResult:
        """Bring entities, or whole types, back to what they were at an older state."""
        old = self._state(target)
        chosen = {
            old.schema.type(key).key: None if ids is None else frozenset(ids)
            for key, ids in only.items()
        }
        if not chosen:
            raise InvalidInput("nothing to restore was named", remedy="Name a type.")
        rules = MergeRules(only=chosen)
        return self._merge(options, rules, None, old, f"restore from {target}")

    # -- inside ------------------------------------------------------------------------------------

    def _merge(
        self,
        options: WriteOptions,
        merge: MergeOptions | MergeRules,
        base: State | None,
        source: State,
        doing: str,
        missing: Callable[[State], Sequence[MergeConflict]] = lambda _: (),
    ) -> UndoResult:
        """Merge ``source`` into the branch; without a base, it simply replaces what is there.

        ``missing`` says what the target has no place for.
        """
        plans: list[MergePlan] = []

        def prepare(attempt: Attempt) -> tuple[PreparedWrite | None, Mapping[str, Any]]:
            target = State(attempt.snapshot, attempt.schema)
            states = {"base": base or target, "source": source, "target": target}
            rules = merge.rules(target) if isinstance(merge, MergeOptions) else merge
            preparer = Preparer(self._repository, attempt.snapshot, attempt.schema)
            _require_comparable(states, rules)
            plan = plan_merge(preparer, self._repository, states, rules)
            conflicts = [*missing(target), *plan.conflicts]
            resolvable = isinstance(merge, MergeOptions)
            raise_conflicts(conflicts, doing, level=rules.level, resolvable=resolvable)
            plans.append(plan)
            if not plan.has_effect:
                return None, {}
            return stage_plan(preparer, plan, attempt.snapshot, options.info), {}

        digest = f"{doing} {merge!r}"
        done = self._committer.run(options, prepare, retry=lambda: True, digest=lambda: digest)
        written = plans[-1].rows_written if plans and done.commit is not None else {}
        return UndoResult(done.commit, written)

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
    """A change of the schema is not undone or repeated entity by entity; nor is a dropped type."""
    base, source, target = (states[name] for name in ("base", "source", "target"))
    if base is not target and base.schema.digest != source.schema.digest:
        raise SchemasDiffer(
            "this commit changed the schema", remedy="Apply the schema that you want instead."
        )
    living = {item.incarnation for item in target.schema.types()}
    for key in rules.only or ():
        if source.schema.type(key).incarnation not in living:
            raise SchemasDiffer(
                f"{key} was dropped since", remedy="Bring it back with `schema apply --undrop`."
            )


def reset(
    repository: Repository, transaction: WriteTransaction, target: str, options: WriteOptions
) -> Commit | None:
    """Make a branch hold exactly what an older state held, as a new commit.

    Nothing of the history in between is lost. Protected branches refuse.
    """
    branch = repository.branch(options.branch)
    transaction.enter(branch)
    if is_protected(repository.main.current(), branch):
        raise BranchProtected(
            f"branch {branch.name!r} is protected and cannot be reset",
            details={"branch": branch.name},
        )
    old = resolve(repository, target)
    now = repository.snapshot(branch)
    if options.expected_head is not None and now.commit_id != options.expected_head:
        raise PreconditionFailed(options.expected_head, now.commit_id, branch.name)
    if find_commit(repository.manifest(branch).current(), old.commit_id) is None:
        raise InvalidInput(
            f"{target!r} is not in the history of branch {branch.name!r}",
            remedy="Merge or restore what another branch holds.",
        )
    state = repository.manifest(branch).current()
    same_schema = old.schema_hash == now.schema_hash
    changes: tuple[TableChange, ...] = ()
    put: tuple[Row, ...] = ()
    if same_schema:
        changes = tuple(
            _forked(repository, pin, branch.incarnation)
            for key, pin in old.pins.items()
            if now.pins[key].ref != pin.ref
        )
    else:
        put = tuple(_pins_brought_back(repository, old, branch.incarnation))
    if not changes and not put:
        return None
    operation = new_ulid()
    commit = Commit(
        commit_id=operation,
        branch=branch.name,
        kind=options.info.kind,
        created_at_us=repository.clock.now_us(),
        actor=transaction.acting(options.info.actor),
        message=options.info.message,
        operation_id=operation,
        metadata=dict(options.info.metadata),
    )
    requirements = Requirements(
        tables={change.key: now.pins[change.key].ref for change in changes},
        schema_hash=now.schema_hash,
        kept=old.manifest_version if kept_version(state, old.manifest_version) else None,
        head=now.commit_id,
    )
    hit("reset.before_publish")
    published = repository.manifest(branch).publish_told(
        Publication(
            operation,
            branch.name,
            requirements,
            changes,
            commit,
            put,
            tuple(f"table:{key}" for key in now.pins if key not in old.pins),
            None if same_schema else old.schema_hash,
        )
    )
    return published.commit


def _pins_brought_back(repository: Repository, old: SnapshotPins, owner: str) -> Iterator[Row]:
    """The types as another schema had them, on copies of their own: all that the branch holds."""
    for pin in old.pins.values():
        back = pin.moved(
            repository.tables.fork(pin.ref, new_ulid()),
            rows=pin.rows,
            transaction=pin.transaction,
            deletes=True,
            inserts=True,
            owner=owner,
        )
        yield from (back.to_row(), back.to_version_row())


def _forked(repository: Repository, pin: TablePin, owner: str) -> TableChange:
    """A copy of an old version whose newest version it is: later writes build on it."""
    ref = repository.tables.fork(pin.ref, new_ulid())
    return TableChange(
        pin.key, ref, pin.rows, pin.transaction, deletes=True, inserts=True, owner=owner
    )
