"""Renamed members of enums.

A member has no id. ``@rename_member`` gives the old and the new name; the pairs are stored with the
property, so that values that were written under the old name, on any branch, can be converted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from omnigraph.lang.schema.parts import Property
from omnigraph.lang.syntax import Span

Renamed = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class MemberHint:
    """``@rename_member(old, to=new)``."""

    old: str
    new: str
    span: Span


def renamed_values(before: Property, after: Property) -> dict[str, str]:
    """New names of stored members, by old name."""
    members = set(after.type.enum or ())
    known = set(before.type.enum or ())
    return {old: new for old, new in after.renamed if old in known and old not in members}


def follow_hints(
    before: Property,
    members: Iterable[str],
    hints: Iterable[MemberHint],
    *,
    refuse: Callable[[str, Span], None],
    inert: Callable[[str, Span], None],
) -> Renamed:
    """The renames of the accepted property together with those of the hints.

    ``refuse`` is called for invalid hints, ``inert`` for hints without effect.
    """
    now, known = set(members), set(before.type.enum or ())
    found: dict[str, str] = {}
    for hint in hints:
        if hint.old not in known and hint.new in known:
            inert("the member has this name already", hint.span)
        elif problem := _problem(hint, now, known, found):
            refuse(problem, hint.span)
        else:
            found[hint.old] = hint.new
    earlier = {old: found.get(new, new) for old, new in before.renamed}
    kept: Mapping[str, str] = {**earlier, **found}
    return tuple(sorted((old, new) for old, new in kept.items() if old not in now and new in now))


def _problem(
    hint: MemberHint, now: set[str], known: set[str], found: Mapping[str, str]
) -> str | None:
    if hint.old not in known:
        return f"there is no accepted member `{hint.old}`"
    if hint.new not in now:
        return f"`{hint.new}` is no member of the enum"
    if hint.old in now:
        return f"`{hint.old}` is still a member, so `{hint.new}` cannot continue it"
    if hint.new in known:
        return f"`{hint.new}` is an accepted member already: two members cannot become one"
    if hint.old in found:
        return f"`{hint.old}` is already continued by `{found[hint.old]}`"
    if hint.new in found.values():
        return f"`{hint.new}` continues another member already"
    return None
