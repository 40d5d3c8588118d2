"""A heartbeat object, renewed in the background while an operation runs.

Cleanup removes nothing that an operation with a fresh heartbeat uses. A write in flight needs more
than a heartbeat, because another process may take the write over: see ``owner_lease``.
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
from omnigraph.transaction.ownership import this_process

log = logging.getLogger("omnigraph.leases")

RENEWALS_PER_LEASE: Final = 3


class Heartbeat:
    """One heartbeat object: its owner, and what it protects."""

    def __init__(
        self, objects: ObjectStore, path: str, about: Mapping[str, Any], lease_s: float
    ) -> None:
        self.path = path
        self._objects = objects
        self._about = about
        self._interval_s = lease_s / RENEWALS_PER_LEASE
        self._renewals = 0
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Write the object, and renew it from a background thread."""
        self._put()
        self._thread = threading.Thread(target=self._renew, name="omnigraph-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop renewing; the object stays."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _renew(self) -> None:
        while not self._stopped.wait(self._interval_s):
            self._renewals += 1
            try:
                self._put()
            except OmnigraphError as error:
                log.warning("could not renew %s: %s", self.path, error.message)

    def _put(self) -> None:
        body = {"owner": asdict(this_process()), "renewals": self._renewals, **self._about}
        self._objects.put(self.path, json.dumps(body).encode())
