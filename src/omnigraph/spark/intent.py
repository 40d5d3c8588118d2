"""The intent of a bulk write: says that files which nothing refers to are somebody's work.

Executors write below the tables' own directories long before a commit names their files. The intent
is written first and renewed for as long as the work goes on, so that a cleanup knows to leave such
files alone; it lies in the directory of everything else that the work leaves on its way, and goes
with it.
"""

from __future__ import annotations

import logging
from typing import Final

from omnigraph.errors import OmnigraphError
from omnigraph.storage.failpoints import hit
from omnigraph.storage.objects.store import ObjectStore
from omnigraph.storage.paths import STAGING_PREFIX
from omnigraph.transaction.heartbeat import Renewal

log = logging.getLogger("omnigraph.spark")

STAGING: Final = STAGING_PREFIX


class Intent:
    """One bulk write in the making."""

    def __init__(self, objects: ObjectStore, operation_id: str) -> None:
        self._objects = objects
        self._operation_id = operation_id
        about = {"operation_id": operation_id}
        self._renewal = Renewal(objects, f"{self.prefix}/intent.json", about)

    @property
    def prefix(self) -> str:
        return f"{STAGING}/{self._operation_id}"

    def declare(self) -> None:
        """Say so durably, and keep saying it in the background."""
        hit("stage.before_intent")
        self._renewal.start()
        hit("stage.after_intent")

    def release(self) -> None:
        """Say no more that the work goes on, and leave what it left."""
        self._renewal.stop()

    def clear(self) -> None:
        """Remove everything the work left on its way. A failure leaves it to a later cleanup."""
        self.release()
        try:
            self._objects.delete_prefix(self.prefix)
        except OmnigraphError as error:
            log.info("%s stays until the next cleanup: %s", self.prefix, error.message)
        hit("stage.after_clear")
