"""The intent of a bulk write: a heartbeat that protects its staged files from cleanup.

Executors write data files long before a commit refers to them. The intent is written first and
renewed until the work ends; cleanup keeps unreferenced files while an intent is alive. It is stored
in the staging directory of the operation and removed with it.
"""

from __future__ import annotations

import logging
from typing import Final

from omnigraph.catalog.repository import Repository
from omnigraph.errors import OmnigraphError
from omnigraph.storage.failpoints import hit
from omnigraph.storage.paths import STAGING_PREFIX
from omnigraph.transaction.heartbeat import Heartbeat

log = logging.getLogger("omnigraph.spark")

STAGING: Final = STAGING_PREFIX


class Intent:
    """The intent of one running bulk write."""

    def __init__(self, repository: Repository, operation_id: str) -> None:
        self._objects = repository.objects
        self._operation_id = operation_id
        about = {"operation_id": operation_id}
        self._renewal = Heartbeat(
            self._objects,
            f"{self.prefix}/intent.json",
            about,
            repository.settings.limits.lease_s,
        )

    @property
    def prefix(self) -> str:
        return f"{STAGING}/{self._operation_id}"

    def declare(self) -> None:
        """Write the intent durably and renew it in the background."""
        hit("stage.before_intent")
        self._renewal.start()
        hit("stage.after_intent")

    def release(self) -> None:
        """Stop the heartbeat; the staging directory stays."""
        self._renewal.stop()

    def clear(self) -> None:
        """Stop the heartbeat and remove the staging directory; on failure cleanup removes it."""
        self.release()
        try:
            self._objects.delete_prefix(self.prefix)
        except OmnigraphError as error:
            log.info("%s is left to the next cleanup: %s", self.prefix, error.message)
        hit("stage.after_clear")
