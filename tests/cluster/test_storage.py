"""The ledger has one winner, and a cluster can be on S3."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.cluster.folders import CONFIG, cluster_folder

import omnigraph
from omnigraph.cluster.commands import Cluster
from omnigraph.cluster.diagnostics import Findings
from omnigraph.cluster.ledger import ClusterStore, read_ledger, write_ledger
from omnigraph.settings import Settings


def test_of_two_commands_that_read_one_ledger_one_writes(tmp_path: Path) -> None:
    assert Cluster(cluster_folder(tmp_path), Settings()).import_state()["ok"]
    store = ClusterStore.at(tmp_path, Settings().storage)
    first, second = (read_ledger(store, Findings()) for _ in range(2))
    assert first is not None
    assert second is not None
    assert write_ledger(store, replace(first, revision=2), Findings())
    lost = Findings()
    assert not write_ledger(store, replace(second, revision=2, config_digest="x"), lost)
    assert lost.codes() == ["state_cas_mismatch"]
    found = read_ledger(store, Findings())
    assert found is not None
    assert (found.revision, found.config_digest) == (2, None)


@pytest.mark.s3
def test_a_cluster_lives_on_s3(tmp_path: Path, bucket: str) -> None:
    root = f"{bucket}/brain"
    folder = cluster_folder(tmp_path)
    (folder / "cluster.yaml").write_text(f"{CONFIG}storage: {root}\n")
    cluster = Cluster(folder, Settings.from_environment())
    assert cluster.import_state()["ok"]
    assert cluster.apply("ana")["converged"]
    assert not (folder / "__cluster").exists()
    assert omnigraph.open(f"{root}/graphs/people.omni").branches.list() == ["main"]
    assert cluster.status()["state_observations"]["locked"] is False
