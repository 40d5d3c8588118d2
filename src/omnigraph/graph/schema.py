"""The part of a graph handle that changes a schema: plan and apply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from omnigraph.catalog.commit_text import checked_metadata
from omnigraph.catalog.rows import MAIN
from omnigraph.evolution.apply import Evolution, SchemaChange, SchemaResult, plan_change
from omnigraph.evolution.stage import APPLY_KIND
from omnigraph.graph.branching import BranchMethods
from omnigraph.lang.schema import Plan
from omnigraph.model.outcome import told
from omnigraph.prepare.committer import WriteOptions
from omnigraph.storage.lance.staging.columns import Fill
from omnigraph.transaction.prepared import WriteInfo


class SchemaMethods(BranchMethods):
    """Mixed into ``Graph``."""

    def schema_plan(
        self,
        schema: str,
        *,
        branch: str = MAIN,
        allow_data_loss: bool = False,
        backfill: Mapping[str, Any] | None = None,
        compute: Mapping[str, str] | None = None,
        undrop: Iterable[str] = (),
        name: str = "<schema>",
    ) -> Plan:
        """The steps from the schema of a branch to this one. Changes nothing."""
        change = SchemaChange(
            schema, name, allow_data_loss, dict(backfill or {}), dict(compute or {}), tuple(undrop)
        )
        return plan_change(self._committer().attempt(branch), change).plan

    @told()
    def apply_schema(
        self,
        schema: str,
        *,
        branch: str = MAIN,
        allow_data_loss: bool = False,
        backfill: Mapping[str, Any] | None = None,
        compute: Mapping[str, str] | None = None,
        undrop: Iterable[str] = (),
        name: str = "<schema>",
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
        engine: str = "auto",
    ) -> SchemaResult:
        """Make this the schema of a branch, in one commit; none when it is its schema already.

        ``backfill`` gives the entities that exist already a value of a new property, such as
        ``{"Person.age": 0}``; ``compute`` one that is made of their other properties, such as
        ``{"Person.full": 'first + " " + last'}``. ``undrop`` names types and properties of the text
        that are to be the ones that were dropped under that name, with their data. What is dropped
        stays readable at older commits and can be brought back; with ``allow_data_loss`` it is
        removed for good. With engine ``spark`` the values of new and wider columns of large tables
        are written by executors; ``auto`` does so for very large ones.
        Raises ``SchemaChangeRefused`` for a step that is not possible, and one error that lists
        every stored entity that is in the way of a step.
        """
        self._transaction.require_writable()
        change = SchemaChange(
            schema, name, allow_data_loss, dict(backfill or {}), dict(compute or {}), tuple(undrop)
        )
        info = WriteInfo(APPLY_KIND, actor, message, checked_metadata(metadata))
        options = WriteOptions(branch, info, expected_head, idempotency_key)
        evolution = Evolution(self._repository, change, self._column_filler(engine))
        try:
            return evolution.run(self._committer(), options)
        finally:
            if allow_data_loss:
                self._forget_what_was_read()

    def _column_filler(self, engine: str) -> Fill:
        """What writes the values of columns; ``Graph`` knows the other engines."""
        raise NotImplementedError
