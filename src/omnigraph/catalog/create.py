"""Creates a graph: all tables first, the manifest last.

The graph exists once its manifest does, and the manifest is created exclusively and complete in one
step. A crash before that leaves orphaned tables; the next ``init`` at the same location gives its
tables other paths. Of two concurrent ``init``s the one whose manifest comes second fails and
removes its tables.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from omnigraph.catalog.commit_text import check_text
from omnigraph.catalog.format import stamp
from omnigraph.catalog.history.commits import find_commit
from omnigraph.catalog.repository import Repository
from omnigraph.catalog.rows import (
    MAIN,
    MANIFEST_PATH,
    Commit,
    Head,
    Row,
    TablePin,
    manifest_schema,
    rows_to_arrow,
)
from omnigraph.catalog.schemas import schema_id, schema_row
from omnigraph.errors import GraphExists, OmnigraphError, OutcomeUnknown
from omnigraph.lang.schema import AcceptedSchema, EdgeType, NodeType
from omnigraph.model import outcome
from omnigraph.model.ids import new_ulid
from omnigraph.settings import Settings
from omnigraph.storage.failpoints import hit
from omnigraph.storage.lance.arrow_schema import table_schema
from omnigraph.storage.lance.errors import AmbiguousOutcome, TableExists, TableNotFound
from omnigraph.storage.lance.tables import operation_properties
from omnigraph.storage.locations import Location
from omnigraph.storage.objects.store import ObjectStore
from omnigraph.storage.paths import table_path

log = logging.getLogger("omnigraph.init")

PURGED = "PURGED"
"""A marker object at the path of a purged table: a path is never reused."""


def create_graph(
    location: Location,
    schema: AcceptedSchema,
    *,
    actor: str | None = None,
    objects: ObjectStore | None = None,
    settings: Settings | None = None,
) -> Repository:
    """Create a graph with this schema; raises ``GraphExists`` if the location has one."""
    check_text("actor", actor)
    repository = Repository(location, objects=objects, settings=settings)
    if repository.was_created():
        raise _exists(location)
    repository.objects.ensure_writable()
    commit = Commit(
        commit_id=new_ulid(),
        branch=MAIN,
        kind="init",
        created_at_us=repository.clock.now_us(),
        actor=actor,
        schema_hash=schema_id(schema),
    )
    commit = replace(commit, operation_id=commit.commit_id)
    made: list[str] = []
    try:
        hit("init.before_tables")
        pins = [create_table(repository, t, commit.commit_id, made) for t in schema.types()]
    except OmnigraphError:
        discard_tables(repository, made)
        raise
    try:
        hit("init.before_manifest")
        _create_manifest(repository, schema, pins, commit)
        hit("init.after_manifest")
    except (TableExists, TableNotFound, AmbiguousOutcome) as failure:
        if not _is_ours(repository, objects, commit, failure):
            discard_tables(repository, made)
            raise _exists(location) from failure
    except OmnigraphError:
        discard_tables(repository, made)
        raise
    except BaseException:
        _report_created(repository, commit)
        raise
    outcome.committed(commit.commit_id)
    return Repository.open(location, objects=objects, settings=repository.settings)


def _report_created(repository: Repository, commit: Commit) -> None:
    """Report to the outcome of this call that the graph exists, if an interrupt came afterwards."""
    try:
        if find_commit(repository.main.current(), commit.commit_id) is not None:
            outcome.committed(commit.commit_id)
    except TableNotFound:
        return
    except BaseException:
        outcome.undecided(commit.commit_id)


def _is_ours(
    repository: Repository, objects: ObjectStore | None, commit: Commit, failure: OmnigraphError
) -> bool:
    """After an ambiguous outcome: whether the existing graph is the one created here."""
    location = repository.location
    try:
        again = Repository.open(location, objects=objects, settings=repository.settings)
        found = again.main.current()
    except OmnigraphError as second:
        raise OutcomeUnknown(
            f"it is unknown whether the graph at {location.uri} was created: {failure.message}",
            remedy="Check with `omnigraph snapshot`; if there is no graph, run init again.",
        ) from second
    return find_commit(found, commit.commit_id) is not None


def create_table(
    repository: Repository,
    entity_type: NodeType | EdgeType,
    operation_id: str,
    made: list[str],
    *,
    kind: str = "init",
    owner: str = MAIN,
    suffix: str = "",
) -> TablePin:
    """Create the empty table of a type and append its path to ``made``; nothing refers to it yet.

    ``suffix`` distinguishes the tables of one incarnation that two branches create.
    """
    properties = operation_properties(operation_id, kind)
    columns = table_schema(entity_type)
    try:
        path = table_path(entity_type.key)
        if kind != "init" and repository.objects.exists(f"{path}/{PURGED}"):
            raise TableExists(f"{path} was used before")
        table = repository.tables.create(path, columns, properties)
    except (TableExists, TableNotFound):
        # The path belongs to another incarnation, is orphaned, or is in use by a concurrent init.
        path = table_path(entity_type.key, f"{entity_type.incarnation}{suffix}")
        table = repository.tables.create(path, columns, properties)
    made.append(path)
    hit("create.after_table")
    creation = repository.tables.transaction(table.ref).uuid
    return TablePin(
        entity_type.key,
        table.ref,
        0,
        entity_type.type_id,
        entity_type.incarnation,
        str(creation),
        owner,
    )


def _create_manifest(
    repository: Repository, schema: AcceptedSchema, pins: list[TablePin], commit: Commit
) -> None:
    rows: list[Row] = [schema_row(schema)]
    for pin in pins:
        rows += [pin.to_row(), pin.to_version_row()]
    rows += [commit.to_row(), Head(commit.commit_id, schema_id(schema), MAIN).to_row()]
    repository.tables.create(
        MANIFEST_PATH,
        manifest_schema(stamp(new_ulid())),
        operation_properties(commit.commit_id, "init"),
        rows_to_arrow(rows),
    )


def discard_tables(repository: Repository, made: list[str]) -> None:
    """Remove tables that nothing refers to; a failure only leaves orphaned files."""
    for path in made:
        try:
            repository.objects.delete_prefix(path)
        except OmnigraphError as error:
            log.warning("could not remove the unused table %s: %s", path, error.message)


def _exists(location: Location) -> GraphExists:
    return GraphExists(f"a graph exists already at {location.uri}", details={"uri": location.uri})
