"""The merge operations: merge, revert, cherry-pick, restore and reset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import Commit
from omnigraph.errors import OmnigraphError
from omnigraph.local.branches import LocalBranches
from omnigraph.local.context import GraphContext, write_options
from omnigraph.merge.engine import ChooseEngine
from omnigraph.merge.merge import Merge, MergeResult
from omnigraph.merge.reset import reset
from omnigraph.merge.undo import Undo, UndoResult
from omnigraph.model.requests import CommitOptions, MergeDecisions, MergeRequest, RestoreRequest
from omnigraph.spark.engine_choice import merge_engine


class LocalMerges:
    """Merge, revert, cherry-pick, restore and reset."""

    def __init__(
        self,
        context: GraphContext,
        branches: LocalBranches,
        choose_engine: Callable[[Repository, str | None], ChooseEngine] = merge_engine,
    ) -> None:
        self._context = context
        self._choose_engine = choose_engine
        self._branches = branches

    def merge(self, request: MergeRequest, commit: CommitOptions) -> MergeResult:
        context, source, target = self._context, request.source, request.target
        choose = self._choose_engine(context.repository, request.engine)
        work = Merge(context.repository, source, target, choose)
        if request.dry_run:
            return work.preview(context.committer(), request.decisions)
        with context.writing():
            write = write_options("merge", target, commit, message=f"merge {source} into {target}")
            result = work.run(context.committer(), write, request.decisions)
            context.run_upkeep(target, result.rows_written)
            return self._delete_source(result) if request.delete_branch else result

    def revert(
        self, commit_id: str, branch: str, decisions: MergeDecisions, commit: CommitOptions
    ) -> Commit | None:
        with self._context.writing(branch):
            write = write_options(
                "revert",
                branch,
                commit,
                message=f"revert {commit_id}",
                facts={"reverts": commit_id},
            )
            return self._with_upkeep(branch, self._undo().revert(commit_id, write, decisions))

    def cherry_pick(
        self, commit_id: str, branch: str, decisions: MergeDecisions, commit: CommitOptions
    ) -> Commit | None:
        with self._context.writing(branch):
            write = write_options(
                "cherry_pick",
                branch,
                commit,
                message=f"cherry-pick {commit_id}",
                facts={"picks": commit_id},
            )
            work = self._undo().cherry_pick(commit_id, write, decisions)
            return self._with_upkeep(branch, work)

    def restore(self, request: RestoreRequest, commit: CommitOptions) -> Commit | None:
        target, branch = request.target, request.branch
        with self._context.writing(branch, target):
            write = write_options(
                "restore",
                branch,
                commit,
                message=f"restore from {target}",
                facts={"restores": target},
            )
            return self._with_upkeep(branch, self._undo().restore(target, request.only, write))

    def reset(self, target: str, branch: str, commit: CommitOptions) -> Commit | None:
        with self._context.writing(branch):
            write = write_options(
                "reset", branch, commit, message=f"reset to {target}", facts={"resets_to": target}
            )
            return reset(self._context.repository, self._context.committer(), target, write)

    def _undo(self) -> Undo:
        return Undo(self._context.repository, self._context.committer())

    def _with_upkeep(self, branch: str, result: UndoResult) -> Commit | None:
        self._context.run_upkeep(branch, result.rows_written)
        return result.commit

    def _delete_source(self, result: MergeResult) -> MergeResult:
        """Delete the merged branch; a failure does not affect the merge."""
        try:
            self._branches.delete(result.source, force=False, idempotency_key=None)
        except OmnigraphError as error:
            return replace(result, branch_deleted=False, branch_delete_error=error.message)
        return replace(result, branch_deleted=True)
