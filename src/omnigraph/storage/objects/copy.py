"""Copies one object from one store to another, atomically.

Local files are copied in blocks; between stores an object is read into memory as a whole.
"""

from __future__ import annotations

import os
import shutil

from omnigraph.storage.objects.errors import storage_error
from omnigraph.storage.objects.store import ObjectStore

_PARTIAL = "#0"  # the suffix of temporary files: listings omit them


def copy_object(source: ObjectStore, target: ObjectStore, path: str) -> None:
    """Copy an object to the same path of the target; raises ``ObjectNotFound`` when it is gone."""
    if not (source.location.is_local and target.location.is_local):
        target.put(path, source.get(path))
        return
    old, new = (os.path.join(store.location.path, path) for store in (source, target))
    try:
        with open(old, "rb") as reader:
            os.makedirs(os.path.dirname(new), exist_ok=True)
            with open(new + _PARTIAL, "wb") as writer:
                shutil.copyfileobj(reader, writer, 1 << 20)
        os.replace(new + _PARTIAL, new)
    except OSError as error:
        reading = not os.path.exists(old)
        where = old if reading else new
        raise storage_error(error, action="copy", where=where, writing=not reading) from error
