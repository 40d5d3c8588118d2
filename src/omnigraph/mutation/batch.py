"""A batch of entity changes made from Python: collected in memory, committed as one commit.

    with graph.write(message="new colleague") as w:
        ana = w.upsert("Person", {"name": "ana", "age": 30})
        w.insert_edge("Knows", ana, "bo", {"since": 2024})
        w.update("Person", "bo", {"age": 41})
        w.delete("Person", "cy")

The calls take effect in their order when the block ends. Before that, nothing is checked against
the graph and nothing is visible. If the block raises an exception, nothing is written.

=============  =======================  ======================
call           the entity exists        it does not
=============  =======================  ======================
``insert``     ``KeyConflict``          is inserted
``upsert``     given values are set     is inserted
``replace``    is replaced as a whole   is inserted
``update``     given values are set     ``EntityNotFound``
``delete``     is deleted               no effect
=============  =======================  ======================

After an optimistic conflict a batch without updates and deletes is prepared again on the newer
state; one with them raises the conflict, because the caller may have decided on older values.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnigraph.catalog.rows import Commit
from omnigraph.constraints import Report
from omnigraph.errors import InvalidInput, SchemaChanged
from omnigraph.lang.schema import DST, SRC, EdgeType, NodeType, entity_id
from omnigraph.model.arguments import utf8_problem
from omnigraph.model.ids import new_ulid
from omnigraph.mutation.batch_replay import BatchOperation, Replay, Verb
from omnigraph.prepare.blob_policy import BlobPolicy
from omnigraph.prepare.committer import Attempt, Committer, Outcome, Prepared, WriteOptions
from omnigraph.prepare.entity_rows import Row, accept_given, accept_row, accept_value
from omnigraph.prepare.preparer import Preparer
from omnigraph.storage.lance.tables import TableRef
from omnigraph.transaction.prepared import PreparedWrite


class Batch:
    """Collects changes and makes them one commit.

    ``result`` is that commit after the block; None when nothing changed.
    """

    def __init__(self, committer: Committer, options: WriteOptions, blobs: BlobPolicy) -> None:
        self._committer = committer
        self._options = options
        self._blobs = blobs
        start = committer.begin(options.branch)
        self._schema = start.schema
        self._schema_hash = start.snapshot.schema_hash
        self._operations: list[BatchOperation] = []
        self._made: dict[str, int] = {}
        self._with_blobs: dict[str, bool] = {}
        self._calls = hashlib.sha256()
        self.result: Commit | None = None

    # -- collecting --------------------------------------------------------------------------------

    def insert(self, type_name: str, values: Mapping[str, Any], *, id: str | None = None) -> str:
        """Add a node; returns its id. Fails with ``KeyConflict`` when the node exists already.

        The id follows from the key. A node of a type without a key gets a new one, or ``id``.
        """
        node = self._node(type_name)
        row = accept_row(node, _mapping(values))
        return self._collect("insert", node, self._node_id(node, row, id), row)

    def upsert(self, type_name: str, values: Mapping[str, Any], *, id: str | None = None) -> str:
        """Set the given properties of a node, or add the node; returns its id.

        A node of a type without a key needs ``id``. A null for a property with a default sets the
        default, whether the node exists or not.
        """
        node = self._node(type_name)
        given = accept_given(node, _mapping(values))
        return self._collect("upsert", node, self._existing_id(node, given, id), given)

    def replace(self, type_name: str, values: Mapping[str, Any], *, id: str | None = None) -> str:
        """Add a node, or replace it: properties that are not given are null or their default.

        A node of a type without a key needs ``id``. Edges of the node stay.
        """
        node = self._node(type_name)
        row = accept_row(node, _mapping(values))
        return self._collect("replace", node, self._existing_id(node, row, id), row)

    def update(self, type_name: str, id: str, values: Mapping[str, Any]) -> None:
        """Change some properties of a node that exists."""
        node = self._node(type_name)
        changed = _mapping(values)
        touched = sorted(set(changed) & set(node.key_properties))
        if touched:
            raise InvalidInput(
                f"{touched[0]} is part of the key of {type_name} and cannot change",
                remedy="Delete the node and insert it with its new key.",
            )
        changed = {name: accept_value(node, name, value) for name, value in changed.items()}
        self._collect("update", node, _text(id, "the id of a node"), changed)

    def delete(self, type_name: str, id: str) -> None:
        """Delete a node and the edges it has at this point; no effect if it does not exist."""
        self._collect("delete", self._node(type_name), _text(id, "the id of a node"), {})

    # -- collecting edges --------------------------------------------------------------------------

    def insert_edge(
        self,
        type_name: str,
        source: str,
        target: str,
        values: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
    ) -> str:
        """Add an edge between two node ids; returns the edge's id, which is new or ``id``.

        Its ends may come later in the batch. Fails with ``KeyConflict`` when ``id`` exists already.
        """
        edge = self._edge(type_name)
        row = accept_row(edge, _mapping(values)) | _ends(source, target)
        return self._collect("insert", edge, self._made_id() if id is None else _edge_id(id), row)

    def upsert_edge(
        self,
        type_name: str,
        source: str,
        target: str,
        values: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
    ) -> None:
        """Set the given properties of the edge ``id``, or add it.

        Without an id: add an edge, unless one with the same ends and the same value of every
        property (absent is null) exists.
        """
        edge = self._edge(type_name)
        if id is None:
            row = accept_row(edge, _mapping(values)) | _ends(source, target)
            self._collect("upsert", edge, None, row)
            return
        given = accept_given(edge, _mapping(values)) | _ends(source, target)
        self._collect("upsert", edge, _edge_id(id), given)

    def replace_edge(
        self,
        type_name: str,
        source: str,
        target: str,
        values: Mapping[str, Any] | None = None,
        *,
        id: str,
    ) -> None:
        """Add the edge ``id``, or replace it, ends included."""
        edge = self._edge(type_name)
        row = accept_row(edge, _mapping(values)) | _ends(source, target)
        self._collect("replace", edge, _edge_id(id), row)

    def update_edge(self, type_name: str, id: str, values: Mapping[str, Any]) -> None:
        """Change some properties of an edge that exists; its ends stay."""
        edge = self._edge(type_name)
        changed = {n: accept_value(edge, n, value) for n, value in _mapping(values).items()}
        self._collect("update", edge, _edge_id(id), changed)

    def delete_edge(self, type_name: str, id: str) -> None:
        """Delete an edge; no effect if it does not exist."""
        self._collect("delete", self._edge(type_name), _edge_id(id), {})

    # -- committing --------------------------------------------------------------------------------

    def commit(self) -> Outcome[None]:
        """Commit all collected changes, or none."""
        outcome = self._committer.run(self._options, self._prepare, digest=self._calls.hexdigest)
        self.result = outcome.commit
        return outcome

    def _prepare(self, attempt: Attempt) -> Prepared[None]:
        if attempt.snapshot.schema_hash != self._schema_hash:
            raise SchemaChanged(self._schema_hash, attempt.snapshot.schema_hash)
        preparer = Preparer(attempt.repository, attempt.snapshot, attempt.schema)
        effects = Replay(attempt.schema, preparer.stored, self._operations, self._made).run()
        report = Report()
        preparer.check(effects.image, report, cascaded=True)
        report.raise_any()
        prepared = preparer.stage(effects.image, self._options.info, known=effects.known)
        if not prepared.tables:
            return Prepared(None)
        return Prepared(
            replace(prepared, reads=self._reads(attempt, prepared)),
            rows_written=Counter(operation.owner.key for operation in self._operations),
            repeatable=self._may_repeat(),
        )

    def _reads(self, attempt: Attempt, prepared: PreparedWrite) -> dict[str, TableRef]:
        """Types that the batch read but does not write: an upsert found its values there."""
        written = {table.pin.key for table in prepared.tables}
        keys = {op.owner.key for op in self._operations if op.verb == "upsert"} - written
        return {key: attempt.snapshot.pin(key).ref for key in sorted(keys)}

    def _may_repeat(self) -> bool:
        """Whether no operation depends on what the caller had read, as updates and deletes do."""
        return all(op.verb not in ("update", "delete") for op in self._operations)

    def _collect(self, verb: Verb, owner: NodeType | EdgeType, id: str | None, values: Row) -> str:
        if self._has_blobs(owner):
            values = self._blobs.settle_row(owner, values)
        self._note(verb, owner, id, values)
        self._operations.append(BatchOperation(verb, owner, id, values))
        return id or ""

    def _has_blobs(self, owner: NodeType | EdgeType) -> bool:
        found = self._with_blobs.get(owner.key)
        if found is None:
            found = any(item.type.is_blob for item in owner.properties.values())
            self._with_blobs[owner.key] = found
        return found

    def _note(self, verb: str, owner: NodeType | EdgeType, id: str | None, values: Row) -> None:
        """Add a call to the digest of the request, with generated ids replaced by their number:
        they differ when the request is repeated."""
        made, given = self._made, values
        if made and owner.endpoints:
            given = dict(values)
            for name in owner.endpoints:
                if name in given:
                    given[name] = made.get(given[name], given[name])
        call = (verb, owner.key, made.get(id or "", id), sorted(given.items()))
        self._calls.update(repr(call).encode())

    def _made_id(self) -> str:
        id = new_ulid()
        self._made[id] = len(self._made)
        return id

    def _node_id(self, node: NodeType, row: Row, given: str | None) -> str:
        """The id that the key derives, or else the given one, or else a new one."""
        found = entity_id(node, row)
        if given is None:
            return found or self._made_id()
        if found is not None and found != _text(given, "the id of a node"):
            raise InvalidInput(
                f"the key of {node.name} gives the id {found!r}, not {given!r}",
                remedy="Leave out the id: it is derived from the key.",
                details={"type_key": node.key, "id": given},
            )
        return _text(given, "the id of a node")

    def _existing_id(self, node: NodeType, row: Row, given: str | None) -> str:
        """The id of a node that may exist already."""
        if given is None and not node.key_properties:
            raise InvalidInput(
                f"{node.name} has no key, so the node must be given by id",
                remedy="Pass id=, or use insert to add a node with a new id.",
                details={"type_key": node.key},
            )
        return self._node_id(node, row, given)

    def _node(self, name: str) -> NodeType:
        found = self._schema.type(f"node:{_text(name, 'the name of a type')}")
        assert isinstance(found, NodeType)
        return found

    def _edge(self, name: str) -> EdgeType:
        found = self._schema.type(f"edge:{_text(name, 'the name of a type')}")
        assert isinstance(found, EdgeType)
        return found


def _mapping(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """The given values as a dictionary; raises unless they are a mapping of property names."""
    if values is None:
        return {}
    if type(values) is not dict and not isinstance(values, Mapping):
        raise InvalidInput(
            f"the values of an entity must be a mapping of property names, not {_kind(values)}",
            remedy='Pass a dictionary, such as {"name": "ana"}.',
        )
    for name in values:
        if not isinstance(name, str):
            raise InvalidInput(f"the name of a property must be a string, not {_kind(name)}")
    return dict(values)


def _text(value: str, what: str) -> str:
    """A string that is valid UTF-8; raises otherwise."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a string, not {_kind(value)}", remedy="Pass a string.")
    problem = None if value.isascii() else utf8_problem(value)
    if problem is not None:
        raise InvalidInput(
            f"{what} {value!a} is not valid UTF-8: {problem}", remedy="Pass it in UTF-8."
        )
    return value


def _edge_id(value: str) -> str:
    return _text(value, "the id of an edge")


def _ends(source: str, target: str) -> Row:
    return {
        SRC: _text(source, "the source of an edge"),
        DST: _text(target, "the target of an edge"),
    }


def _kind(value: object) -> str:
    return type(value).__name__
