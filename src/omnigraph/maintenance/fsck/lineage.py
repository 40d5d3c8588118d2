"""Checks of the catalog of a branch: head, commits, schema, registry, merges, records."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from omnigraph.catalog.branches.registry import Branch, all_branches
from omnigraph.catalog.branches.tags import all_tags
from omnigraph.catalog.create import PURGED
from omnigraph.catalog.history.attribution import AttributionList, MergeRecord
from omnigraph.catalog.history.commits import list_commits
from omnigraph.catalog.history.horizon import protected_versions
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import parse_version_key
from omnigraph.catalog.schemas import load_schema
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import CorruptData, ObjectNotFound, OmnigraphError
from omnigraph.lang.schema import AcceptedSchema
from omnigraph.maintenance.fsck.findings import Damage, FsckFinding
from omnigraph.storage.lance.files.table_files import Tables
from omnigraph.storage.lance.tables import fork_ref
from omnigraph.transaction.recovery.pending import PendingRecords


def check_lineage(branch: Branch, state: ManifestState) -> Iterator[FsckFinding]:
    """Check that the commits form one chain that ends at the head."""
    chain = list_commits(state)[::-1]
    heads = state.heads
    head = heads[0].commit_id if len(heads) == 1 else None
    if head is None or head not in {commit.commit_id for commit in chain}:
        what = (
            f"{len(heads)} heads"
            if len(heads) != 1
            else f"the head {head} is not a commit of the branch"
        )
        yield FsckFinding(branch.name, Damage.HEAD_DANGLING, branch.name, what)
    elif chain[-1].commit_id != head:
        message = f"the head is {head}, the newest commit {chain[-1].commit_id}"
        yield FsckFinding(branch.name, Damage.HEAD_DANGLING, head, message)
    if chain and chain[0].parent is not None:
        first = chain[0]
        message = f"the first commit has a parent, {first.parent}"
        yield FsckFinding(branch.name, Damage.LINEAGE_BROKEN, first.commit_id, message)
    for earlier, later in pairwise(chain):
        if later.parent != earlier.commit_id:
            message = f"its parent is {later.parent}, the commit before it {earlier.commit_id}"
            yield FsckFinding(branch.name, Damage.LINEAGE_BROKEN, later.commit_id, message)


def check_schema(
    branch: Branch, state: ManifestState
) -> tuple[AcceptedSchema | None, list[FsckFinding]]:
    """The schema of the head; checks that schema and tables have the same types."""
    try:
        schema = load_schema(state, state.head.schema_hash)
    except OmnigraphError as problem:
        found = FsckFinding(branch.name, Damage.SCHEMA_MISSING, branch.name, problem.message)
        return None, [found]
    types = {owner.key for owner in schema.types()}
    missing = [
        FsckFinding(
            branch.name, Damage.TYPE_WITHOUT_TABLE, key, "a type of the schema has no table"
        )
        for key in sorted(types - state.pins.keys())
    ]
    extra = [
        FsckFinding(
            branch.name, Damage.TABLE_WITHOUT_TYPE, key, "a table has no type in the schema"
        )
        for key in sorted(state.pins.keys() - types)
    ]
    return schema, missing + extra


def check_history(
    branch: Branch, state: ManifestState, main: ManifestState, tables: Tables
) -> Iterator[FsckFinding]:
    """Check that the versions of all readable and all protected states exist."""
    held = {version for _, version in protected_versions(main, branch)}
    for key, track in state.timeline.types.items():
        names = track.names[max(track.until(state.horizon) - 1, 0) :]
        names += [track.names[track.until(v) - 1] for v in held if track.until(v)]
        for name in dict.fromkeys(names):
            ref = parse_version_key(name)
            if state.purged.is_gone(ref.path, name) or _was_dropped(state, tables, ref.path):
                continue
            stored = tables.get(ref.path, {}).get(ref.branch)
            if stored is None or ref.version not in stored.versions:
                message = f"version {ref.version} of {key} is missing"
                yield FsckFinding(branch.name, Damage.STATE_MISSING, key, message)


def check_merges(
    repository: Repository, branch: Branch, state: ManifestState, seen: set[str]
) -> Iterator[FsckFinding]:
    """Check that the attributions of merges can be read; each merge is checked once."""
    timeline = state.timeline
    for merge_id in [id for id in timeline.merges.names if id not in seen]:
        seen.add(merge_id)
        row = timeline.find_merge(merge_id)
        if row is None or not (record := MergeRecord.from_row(row)).has_listed:
            continue
        try:
            AttributionList.from_bytes(repository.objects.get(record.path), record.path)
        except ObjectNotFound:
            message = f"{record.path} is missing: blame names merge {merge_id} itself"
            yield FsckFinding(branch.name, Damage.ATTRIBUTION_DAMAGED, merge_id, message)
        except CorruptData as problem:
            yield FsckFinding(branch.name, Damage.ATTRIBUTION_DAMAGED, merge_id, problem.message)


def _was_dropped(state: ManifestState, tables: Tables, path: str) -> bool:
    """Whether the table was removed by a hard drop: only its marker is left."""
    marks = [i.path for h in tables.get(path, {}).values() for i in h.foreign]
    in_use = path in {pin.ref.path for pin in state.pins.values()}
    return f"{path}/{PURGED}" in marks and not in_use


def check_registry(
    repository: Repository, main: ManifestState, tables: Tables
) -> Iterator[FsckFinding]:
    """Check parents of branches, commits of tags, and references of physical branches."""
    branches = {b.incarnation: b for b in all_branches(main).values()}
    for branch in branches.values():
        if branch.parent is not None and branch.parent not in branches:
            message = "it was forked from a branch that does not exist"
            yield FsckFinding(branch.name, Damage.PARENT_UNKNOWN, branch.name, message)
    for tag in all_tags(main).values():
        holder = branches.get(tag.branch)
        try:
            state = None if holder is None else repository.manifest(holder).current()
            found = state is not None and tag.commit_id in state.timeline.positions
        except OmnigraphError:
            continue  # the branch itself was reported
        if not found:
            message = f"no branch has its commit {tag.commit_id}"
            yield FsckFinding(
                "main" if holder is None else holder.name, Damage.TAG_DANGLING, tag.name, message
            )
    for path, physical in tables.items():
        for name, holdings in physical.items():
            if name is None:
                continue
            reference = fork_ref(path, name)
            stored = {info.path for info in holdings.own}
            if holdings.versions and reference not in stored:
                owners = [b.name for b in branches.values() if _uses(repository, b, path, name)]
                for owner in owners:
                    message = f"{reference} is missing"
                    yield FsckFinding(owner, Damage.FORK_REF_MISSING, path, message)


def _uses(repository: Repository, branch: Branch, path: str, physical: str) -> bool:
    if branch.ref == physical:
        return True
    try:
        pins = repository.manifest(branch).current().pins.values()
    except OmnigraphError:
        return False
    return any((pin.ref.path, pin.ref.branch) == (path, physical) for pin in pins)


def check_records(records: PendingRecords, branch: Branch) -> Iterator[FsckFinding]:
    """Check that the records of unfinished writes can be parsed; having some is no damage."""
    for path, problem in records.unreadable(branch.incarnation).items():
        yield FsckFinding(branch.name, Damage.RECORD_UNREADABLE, path, problem.message)
