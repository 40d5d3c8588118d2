"""Old graphs on an S3 store: the same steps, and no failure of the store is taken for emptiness."""

from __future__ import annotations

import pytest
from tests.catalog.migrations.old import SIDE, cities, format_of, lineage, old_graph
from tests.support.s3server import S3Fault, S3Server

import omnigraph
from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.catalog.migrations.legacy import COMMITS_PATH
from omnigraph.catalog.rows import MANIFEST_PATH
from omnigraph.errors import PermissionDenied

pytestmark = pytest.mark.s3


@pytest.fixture
def place(bucket: str) -> str:
    return f"{bucket}/g"


def test_I_3_an_old_graph_in_a_bucket_is_read_and_brought_on(place: str) -> None:
    told = old_graph(place, 1)
    reader = omnigraph.open(place, read_only=True)
    assert lineage(reader.history.commits(branch=SIDE)) == lineage(told[SIDE])
    graph = omnigraph.open(place)
    graph.maintenance.upgrade(apply=True)
    for branch in ("main", SIDE):
        assert format_of(graph, branch) == INTERNAL_VERSION
        assert lineage(graph.history.commits(branch=branch)) == lineage(told[branch])
    assert cities(graph, SIDE) == {"Oslo", "Rome"}


def test_I_3_and_F_10_commits_that_may_not_be_read_are_not_absent(place: str, s3: S3Server) -> None:
    told = old_graph(place, 3)
    s3.inject(S3Fault(key=f"*{COMMITS_PATH}*", status=403, times=None))
    with pytest.raises(PermissionDenied):
        omnigraph.open(place)
    s3.clear_faults()
    assert format_of(omnigraph.open(place, read_only=True)) == 3
    assert lineage(omnigraph.open(place).history.commits()) == lineage(told["main"])


@pytest.mark.parametrize("skip", [0, 1])
def test_I_3_a_lost_answer_to_a_step_neither_loses_nor_doubles_it(
    place: str, s3: S3Server, skip: int
) -> None:
    """First the commits move, then the stamp is written."""
    told = old_graph(place, 3)
    versions = f"*/{MANIFEST_PATH}/_versions/*"
    s3.inject(S3Fault(kind="PUT", key=versions, action="drop", when="after", skip=skip, times=1))
    graph = omnigraph.open(place)
    assert format_of(graph) == INTERNAL_VERSION
    assert lineage(graph.history.commits()) == lineage(told["main"])
