"""The graphs of a cluster: look at them, create them, change their schemas, delete them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from omnigraph.cluster.desired import sha256
from omnigraph.cluster.ledger import ClusterStore, graph_path
from omnigraph.cluster.records import now
from omnigraph.errors import GraphNotFound, OmnigraphError
from omnigraph.graph.connect import init, open
from omnigraph.lang.schema import SchemaPlan
from omnigraph.settings import Settings
from omnigraph.storage.failpoints import hit


@dataclass(frozen=True, slots=True)
class ClusterGraphs:
    """The graphs below one cluster's root."""

    store: ClusterStore
    settings: Settings

    def observe(self, id: str, desired: str | None) -> dict[str, Any]:
        """What a graph is like now; ``desired`` is the digest of its declared schema."""
        uri = self.store.graph_uri(id)
        body: dict[str, Any] = {
            "kind": "graph",
            "address": f"graph.{id}",
            "graph_uri": uri,
            "observed_at": now(),
            "exists": False,
            "graph_manifest_version": None,
            "schema_digest": None,
            "desired_schema_digest": desired,
            "schema_matches_desired": None,
            "error": None,
        }
        try:
            graph = open(uri, read_only=True, settings=self.settings)
            digest = sha256(graph.schema().source.encode())
            body |= {
                "exists": True,
                "graph_manifest_version": graph.snapshot().manifest_version,
                "schema_digest": digest,
                "schema_matches_desired": digest == desired,
            }
        except GraphNotFound:
            pass
        except OmnigraphError as error:
            body |= {"exists": None, "error": error.message}
        return body

    def create(self, id: str, schema: str, actor: str | None) -> None:
        hit("cluster.before_create")
        init(self.store.graph_uri(id), schema, actor=actor, settings=self.settings)
        hit("cluster.after_create")

    def plan(self, id: str, schema: str, name: str) -> SchemaPlan:
        graph = open(self.store.graph_uri(id), read_only=True, settings=self.settings)
        return graph.plan_schema(schema, name=name)

    def apply_schema(self, id: str, schema: str, name: str, actor: str | None) -> None:
        settings = replace(self.settings, actor=actor)
        graph = open(self.store.graph_uri(id), settings=settings)
        hit("cluster.before_schema")
        graph.apply_schema(schema, name=name)
        hit("cluster.after_schema")

    def delete(self, id: str) -> None:
        """Remove every object of a graph; idempotent."""
        hit("cluster.before_delete")
        self.store.objects.delete_prefix(graph_path(id))
        hit("cluster.after_delete")
