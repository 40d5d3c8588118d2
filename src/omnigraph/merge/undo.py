"""Revert, cherry-pick, restore and reset.

The first three are merges with a chosen base (ADR 8), checked and committed like any other. A reset
publishes forks of the versions that a commit had: its cost does not depend on the size of the
change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from omnigraph.catalog.branches.registry import is_protected
from omnigraph.catalog.history.commits import find_commit
from omnigraph.catalog.history.horizon import kept_version
from omnigraph.catalog.publication import Publication, Requirements, TableChange
from omnigraph.catalog.references import locate_commit, resolve
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.request_keys import RequestKey
from omnigraph.catalog.rows import Commit, Row, TablePin
from omnigraph.catalog.schemas import cached_schema
from omnigraph.catalog.snapshot import SnapshotPins
from omnigraph.errors import BranchProtected, InvalidInput, PreconditionFailed, SchemasDiffer
from omnigraph.merge.conflicts import MergeConflict, raise_conflicts
from omnigraph.merge.entity_decisions import MergeRules
from omnigraph.merge.merge import MergeOptions, plan_merge, stage_plan, state_at
from omnigraph.merge.target import dropped_and_changed
from omnigraph.model.ids import new_ulid
from omnigraph.prepare.committer import Attempt, Committer, Prepared, WriteOptions
from omnigraph.prepare.preparer import Preparer
from omnigraph.snapshots.entity_delta import State
from omnigraph.storage.failpoints import hit
from omnigraph.transaction.transaction import WriteTransaction


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

    def revert(self, commit_id: str, options: WriteOptions, merge: MergeOptions) -> UndoResult:
        """Undo the changes of a commit to its first parent; later changes stay."""
        made, before = self._commit_and_parent(commit_id, "reverted")
        return self._merge(options, merge, made, before, f"revert of {commit_id}")

    def cherry_pick(self, commit_id: str, options: WriteOptions, merge: MergeOptions) -> UndoResult:
        """Apply the changes of a commit to its first parent."""
        made, before = self._commit_and_parent(commit_id, "picked")

        def missing(target: State) -> list[MergeConflict]:
            """Conflicts about properties that the commit changed and the branch does not have."""
            states = {"base": before, "source": made, "target": before}
            return dropped_and_changed(self._repository, states, target.schema, merge.dropped())

        return self._merge(options, merge, before, made, f"cherry-pick of {commit_id}", missing)

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
        merge: MergeOptions | MergeRules,
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
            rules = merge.rules(target) if isinstance(merge, MergeOptions) else merge
            preparer = Preparer(self._repository, attempt.snapshot, attempt.schema)
            _require_comparable(states, rules)
            plan = plan_merge(preparer, self._repository, states, rules)
            conflicts = [*missing(target), *plan.conflicts]
            resolvable = isinstance(merge, MergeOptions)
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
        raise SchemasDiffer("this commit changed the schema", remedy="Use `schema apply` instead.")
    living = {item.incarnation for item in target.schema.types()}
    for key in rules.only or ():
        if source.schema.type(key).incarnation not in living:
            raise SchemasDiffer(
                f"{key} was dropped since", remedy="Restore it with `schema apply --undrop`."
            )


def reset(
    repository: Repository, transaction: WriteTransaction, target: str, options: WriteOptions
) -> Commit | None:
    """Set a branch to an older state of its history, as a new commit.

    The history in between stays. Raises for a protected branch.
    """
    branch = repository.branch(options.branch)
    transaction.enter(branch)
    given = options.idempotency_key
    key = None if given is None else RequestKey(given, f"reset to {target}")
    state = repository.manifest(branch).current()
    known = None if key is None else key.find(branch, state)
    if known is not None:
        return find_commit(state, known.metadata["commit_id"])
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
            remedy="Merge the other branch, or restore from it.",
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
        put = tuple(_restored_pins(repository, old, branch.incarnation))
    if not changes and not put:
        return None
    operation = new_ulid()
    commit = Commit(
        commit_id=operation,
        branch=branch.name,
        kind=options.info.kind,
        created_at_us=repository.clock.now_us(),
        actor=transaction.actor_of(options.info.actor),
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
    remembered = None if key is None else key.rows(branch, state, operation, {})
    hit("reset.before_publish")
    published = repository.manifest(branch).publish_and_report(
        Publication(
            operation,
            branch.name,
            requirements,
            changes,
            commit,
            put if remembered is None else (*put, remembered.put),
            (
                *(f"table:{name}" for name in now.pins if name not in old.pins),
                *(() if remembered is None else remembered.drop),
            ),
            None if same_schema else old.schema_hash,
        )
    )
    return published.commit


def _restored_pins(repository: Repository, old: SnapshotPins, owner: str) -> Iterator[Row]:
    """Pin rows of all types of a state with another schema, on forks that the branch owns."""
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
    """A fork of an old version, on which later writes build."""
    ref = repository.tables.fork(pin.ref, new_ulid())
    return TableChange(
        pin.key, ref, pin.rows, pin.transaction, deletes=True, inserts=True, owner=owner
    )
