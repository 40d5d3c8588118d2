"""A graph's storage as a picklable value: URI and settings, opened on the executor."""

from __future__ import annotations

from dataclasses import dataclass, replace

from omnigraph.catalog.repository import Repository
from omnigraph.settings import StorageSettings
from omnigraph.storage.lance.tables import PinnedTable, TableRef, TableStore
from omnigraph.storage.locations import Location, parse_location
from omnigraph.storage.objects.obstore_store import open_objects
from omnigraph.storage.objects.store import ObjectStore


@dataclass(frozen=True, slots=True)
class GraphStorage:
    """The URI and storage settings of a graph."""

    uri: str
    storage: StorageSettings

    @classmethod
    def of(cls, repository: Repository) -> GraphStorage:
        """The storage of a repository. Tasks never sync files: the commit does, on the driver."""
        storage = replace(repository.settings.storage, durability="process")
        return cls(repository.location.uri, storage)

    @property
    def location(self) -> Location:
        return parse_location(self.uri)

    def objects(self) -> ObjectStore:
        return open_objects(self.location, self.storage)

    def tables(self) -> TableStore:
        return TableStore(self.location, self.objects(), self.storage)

    def table(self, ref: TableRef) -> PinnedTable:
        return self.tables().open(ref)
