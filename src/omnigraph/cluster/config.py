"""``cluster.yaml`` as values. Unknown and duplicate keys are errors, like every other mistake.

Owns the format (version 1 of the original). It reads that one file; the files it names are read by
:mod:`omnigraph.cluster.desired`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from omnigraph.cluster.diagnostics import Findings
from omnigraph.policy.strict_yaml import DocumentReader, YamlError, join, load_document

CONFIG_FILE: Final = "cluster.yaml"
_TOP: Final = ("version", "metadata", "storage", "state", "providers", "graphs", "policies")
_FUTURE: Final = ("apply", "env_file", "pipelines", "embeddings", "ui", "aliases", "bindings")
_GRAPH: Final = ("schema", "queries", "embedding_provider", "external_blobs")
_PROVIDERS: Final = ("openai-compatible", "openai", "gemini", "mock")
_GRAPH_ID: Final = re.compile(r"[a-zA-Z0-9-]{1,64}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_ENVIRONMENT: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
RESERVED_IDS: Final = frozenset({"policies", "healthz", "openapi", "graphs"})


@dataclass(frozen=True, slots=True)
class GraphConfig:
    """One declared graph. ``queries`` is a directory, a list of files, or files by name."""

    id: str
    schema: str
    queries: str | tuple[str, ...] | Mapping[str, str] | None
    embedding_provider: str | None
    blob_policy: tuple[Mapping[str, str], ...]


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """One declared policy: its file, and the scopes it is bound to (``cluster``, ``graph.ID``)."""

    name: str
    file: str
    applies_to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """A parsed ``cluster.yaml``."""

    document: Mapping[str, Any]
    name: str | None
    storage: str | None
    locks: bool
    providers: Mapping[str, Mapping[str, Any]]
    graphs: tuple[GraphConfig, ...]
    policies: tuple[PolicyConfig, ...]


def read_config(folder: Path, findings: Findings) -> ClusterConfig | None:
    """The configuration of a folder; None where it cannot be read at all."""
    if not folder.is_dir():
        findings.add("config_dir_not_found", str(folder), f"there is no folder {folder}")
        return None
    try:
        document = load_document((folder / CONFIG_FILE).read_bytes())
    except OSError as error:
        findings.add("cluster_config_read_error", CONFIG_FILE, f"cannot read it: {error.strerror}")
        return None
    except YamlError as error:
        code = "duplicate_yaml_key" if error.is_duplicate else "invalid_cluster_yaml"
        findings.add(code, CONFIG_FILE, str(error))
        return None
    if not isinstance(document, dict):
        findings.add("invalid_cluster_yaml", CONFIG_FILE, "must be a mapping")
        return None
    if document.get("version") != 1 or isinstance(document.get("version"), bool):
        message = f"must be 1, not {document.get('version')!r}"
        findings.add("unsupported_cluster_config_version", "version", message)
        return None
    return _Parser(document, findings).config()


class _Parser:
    """Takes one document apart."""

    def __init__(self, document: dict[str, Any], findings: Findings) -> None:
        self._document = document
        self._findings = findings
        self._reader = DocumentReader()

    def config(self) -> ClusterConfig:
        document, reader = self._document, self._reader
        for key in _FUTURE:
            if key in document:
                self._findings.add("future_phase_field", key, f"{key!r} is reserved")
        reader.mapping("", document, (*_TOP, *_FUTURE))
        made = ClusterConfig(
            document,
            self._name(),
            self._storage(),
            self._locks(),
            self._providers(),
            tuple(self._graph(id, body) for id, body in self._section("graphs").items()),
            tuple(self._policy(name, body) for name, body in self._section("policies").items()),
        )
        self._check_references(made)
        for problem in reader.problems:
            code = problem.code or "invalid_cluster_yaml"
            self._findings.add(code, problem.path, problem.message)
        return made

    def _section(self, name: str) -> dict[str, Any]:
        given = self._document.get(name)
        return {} if given is None else self._reader.mapping(name, given)

    def _name(self) -> str | None:
        if "metadata" not in self._document:
            return None
        metadata = self._reader.mapping("metadata", self._document["metadata"], ("name",))
        name = metadata.get("name")
        if "name" in metadata and not (isinstance(name, str) and name.strip()):
            self._findings.add("empty_metadata_name", "metadata.name", "must not be empty")
            return None
        return name

    def _storage(self) -> str | None:
        given = self._document.get("storage")
        if given is None:
            return None
        if not isinstance(given, str) or not given.startswith(("s3://", "file://")):
            message = f"must be an s3:// or file:// URI, not {given!r}"
            self._findings.add("invalid_storage_root", "storage", message)
            return None
        return given

    def _locks(self) -> bool:
        if self._document.get("state") is None:
            return True
        state = self._reader.mapping("state", self._document["state"], ("backend", "lock"))
        backend = state.get("backend")
        if backend not in (None, "cluster"):
            message = f"must be 'cluster', not {backend!r}"
            self._findings.add("unsupported_state_backend", "state.backend", message)
        lock = state.get("lock", True)
        if not isinstance(lock, bool):
            self._reader.problem("state.lock", f"must be true or false, not {lock!r}")
            return True
        if not lock:
            self._findings.add(
                "state_lock_disabled", "state.lock", "two commands at once can fail each other"
            )
        return lock

    def _providers(self) -> dict[str, Mapping[str, Any]]:
        if self._document.get("providers") is None:
            return {}
        groups = self._reader.mapping("providers", self._document["providers"], ("embedding",))
        found: dict[str, Mapping[str, Any]] = {}
        section = groups.get("embedding")
        items = {} if section is None else self._reader.mapping("providers.embedding", section)
        for name, body in items.items():
            path = f"providers.embedding.{name}"
            keys = ("kind", "provider", "base_url", "model", "api_key")
            given = self._reader.mapping(path, body, keys)
            self._identify(path, name, _NAME)
            kind = given.get("kind", given.get("provider"))
            if kind not in _PROVIDERS:
                message = f"the kind must be one of {', '.join(_PROVIDERS)}, not {kind!r}"
                self._findings.add("invalid_embedding_provider", path, message)
            key = given.get("api_key")
            if key is None and kind != "mock":
                message = "needs api_key: ${VARIABLE}"
                self._findings.add("embedding_api_key_required", path, message)
            elif key is not None and not (isinstance(key, str) and _ENVIRONMENT.fullmatch(key)):
                message = "a key must not stand here; write ${VARIABLE}"
                self._findings.add("embedding_api_key_inline", f"{path}.api_key", message)
            profile = {k: v for k, v in given.items() if k not in ("kind", "provider")}
            found[name] = {"kind": kind, **profile}
        return found

    def _graph(self, id: str, body: Any) -> GraphConfig:
        path = f"graphs.{id}"
        self._identify(path, id, _GRAPH_ID)
        if id in RESERVED_IDS:
            self._findings.add("invalid_resource_id", path, f"{id!r} is a path of the server")
        given = body if isinstance(body, dict) else {}
        if "streaming" in given:
            self._findings.add(
                "removed_streaming_declaration", f"{path}.streaming", "is no longer supported"
            )
            given = {key: value for key, value in given.items() if key != "streaming"}
        given = self._reader.mapping(path, given if isinstance(body, dict) else body, _GRAPH)
        schema = self._reader.text(f"{path}.schema", given.get("schema"))
        provider = given.get("embedding_provider")
        if provider is not None:
            provider = self._reader.text(f"{path}.embedding_provider", provider)
        return GraphConfig(
            id,
            schema or "",
            self._queries(f"{path}.queries", given.get("queries")),
            provider.removeprefix("provider.embedding.") if provider else None,
            self._blobs(f"{path}.external_blobs", given.get("external_blobs")),
        )

    def _queries(self, path: str, given: Any) -> str | tuple[str, ...] | dict[str, str] | None:
        if given is None or isinstance(given, str):
            return given
        if isinstance(given, list):
            return self._reader.texts(path, given)
        files = {}
        for name, body in self._reader.mapping(path, given).items():
            entry = self._reader.mapping(join(path, name), body, ("file",))
            file = self._reader.text(f"{path}.{name}.file", entry.get("file"))
            files[name] = file or ""
        return files

    def _blobs(self, path: str, given: Any) -> tuple[dict[str, str], ...]:
        if given is None:
            return ()
        allow = self._reader.mapping(path, given, ("allow",)).get("allow")
        if not isinstance(allow, list) or not allow:
            self._findings.add(
                "external_blob_ingress_default_deny",
                path,
                "nothing is allowed: every base is denied",
            )
            return ()
        found: list[dict[str, str]] = []
        for index, item in enumerate(allow):
            at = f"{path}.allow[{index}]"
            entry = self._reader.mapping(at, item, ("base", "scope"))
            base, scope = entry.get("base"), entry.get("scope")
            if scope not in ("server_safe", "embedded_only"):
                message = f"the scope must be server_safe or embedded_only, not {scope!r}"
                self._findings.add("invalid_external_blob_policy", at, message)
                continue
            problem = _base_problem(base, scope, [one["base"] for one in found])
            if problem is not None:
                self._findings.add("invalid_external_blob_base", f"{at}.base", problem)
                continue
            found.append({"base": str(base), "scope": scope})
        return tuple(found)

    def _policy(self, name: str, body: Any) -> PolicyConfig:
        path = f"policies.{name}"
        self._identify(path, name, _NAME)
        given = self._reader.mapping(path, body, ("file", "applies_to"))
        file = self._reader.text(f"{path}.file", given.get("file"))
        if not given.get("applies_to"):
            self._findings.add("policy_missing_applies_to", path, "applies to nothing")
            return PolicyConfig(name, file or "", ())
        scopes = []
        for scope in self._reader.texts(f"{path}.applies_to", given["applies_to"]):
            if scope == "cluster" or scope.startswith("graph."):
                scopes.append(scope)
            elif re.match(r"(schema|query|policy|provider)\.", scope):
                message = f"{scope!r} is no graph; name a graph, or 'cluster'"
                self._findings.add("wrong_kind_reference", f"{path}.applies_to", message)
            else:
                scopes.append(f"graph.{scope}")
        return PolicyConfig(name, file or "", tuple(dict.fromkeys(scopes)))

    def _check_references(self, made: ClusterConfig) -> None:
        graphs = {f"graph.{graph.id}" for graph in made.graphs}
        bound: dict[str, str] = {}
        for policy in made.policies:
            path = f"policies.{policy.name}.applies_to"
            for scope in policy.applies_to:
                if scope != "cluster" and scope not in graphs:
                    message = f"there is no {scope!r} in graphs"
                    self._findings.add("dangling_graph_reference", path, message)
                if scope in bound:
                    message = f"{scope!r} is bound to the policy {bound[scope]!r} already"
                    self._findings.add("duplicate_policy_binding", path, message)
                bound[scope] = policy.name
            if "cluster" in policy.applies_to and len(policy.applies_to) > 1:
                message = "a policy is bound to graphs or to the cluster, not to both"
                self._findings.add("policy_mixed_binding_kinds", path, message)
        for graph in made.graphs:
            name = graph.embedding_provider
            if name is not None and name not in made.providers:
                path = f"graphs.{graph.id}.embedding_provider"
                message = f"there is no provider {name!r}"
                self._findings.add("dangling_embedding_provider_reference", path, message)

    def _identify(self, path: str, id: str, rule: re.Pattern[str]) -> None:
        if rule.fullmatch(id) is None:
            message = f"{id!r} cannot be a name here; it must match {rule.pattern}"
            self._findings.add("invalid_resource_id", path, message)


def _base_problem(base: Any, scope: str, others: list[str]) -> str | None:
    """What is wrong with a base of external blobs."""
    if not isinstance(base, str) or "://" not in base:
        return f"must be a URI, not {base!r}"
    if "@" in base.partition("://")[2].partition("/")[0]:
        return "must not contain credentials"
    if base.startswith("file://") and scope == "server_safe":
        return "a server reads no files: the scope must be embedded_only"
    for other in others:
        if base.rstrip("/").startswith(other.rstrip("/")) or other.startswith(base.rstrip("/")):
            return f"overlaps with {other}"
    return None
