"""Reading verbs under a policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.enforcement.guard import AccessGuard
from omnigraph.engine.tables.access import type_use
from omnigraph.errors import NotAvailable
from omnigraph.lang.query import ReadPlan, compile_query
from omnigraph.model.requests import ChangeFilter, StateRef
from omnigraph.policy.access import AccessScope, PolicyAction

if TYPE_CHECKING:
    from omnigraph.catalog.snapshot import SnapshotPins
    from omnigraph.engine.engine import ReadOptions
    from omnigraph.engine.plan.explain import Explanation
    from omnigraph.engine.prepared_query import PreparedQuery
    from omnigraph.engine.result import Result
    from omnigraph.lang.query.parameters import Parameters
    from omnigraph.lang.schema import AcceptedSchema
    from omnigraph.local.reads import LocalReads
    from omnigraph.snapshots.blobs import Blob
    from omnigraph.snapshots.diff import Diff


class GovernedReads:
    """``ReadBackend`` for one actor."""

    def __init__(self, inner: LocalReads, guard: AccessGuard) -> None:
        self._inner = inner
        self._guard = guard

    def query(
        self,
        text: str,
        name: str | None,
        params: Parameters | None,
        state: StateRef,
        options: ReadOptions | None,
    ) -> Result:
        fixed = self._for_query(text, name, state)
        return self._inner.query(text, name, params, fixed, options)

    def prepare(
        self, text: str, name: str | None, state: StateRef, options: ReadOptions | None
    ) -> PreparedQuery:
        """Rules about branches are checked now; rules about types would need a check per run."""
        fixed = self._guard.state(PolicyAction.READ, state)
        if self._guard.evaluator.bundle.has_type_rules:
            raise NotAvailable(
                "a query cannot be prepared under a policy with rules about types",
                remedy="Use `query`: it checks the types of the state that it reads.",
            )
        return self._inner.prepare(text, name, fixed, options)

    def explain(
        self, text: str, name: str | None, state: StateRef, options: ReadOptions | None
    ) -> Explanation:
        return self._inner.explain(text, name, self._for_query(text, name, state), options)

    def snapshot(self, state: StateRef) -> SnapshotPins:
        return self._inner.snapshot(self._guard.state(PolicyAction.READ, state))

    def schema(self, state: StateRef) -> AcceptedSchema:
        return self._inner.schema(self._guard.state(PolicyAction.READ, state))

    def entity(self, type_key: str, id: str, state: StateRef) -> dict[str, Any]:
        fixed = self._guard.state(PolicyAction.READ, state, [type_key])
        return self._inner.entity(type_key, id, fixed)

    def blob(self, entity: str, type_name: str, id: str, property: str, state: StateRef) -> Blob:
        fixed = self._guard.state(PolicyAction.READ, state, [type_name])
        return self._inner.blob(entity, type_name, id, property, fixed)

    def export(self, state: StateRef, types: Sequence[str] | None) -> Iterator[bytes]:
        fixed = self._guard.state(PolicyAction.EXPORT, state, types)
        return self._inner.export(fixed, types)

    def diff(self, old: str, new: str, filter: ChangeFilter) -> Diff:
        types = filter.types or None
        fixed = [
            self._guard.state(PolicyAction.READ, StateRef(at=ref), types) for ref in (old, new)
        ]
        return self._inner.diff(str(fixed[0].at), str(fixed[1].at), filter)

    def _for_query(self, text: str, name: str | None, state: StateRef) -> StateRef:
        """Require the state and every type that a query reads.

        Where rules name types, the query runs on the commit whose schema it was checked with.
        """
        guard = self._guard
        fixed = guard.state(PolicyAction.READ, state)
        if not guard.evaluator.bundle.has_type_rules:
            return fixed
        found = self._inner.snapshot(fixed)
        pinned = StateRef(at=found.commit_id)
        schema = self._inner.schema(pinned)
        compiled = compile_query(text, schema, name)
        compiled.require_read()
        assert isinstance(compiled.plan, ReadPlan)
        for key in sorted(type_use(compiled.plan, schema)):
            scope = AccessScope(found.branch.name, type=key.partition(":")[2])
            guard.require(PolicyAction.READ, scope)
        return pinned
