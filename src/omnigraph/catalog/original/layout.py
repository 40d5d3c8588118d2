"""Recognises graphs of the original implementation (the Rust Omnigraph) and names their parts.

Both implementations keep a manifest at the same path with the same stamp of the internal version.
A manifest of ours also has the column ``current`` or the stamp of our layout; one without both is
the original's. Versions 1 to 4 of it can be read; nothing here writes.
"""

from __future__ import annotations

import shlex
from typing import Final
from urllib.parse import quote, unquote

from omnigraph.catalog.rows import CURRENT, MANIFEST_PATH
from omnigraph.errors import CorruptData, FormatUnsupported
from omnigraph.storage.lance.tables import PinnedTable

ORIGINAL_VERSION: Final = 4
"""The newest internal version of the original that can be read."""
ORIGINAL_VERSION_FLOOR: Final = 1
SWEPT_VERSION: Final = 3
"""Since this version ``__run__…`` is an ordinary branch name."""

SCHEMA_SOURCE: Final = "_schema.pg"
SCHEMA_COMPILED: Final = "_schema.ir.json"
SCHEMA_STATE: Final = "__schema_state.json"
SCHEMA_FILES: Final = (SCHEMA_SOURCE, SCHEMA_COMPILED, SCHEMA_STATE)
STAGING_SUFFIX: Final = ".staging"
"""Of the schema files of a schema change that is not finished."""

SCHEMA_LOCK: Final = "__schema_apply_lock__"
RUN_PREFIX: Final = "__run__"
CONVERTED_PREFIX: Final = "omnigraph-upgrade-"
"""Of the refs that a conversion gives the branches. The original's branches never have it."""
REFS: Final = f"{MANIFEST_PATH}/_refs/branches"

COLUMNS: Final = (
    "object_id",
    "object_type",
    "location",
    "metadata",
    "base_objects",
    "table_key",
    "table_version",
    "table_branch",
    "row_count",
)


def is_original(table: PinnedTable, layout_key: str) -> bool:
    """Whether a manifest is the original's; ``layout_key`` is the stamp that only ours have."""
    names = set(table.schema.names)
    stamped = layout_key.encode() in (table.schema.metadata or {})
    return CURRENT not in names and not stamped and {"object_id", "object_type"} <= names


def check_version(internal: int, uri: str) -> None:
    """Refuse an internal version of the original that cannot be read, with the way out."""
    if ORIGINAL_VERSION_FLOOR <= internal <= ORIGINAL_VERSION:
        return
    raise FormatUnsupported(
        f"the graph at {uri} was made by the Rust Omnigraph with internal schema version "
        f"{internal}; versions {ORIGINAL_VERSION_FLOOR} to {ORIGINAL_VERSION} of it can be read",
        remedy=f"Export it with the program that made it: `omnigraph export {shlex.quote(uri)} > "
        "graph.jsonl`; then load the export into a graph that `omnigraph init` made here: "
        "`omnigraph load --data graph.jsonl --mode append NEW`.",
        details={"found": internal, "newest": ORIGINAL_VERSION, "floor": ORIGINAL_VERSION_FLOOR},
    )


def check_columns(table: PinnedTable, uri: str) -> None:
    """Refuse a manifest that lacks columns of the original's layout or has others."""
    found = set(table.schema.names)
    if found != set(COLUMNS):
        odd = sorted(found ^ set(COLUMNS))
        raise CorruptData(
            f"the manifest of {uri} is neither the original's nor ours: its columns differ in "
            f"{', '.join(odd)}",
            remedy="Restore __manifest/ from a backup; nothing was changed.",
        )


def read_only(uri: str) -> FormatUnsupported:
    """The error of every attempt to write to an original as it is."""
    shown = shlex.quote(uri)
    return FormatUnsupported(
        f"the graph at {uri} is the Rust Omnigraph's: here it can be read, not written",
        remedy=f"Convert it with `omnigraph upgrade --apply {shown}`, or copy it with `omnigraph "
        f"clone --uri {shown} NEW`; `omnigraph upgrade --check {shown}` shows what would be done.",
        details={"uri": uri},
    )


def ref_path(name: str) -> str:
    """The object that makes a branch of the manifest exist."""
    return f"{REFS}/{quote(name, safe='')}.json"


def ref_name(path: str) -> str:
    """The branch whose ref is at this path."""
    return unquote(path.removeprefix(f"{REFS}/").removesuffix(".json"))
