"""Fixtures that every suite may use. Keep it small: what one suite needs lives in that suite."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.support.s3server import S3Server, s3_server


@pytest.fixture(scope="session")
def s3_session() -> Iterator[S3Server]:
    """One S3 test server for the whole run; starting it costs two seconds."""
    with s3_server() as server:
        yield server


@pytest.fixture
def s3(s3_session: S3Server) -> Iterator[S3Server]:
    """The server with an empty log and no faults. Mark tests that use it with ``s3``."""
    s3_session.clear_faults()
    s3_session.reset()
    yield s3_session
    s3_session.clear_faults()


@pytest.fixture
def bucket(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URI of an empty bucket on the server, which this process and its children can reach."""
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    return s3.create_bucket(f"b{uuid.uuid4().hex}")
