"""An index of a branch's history rows: commits, own and merged, and published versions, in order.

History rows are many, and most reads need few of them. Of each row a timeline holds only the row
id, the manifest version that made it and its subject; the rows themselves are fetched by row id on
demand. History rows never change, so the timeline of a newer version extends that of an older one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from omnigraph.catalog.history.purged import PurgedVersions
from omnigraph.catalog.rows import Commit, Row, TablePin, history_schema, row_from_arrow
from omnigraph.storage.lance.row_delta import fresh_fragments
from omnigraph.storage.lance.row_versions import CREATED
from omnigraph.storage.lance.tables import PinnedTable

PAGE_COMMITS: Final = 32
PAGE_COMMITS_MAX: Final = 2_048
"""The pages in which commits are read: small ones first, so that short reads stay cheap."""
_COMMIT: Final = "graph_commit:"
_VERSION: Final = "table_version"
_MERGED: Final = "merged_commit:"
_MERGE: Final = "merge:"


@dataclass(frozen=True, slots=True)
class Track:
    """Some history rows in the order of the manifest versions that made them."""

    versions: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """The subject of each row: the id of a commit, or the key of a published version."""

    def __len__(self) -> int:
        return len(self.rows)

    def until(self, version: int) -> int:
        """The number of rows made by this manifest version or an older one."""
        return bisect_right(self.versions, version)

    def newest(self, version: int) -> int | None:
        """The row id of the newest row at a manifest version; None when there was none yet."""
        count = self.until(version)
        return self.rows[count - 1] if count else None

    def extended(self, found: Iterable[tuple[int, int, str]]) -> Track:
        added = sorted(found)
        return Track(
            [*self.versions, *(version for version, _, _ in added)],
            [*self.rows, *(row for _, row, _ in added)],
            [*self.names, *(name for _, _, name in added)],
        )


@dataclass(frozen=True)
class Timeline:
    """The history rows of a manifest up to one version, by row id."""

    table: PinnedTable
    commits: Track
    types: Mapping[str, Track]
    """Published versions by type key."""
    purged: PurgedVersions = field(default_factory=PurgedVersions)
    merged: Track = field(default_factory=Track)
    """Commits that came with merges, by the manifest version that merged them."""
    merges: Track = field(default_factory=Track)
    """The attribution rows of merges: of this branch, and of branches merged into it."""

    @property
    def commit_ids(self) -> list[str]:
        return self.commits.names

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each commit, counted from the first."""
        return {commit_id: at for at, commit_id in enumerate(self.commit_ids)}

    def read_commits(self, positions: Sequence[int], merged: Sequence[int] = ()) -> list[Commit]:
        """The commits at these positions, then the merged commits at theirs, in this order.

        A merged commit keeps the manifest version of the branch that made it.
        """
        places = [self.commits.rows[at] for at in positions]
        rows = self._rows([*places, *(self.merged.rows[at] for at in merged)])
        versions = [
            *(self.commits.versions[at] for at in positions),
            *(row.table_version for row in rows[len(places) :]),
        ]
        return [Commit.from_row(row, at) for row, at in zip(rows, versions, strict=True)]

    @cached_property
    def merged_positions(self) -> dict[str, int]:
        """The position of each merged commit in ``merged``."""
        return {id: at for at, id in reversed(list(enumerate(self.merged.names)))}

    def version_of(self, commit_id: str) -> int | None:
        """The manifest version that added a commit to this branch; None when it is not in it."""
        if commit_id in self.positions:
            return self.commits.versions[self.positions[commit_id]]
        at = self.merged_positions.get(commit_id)
        return None if at is None else self.merged.versions[at]

    def contains(self, commit_id: str) -> bool:
        """Whether a commit is part of this branch's history, own or merged."""
        return commit_id in self.positions or commit_id in self.merged_positions

    def find_merge(self, commit_id: str) -> Row | None:
        """The attribution row of a merge; None for other commits, and for merges without one."""
        if commit_id not in self._merge_positions:
            return None
        return self._rows([self.merges.rows[self._merge_positions[commit_id]]])[0]

    @cached_property
    def _merge_positions(self) -> dict[str, int]:
        return {id: at for at, id in enumerate(self.merges.names)}

    def iterate_commits(self, positions: Sequence[int]) -> Iterator[Commit]:
        """The commits at these positions, read lazily in pages."""
        start, size = 0, PAGE_COMMITS
        while start < len(positions):
            yield from self.read_commits(positions[start : start + size])
            start, size = start + size, min(size * 2, PAGE_COMMITS_MAX)

    def newest(self, key: str, version: int) -> int | None:
        """The row id of the newest published version of a type as of a manifest version."""
        track = self.types.get(key)
        return None if track is None else track.newest(version)

    def read_pins(self, rows: Sequence[int]) -> dict[int, TablePin]:
        """The published versions with these row ids."""
        found = map(TablePin.from_row, self._rows(rows))
        return {at: self.purged.corrected(pin) for at, pin in zip(rows, found, strict=True)}

    def pins_at(self, version: int) -> dict[str, TablePin]:
        """The newest published version of every type as of a manifest version."""
        places = {key: self.newest(key, version) for key in sorted(self.types)}
        found = self.read_pins([row for row in places.values() if row is not None])
        return {key: found[row] for key, row in places.items() if row is not None}

    def _rows(self, row_ids: Sequence[int]) -> list[Row]:
        if not row_ids:
            return []
        found: list[dict[str, Any]] = self.table.take(row_ids, history_schema().names).to_pylist()
        return [row_from_arrow(record) for record in found]


def read_timeline(table: PinnedTable, earlier: Timeline | None = None) -> Timeline:
    """The timeline at this version of a manifest; reads only rows that ``earlier`` lacks."""
    condition, fragments = None, None
    if earlier is not None:
        condition = f"{CREATED} > {earlier.table.ref.version}"
        fragments = fresh_fragments(table, earlier.table)
    wanted = ["object_id", "table_version", CREATED]
    found = table.scan(wanted, condition, with_row_id=True, fragment_ids=fragments)
    commits: list[tuple[int, int, str]] = []
    merged: list[tuple[int, int, str]] = []
    merges: list[tuple[int, int, str]] = []
    types: dict[str, list[tuple[int, int, str]]] = {}
    columns = (found[name].to_pylist() for name in (*wanted, "_rowid"))
    for object_id, stated, version, row in zip(*columns, strict=True):
        if object_id.startswith(_COMMIT):
            # A commit that was migrated from an older format states the version it was made in.
            commits.append((stated or version, row, object_id.removeprefix(_COMMIT)))
        elif object_id.startswith(_VERSION):
            made, kind, name, where = object_id.split(":", 3)
            # So does a published version that was converted from the original's layout.
            published = int(made.partition("@")[2] or version)
            types.setdefault(f"{kind}:{name}", []).append((published, row, where))
        elif object_id.startswith(_MERGED):
            merged.append((version, row, object_id.removeprefix(_MERGED)))
        elif object_id.startswith(_MERGE):
            merges.append((version, row, object_id.removeprefix(_MERGE)))
    old = earlier if earlier is not None else Timeline(table, Track(), {})
    tracks = dict(old.types)
    for key, places in types.items():
        tracks[key] = tracks.get(key, Track()).extended(places)
    return Timeline(
        table,
        old.commits.extended(commits),
        tracks,
        merged=old.merged.extended(merged) if merged else old.merged,
        merges=old.merges.extended(merges) if merges else old.merges,
    )
