"""One Spark session, shared by all tests that need a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.random_loads import SCHEMA

import omnigraph
from omnigraph.spark.session.spark_session import session, stop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session", autouse=True)
def _no_warm_server() -> Iterator[None]:
    """The server of whoever runs the tests is theirs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNIGRAPH_SPARK_SERVER", "off")
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    yield session()
    stop()


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph without data, to be copied."""
    where = tmp_path_factory.mktemp("empty") / "g"
    omnigraph.init(where, SCHEMA)
    return where
