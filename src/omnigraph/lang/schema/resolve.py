"""Converts declarations to types: resolves names, flattens interfaces, checks constraints.

Reports every semantic error of a text. The types have no ids yet; ``identity`` adds them. If a part
of the text has syntax errors, unknown names are not reported, because that part may declare them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from omnigraph.lang.schema.annotations import Hint, PropertyNotes, property_notes, type_notes
from omnigraph.lang.schema.catalog import EdgeType, InterfaceType, NodeType
from omnigraph.lang.schema.change.members import MemberHint
from omnigraph.lang.schema.constraints import Constraints, ConstraintUse, canonical, written
from omnigraph.lang.schema.names import reserved_problem
from omnigraph.lang.schema.parse.ast import (
    EdgeDecl,
    InterfaceDecl,
    Name,
    NodeDecl,
    PropertyDecl,
    SchemaFile,
    TypeKind,
)
from omnigraph.lang.schema.parse.parser import CONSTRAINT_WORDS
from omnigraph.lang.schema.parts import ANY_NUMBER, EdgeCardinality, Property
from omnigraph.lang.syntax import Diagnostics

_Decl = TypeVar("_Decl", InterfaceDecl, NodeDecl, EdgeDecl)


@dataclass(frozen=True, slots=True)
class Hints:
    """Rename hints: of types by (kind, type), of properties and enum members by (kind, type,
    property)."""

    types: dict[tuple[TypeKind, str], Hint]
    properties: dict[tuple[TypeKind, str, str], Hint]
    members: dict[tuple[TypeKind, str, str], tuple[MemberHint, ...]]


@dataclass(frozen=True, slots=True)
class Resolved:
    """All types of a text, in name order, without ids."""

    interfaces: dict[str, InterfaceType]
    nodes: dict[str, NodeType]
    edges: dict[str, EdgeType]
    hints: Hints


@dataclass(frozen=True, slots=True)
class _Member:
    """A property of a type under construction, with its annotations."""

    declaration: PropertyDecl
    notes: PropertyNotes
    interface: str | None = None

    @property
    def name(self) -> str:
        return self.declaration.name.text

    def same_meaning(self, other: _Member) -> bool:
        """Whether two interfaces declare a property of this name in the same way."""
        mine, theirs = self.notes, other.notes
        return (
            self.declaration.type.type == other.declaration.type.type
            and [word for word, _ in mine.sugar] == [word for word, _ in theirs.sugar]
            and (mine.embed, mine.description, mine.custom, mine.default, mine.vector)
            == (theirs.embed, theirs.description, theirs.custom, theirs.default, theirs.vector)
        )


def resolve(file: SchemaFile, diagnostics: Diagnostics) -> Resolved:
    return _Resolver(file, diagnostics).run()


class _Resolver:
    def __init__(self, file: SchemaFile, diagnostics: Diagnostics) -> None:
        self.file = file
        self.diagnostics = diagnostics
        self.hints = Hints({}, {}, {})
        self.members: dict[str, dict[str, _Member]] = {}
        """Properties of each interface."""

    def run(self) -> Resolved:
        file = self.file
        interfaces = self.by_name(file.interfaces, "interface")
        nodes = self.by_name(file.nodes, "node")
        edges = self.by_name(file.edges, "edge")
        self.fold_case(edges)
        return Resolved(
            {name: self.interface(item) for name, item in interfaces.items()},
            {name: self.node(item) for name, item in nodes.items()},
            {name: self.edge(item, nodes) for name, item in edges.items()},
            self.hints,
        )

    def by_name(self, declarations: Sequence[_Decl], kind: TypeKind) -> dict[str, _Decl]:
        """Declarations in name order; of several with one name the first is used."""
        found: dict[str, _Decl] = {}
        for item in declarations:
            name = item.name.text
            if name in found:
                self.duplicate(f"{kind} type `{name}`", item.name, found[name].name)
            else:
                found[name] = item
        return dict(sorted(found.items()))

    def duplicate(self, what: str, name: Name, first: Name) -> None:
        line = self.file.source.position(first.span.start).line
        self.diagnostics.error(
            "S40",
            f"{what} is declared twice, first on line {line}",
            name.span,
            remedy="Rename or remove one of them.",
        )

    def fold_case(self, edges: Mapping[str, EdgeDecl]) -> None:
        """Report edge types whose names differ only in case, which queries ignore."""
        seen: dict[str, str] = {}
        for name, item in sorted(edges.items(), key=lambda pair: pair[1].span):
            other = seen.setdefault(name.lower(), name)
            if other != name:
                self.diagnostics.error(
                    "S50",
                    f"edge types `{other}` and `{name}` differ only in the case of letters",
                    item.name.span,
                    remedy="Give one of them another name.",
                )

    def reserved(self, name: Name, kind: TypeKind) -> None:
        problem = reserved_problem(name.text, kind)
        if problem is not None:
            code, why = problem
            self.diagnostics.error(
                code,
                f"the property name `{name.text}` is {why}",
                name.span,
                remedy="Choose another name.",
            )

    def interface(self, item: InterfaceDecl) -> InterfaceType:
        name = item.name.text
        misplaced = [part.span for part in item.annotations]
        misplaced += [part.span for part in item.constraints]
        for span in misplaced:
            self.diagnostics.error(
                "S7",
                "an interface has only properties, no constraints and no annotations of its own",
                span,
                remedy="Put it on a property, or into the node types.",
            )
        members = self.own_members(item.properties, "interface", name)
        self.members[name] = members
        properties = self.properties(members)
        self.check_embeds(members, properties, f"interface {name}", missing_is_error=False)
        uses = _annotated(members.values())
        # One by one: several keys are an error of the node type that inherits them.
        for use in uses:
            self.constraints([use], item, "interface", properties)
        return InterfaceType(
            name=name,
            properties=properties,
            keys=tuple(use.columns[0] for use in uses if use.kind == "key"),
            unique=tuple(use.columns for use in uses if use.kind == "unique"),
            indexes=tuple(use.columns for use in uses if use.kind == "index"),
        )

    def node(self, item: NodeDecl) -> NodeType:
        name = item.name.text
        notes = type_notes(item.annotations, self.diagnostics)
        if notes.hint:
            self.hints.types[("node", name)] = notes.hint
        own = self.own_members(item.properties, "node", name)
        members = self.inherit(item, own)
        properties = self.properties(members)
        self.check_embeds(members, properties, f"node type {name}", missing_is_error=True)
        uses = [*_annotated(members.values()), *map(written, item.constraints)]
        found = self.constraints(uses, item, "node", properties)
        return NodeType(
            name=name,
            properties=properties,
            unique=found.unique,
            indexes=found.indexes,
            description=notes.description,
            instruction=notes.instruction,
            annotations=notes.custom,
            key_columns=found.key,
            ranges=found.ranges,
            checks=found.checks,
            implements=tuple(sorted({used.text for used in item.implements})),
        )

    def edge(self, item: EdgeDecl, nodes: Mapping[str, NodeDecl]) -> EdgeType:
        name = item.name.text
        notes = type_notes(item.annotations, self.diagnostics)
        if notes.hint:
            self.hints.types[("edge", name)] = notes.hint
        self.endpoint(item.source, "source", nodes)
        self.endpoint(item.target, "target", nodes)
        members = self.own_members(item.properties, "edge", name)
        properties = self.properties(members)
        uses = [*_annotated(members.values()), *map(written, item.constraints)]
        found = self.constraints(uses, item, "edge", properties)
        return EdgeType(
            name=name,
            properties=properties,
            unique=found.unique,
            indexes=found.indexes,
            description=notes.description,
            instruction=notes.instruction,
            annotations=notes.custom,
            source=item.source.text,
            target=item.target.text,
            cardinality=self.cardinality(item),
        )

    def endpoint(self, name: Name, end: str, nodes: Mapping[str, NodeDecl]) -> None:
        if name.text in nodes or not self.file.complete:
            return
        remedy = "Declare the node type, or name one that is declared."
        if name.text in self.members:
            remedy = "An edge starts and ends at node types: an interface cannot stand here."
        self.diagnostics.error(
            "S41",
            f"the {end} `{name.text}` is not a node type",
            name.span,
            hint=self.diagnostics.did_you_mean(name.text, nodes),
            remedy=remedy,
        )

    def cardinality(self, item: EdgeDecl) -> EdgeCardinality:
        given = item.cardinality
        if given is None:
            return ANY_NUMBER
        if given.high is not None and given.low > given.high:
            self.diagnostics.error(
                "S25",
                f"the lower bound {given.low} is above the upper bound {given.high}",
                given.span,
                remedy="Swap the bounds.",
            )
        return EdgeCardinality(given.low, given.high)

    def own_members(
        self, declarations: Sequence[PropertyDecl], kind: TypeKind, owner: str
    ) -> dict[str, _Member]:
        """The properties that a declaration has itself."""
        found: dict[str, _Member] = {}
        for item in declarations:
            name = item.name.text
            self.reserved(item.name, kind)
            if item.type.type.is_list and item.type.type.is_blob:
                self.diagnostics.error(
                    "S11",
                    "a list cannot hold Blobs",
                    item.type.span,
                    remedy="Make a node type with one Blob and an edge to it.",
                )
            notes = property_notes(item, kind, self.diagnostics)
            if name in found:
                self.duplicate(f"property `{name}`", item.name, found[name].declaration.name)
                continue
            found[name] = _Member(item, notes)
            if notes.hint:
                self.hints.properties[(kind, owner, name)] = notes.hint
            self.hints.members[(kind, owner, name)] = notes.members
        return found

    def inherit(self, item: NodeDecl, own: dict[str, _Member]) -> dict[str, _Member]:
        """The node's own properties and those of its interfaces."""
        members = dict(own)
        for used in {name.text: name for name in item.implements}.values():
            contributed = self.members.get(used.text)
            if contributed is None:
                self.unknown_interface(used)
                continue
            for name, member in contributed.items():
                present = members.get(name)
                if present is None:
                    members[name] = _Member(member.declaration, member.notes, used.text)
                    self.hints.members[("node", item.name.text, name)] = member.notes.members
                    hint = member.notes.hint
                    if hint:
                        soft = Hint(hint.old, hint.span, inherited=True)
                        self.hints.properties[("node", item.name.text, name)] = soft
                elif present.interface is None:
                    self.same_type(present, member, used)
                elif not present.same_meaning(member):
                    self.diagnostics.error(
                        "S31",
                        f"interfaces {present.interface} and {used.text} disagree about"
                        f" property `{name}`",
                        used.span,
                        remedy="Declare it the same way in both, or declare it in the node type.",
                    )
        return members

    def unknown_interface(self, used: Name) -> None:
        if self.file.complete:
            self.diagnostics.error(
                "S32",
                f"there is no interface `{used.text}`",
                used.span,
                hint=self.diagnostics.did_you_mean(used.text, self.members),
                remedy="Declare the interface, or remove it from `implements`.",
            )

    def same_type(self, own: _Member, inherited: _Member, used: Name) -> None:
        mine, theirs = own.declaration.type, inherited.declaration.type
        if mine.type != theirs.type:
            self.diagnostics.error(
                "S30",
                f"property `{own.name}` is `{mine.type}` here and `{theirs.type}` in interface"
                f" {used.text}",
                mine.span,
                remedy=f"Use `{theirs.type}`, or do not implement {used.text}.",
            )

    def properties(self, members: Mapping[str, _Member]) -> dict[str, Property]:
        return {
            name: Property(
                name=name,
                type=member.declaration.type.type,
                description=member.notes.description,
                embed=member.notes.embed,
                default=member.notes.default,
                vector=member.notes.vector,
                annotations=() if member.interface else member.notes.custom,
                inherited=member.interface is not None,
            )
            for name, member in sorted(members.items())
        }

    def check_embeds(
        self,
        members: Mapping[str, _Member],
        properties: Mapping[str, Property],
        owner: str,
        *,
        missing_is_error: bool,
    ) -> None:
        """The source of an embedding must be a String property of the same type."""
        for member in members.values():
            embed, span = member.notes.embed, member.notes.embed_span
            if embed is None:
                continue
            source = properties.get(embed.source)
            if source is None and missing_is_error:
                self.diagnostics.error(
                    "S18",
                    f"`@embed` names `{embed.source}`, which {owner} does not have",
                    span,
                    hint=self.diagnostics.did_you_mean(embed.source, properties),
                )
            elif source is not None and not source.type.is_plain_string:
                self.diagnostics.error(
                    "S18",
                    f"the source `{embed.source}` of an embedding is `{source.type}`, not a String",
                    span,
                )

    def constraints(
        self,
        uses: Sequence[ConstraintUse],
        item: InterfaceDecl | NodeDecl | EdgeDecl,
        kind: TypeKind,
        properties: Mapping[str, Property],
    ) -> Constraints:
        owner = f"{kind} type {item.name.text}" if kind != "interface" else item.name.text
        return canonical(uses, owner, kind, properties, self.diagnostics)


def _annotated(members: Iterable[_Member]) -> list[ConstraintUse]:
    """Constraints written as annotations of properties."""
    return [
        ConstraintUse(CONSTRAINT_WORDS[word], (member.name,), span, interface=member.interface)
        for member in sorted(members, key=lambda member: member.name)
        for word, span in member.notes.sugar
    ]
