"""Saying durably, again and again, that somebody is still at work: an object that is kept young.

Used where only a cleanup has to know. Who owns a write in flight is proved in another way (see
``holding``), because there somebody else may take over.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from omnigraph.errors import OmnigraphError
from omnigraph.storage.objects.store import ObjectStore
from omnigraph.transaction.ownership import lease_seconds, this_process

log = logging.getLogger("omnigraph.leases")

RENEWALS_PER_LEASE: Final = 3


class Renewal:
    """One such object: who is at work, and what it is about."""

    def __init__(self, objects: ObjectStore, path: str, about: Mapping[str, Any]) -> None:
        self.path = path
        self._objects = objects
        self._about = about
        self._renewals = 0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Write the object, and go on doing so in the background."""
        self._put()
        self._thread = threading.Thread(target=self._renew, name="omnigraph-renewal", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write it no more; the object stays."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _renew(self) -> None:
        while not self._over.wait(lease_seconds() / RENEWALS_PER_LEASE):
            self._renewals += 1
            try:
                self._put()
            except OmnigraphError as error:
                log.warning("could not renew %s: %s", self.path, error.message)

    def _put(self) -> None:
        body = {"owner": asdict(this_process()), "renewals": self._renewals, **self._about}
        self._objects.put(self.path, json.dumps(body).encode())
