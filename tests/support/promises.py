"""Invariants of every graph at rest, checked from outside.

``broken_promises`` opens the graph read-only and returns what is wrong with it, in words; an empty
list means that every table of every branch is where the manifest says, no write is left in flight,
history is one line from one genesis, every edge has both ends, every constraint holds, and ``fsck``
finds no damage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from omnigraph.catalog.branches.registry import Branch, all_branches
from omnigraph.catalog.history.commits import list_commits
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MAIN, Commit
from omnigraph.catalog.schemas import load_schema
from omnigraph.constraints import Report, TypeImage, evaluate
from omnigraph.maintenance.fsck import check_graph
from omnigraph.maintenance.fsck.findings import Damage
from omnigraph.storage.locations import parse_location
from omnigraph.storage.paths import RECOVERY_PREFIX
from omnigraph.transaction.recovery.audit import Action, AuditRow, read_audit
from omnigraph.transaction.recovery.recover import RECOVERY_ACTOR

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Expected:
    """What is known from elsewhere: commits that were acknowledged, operations left unfinished."""

    acknowledged: frozenset[str] = frozenset()
    recovered: frozenset[str] = frozenset()
    copied: bool = False  # as files: its branches read those of the original


def broken_promises(uri: str, expected: Expected = Expected()) -> list[str]:  # noqa: B008
    """Everything that is wrong with the graph, one sentence each."""
    repository = Repository.open(parse_location(uri))
    branches = all_branches(repository.main.current()).values()
    commits: dict[str, Commit] = {}
    found = list(_records_left(repository))
    for branch in branches:
        chain = list_commits(repository.manifest(branch).current())[::-1]
        commits.update({commit.commit_id: commit for commit in chain})
        found += _chain(repository, branch, chain)
        found += _tables(repository, branch)
        found += _edges(repository, branch)
        found += _constraints(repository, branch)
    found += _damage(repository, copied=expected.copied)
    found += [f"acknowledged commit {c} is gone" for c in expected.acknowledged - set(commits)]
    return found + list(_audit(read_audit(repository.tables), expected.recovered, commits))


def pending_operations(uri: str) -> set[str]:
    """The operations whose records are in the store now."""
    objects = Repository(parse_location(uri)).objects
    names = [info.path.rpartition("/")[2] for info in objects.list(RECOVERY_PREFIX)]
    return {name.partition(".")[0] for name in names if name.count(".") == 1}


def audited_operations(uri: str) -> set[str]:
    """The operations that recovery, of whichever process, has resolved."""
    return {row.operation_id for row in read_audit(Repository(parse_location(uri)).tables)}


def commit_ids(uri: str, *, main_only: bool = False) -> frozenset[str]:
    """The commits of every branch, or of main."""
    repository = Repository.open(parse_location(uri))
    found = all_branches(repository.main.current())
    branches = [found[MAIN]] if main_only else found.values()
    return frozenset(
        commit.commit_id
        for branch in branches
        for commit in list_commits(repository.manifest(branch).current())
    )


def _damage(repository: Repository, *, copied: bool) -> Iterator[str]:
    """What ``fsck`` reports: no operation may leave a graph that it dislikes."""
    for finding in check_graph(repository).findings:
        if not (copied and finding.damage is Damage.READS_ELSEWHERE):
            yield f"fsck: {finding}"


def _records_left(repository: Repository) -> Iterator[str]:
    for info in repository.objects.list(RECOVERY_PREFIX):
        yield f"{info.path} is left behind"


def _chain(repository: Repository, branch: Branch, chain: list[Commit]) -> Iterator[str]:
    """One genesis, every commit the child of the one before it, the head last."""
    genesis = [commit.commit_id for commit in chain if commit.parent is None]
    if len(genesis) != 1:
        yield f"{branch.name} has {len(genesis)} commits without a parent"
    for earlier, later in pairwise(chain):
        if later.parent != earlier.commit_id:
            yield (
                f"{branch.name}: commit {later.commit_id} has parent {later.parent}, "
                f"the commit before it is {earlier.commit_id}"
            )
    head = repository.manifest(branch).current().head.commit_id
    if chain and chain[-1].commit_id != head:
        yield f"{branch.name}: the head is {head}, the newest commit {chain[-1].commit_id}"


def _tables(repository: Repository, branch: Branch) -> Iterator[str]:
    """Every table that the branch has of its own is at the published version, with its rows."""
    for key, pin in repository.snapshot(branch).pins.items():
        table = repository.tables.open(pin.ref)
        if table.rows != pin.rows:
            yield f"{branch.name}: {key} has {table.rows} rows, published are {pin.rows}"
        if pin.owner != branch.incarnation:
            continue  # shared with the branch it was forked from, which may have moved on
        newest = repository.tables.open_newest(pin.ref.path, pin.ref.branch).ref
        if newest != pin.ref:
            yield (
                f"{branch.name}: {key} is at version {newest.version}, "
                f"published is {pin.ref.version}"
            )


def _edges(repository: Repository, branch: Branch) -> Iterator[str]:
    """Every edge has both ends, and no id is there twice."""
    snapshot = repository.snapshot(branch)
    schema = load_schema(repository.manifest(branch).current(), snapshot.schema_hash)
    columns = {
        key: repository.tables.open(pin.ref).scan(
            ["id"] if key.startswith("node:") else ["id", "src", "dst"]
        )
        for key, pin in snapshot.pins.items()
    }
    ids = {key: column["id"].to_pylist() for key, column in columns.items()}
    for key, known in ids.items():
        twice = [i for i, count in Counter(known).items() if count > 1]
        if twice:
            yield f"{branch.name}: {key} has {twice} more than once"
    for edge in schema.edges.values():
        for end, type_name in (("src", edge.source), ("dst", edge.target)):
            nodes = set(ids[f"node:{type_name}"])
            loose = [i for i in columns[edge.key][end].to_pylist() if i not in nodes]
            if loose:
                yield f"{branch.name}: {edge.key} has {end} {loose} without a node"


class _NothingStored:
    """The state before a graph that is checked as if it were written anew."""

    def count(self, key: str) -> int:
        return 0

    def columns(self, key: str, columns: Sequence[str]) -> pa.Table:
        raise AssertionError("the whole graph is in the image")

    def matching(self, key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        raise AssertionError("the whole graph is in the image")


def _constraints(repository: Repository, branch: Branch) -> Iterator[str]:
    """Everything stored would be accepted as one new write."""
    snapshot = repository.snapshot(branch)
    schema = load_schema(repository.manifest(branch).current(), snapshot.schema_hash)
    image = {
        key: TypeImage(repository.tables.open(pin.ref).scan(), replaces_all=True, last_wins=False)
        for key, pin in snapshot.pins.items()
    }
    report = Report()
    evaluate(schema, image, _NothingStored(), report)
    for violation in report.shown:
        yield f"{branch.name}: {violation}"


def _audit(
    rows: list[AuditRow], recovered: Iterable[str], commits: dict[str, Commit]
) -> Iterator[str]:
    """Exactly one audit row per recovered operation, and it tells the truth."""
    counts = Counter(row.operation_id for row in rows)
    for operation in sorted(set(recovered) | set(counts)):
        wanted = 1 if operation in set(recovered) else 0
        if counts[operation] != wanted:
            yield f"operation {operation} has {counts[operation]} audit rows instead of {wanted}"
    undone = {
        (commit.operation_id or "").removeprefix("rollback:"): commit.commit_id
        for commit in commits.values()
        if commit.kind == "rollback"
    }
    for row in rows:
        if row.action is Action.ROLLED_FORWARD:
            makes_commit = row.commit_id is not None
            if makes_commit and row.operation_id not in commits:
                yield f"operation {row.operation_id} was rolled forward but has no commit"
        else:
            if row.operation_id in commits:
                yield f"operation {row.operation_id} was rolled back but its commit is there"
            if row.commit_id != undone.get(row.operation_id):
                yield (
                    f"operation {row.operation_id} was undone by commit "
                    f"{undone.get(row.operation_id)}, its audit row says {row.commit_id}"
                )
    for commit in commits.values():
        if commit.kind == "rollback" and commit.actor != RECOVERY_ACTOR:
            yield f"roll-back commit {commit.commit_id} has the actor {commit.actor}"
