"""Who writes, where nobody says so with the write itself."""

from __future__ import annotations

import os
from typing import Final

ACTOR_VARIABLE: Final = "OMNIGRAPH_ACTOR"


def configured_actor() -> str | None:
    """The actor that the environment names, if any."""
    return os.environ.get(ACTOR_VARIABLE, "").strip() or None
