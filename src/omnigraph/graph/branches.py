"""``graph.branches``: create, list, protect and delete branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.graph import deprecated
from omnigraph.model import arguments

if TYPE_CHECKING:
    from omnigraph.catalog.branches.registry import Branch
    from omnigraph.graph.backend import BranchBackend


class Branches:
    """The branches of a graph, as ``graph.branches``."""

    def __init__(self, backend: BranchBackend) -> None:
        self._backend = backend

    def create(
        self,
        name: str,
        from_: str = "main",
        *,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> Branch:
        """Fork a branch. Nothing is copied: the cost does not depend on the size of the graph.

        Args:
            name: The new branch.
            from_: What to fork: a branch, a commit, a tag or a time.
            actor: The author; otherwise the one the graph was opened with.
            idempotency_key: A repeated call with this key returns the result of the first.

        Returns:
            The new branch.

        Raises:
            BranchExists: There is a branch of this name.
            NotFound: ``from_`` names nothing.

        Example:
            >>> graph.branches.create("review", "v1").name
            'review'
        """
        return self._backend.create(
            arguments.text("name", name),
            arguments.text("from_", from_),
            arguments.optional_text("actor", actor),
            arguments.optional_text("idempotency_key", idempotency_key),
        )

    def delete(self, name: str, *, force: bool = False, idempotency_key: str | None = None) -> None:
        """Delete a branch with its own states. Commits that were merged stay in the history.

        Args:
            name: The branch.
            force: Delete it even if it has commits that no other branch has.
            idempotency_key: A repeated call with this key does nothing.

        Raises:
            BranchInUse: Another branch was forked from it, or a tag keeps one of its commits.
            BranchNotFound: There is no branch of this name.
            BranchUnmerged: It has commits that no other branch has, and ``force`` is not set.
            BranchProtected: It is protected.

        Example:
            >>> graph.branches.delete("dev", force=True)
        """
        self._backend.delete(
            arguments.text("name", name),
            force=arguments.truth("force", force),
            idempotency_key=arguments.optional_text("idempotency_key", idempotency_key),
        )

    def protect(self, name: str, protected: bool = True, *, merges_only: bool = False) -> None:
        """Protect a branch from being deleted and reset, or lift the protection.

        Args:
            name: The branch.
            protected: False lifts the protection.
            merges_only: Let nothing but merges write to it.

        Raises:
            BranchNotFound: There is no branch of this name.

        Example:
            >>> graph.branches.protect("dev")
            >>> graph.branches.is_protected("dev")
            True
        """
        self._backend.protect(
            arguments.text("name", name),
            protected=arguments.truth("protected", protected),
            merges_only=arguments.truth("merges_only", merges_only),
        )

    def is_protected(self, name: str) -> bool:
        """Whether a branch is protected from being deleted and reset.

        Args:
            name: The branch.

        Returns:
            Whether it is protected. ``main`` always is protected from deletion.

        Raises:
            BranchNotFound: There is no branch of this name.

        Example:
            >>> graph.branches.is_protected("dev")
            False
        """
        return self._backend.is_protected(arguments.text("name", name))

    def __call__(self) -> list[str]:
        deprecated.warn_of_call("branches", "list")
        return self.list()

    def list(self) -> list[str]:
        """The names of all branches.

        Returns:
            The names.

        Example:
            >>> sorted(graph.branches.list())
            ['dev', 'main']
        """
        return self._backend.names()
