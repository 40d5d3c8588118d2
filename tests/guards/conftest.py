from pathlib import Path

import pytest
from tests.guards.support import new_store

from omnigraph.storage.lance.tables import TableStore


@pytest.fixture
def store(tmp_path: Path) -> TableStore:
    return new_store(tmp_path)
