"""Where searchable texts come from: an earlier version, a file, or the column itself.

Splitting many texts into words takes long, and a small write changes few of them. So what was made
for an earlier version is carried over: the texts that are still there keep their postings, and
those that were written since get postings of their own. What was made from the whole column is also
kept in a file for the next process.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from omnigraph.engine.cache.version_mapping import read_fresh
from omnigraph.engine.search.analyze import ANALYSIS
from omnigraph.engine.search.postings import Postings, build_postings
from omnigraph.engine.search.text import Texts
from omnigraph.engine.tables.loaded import CachedTable

TEXTS_KEPT_MIN: Final = 20_000
"""The words of fewer texts are found again in less time than a file is worth."""


def searchable_texts(table: CachedTable, name: str) -> Texts:
    """A text property of all entities, ready to be searched."""
    # By identity: after a renaming the name may be another property's.
    what = f"texts/{table.kind.properties[name].property_id}"

    def make() -> Texts:
        made = _carried_over(table, name, what)
        if made is None:
            made = Texts.of(_found_or_made(table, name, what))
        table.recent.note(table, what)
        return made

    return table.cache.get(f"{table.key}/{what}", make)


def _carried_over(table: CachedTable, name: str, what: str) -> Texts | None:
    """The texts of an earlier version, brought up to date."""
    earlier = table.recent.before(table.ref, what)
    known: Texts | None = None if earlier is None else table.cache.peek(f"{earlier.key}/{what}")
    if earlier is None or known is None:
        return None
    delta = table.delta(earlier, follow=False, values=True)
    if delta is None:
        return None
    stored = table.stored[name]
    fresh = read_fresh(table.open(), delta, [stored])[stored]
    return known.after(delta, fresh.cast(pa.large_string()).combine_chunks(), table.rows)


def _found_or_made(table: CachedTable, name: str, what: str) -> Postings:
    if table.kept is None or table.rows < TEXTS_KEPT_MIN:
        return build_postings(table.column(name).to_arrow())
    store, place = table.kept()
    place = f"{place}/{what}/{ANALYSIS}"
    found = store.read(place)
    if found is not None:
        return Postings.from_arrays(found)
    made = build_postings(table.column(name).to_arrow())
    store.write(place, made.to_arrays())
    return made
