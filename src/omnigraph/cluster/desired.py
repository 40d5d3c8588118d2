"""The desired state: every declared resource with its digest, parsed and type-checked.

Owns what a configuration folder means. It touches no cluster storage and needs no secrets.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnigraph.cluster.config import ClusterConfig, GraphConfig, PolicyConfig, read_config
from omnigraph.cluster.diagnostics import Findings
from omnigraph.errors import InvalidInput, LanguageError
from omnigraph.lang.query import check_query, parse_queries
from omnigraph.lang.schema import AcceptedSchema, accept_schema, parse_schema
from omnigraph.lang.syntax.diagnostics import SourceError
from omnigraph.model.ids import new_ulid
from omnigraph.policy.bundle import parse_bundle
from omnigraph.policy.decision import PolicyEvaluator


@dataclass(frozen=True, slots=True)
class DeclaredResource:
    """One declared thing: its address, kind and digest, and what is stored with it."""

    address: str
    kind: str
    digest: str
    path: str | None = None
    data: bytes = b""
    applies_to: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        body = {"address": self.address, "kind": self.kind, "digest": self.digest}
        return body if self.path is None else {**body, "path": self.path}


@dataclass(frozen=True, slots=True)
class DesiredState:
    """Everything a folder declares."""

    config: ClusterConfig
    digest: str
    resources: Mapping[str, DeclaredResource]
    dependencies: tuple[tuple[str, str], ...]
    """From a resource to one that must exist first."""

    def digests(self) -> dict[str, str]:
        return {address: one.digest for address, one in sorted(self.resources.items())}


def read_desired(folder: Path, findings: Findings) -> DesiredState | None:
    """The desired state of a folder; None where anything in it is wrong."""
    config = read_config(folder, findings)
    if config is None:
        return None
    collector = _Collector(folder, config, findings)
    for graph in config.graphs:
        collector.graph(graph)
    for policy in config.policies:
        collector.policy(policy)
    if not findings.ok:
        return None
    resources = collector.resources
    text = _json(config.document)
    lines = "".join(f"{a}\0{one.digest}\0" for a, one in sorted(resources.items()))
    digest = sha256(f"cluster-config\0{text}\0{lines}".encode())
    return DesiredState(config, digest, resources, tuple(sorted(collector.dependencies)))


class _Collector:
    """Reads and checks the files that a configuration names."""

    def __init__(self, folder: Path, config: ClusterConfig, findings: Findings) -> None:
        self._folder = folder
        self._findings = findings
        self.resources: dict[str, DeclaredResource] = {}
        self.dependencies: set[tuple[str, str]] = set()
        for name, profile in config.providers.items():
            digest = sha256(f"embedding-provider\0{_json(profile)}".encode())
            address = f"provider.embedding.{name}"
            one = DeclaredResource(address, "provider", digest, metadata=dict(profile))
            self.resources[address] = one

    def graph(self, graph: GraphConfig) -> None:
        address = f"schema.{graph.id}"
        data = self._read(graph.schema, "schema_file_missing", f"graphs.{graph.id}.schema")
        schema = None if data is None else self._schema(graph, data)
        if data is not None:
            self.resources[address] = DeclaredResource(
                address, "schema", sha256(data), graph.schema, data
            )
        queries = self._queries(graph, schema)
        body = f"graph\0{graph.id}\0schema\0{sha256(data or b'')}\0"
        body += "".join(f"query\0{name}\0{digest}\0" for name, digest in sorted(queries.items()))
        metadata: dict[str, Any] = {}
        owner = f"graph.{graph.id}"
        if graph.embedding_provider is not None:
            reference = f"provider.embedding.{graph.embedding_provider}"
            if reference in self.resources:
                profile = self.resources[reference]
                body += f"embedding_provider\0{reference}\0{profile.digest}\0"
                metadata["embedding_provider"] = reference
                metadata["embedding_profile"] = dict(profile.metadata)
                self.dependencies.add((owner, reference))
        if graph.blob_policy:
            allowed = [dict(one) for one in graph.blob_policy]
            body += f"external_blob_policy\0{_json(allowed)}\0"
            metadata["external_blob_policy"] = allowed
        self.dependencies.add((address, owner))
        self.resources[owner] = DeclaredResource(
            owner, "graph", sha256(body.encode()), metadata=metadata
        )

    def policy(self, policy: PolicyConfig) -> None:
        path = f"policies.{policy.name}"
        data = self._read(policy.file, "policy_file_missing", f"{path}.file")
        if data is None:
            return
        try:
            bundle = parse_bundle(data, policy.file)
            PolicyEvaluator(bundle)
        except InvalidInput as error:
            self._findings.add("policy_invalid", path, error.message)
            return
        if policy.applies_to and (bundle.kind == "server") != ("cluster" in policy.applies_to):
            wanted = "graph_list" if "cluster" in policy.applies_to else "actions on graphs"
            message = f"what it applies to needs rules about {wanted}"
            self._findings.add("policy_mixed_binding_kinds", path, message)
        address = f"policy.{policy.name}"
        self.resources[address] = DeclaredResource(
            address, "policy", sha256(data), policy.file, data, policy.applies_to
        )
        for scope in policy.applies_to:
            if scope != "cluster":
                self.dependencies.add((address, scope))

    def _schema(self, graph: GraphConfig, data: bytes) -> AcceptedSchema | None:
        path = f"graphs.{graph.id}.schema"
        try:
            text = data.decode()
            parse_schema(text, name=graph.schema)
        except (UnicodeDecodeError, LanguageError) as error:
            self._findings.add("schema_parse_error", path, f"{graph.schema}: {error}")
            return None
        try:
            return accept_schema(text, name=graph.schema, mint=new_ulid)
        except LanguageError as error:
            self._findings.add("schema_catalog_error", path, error.message)
            return None

    def _queries(self, graph: GraphConfig, schema: AcceptedSchema | None) -> dict[str, str]:
        found: dict[str, str] = {}
        for key, file in self._query_files(graph):
            path = f"graphs.{graph.id}.queries"
            data = self._read(file, "query_file_missing", path)
            if data is None:
                continue
            try:
                parsed = parse_queries(data.decode(), name=file)
            except (UnicodeDecodeError, LanguageError) as error:
                self._findings.add("query_parse_error", path, f"{file}: {error}")
                continue
            names = [query.name.text for query in parsed.queries]
            if key is not None and key not in names:
                message = f"{file} has no query {key!r}; it has {', '.join(names)}"
                self._findings.add("query_key_mismatch", path, message)
                continue
            for query in parsed.queries:
                name = query.name.text
                if key is not None and name != key:
                    continue
                if name in found:
                    message = f"the query {name!r} stands twice"
                    self._findings.add("duplicate_query_name", path, message)
                    continue
                if schema is None:
                    message = f"{name!r} was not checked: the schema is wrong"
                    self._findings.add("query_typecheck_skipped", path, message)
                else:
                    try:
                        check_query(query, schema, parsed.source)
                    except SourceError as error:
                        self._findings.add(
                            "query_typecheck_error", path, f"{name}: {error.message}"
                        )
                found[name] = sha256(data)
                address = f"query.{graph.id}.{name}"
                self.resources[address] = DeclaredResource(
                    address, "query", found[name], file, data
                )
                self.dependencies.add((address, f"schema.{graph.id}"))
        return found

    def _query_files(self, graph: GraphConfig) -> Iterable[tuple[str | None, str]]:
        declared = graph.queries
        if declared is None:
            return []
        if isinstance(declared, Mapping):
            return list(declared.items())
        if not isinstance(declared, str):
            return [(None, file) for file in declared]
        path = f"graphs.{graph.id}.queries"
        folder = self._folder / declared
        try:
            names = sorted(one.name for one in folder.iterdir() if one.suffix == ".gq")
        except OSError as error:
            self._findings.add("query_dir_unreadable", path, f"{declared}: {error.strerror}")
            return []
        if not names:
            self._findings.add("query_dir_empty", path, f"{declared} holds no .gq file")
        return [(None, f"{declared.rstrip('/')}/{name}") for name in names]

    def _read(self, file: str, code: str, path: str) -> bytes | None:
        if not file:
            return None  # reported by the format
        try:
            return (self._folder / file).read_bytes()
        except OSError as error:
            self._findings.add(code, path, f"cannot read {file}: {error.strerror}")
            return None


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
