"""A conversion watches for writers for ten seconds: not in these tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_watching(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_UPGRADE_WATCH_SECONDS", "0")
