"""Text analysis: tokens in lower case, without stop words, stemmed.

Stored texts and queries are analysed alike. Words are runs of letters, marks and digits.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.search.stem import stem

ANALYSIS: Final = "analysis-1"
"""The version of the analysis, part of the key of stored postings."""
_SEPARATORS: Final = r"[^\p{L}\p{M}\p{N}]+"
STOP_WORDS: Final = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is"),
        *("it", "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there"),
        *("these", "they", "this", "to", "was", "will", "with"),
    )
)


class Term(NamedTuple):
    """A word of a query: its position among all words, itself and its stem."""

    place: int
    word: str
    stem: str


def split_words(texts: pa.Array) -> pa.ListArray:
    """The words of every text; empty strings where a text starts or ends with separators."""
    return pc.split_pattern_regex(pc.utf8_lower(texts), _SEPARATORS)


def words_of(text: str) -> list[str]:
    """The words of one text."""
    found = split_words(pa.array([text], type=pa.string()))[0].as_py()
    return [word for word in found if word]


def terms_of(text: str) -> list[Term]:
    """The terms of a query; stop words leave a gap in the positions."""
    return [
        Term(place, word, stem(word))
        for place, word in enumerate(words_of(text))
        if word not in STOP_WORDS
    ]
