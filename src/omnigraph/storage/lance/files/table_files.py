"""The files of a table: those in the store, and those that a version refers to.

Owns the layout of a Lance table directory, as far as cleanup, fsck and backup need it. Files have
*names* that are the same on every branch (``data/<stem>``, ``_deletions/<file>``,
``_indices/<uuid>``, ``_transactions/<uuid>``), because a branch shares files with its source. Files
that do not match this layout are foreign and are never touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import unquote

from omnigraph.storage.lance.files.fsync import VERSION_HINT
from omnigraph.storage.lance.tables import PinnedTable, TableRef, TableStore
from omnigraph.storage.objects.store import ObjectInfo

_ROOT = re.compile(
    r"(?P<path>__manifest|_graph_commit_recoveries\.lance|(?:nodes|edges)/[0-9a-f]{16})/(?P<rest>.+)"
)
# Names of branches may have slashes in a graph that the original made (ADR 35).
_TREE = re.compile(
    r"tree/(?P<branch>.+)/(?P<rest>(?:_versions|_transactions|_deletions|_indices|data)/.+)"
)
_REF = re.compile(r"_refs/branches/(?P<branch>[^/]+)\.json")
_VERSION = re.compile(r"_versions/(?P<number>\d{20})\.manifest")
_NAMED = (
    (re.compile(r"data/([0-9a-f]+)(?:\.lance|/[0-9a-f]+\.blob)"), "data"),
    (re.compile(r"_deletions/([^/]+\.(?:arrow|bin))"), "_deletions"),
    (re.compile(r"_indices/([0-9a-f-]{36})/.+"), "_indices"),
    (re.compile(r"_transactions/\d+-([0-9a-f-]{36})\.txn"), "_transactions"),
)
_VERSION_MAX = 2**64 - 1


@dataclass(frozen=True, slots=True)
class BranchObjects:
    """The stored objects of one physical branch of a table; ``branch`` is None for the root."""

    path: str
    branch: str | None
    versions: dict[int, ObjectInfo] = field(default_factory=dict)
    files: dict[str, list[ObjectInfo]] = field(default_factory=dict)  # by name
    own: list[ObjectInfo] = field(default_factory=list)  # its ref and the hint of its versions
    foreign: list[ObjectInfo] = field(default_factory=list)

    def ref(self, version: int) -> TableRef:
        return TableRef(self.path, self.branch, version)

    @property
    def modified(self) -> datetime:
        """The time of the last write to any of its objects."""
        return max(info.modified for info in self.objects())

    def objects(self) -> list[ObjectInfo]:
        named = [info for infos in self.files.values() for info in infos]
        return [*self.versions.values(), *named, *self.own]


Tables = dict[str, dict[str | None, BranchObjects]]
"""By path, then by physical branch."""


def group_by_table(listed: Iterable[ObjectInfo]) -> tuple[Tables, list[ObjectInfo]]:
    """Group a listing of a graph by table and branch; also returns all other objects."""
    tables: Tables = {}
    others: list[ObjectInfo] = []
    for info in listed:
        root = _ROOT.fullmatch(info.path)
        if root is None:
            others.append(info)
            continue
        rest, branch = root["rest"], None
        tree, ref = _TREE.fullmatch(rest), _REF.fullmatch(rest)
        if tree is not None:
            rest, branch = tree["rest"], tree["branch"]
        elif ref is not None:
            branch = unquote(ref["branch"])
        branches = tables.setdefault(root["path"], {})
        holdings = branches.setdefault(branch, BranchObjects(root["path"], branch))
        _sort(holdings, rest, info)
    return tables, others


def _sort(holdings: BranchObjects, rest: str, info: ObjectInfo) -> None:
    version = _VERSION.fullmatch(rest)
    if version is not None:
        holdings.versions[_VERSION_MAX - int(version["number"])] = info
        return
    if rest == VERSION_HINT or _REF.fullmatch(rest) is not None:
        holdings.own.append(info)
        return
    for pattern, kind in _NAMED:
        found = pattern.fullmatch(rest)
        if found is not None:
            holdings.files.setdefault(f"{kind}/{found[1]}", []).append(info)
            return
    holdings.foreign.append(info)


def stored_versions(store: TableStore, ref: TableRef) -> set[int]:
    """The versions of a physical branch that are in the store."""
    folder = f"{ref.dataset_path}/_versions"
    listed = (
        _VERSION.fullmatch(f"_versions/{i.path.removeprefix(folder)[1:]}")
        for i in store.objects.list(folder)
    )
    return {_VERSION_MAX - int(found["number"]) for found in listed if found is not None}


def names_of(store: TableStore, ref: TableRef) -> set[str]:
    """The names of all files that a version refers to, shared ones included."""
    return {*file_names(store.open(ref)), f"_transactions/{store.transaction(ref).uuid}"}


def file_names(table: PinnedTable) -> set[str]:
    """``names_of`` without the transaction that made the version."""
    names: set[str] = set()
    for fragment_id, fragment in table.fragments.items():
        names |= {f"data/{file.path.removesuffix('.lance')}" for file in fragment.files}
        if fragment.deletion_file is not None:
            names.add(fragment.deletion_file.path(fragment_id))
    for index in table.dataset.describe_indices():
        names |= {f"_indices/{segment.uuid}" for segment in index.segments}
    return names
