"""Every mistake in a configuration has a code of its own, and nothing is applied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cluster.folders import CONFIG, TEAM, cluster_folder

from omnigraph.cluster.commands import Cluster
from omnigraph.settings import Settings

Change = Callable[[Path], object]


def config(old: str, new: str) -> Change:
    """The configuration with one text replaced."""
    assert old in CONFIG
    return lambda folder: (folder / "cluster.yaml").write_text(CONFIG.replace(old, new))


def added(text: str) -> Change:
    return lambda folder: (folder / "cluster.yaml").write_text(CONFIG + text)


def file(name: str, text: str) -> Change:
    return lambda folder: (folder / name).write_text(text)


def removed(name: str) -> Change:
    return lambda folder: (folder / name).unlink()


PLACES = "places: {schema: places.pg"
PROVIDER = "providers: {embedding: {e: {%s}}}\n"
BLOBS = PLACES + ", external_blobs: {allow: [{base: '%s', scope: %s}]}"
MISTAKES: list[tuple[str, Change]] = [
    ("cluster_config_read_error", removed("cluster.yaml")),
    ("invalid_cluster_yaml", file("cluster.yaml", "[]")),
    ("invalid_cluster_yaml", added("mine: 1\n")),
    ("duplicate_yaml_key", added("version: 1\n")),
    ("unsupported_cluster_config_version", config("version: 1", "version: 2")),
    ("empty_metadata_name", config("{name: brain}", "{name: ' '}")),
    ("unsupported_state_backend", config("backend: cluster", "backend: etcd")),
    ("invalid_storage_root", added("storage: ftp://x\n")),
    ("future_phase_field", added("pipelines: {}\n")),
    ("removed_streaming_declaration", config(PLACES, PLACES + ", streaming: {}")),
    ("invalid_resource_id", config("  places:", "  my_places:")),
    ("invalid_resource_id", config("  places:", "  healthz:")),
    ("wrong_kind_reference", config("[people, places]", "[schema.people]")),
    ("dangling_graph_reference", config("[people, places]", "[nobody]")),
    ("dangling_embedding_provider_reference", config(PLACES, PLACES + ", embedding_provider: x")),
    ("invalid_embedding_provider", added(PROVIDER % "kind: magic, api_key: '${K}'")),
    ("embedding_api_key_inline", added(PROVIDER % "kind: openai, api_key: secret")),
    ("embedding_api_key_required", added(PROVIDER % "kind: openai")),
    ("invalid_external_blob_base", config(PLACES, BLOBS % ("file:///x", "server_safe"))),
    ("invalid_external_blob_policy", config(PLACES, BLOBS % ("s3://b", "everybody"))),
    ("schema_file_missing", removed("places.pg")),
    ("schema_parse_error", file("places.pg", "node {")),
    ("schema_catalog_error", file("places.pg", "edge E: A -> B\n")),
    ("query_file_missing", config("queries/", "[queries/none.gq]")),
    ("query_dir_unreadable", config("queries/", "none/")),
    ("query_parse_error", file("queries/adults.gq", "query (")),
    ("query_key_mismatch", config("queries/", "{other: {file: queries/adults.gq}}")),
    ("query_typecheck_error", file("people.pg", "node Person { name: String @key }")),
    ("duplicate_query_name", config("queries/", "[queries/adults.gq, queries/adults.gq]")),
    ("policy_file_missing", removed("policies/team.policy.yaml")),
    ("policy_invalid", file("policies/team.policy.yaml", TEAM + "mine: 1\n")),
    ("policy_missing_applies_to", config(", applies_to: [cluster]", "")),
    ("policy_mixed_binding_kinds", config("[cluster]", "[cluster, people]")),
    ("duplicate_policy_binding", config("[people, places]", "[people, places, cluster]")),
]
WARNED: list[tuple[str, Change]] = [
    ("state_lock_disabled", config("lock: true", "lock: false")),
    ("query_dir_empty", removed("queries/adults.gq")),
    (
        "external_blob_ingress_default_deny",
        config(PLACES, PLACES + ", external_blobs: {allow: []}"),
    ),
]


def codes(folder: Path) -> tuple[bool, list[str]]:
    body = Cluster(folder, Settings()).validate()
    return body["ok"], [one["code"] for one in body["diagnostics"]]


@pytest.mark.parametrize(("code", "change"), MISTAKES)
def test_a_mistake_has_its_code(tmp_path: Path, code: str, change: Change) -> None:
    change(cluster_folder(tmp_path))
    ok, found = codes(tmp_path)
    assert not ok
    assert code in found


@pytest.mark.parametrize(("code", "change"), WARNED)
def test_a_warning_does_not_fail(tmp_path: Path, code: str, change: Change) -> None:
    change(cluster_folder(tmp_path))
    assert codes(tmp_path) == (True, [code])


def test_a_folder_that_does_not_exist_has_its_code(tmp_path: Path) -> None:
    assert codes(tmp_path / "none") == (False, ["config_dir_not_found"])


def test_queries_of_a_wrong_schema_are_not_checked(tmp_path: Path) -> None:
    (cluster_folder(tmp_path) / "people.pg").write_text("node {")
    assert "query_typecheck_skipped" in codes(tmp_path)[1]
