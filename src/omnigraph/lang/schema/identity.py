"""Matches declarations with the accepted schema and mints ids for new ones.

A declaration continues the accepted one of the same kind and name, else the one that its
``@rename_from`` names; otherwise it is new. A declaration never gets the id of a dropped one. Ids
are minted in a fixed order: types by kind and name, properties by owner and name, incarnations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from omnigraph.lang.schema.annotations import Hint
from omnigraph.lang.schema.catalog import AcceptedSchema, EdgeType, InterfaceType, NodeType
from omnigraph.lang.schema.change.members import follow_hints
from omnigraph.lang.schema.parse.ast import TypeKind
from omnigraph.lang.schema.parts import Origin, Property
from omnigraph.lang.schema.resolve import Resolved
from omnigraph.lang.syntax import Diagnostic, Diagnostics, Span

_AnyType = InterfaceType | NodeType | EdgeType
_Matched = dict[str, tuple[_AnyType | None, dict[str, Property]]]
"""By type key: the accepted type, and the accepted property of each property name."""

_Entity = TypeVar("_Entity", NodeType, EdgeType)
_Kept = TypeVar("_Kept", InterfaceType, NodeType, EdgeType)


def identify(
    resolved: Resolved,
    previous: AcceptedSchema | None,
    mint: Callable[[], str],
    diagnostics: Diagnostics,
) -> Resolved:
    """The same types with their ids. Nothing is minted if a hint is invalid."""
    matcher = _IdentityMatcher(resolved, previous, diagnostics)
    errors = diagnostics.error_count
    matched = matcher.match()
    if diagnostics.error_count != errors:
        return resolved
    return _Minter(matched, mint).give(resolved)


class _IdentityMatcher:
    """Finds the accepted type and the accepted properties that each declaration continues."""

    def __init__(
        self, resolved: Resolved, previous: AcceptedSchema | None, diagnostics: Diagnostics
    ) -> None:
        self.resolved = resolved
        self.previous = previous
        self.diagnostics = diagnostics
        self.claims: dict[tuple[str, ...], str] = {}
        """The declarations that continue accepted names, by these names."""

    def match(self) -> _Matched:
        found: _Matched = {}
        for kind, declared in _kinds(self.resolved):
            accepted = _accepted(self.previous, kind)
            for name in declared:
                if name in accepted:
                    self.claims[(kind, name)] = name
            for name, item in declared.items():
                errors = self.diagnostics.error_count
                before = self.match_type(kind, name, accepted)
                found[item.key] = (before, {})
                # After an error the type is unknown and all its properties would seem new.
                if self.diagnostics.error_count == errors:
                    found[item.key] = (before, self.match_properties(item, before))
        return found

    def match_type(
        self, kind: TypeKind, name: str, accepted: Mapping[str, _AnyType]
    ) -> _AnyType | None:
        exact = accepted.get(name)
        hint = self.resolved.hints.types.get((kind, name))
        if hint is None or self.inert(hint, exact is not None):
            return exact
        old = accepted.get(hint.old)
        if old is None:
            self.unknown_type(kind, hint, accepted)
            return None
        shown = f"{kind} type `{hint.old}`"
        return old if self.claim((kind, hint.old), name, hint.span, shown) else None

    def unknown_type(self, kind: TypeKind, hint: Hint, accepted: Mapping[str, _AnyType]) -> None:
        for other, types in _kinds(self.previous):
            if hint.old in types:
                self.error(
                    f"`{hint.old}` is an accepted {other}, so no {kind} can continue it", hint.span
                )
                return
        self.error(
            f"there is no accepted {kind} type `{hint.old}`",
            hint.span,
            hint=self.diagnostics.did_you_mean(hint.old, accepted),
        )

    def claim(self, what: tuple[str, ...], name: str, span: Span, shown: str) -> bool:
        """Reserve an accepted name for one declaration; reports if another has reserved it."""
        other = self.claims.setdefault(what, name)
        if other != name:
            self.error(f"{shown} is already continued by `{other}`", span)
        return other == name

    def match_properties(self, item: _AnyType, before: _AnyType | None) -> dict[str, Property]:
        """Accepted properties by their new names."""
        found: dict[str, Property] = {}
        accepted = before.properties if before else {}
        for name in item.properties:
            if name in accepted:
                found[name] = accepted[name]
                self.claims[(item.kind, item.name, name)] = name
        for name in item.properties:
            hint = self.resolved.hints.properties.get((item.kind, item.name, name))
            if hint is None or self.inert(hint, name in found):
                continue
            old = accepted.get(hint.old)
            if old is not None:
                what = (item.kind, item.name, hint.old)
                if hint.inherited and what in self.claims:
                    continue
                shown = f"property `{hint.old}` of {item.kind} type `{item.name}`"
                if self.claim(what, name, hint.span, shown):
                    found[name] = old
            elif not hint.inherited:
                self.unknown_property(item, before, hint)
        return {name: self.match_members(item, name, old) for name, old in found.items()}

    def match_members(self, item: _AnyType, name: str, before: Property) -> Property:
        """An accepted property with the renames of its enum members."""
        declared = item.properties[name]
        # For an inherited property the span is that of the declaration in the interface.
        silent = declared.inherited

        def refuse(message: str, span: Span) -> None:
            if not silent:
                self.error(message, span)

        def inert(why: str, span: Span) -> None:
            if not silent:
                self.without_effect("rename_member", why, span)

        hints = self.resolved.hints.members.get((item.kind, item.name, name), ())
        members = declared.type.enum or ()
        renamed = follow_hints(before, members, hints, refuse=refuse, inert=inert)
        fill = dict(renamed).get(before.fill, before.fill) if members else before.fill
        return replace(before, renamed=renamed, fill=fill)

    def inert(self, hint: Hint, matched: bool) -> bool:
        """Whether a hint has no effect; reports it, because the author may expect one."""
        if self.previous is not None and not matched:
            return False
        why = "this name is accepted already" if matched else "there is no accepted schema yet"
        if not hint.inherited:
            self.without_effect("rename_from", why, hint.span)
        return True

    def without_effect(self, word: str, why: str, span: Span) -> None:
        message = f"`@{word}` has no effect here: {why}"
        self.diagnostics.add(Diagnostic("V3", message, span, "info"))

    def unknown_property(self, item: _AnyType, before: _AnyType | None, hint: Hint) -> None:
        if before is None:
            self.error(
                f"{item.kind} type `{item.name}` is new, so `{hint.old}` cannot have been its"
                " property",
                hint.span,
            )
            return
        guess = self.diagnostics.did_you_mean(hint.old, before.properties)
        for _, types in _kinds(self.previous):
            for other in types.values():
                if hint.old in other.properties and guess is None:
                    guess = f"{other.kind} type `{other.name}` has one, but properties do not move"
        self.error(
            f"there is no accepted property `{hint.old}` of {item.kind} type `{before.name}`",
            hint.span,
            hint=guess,
        )

    def error(self, message: str, span: Span, hint: str | None = None) -> None:
        self.diagnostics.error(
            "V3",
            message,
            span,
            hint=hint,
            remedy="Name a declaration of the accepted schema that this text drops, or remove the"
            " hint.",
        )


class _Minter:
    """Copies the ids of accepted declarations and mints those of new ones, in a fixed order."""

    def __init__(self, matched: _Matched, mint: Callable[[], str]) -> None:
        self.matched = matched
        self.mint = mint
        self.generation = ""

    def fresh(self) -> str:
        identity = self.mint()
        self.generation = self.generation or identity
        return identity

    def give(self, resolved: Resolved) -> Resolved:
        interfaces = {name: self.type_id(item) for name, item in resolved.interfaces.items()}
        nodes = {name: self.type_id(item) for name, item in resolved.nodes.items()}
        edges = {name: self.type_id(item) for name, item in resolved.edges.items()}
        interfaces = {name: self.properties(item) for name, item in interfaces.items()}
        nodes = {name: self.properties(item) for name, item in nodes.items()}
        edges = {name: self.properties(item) for name, item in edges.items()}
        return replace(
            resolved,
            interfaces=interfaces,
            nodes={name: self.with_incarnation(item) for name, item in nodes.items()},
            edges={name: self.with_incarnation(item) for name, item in edges.items()},
        )

    def type_id(self, item: _Kept) -> _Kept:
        before = self.matched[item.key][0]
        if before is not None:
            return replace(item, type_id=before.type_id, origin=before.origin)
        identity = self.fresh()
        return replace(item, type_id=identity, origin=Origin(self.generation, item.name))

    def properties(self, item: _Kept) -> _Kept:
        accepted = self.matched[item.key][1]
        given = {
            name: self.property(declared, accepted.get(name))
            for name, declared in item.properties.items()
        }
        return replace(item, properties=given)

    def property(self, declared: Property, before: Property | None) -> Property:
        if before is not None:
            return replace(
                declared,
                property_id=before.property_id,
                origin=before.origin,
                fill=before.fill,
                computed=before.computed,
                renamed=before.renamed,
            )
        identity = self.fresh()
        return replace(
            declared, property_id=identity, origin=Origin(self.generation, declared.name)
        )

    def with_incarnation(self, item: _Entity) -> _Entity:
        before = self.matched[item.key][0]
        if isinstance(before, NodeType | EdgeType):
            return replace(item, incarnation=before.incarnation)
        return replace(item, incarnation=self.fresh())


def _kinds(
    schema: Resolved | AcceptedSchema | None,
) -> tuple[tuple[TypeKind, Mapping[str, _AnyType]], ...]:
    if schema is None:
        return ()
    return (
        ("interface", schema.interfaces),
        ("node", schema.nodes),
        ("edge", schema.edges),
    )


def _accepted(previous: AcceptedSchema | None, kind: TypeKind) -> Mapping[str, _AnyType]:
    return dict(_kinds(previous)).get(kind, {})
