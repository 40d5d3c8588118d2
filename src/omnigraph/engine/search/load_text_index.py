"""Text indexes of cached tables: updated from an earlier version, read from disk, or built.

Tokenising many texts is expensive, and a small write changes few of them. So the index of an
earlier version is updated: unchanged texts keep their postings, and texts written since get
postings of their own. Postings of a whole column are also stored on disk for the next process.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from omnigraph.engine.cache.row_mapping import read_fresh
from omnigraph.engine.search.analyze import ANALYSIS
from omnigraph.engine.search.postings import Postings, build_postings
from omnigraph.engine.search.text_index import TextIndex
from omnigraph.engine.tables.loaded import CachedTable

TEXTS_STORED_MIN: Final = 20_000
"""Postings of fewer texts are rebuilt faster than a file is read."""


def load_text_index(table: CachedTable, name: str) -> TextIndex:
    """The text index of a property."""
    # By identity: after a rename the name may belong to another property.
    what = f"texts/{table.kind.properties[name].property_id}"

    def make() -> TextIndex:
        made = _updated(table, name, what)
        if made is None:
            made = TextIndex.of(_read_or_build(table, name, what))
        table.latest.note(table, what)
        return made

    return table.cache.get_or_make(f"{table.key}/{what}", make)


def _updated(table: CachedTable, name: str, what: str) -> TextIndex | None:
    """The index of an earlier version, updated; None if there is none."""
    earlier = table.latest.before(table.ref, what)
    known: TextIndex | None = None if earlier is None else table.cache.get(f"{earlier.key}/{what}")
    if earlier is None or known is None:
        return None
    delta = table.delta(earlier, follow=False, values=True)
    if delta is None:
        return None
    stored = table.stored[name]
    fresh = read_fresh(table.open(), delta, [stored])[stored]
    return known.after(delta, fresh.cast(pa.large_string()).combine_chunks(), table.rows)


def _read_or_build(table: CachedTable, name: str, what: str) -> Postings:
    if table.store_entry is None or table.rows < TEXTS_STORED_MIN:
        return build_postings(table.column(name).to_arrow())
    store, place = table.store_entry()
    place = f"{place}/{what}/{ANALYSIS}"
    found = store.read(place)
    if found is not None:
        return Postings.from_arrays(found)
    made = build_postings(table.column(name).to_arrow())
    store.write(place, made.to_arrays())
    return made
