"""The part of a graph handle that works on branches: create, delete, merge, tag, undo."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Unpack

from omnigraph.catalog.branches.changes import create_branch, protect_branch
from omnigraph.catalog.branches.deleted import deletion_noticed
from omnigraph.catalog.branches.registry import Branch, all_branches, is_protected
from omnigraph.catalog.branches.tag_changes import create_tag, delete_tag
from omnigraph.catalog.branches.tags import Tag, all_tags
from omnigraph.catalog.commit_text import checked_metadata
from omnigraph.catalog.rows import MAIN, Commit
from omnigraph.errors import OmnigraphError
from omnigraph.graph.writing import WriteMethods
from omnigraph.merge.engine import ChooseEngine, in_process
from omnigraph.merge.merge import Decisions, Merge, MergeOptions, MergeResult
from omnigraph.merge.undo import Undo, UndoResult, reset
from omnigraph.model.outcome import told
from omnigraph.prepare.committer import WriteOptions
from omnigraph.transaction.branch_deletion import delete_branch
from omnigraph.transaction.prepared import WriteInfo


class BranchMethods(WriteMethods):
    """Mixed into ``Graph``."""

    # -- branches ----------------------------------------------------------------------------------

    def branches(self) -> list[str]:
        """The names of all branches."""
        return list(all_branches(self._repository.main.current()))

    @told()
    def create_branch(self, name: str, from_: str = MAIN, *, actor: str | None = None) -> Branch:
        """Fork a branch at a branch, a commit, a tag or a time.

        Costs the same whatever the graph holds.
        """
        self._transaction.require_writable()
        with deletion_noticed(self._repository, from_):
            return create_branch(self._repository, name, from_, self._transaction.acting(actor))

    @told()
    def delete_branch(self, name: str, *, force: bool = False) -> None:
        """Delete a branch with its own states; commits that were merged stay in the history.

        Refused while another branch was forked from it, or a tag keeps one of its commits; and,
        unless by ``force``, while it has commits that no other branch has.
        """
        self._transaction.require_writable()
        delete_branch(self._repository, self._transaction.recovery, name, force=force)

    @told()
    def protect_branch(
        self, name: str, protected: bool = True, *, merges_only: bool = False
    ) -> None:
        """Protect a branch from being deleted and reset, or lift the protection.

        With ``merges_only`` nothing but merges may write to it.
        """
        self._transaction.require_writable()
        protect_branch(self._repository, name, protected=protected, merges_only=merges_only)

    def is_protected(self, name: str) -> bool:
        """Whether a branch may neither be deleted nor reset."""
        return is_protected(self._repository.main.current(), self._repository.branch(name))

    # -- tags --------------------------------------------------------------------------------------

    def tags(self) -> list[Tag]:
        """All tags, by name."""
        return list(all_tags(self._repository.main.current()).values())

    @told()
    def tag(
        self,
        name: str,
        target: str = MAIN,
        *,
        force: bool = False,
        actor: str | None = None,
        message: str | None = None,
    ) -> Tag:
        """Name a commit: the head of a branch, or any commit. ``force`` moves an existing tag."""
        self._transaction.require_writable()
        by = self._transaction.acting(actor)
        with deletion_noticed(self._repository, target):
            return create_tag(
                self._repository, name, target, force=force, actor=by, message=message
            )

    @told()
    def delete_tag(self, name: str) -> Tag:
        """Remove a tag."""
        self._transaction.require_writable()
        return delete_tag(self._repository, name)

    # -- merging -----------------------------------------------------------------------------------

    @told()
    def merge(
        self,
        source: str,
        target: str = MAIN,
        *,
        dry_run: bool = False,
        delete_branch: bool = False,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        idempotency_key: str | None = None,
        engine: str | None = None,
        **decisions: Unpack[Decisions],
    ) -> MergeResult:
        """Merge a branch into another, as one commit with two parents.

        Different properties of one entity merge. Where both changed a property to different
        values, one deleted what the other changed, or the result would break a rule of the schema,
        ``MergeConflicts`` lists everything at once and nothing happens. ``strategy`` decides what
        is contested for the target (``ours``) or the source (``theirs``), ``by_type`` for single
        types; ``resolutions`` decide single entities, and what they leave open stays a conflict.
        With ``level="entity"`` an entity that both changed is a conflict as a whole. ``dry_run``
        tells what would happen (``outcome`` is ``conflicts`` if there are any). With
        ``delete_branch`` the source goes away after a success. ``engine`` is where a merge is
        computed: ``local``, ``spark``, or ``auto``, by what the source has touched.
        """
        work = Merge(self._repository, source, target, self._merge_engine(engine))
        options = MergeOptions.of(decisions)
        if dry_run:
            return work.preview(self._committer(), options)
        self._transaction.require_writable()
        text = f"merge {source} into {target}" if message is None else message
        info = WriteInfo("merge", actor, text, checked_metadata(metadata))
        write = WriteOptions(target, info, expected_head, idempotency_key)
        result = work.run(self._committer(), write, options)
        if result.rows_written:
            self._tend(target, result.rows_written)
        return self._after_merge(result) if delete_branch else result

    def _merge_engine(self, engine: str | None) -> ChooseEngine:
        """The engines that a merge may run on."""
        return in_process

    def _after_merge(self, result: MergeResult) -> MergeResult:
        """Delete the source; whether that works does not change that it was merged."""
        try:
            self.delete_branch(result.source)
        except OmnigraphError as error:
            return replace(result, branch_deleted=False, branch_delete_error=error.message)
        return replace(result, branch_deleted=True)

    # -- undoing -----------------------------------------------------------------------------------

    @told()
    def revert(
        self,
        commit_id: str,
        branch: str = MAIN,
        *,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        **decisions: Unpack[Decisions],
    ) -> Commit | None:
        """Undo a commit with a new one; what later commits changed again is a conflict.

        Conflicts are decided as those of a merge: *theirs* undoes, *ours* keeps. A merge is undone
        on the side of its first parent. None when nothing is left to undo.
        """
        facts = {**checked_metadata(metadata), "reverts": commit_id}
        text = f"revert {commit_id}" if message is None else message
        info = WriteInfo("revert", actor, text, facts)
        write = WriteOptions(branch, info, expected_head)
        with deletion_noticed(self._repository, branch):
            work = self._undo().revert(commit_id, write, MergeOptions.of(decisions))
        return self._undone(branch, work)

    @told()
    def cherry_pick(
        self,
        commit_id: str,
        branch: str = MAIN,
        *,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
        **decisions: Unpack[Decisions],
    ) -> Commit | None:
        """Repeat on a branch what a commit did elsewhere. None when it is all there already."""
        facts = {**checked_metadata(metadata), "picks": commit_id}
        text = f"cherry-pick {commit_id}" if message is None else message
        info = WriteInfo("cherry_pick", actor, text, facts)
        write = WriteOptions(branch, info, expected_head)
        with deletion_noticed(self._repository, branch):
            work = self._undo().cherry_pick(commit_id, write, MergeOptions.of(decisions))
        return self._undone(branch, work)

    @told()
    def restore(
        self,
        target: str,
        only: Mapping[str, Collection[str] | None],
        branch: str = MAIN,
        *,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
    ) -> Commit | None:
        """Bring entities back to what they were: ``{"node:Person": ["ana"]}``, or ``None`` for
        all entities of a type. The result must hold together, like that of any write."""
        text = f"restore from {target}" if message is None else message
        info = WriteInfo("restore", actor, text, {**checked_metadata(metadata), "restores": target})
        write = WriteOptions(branch, info, expected_head)
        with deletion_noticed(self._repository, branch, target):
            work = self._undo().restore(target, only, write)
        return self._undone(branch, work)

    @told()
    def reset(
        self,
        target: str,
        branch: str,
        *,
        message: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expected_head: str | None = None,
    ) -> Commit | None:
        """Make a branch hold what a commit of its history held, as a new commit.

        Protected branches refuse. Costs the same however much there is to undo.
        """
        self._transaction.require_writable()
        text = f"reset to {target}" if message is None else message
        info = WriteInfo("reset", actor, text, {**checked_metadata(metadata), "resets_to": target})
        write = WriteOptions(branch, info, expected_head)
        with deletion_noticed(self._repository, branch):
            return reset(self._repository, self._transaction, target, write)

    def _undo(self) -> Undo:
        self._transaction.require_writable()
        return Undo(self._repository, self._committer())

    def _undone(self, branch: str, result: UndoResult) -> Commit | None:
        if result.rows_written:
            self._tend(branch, result.rows_written)
        return result.commit
