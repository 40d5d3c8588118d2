"""Stores at a location, with the settings of the environment unless others are given."""

from __future__ import annotations

from omnigraph.settings import Settings, StorageSettings
from omnigraph.storage.lance.tables import TableStore
from omnigraph.storage.locations import Location
from omnigraph.storage.objects import obstore_store
from omnigraph.storage.objects.store import ObjectStore


def open_objects(
    location: Location, storage: StorageSettings | None = None, *, durability: str | None = None
) -> ObjectStore:
    settings = Settings.from_environment().with_durability(durability).storage
    return obstore_store.open_objects(location, settings if storage is None else storage)


def open_tables(location: Location, objects: ObjectStore | None = None) -> TableStore:
    """The tables at a location, with nothing cached yet."""
    settings = Settings.from_environment().storage
    found = obstore_store.open_objects(location, settings) if objects is None else objects
    return TableStore(location, found, settings)
