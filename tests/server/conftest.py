"""One server process for the tests that only need one."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.graphs import people_graph
from tests.support.http_contract import check_response
from tests.support.http_server import RunningServer, running


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with the graph ``people``; tests write to branches of their own."""
    folder = tmp_path_factory.mktemp("server")
    people_graph(folder / "people.omni")
    with running(folder, ["people.omni"]) as found:
        yield found


@pytest.fixture(scope="package")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    """A client with the token of ``ana``; every response is checked against its declaration."""
    with server.client(event_hooks={"response": [check_response]}) as found:
        yield found
