"""The intent of a bulk write: says that files which nothing refers to are somebody's work.

Executors write below the tables' own directories long before a commit names their files. The intent
is written first and renewed for as long as the work goes on, so that a cleanup knows to leave such
files alone; it lies in the directory of everything else that the work leaves on its way, and goes
with it.
"""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import asdict
from typing import Final

from omnigraph.commit.ownership import lease_seconds, this_process
from omnigraph.errors import OmnigraphError
from omnigraph.ids import Clock
from omnigraph.storage.failpoints import hit
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.paths import STAGING_PREFIX

log = logging.getLogger("omnigraph.spark")

STAGING: Final = STAGING_PREFIX
RENEWALS_PER_LEASE: Final = 3


class Intent:
    """One bulk write in the making."""

    def __init__(self, objects: ObjectStore, operation_id: str, clock: Clock) -> None:
        self._objects = objects
        self._operation_id = operation_id
        self._clock = clock
        self._renewals = 0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def prefix(self) -> str:
        return f"{STAGING}/{self._operation_id}"

    def declare(self) -> None:
        """Say so durably, and keep saying it in the background."""
        hit("stage.before_intent")
        self._put()
        hit("stage.after_intent")
        self._thread = threading.Thread(target=self._renew, name="omnigraph-intent", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Say no more that the work goes on, and leave what it left."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def clear(self) -> None:
        """Remove everything the work left on its way. A failure leaves it to a later cleanup."""
        self.release()
        try:
            self._objects.delete_prefix(self.prefix)
        except OmnigraphError as error:
            log.info("%s stays until the next cleanup: %s", self.prefix, error.message)
        hit("stage.after_clear")

    def _renew(self) -> None:
        while not self._over.wait(lease_seconds() / RENEWALS_PER_LEASE):
            self._renewals += 1
            try:
                self._put()
            except OmnigraphError as error:
                log.warning("could not renew %s: %s", self.prefix, error.message)

    def _put(self) -> None:
        body = {
            "operation_id": self._operation_id,
            "owner": asdict(this_process()),
            "renewed_at_us": self._clock.now_us(),
            "renewals": self._renewals,
        }
        self._objects.put(f"{self.prefix}/intent.json", json.dumps(body).encode())
