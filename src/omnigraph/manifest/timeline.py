"""Where the history of one branch is kept: every commit and every published version, in order.

History rows are many, and most questions need few of them. A timeline knows, of each row, only its
place (the row id), the manifest version that made it and what it is about; the rows themselves are
fetched by place when they are needed. Rows of history never change, so the timeline of a newer
version is that of an older one and what came since.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from omnigraph.manifest.rows import Commit, Row, TablePin, history_schema, row_from_arrow
from omnigraph.storage.tables import PinnedTable

CREATED: Final = "_row_created_at_version"
_COMMIT: Final = "graph_commit:"
_VERSION: Final = "table_version:"


@dataclass(frozen=True, slots=True)
class Track:
    """Some history rows in the order of the manifest versions that made them."""

    versions: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def until(self, version: int) -> int:
        """How many were made by this manifest version or an older one."""
        return bisect_right(self.versions, version)

    def newest(self, version: int) -> int | None:
        """The row id of the newest at a manifest version; None when there was none yet."""
        count = self.until(version)
        return self.rows[count - 1] if count else None

    def extended(self, found: Iterable[tuple[int, int]]) -> Track:
        added = sorted(found)
        versions = [*self.versions, *(version for version, _ in added)]
        return Track(versions, [*self.rows, *(row for _, row in added)])


@dataclass(frozen=True)
class Timeline:
    """The history rows of a manifest up to one version, by place."""

    table: PinnedTable
    commits: Track
    commit_ids: list[str]
    types: Mapping[str, Track]
    """Published versions by type key."""

    @cached_property
    def places(self) -> dict[str, int]:
        """The position of each commit, counted from the first."""
        return {commit_id: at for at, commit_id in enumerate(self.commit_ids)}

    def read_commits(self, positions: Sequence[int]) -> list[Commit]:
        """The commits at these positions, in this order."""
        rows = self._rows([self.commits.rows[at] for at in positions])
        return [
            Commit.from_row(row, self.commits.versions[at])
            for row, at in zip(rows, positions, strict=True)
        ]

    def read_pins(self, rows: Sequence[int]) -> dict[int, TablePin]:
        """The published versions with these row ids."""
        return {at: TablePin.from_row(row) for at, row in zip(rows, self._rows(rows), strict=True)}

    def pins_at(self, version: int) -> dict[str, TablePin]:
        """The newest published version of every type as of a manifest version."""
        places = {key: track.newest(version) for key, track in sorted(self.types.items())}
        found = self.read_pins([row for row in places.values() if row is not None])
        return {key: found[row] for key, row in places.items() if row is not None}

    def _rows(self, row_ids: Sequence[int]) -> list[Row]:
        if not row_ids:
            return []
        found: list[dict[str, Any]] = self.table.take(row_ids, history_schema().names).to_pylist()
        return [row_from_arrow(record) for record in found]


def read_timeline(table: PinnedTable, earlier: Timeline | None = None) -> Timeline:
    """The timeline at this version of a manifest; reads only what ``earlier`` does not know."""
    condition, fragments = None, None
    if earlier is not None:
        condition = f"{CREATED} > {earlier.table.ref.version}"
        known = {_files(fragment) for fragment in earlier.table.fragments.values()}
        fragments = [f for f, m in table.fragments.items() if _files(m) not in known]
    found = table.scan(["object_id", CREATED], condition, with_row_id=True, fragment_ids=fragments)
    commits: list[tuple[int, int, str]] = []
    types: dict[str, list[tuple[int, int]]] = {}
    columns = (found[name].to_pylist() for name in ("object_id", CREATED, "_rowid"))
    for object_id, version, row in zip(*columns, strict=True):
        if object_id.startswith(_COMMIT):
            commits.append((version, row, object_id.removeprefix(_COMMIT)))
        elif object_id.startswith(_VERSION):
            types.setdefault(_type_key(object_id), []).append((version, row))
    commits.sort()
    old = earlier if earlier is not None else Timeline(table, Track(), [], {})
    tracks = dict(old.types)
    for key, places in types.items():
        tracks[key] = tracks.get(key, Track()).extended(places)
    return Timeline(
        table,
        old.commits.extended((version, row) for version, row, _ in commits),
        [*old.commit_ids, *(commit_id for _, _, commit_id in commits)],
        tracks,
    )


def _type_key(object_id: str) -> str:
    """``node:Person`` out of ``table_version:node:Person:<where>``."""
    _, kind, name, _ = object_id.split(":", 3)
    return f"{kind}:{name}"


def _files(fragment: Any) -> tuple[str, ...]:
    return tuple(file.path for file in fragment.files)
