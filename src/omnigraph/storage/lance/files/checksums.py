"""Checksums of the files that a write adds, taken before they are committed.

Lance records the sizes of its files, not their checksums. On a local disk a checksum is stored with
the published version, so that fsck detects files that were changed or swapped. Object stores keep
checksums of their own. Very large writes have none: reading them back would cost as much as writing
them.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from typing import Any, Final

from omnigraph.storage.lance.errors import translated
from omnigraph.storage.lance.files.completeness import added_fragments
from omnigraph.storage.lance.tables import StagedWrite, TableStore

FILES_MAX: Final = 64
BYTES_MAX: Final = 16 << 20
"""Larger writes get no checksums. Reading this many bytes takes about five milliseconds."""
_BLOCK: Final = 1 << 20

Digests = tuple[tuple[str, int], ...] | None
"""Names of data files and their CRC-32; None when there are none."""


def digests_of(store: TableStore, staged: StagedWrite) -> Digests:
    """The checksums of the data files that a staged write adds; None where none are kept."""
    where = store.location.child(staged.ref.dataset_path)
    if not where.is_local:
        return None
    known = store.open(staged.ref).fragments
    files: dict[str, int] = {}
    for fragment in added_fragments(staged.transaction.operation):
        before: Any = known.get(fragment.id)
        for file in fragment.files:
            new = before is None or file not in before.files
            if new and file.base_id is None:
                files[file.path] = file.file_size_bytes or 0
    if not files or len(files) > FILES_MAX or sum(files.values()) > BYTES_MAX:
        return None
    with translated(f"reading the files written to {staged.ref.path}"):
        return tuple((name, digest(os.path.join(where.path, "data", name))) for name in files)


def read_digests(stored: Iterable[tuple[str, int]] | None) -> Digests:
    """Checksums as they were stored in JSON."""
    return None if stored is None else tuple((str(name), int(crc)) for name, crc in stored)


def digest(path: str) -> int:
    """The CRC-32 of a local file."""
    value = 0
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            value = zlib.crc32(block, value)
    return value
