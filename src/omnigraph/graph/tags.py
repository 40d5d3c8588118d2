"""``graph.tags``: names for commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.graph import deprecated
from omnigraph.model import arguments

if TYPE_CHECKING:
    from omnigraph.catalog.branches.tags import Tag
    from omnigraph.graph.backend import TagBackend


class Tags:
    """The tags of a graph, as ``graph.tags``. A tag keeps its commit readable."""

    def __init__(self, backend: TagBackend) -> None:
        self._backend = backend

    def create(
        self,
        name: str,
        target: str = "main",
        *,
        force: bool = False,
        actor: str | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
    ) -> Tag:
        """Name a commit.

        Args:
            name: The tag.
            target: A branch (its head), a commit, a tag or a time.
            force: Move a tag that exists.
            actor: The author; otherwise the one the graph was opened with.
            message: Kept with the tag.
            idempotency_key: A repeated call with this key returns the result of the first.

        Returns:
            The tag.

        Raises:
            TagExists: There is a tag of this name, and ``force`` is not set.
            NotFound: ``target`` names nothing.

        Example:
            >>> graph.tags.create("v2", "dev").name
            'v2'
        """
        return self._backend.create(
            arguments.text("name", name),
            arguments.text("target", target),
            force=arguments.truth("force", force),
            actor=arguments.optional_text("actor", actor),
            message=arguments.optional_text("message", message),
            idempotency_key=arguments.optional_text("idempotency_key", idempotency_key),
        )

    def delete(self, name: str, *, idempotency_key: str | None = None) -> Tag:
        """Delete a tag.

        Args:
            name: The tag.
            idempotency_key: A repeated call with this key returns the result of the first.

        Returns:
            The tag as it was.

        Raises:
            TagNotFound: There is no tag of this name.

        Example:
            >>> graph.tags.delete("v1").name
            'v1'
        """
        return self._backend.delete(
            arguments.text("name", name),
            arguments.optional_text("idempotency_key", idempotency_key),
        )

    def __call__(self) -> list[Tag]:
        deprecated.warn_of_call("tags", "list")
        return self.list()

    def list(self) -> list[Tag]:
        """All tags, by name.

        Returns:
            The tags.

        Example:
            >>> [tag.name for tag in graph.tags.list()]
            ['v1']
        """
        return self._backend.all()
