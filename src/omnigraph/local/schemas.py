"""Schema changes: plan and apply."""

from __future__ import annotations

from omnigraph.evolution.apply import Evolution, SchemaResult, plan_change
from omnigraph.evolution.stage import APPLY_KIND
from omnigraph.lang.schema import SchemaPlan
from omnigraph.local.context import GraphContext, write_options
from omnigraph.model.requests import CommitOptions, SchemaRequest
from omnigraph.spark.maintenance import column_filler


class LocalSchemas:
    """Plan a change of the schema, and apply it."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context

    def plan(self, request: SchemaRequest) -> SchemaPlan:
        return plan_change(self._context.committer().attempt(request.branch), request).plan

    def apply(self, request: SchemaRequest, commit: CommitOptions) -> SchemaResult:
        context = self._context
        with context.writing():
            options = write_options(APPLY_KIND, request.branch, commit)
            fill = column_filler(context.repository, request.engine)
            evolution = Evolution(context.repository, request, fill)
            try:
                return evolution.run(context.committer(), options)
            finally:
                if request.allow_data_loss:
                    context.reader.drop_caches()
