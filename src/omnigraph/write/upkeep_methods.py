"""The maintaining half of a graph handle: what keeps a graph small and quick, as methods.

None of them adds a commit or changes an answer.
"""

from __future__ import annotations

from omnigraph.commit.transaction import WriteTransaction
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.rows import MAIN
from omnigraph.write.indexes import IndexReport, bring_up_to_date, drop_indexes, list_indexes
from omnigraph.write.optimize import Optimized, optimize


class UpkeepMethods:
    """Mixed into ``Graph``."""

    _repository: Repository
    _transaction: WriteTransaction

    def indexes(self, branch: str = MAIN) -> list[IndexReport]:
        """Every index that is declared or stored: how much it covers, its parts and its size."""
        return list_indexes(self._repository, self._repository.branch(branch))

    def build_indexes(self, branch: str = MAIN) -> list[IndexReport]:
        """Build the indexes that are missing or behind. Adds no commit and changes no answer."""
        self._transaction.require_writable()
        found = self._repository.branch(branch)
        return bring_up_to_date(self._repository, self._transaction, found)

    def drop_indexes(
        self, type_key: str, property: str | None = None, branch: str = MAIN
    ) -> list[IndexReport]:
        """Remove the stored indexes of a type (such as ``node:Person``) or of one property.

        The next build makes those anew that the schema declares.
        """
        self._transaction.require_writable()
        found = self._repository.branch(branch)
        return drop_indexes(self._repository, self._transaction, found, type_key, property)

    def optimize(self, branch: str = MAIN) -> list[Optimized]:
        """Compact small files and bring the indexes up to date, for every type of a branch."""
        self._transaction.require_writable()
        found = self._repository.branch(branch)
        return optimize(self._repository, self._transaction, found)
