"""Posting lists with positions: the inverted index over some texts of one property.

Words are stored in lower case, unstemmed; a stem is a group of words, so that stemmed and fuzzy
searches share one structure. Texts are numbered by their position in the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.exec import integer_sets as sets
from omnigraph.engine.limits import Check
from omnigraph.engine.search.analyze import STOP_WORDS, split_words
from omnigraph.engine.search.edit_distance import Letters
from omnigraph.engine.search.stem import stem
from omnigraph.model.checkpoint import checkpoint
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints

_STRINGS: Final = ("words", "stems")
_NUMBERS: Final = ("stem_of", "starts", "texts", "counts", "sequence", "bounds", "lengths")
_WORD_BYTES: Final = 60
"""Estimated overhead per word, which may become a Python string."""
SPLIT_BYTES: Final = 1 << 18
"""Bytes of text that are tokenised together: tokens take much more memory than text."""
STEM_WORDS: Final = 1 << 12
"""Words that are stemmed between two checkpoints."""
PHRASE_WORDS: Final = 1 << 20
"""Tokens that a phrase search examines at a time."""


@dataclass(frozen=True)
class Postings:
    """``texts[starts[w]:starts[w + 1]]`` contain word ``w``, ``counts`` times each.

    ``sequence[bounds[t]:bounds[t + 1]]`` are the words of text ``t``. ``stem_of`` is the stem of
    each word, -1 for stop words. ``lengths`` is the number of words per text without stop words, -1
    for a null text.
    """

    words: pa.Array
    stems: pa.Array
    stem_of: Ints
    starts: Ints
    texts: Ints
    counts: Ints
    sequence: Ints
    bounds: Ints
    lengths: Ints

    @property
    def nbytes(self) -> int:
        arrays = sum(int(getattr(self, name).nbytes) for name in (*_STRINGS, *_NUMBERS))
        return arrays + _WORD_BYTES * len(self.words)

    def to_arrays(self) -> dict[str, Ints]:
        """The postings as numeric arrays, for the disk store."""
        found = {name: getattr(self, name) for name in _NUMBERS}
        for name in _STRINGS:
            _, bounds, letters = getattr(self, name).buffers()
            found[f"{name}_bounds"] = np.frombuffer(bounds, dtype=np.int32)
            found[f"{name}_letters"] = np.frombuffer(letters or b"", dtype=np.uint8)
        return found

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Ints]) -> Postings:
        strings = {}
        for name in _STRINGS:
            bounds, letters = arrays[f"{name}_bounds"], arrays[f"{name}_letters"]
            buffers = [None, pa.py_buffer(bounds), pa.py_buffer(letters)]
            strings[name] = pa.Array.from_buffers(pa.string(), len(bounds) - 1, buffers)
        return cls(**strings, **{name: arrays[name] for name in _NUMBERS})

    @cached_property
    def _stem_places(self) -> dict[str, int]:
        return {text: at for at, text in enumerate(self.stems.to_pylist())}

    @cached_property
    def _letters(self) -> Letters:
        return Letters(self.words)

    def holding(self, item: str) -> tuple[Ints, Ints]:
        """The texts that contain a stem, in order, with term frequencies."""
        place = self._stem_places.get(item)
        return self._texts_of(np.flatnonzero(self.stem_of == place) if place is not None else ())

    def holding_fuzzy(self, word: str, edits_max: int, check: Check) -> Ints:
        """The texts with a word within ``edits_max`` edits of this one, in order."""
        near = self._letters.near(word, edits_max, check)
        return self._texts_of(near[self.stem_of[near] >= 0])[0]

    def _texts_of(self, words: Sequence[int] | Ints) -> tuple[Ints, Ints]:
        if not len(words):
            none = np.array([], dtype=np.int64)
            return none, none
        parts = [slice(self.starts[at], self.starts[at + 1]) for at in words]
        texts = chunked.concatenate([self.texts[part] for part in parts])
        counts = chunked.concatenate([self.counts[part] for part in parts])
        if len(words) == 1:
            return texts, counts
        unique, place = chunked.unique_codes(texts)
        return unique, chunked.sums(place, counts, len(unique))

    def with_phrase(self, wanted: Sequence[tuple[int, str]], check: Check) -> Ints:
        """The texts that contain stems at these offsets from the first one, in order."""
        candidates: Ints | None = None
        for item in {item for _, item in wanted}:
            check()
            texts = self.holding(item)[0]
            candidates = texts if candidates is None else candidates[sets.among(candidates, texts)]
        assert candidates is not None
        if len(wanted) == 1 or not len(candidates):
            return candidates
        places = [(distance, self._stem_places[item]) for distance, item in wanted]
        found = []
        for part in self._batches(candidates):
            check()
            found.append(self._in_sequence(part, places))
        return np.concatenate(found)

    def _batches(self, texts: Ints) -> Iterator[Ints]:
        """The texts in batches of a bounded number of tokens."""
        ends = np.cumsum(self.bounds[texts + 1] - self.bounds[texts])
        cuts = np.searchsorted(ends, np.arange(PHRASE_WORDS, ends[-1], PHRASE_WORDS))
        yield from (part for part in np.split(texts, cuts) if len(part))

    def _in_sequence(self, texts: Ints, wanted: Sequence[tuple[int, int]]) -> Ints:
        sizes = self.bounds[texts + 1] - self.bounds[texts]
        before = np.cumsum(sizes) - sizes
        owner = np.repeat(np.arange(len(texts)), sizes)
        places = np.arange(len(owner)) + (self.bounds[texts] - before)[owner]
        stems = self.stem_of[self.sequence[places]]
        at = np.flatnonzero(stems == wanted[0][1])
        for distance, item in wanted[1:]:
            at = at[at + distance < len(owner)]
            fits = (stems[at + distance] == item) & (owner[at + distance] == owner[at])
            at = at[fits]
        return np.asarray(texts[sets.unique(owner[at])])


def build_postings(texts: pa.Array) -> Postings:
    """The postings of some texts."""
    count = len(texts)
    words, sequence, sizes = _words(texts)
    bounds = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(sizes, out=bounds[1:])
    parents = chunked.repeat(sizes, np.int32)
    stems, stem_of = _stems(words)
    real = chunked.mapped(lambda part: stem_of[part] >= 0, sequence)
    lengths = chunked.bincount(chunked.compress(real, parents)[0], count).astype(np.int32)
    lengths[~np.asarray(texts.is_valid().to_numpy(zero_copy_only=False))] = -1
    pairs = chunked.mapped(
        lambda word, text: word.astype(np.int64) * max(1, count) + text, sequence, parents
    )
    keys, counts = _counted(chunked.sort(pairs))
    starts = chunked.search(keys, np.arange(len(words) + 1) * max(1, count))
    found = chunked.mapped(lambda part: (part % max(1, count)).astype(np.int32), keys)
    return Postings(
        words, stems, stem_of, starts, found, counts.astype(np.int32), sequence, bounds, lengths
    )


def _counted(numbers: Ints) -> tuple[Ints, Ints]:
    """The distinct values of a sorted array, with their counts."""
    if not len(numbers):
        return numbers, numbers
    first = chunked.changes(numbers)
    starts = chunked.nonzero(first)
    ends = chunked.concatenate((starts[1:], np.array([len(numbers)])))
    return chunked.compress(first, numbers)[0], chunked.mapped(np.subtract, ends, starts)


def _words(texts: pa.Array) -> tuple[pa.Array, Ints, Ints]:
    """The distinct words, the word ids of all texts in sequence, and the words per text."""
    parts, sizes = [], [np.array([], dtype=np.int64)]
    letters = np.asarray(pc.binary_length(texts).fill_null(0).to_numpy(zero_copy_only=False))
    for part in chunked.output_chunks(chunked.cumsum(letters + 1), SPLIT_BYTES):
        lists = split_words(texts.slice(part.start, part.stop - part.start))
        flat, owner = lists.flatten(), pc.list_parent_indices(lists)
        real = pc.not_equal(flat, "")  # separators at the start or end of a text give empty words
        owners = owner.filter(real).to_numpy(zero_copy_only=False)
        sizes.append(np.bincount(owners, minlength=len(lists)))
        parts.append(flat.filter(real).dictionary_encode())
    if not parts:
        return pa.array([], type=pa.string()), np.array([], dtype=np.int32), sizes[0]
    checkpoint()
    known = pa.chunked_array(parts).unify_dictionaries()
    checkpoint()
    codes = [part.indices.to_numpy(zero_copy_only=False) for part in known.chunks]
    words = pa.array(known.chunks[0].dictionary.to_pylist(), type=pa.string())
    checkpoint()
    return words, chunked.concatenate(codes).astype(np.int32, copy=False), np.concatenate(sizes)


def _stems(words: pa.Array) -> tuple[pa.Array, Ints]:
    """The distinct stems, and the stem of each word."""
    places: dict[str, int] = {}
    found = np.full(len(words), -1, dtype=np.int32)
    for at, word in enumerate(words.to_pylist()):
        if not at % STEM_WORDS:
            checkpoint()
        if word not in STOP_WORDS:
            found[at] = places.setdefault(stem(word), len(places))
    return pa.array(list(places), type=pa.string()), found
