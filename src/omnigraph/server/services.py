"""What the requests of one worker process share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from omnigraph import Limits, ServerSettings, Settings
from omnigraph.model.deadline import Deadline
from omnigraph.server.admission import Admission
from omnigraph.server.auth.access import Policy
from omnigraph.server.auth.authenticate import Authenticator
from omnigraph.server.metrics import Metrics
from omnigraph.server.pool import EnginePool
from omnigraph.server.registry import GraphRegistry

STANDARD_LIMITS: Final = Limits()


@dataclass(slots=True)
class Services:
    """The parts of a running server. Used on the event loop; the pools have the threads."""

    all_settings: Settings
    registry: GraphRegistry
    policy: Policy
    authenticator: Authenticator
    metrics: Metrics
    reads: EnginePool
    writes: EnginePool
    admission: Admission
    running: set[Deadline] = field(default_factory=set)
    """Reads that are running, which a stop cancels when their time is over."""
    stopping: bool = False

    @classmethod
    def of(
        cls,
        settings: Settings,
        registry: GraphRegistry,
        policy: Policy,
        authenticator: Authenticator,
    ) -> Services:
        server = settings.server
        return cls(
            settings,
            registry,
            policy,
            authenticator,
            Metrics(),
            EnginePool("reads", server.read_threads, server.queue_max),
            EnginePool("writes", server.write_threads, server.queue_max),
            Admission(server.inflight_max, server.inflight_bytes_max),
        )

    @property
    def settings(self) -> ServerSettings:
        return self.all_settings.server

    def begin_stop(self) -> None:
        """From now on the server is not ready."""
        self.stopping = True

    def cancel_reads(self) -> None:
        """Stop every read that is still running."""
        for deadline in self.running:
            deadline.cancelled.set()

    def close(self) -> None:
        """End the threads and close the graphs."""
        self.cancel_reads()
        self.reads.stop()
        self.writes.stop()

    def limits(self, timeout_ms: int) -> Limits:
        """The limits of one query."""
        memory = self.settings.memory_bytes_max
        return Limits(
            timeout_ms,
            STANDARD_LIMITS.memory_bytes if memory is None else memory,
            STANDARD_LIMITS.rows_max,
        )
