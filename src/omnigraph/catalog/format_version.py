"""The version of the storage format that this program writes."""

from __future__ import annotations

from typing import Final

INTERNAL_VERSION: Final = 4
