"""Members of enums that get another name: what hints say, and what becomes of stored values.

A member has no identity of its own. ``@rename_member`` says which one continues which; the pairs
stay with the property, so that values written before, on whatever branch, are understood later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from omnigraph.lang.schema.parts import Property
from omnigraph.lang.syntax import Span

Renamed = tuple[tuple[str, str], ...]


class MemberHint(NamedTuple):
    """``@rename_member(old, to=new)``."""

    old: str
    new: str
    span: Span


def renamed_values(before: Property, after: Property) -> dict[str, str]:
    """Stored values that are called otherwise afterwards, by what they were."""
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
    """What members were called, with what the hints add; refuses those that are ambiguous."""
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
