"""From text to terms: words, lower case, no stop words, stems.

One analysis for stored texts and for queries. Words are runs of letters, marks and digits.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.search.stem import stem

ANALYSIS: Final = "analysis-1"
"""Names what is done below: words that were found otherwise do not go with these terms."""
_SEPARATORS: Final = r"[^\p{L}\p{M}\p{N}]+"
STOP_WORDS: Final = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is"),
        *("it", "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there"),
        *("these", "they", "this", "to", "was", "will", "with"),
    )
)


class Term(NamedTuple):
    """A word of a query: where it stands among all words, and what is looked for."""

    place: int
    word: str
    stem: str


def split_words(texts: pa.Array) -> pa.ListArray:
    """The words of every text, with an empty one where a text begins or ends with none."""
    return pc.split_pattern_regex(pc.utf8_lower(texts), _SEPARATORS)


def words_of(text: str) -> list[str]:
    """The words of one text."""
    found = split_words(pa.array([text], type=pa.string()))[0].as_py()
    return [word for word in found if word]


def terms_of(text: str) -> list[Term]:
    """What a query looks for; stop words leave a gap."""
    return [
        Term(place, word, stem(word))
        for place, word in enumerate(words_of(text))
        if word not in STOP_WORDS
    ]
