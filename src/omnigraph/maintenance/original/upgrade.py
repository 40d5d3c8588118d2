"""Brings a graph of the original over, in place: shows what would be done, or does it.

In order: the original's own migrations on every branch, its recovery records, then one publish in
our layout. Each step is idempotent, so a conversion that was killed is finished by the next one.
"""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.catalog.branches.registry import Branch
from omnigraph.catalog.format import internal_version
from omnigraph.catalog.format_version import INTERNAL_VERSION
from omnigraph.catalog.migrations.legacy import Lineage
from omnigraph.catalog.migrations.step import MigrationTarget
from omnigraph.catalog.migrations.upgrade import (
    BranchUpgrade,
    Conversion,
    PlannedMigration,
    ResolvedRecord,
    UpgradeReport,
)
from omnigraph.catalog.original.reader import OriginalReader
from omnigraph.catalog.original.refs import read_refs
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import MAIN, MANIFEST_PATH, Commit
from omnigraph.catalog.state import ManifestState
from omnigraph.errors import CorruptData
from omnigraph.maintenance.fsck.tables import TableCheck
from omnigraph.maintenance.original.convert import (
    publish_converted,
    remove_leftovers,
    seen_branches,
)
from omnigraph.maintenance.original.records import RecordDecision
from omnigraph.maintenance.original.resolve import RecordResolver
from omnigraph.maintenance.original.schema_files import staged_files
from omnigraph.maintenance.original.steps import migrate, steps_of
from omnigraph.maintenance.original.watch import require_quiet
from omnigraph.storage.lance.files.table_files import group_by_table
from omnigraph.storage.lance.tables import PinnedTable


def check_original(repository: Repository) -> UpgradeReport:
    """What a conversion would do. Reads only."""
    branches = tuple(_planned(repository, target) for target in _targets(repository))
    records = _conversion(RecordResolver(repository).preview())
    return UpgradeReport(False, INTERNAL_VERSION, branches, records)


def convert_original(repository: Repository) -> UpgradeReport:
    """Convert an original in place. What can be found out by reading is refused before."""
    _require_readable(repository)
    require_quiet(repository.objects, repository.settings.limits.upgrade_watch_s)
    repository.objects.ensure_writable()
    repository.tables.relocates = True
    branches = []
    for target in _targets(repository):
        branches.append(_planned(repository, target))
        migrate(target, _commits(repository, target.branch))
    records = _conversion(RecordResolver(repository).resolve())
    publish_converted(repository, seen_branches(repository))
    remove_leftovers(repository)
    return UpgradeReport(True, INTERNAL_VERSION, tuple(branches), records)


def _require_readable(repository: Repository) -> None:
    """Raise what is wrong with the graph, if anything is, while nothing has been written."""
    view = Repository(repository.location, objects=repository.objects, settings=repository.settings)
    RecordResolver(view).preview()
    reader = OriginalReader(view.tables)
    stored, _ = group_by_table(view.objects.list())
    for target in _targets(view):
        table = target.newest()
        reader.commits(table, target.branch)
        if staged_files(view.objects):
            continue  # the schema files may be between two states
        state = reader.load(table, target.branch)
        state.timeline.read_commits(range(len(state.timeline.commits)))
        branch = Branch(target.branch, target.branch)
        for pin in state.pins.values():
            check = TableCheck(view, branch, pin, stored.get(pin.ref.path, {}), {})
            for finding in check.files(view.tables.open(pin.ref)):
                raise CorruptData(
                    f"{pin.key} of branch {target.branch!r} is damaged: {finding.message}",
                    details={"path": pin.ref.path},
                )


def _targets(repository: Repository) -> list[MigrationTarget]:
    """The manifest of every branch, main first."""
    main = repository.tables.open_newest(MANIFEST_PATH)
    refs = read_refs(repository.objects, internal_version(main))
    names: list[tuple[str, str | None]] = [(MAIN, None), *((ref.name, ref.name) for ref in refs)]
    return [MigrationTarget(repository.tables, *name, _never) for name in names]


def _never(state: ManifestState) -> Lineage:
    raise AssertionError("the original's steps read commits by themselves")


def _commits(repository: Repository, branch: str) -> Callable[[PinnedTable], list[Commit]]:
    """Reads the commits of a branch, wherever its version keeps them."""
    reader = OriginalReader(repository.tables)
    return lambda table: reader.commits(table, branch)


def _planned(repository: Repository, target: MigrationTarget) -> BranchUpgrade:
    """The steps that a branch needs, with what each would touch."""
    found = internal_version(target.newest())
    steps = [
        PlannedMigration(s.source, s.description, tuple(s.preview(target)))
        for s in steps_of(found, _commits(repository, target.branch))
    ]
    return BranchUpgrade(target.branch, found, tuple(steps))


def _conversion(decided: list[RecordDecision]) -> Conversion:
    return Conversion(
        tuple(
            ResolvedRecord(
                one.record.operation_id, one.record.branch, str(one.record.writer), str(one.verdict)
            )
            for one in decided
        )
    )
