"""The text and vector searches of one execution: conditions, candidates and scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from omnigraph.embed import Embedder
from omnigraph.engine.exec import integer_sets as sets
from omnigraph.engine.limits import Check
from omnigraph.engine.search.load_text_index import load_text_index
from omnigraph.engine.search.text_index import TextIndex
from omnigraph.engine.search.vector_index import nearest_by_index
from omnigraph.engine.search.vectors import Vectors, vectors_of
from omnigraph.engine.tables.loaded import CachedTable
from omnigraph.engine.tables.probe import EntityTable
from omnigraph.errors import InvalidInput
from omnigraph.lang.query.typed_expressions import (
    FUZZY_EDITS_DEFAULT,
    SCORE,
    Bm25,
    Constant,
    Expression,
    Fusion,
    Nearest,
    ParameterValue,
    PropertyOf,
    Ranking,
    TextMatch,
)
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints, Mask, Values

_NOTHING: Final[tuple[Ints, Ints]] = np.array([], dtype=np.int64), np.array([])


@dataclass(frozen=True, slots=True)
class Searcher:
    """``embedder`` is called only to embed a query text. ``by_index``: a vector search may use an
    approximate index.
    """

    parameters: Mapping[str, Any]
    embedder: Callable[[], Embedder]
    by_index: bool
    check: Check
    fused: dict[Fusion, dict[int, float]] = field(default_factory=dict)
    _queries: dict[Nearest, Any] = field(default_factory=dict)
    _relevances: dict[Bm25, tuple[Ints, Ints]] = field(default_factory=dict)
    _near: dict[Nearest, tuple[Ints, Ints]] = field(default_factory=dict)
    """Results of a vector index: entities in order, with their distances."""

    # Conditions

    def matches(self, search: TextMatch, table: EntityTable, entities: Ints) -> Mask:
        """Which entities a text search finds."""
        cached = table.whole()
        query = self._given(search.query)
        if query is None:
            return np.zeros(len(entities), dtype=bool)
        texts = _texts(cached, search.field)
        if search.function == "search":
            found = texts.any_term(query, self.check)
        elif search.function == "match_text":
            found = texts.phrase(query, self.check)
        else:
            found = texts.fuzzy(query, self._edits(search), self.check)
        if search.negated:
            found = ~found & (texts.lengths >= 0)  # unknown for a null text
        return chunked.take(found, entities)

    def _edits(self, search: TextMatch) -> int:
        if search.max_edits is None:
            return FUZZY_EDITS_DEFAULT
        given = self._given(search.max_edits)
        if given is None or given < 0:
            raise InvalidInput(
                "the number of edits of `fuzzy` must be at least 0",
                details={"max_edits": given},
            )
        return int(given)

    # Scores

    def scores(self, ranking: Ranking, table: EntityTable, entities: Ints) -> Values:
        """The score of each entity; null where it has none."""
        if isinstance(ranking, Fusion):
            known = self.fused[ranking]
            data = np.empty(len(entities), dtype=np.float64)
            for part in chunked.chunks(len(entities)):
                data[part] = [known.get(at, np.nan) for at in entities[part].tolist()]
            return _scored(data)
        cached = table.whole()
        if isinstance(ranking, Bm25):
            found, scores = self._relevance(ranking, cached)
            every = np.full(cached.rows, np.nan)
            every[found] = scores
            return _scored(chunked.take(every, entities))
        query = self.query_vector(ranking, cached)
        if query is None:
            return Values(SCORE, np.zeros(len(entities)), np.zeros(len(entities), dtype=bool))
        near, distances = self._near.get(ranking, _NOTHING)
        if len(near) and sets.among(entities, near).all():
            return Values(SCORE, chunked.take(distances, chunked.search(near, entities)))
        vectors = _vectors(cached, ranking.field)
        return Values(SCORE, vectors.distances(query, entities), vectors.present(entities))

    def best(
        self, ranking: Nearest | Bm25, table: EntityTable, candidates: Ints, count: int | None
    ) -> Ints:
        """A superset of the best ``count`` candidates; entities without a score are left out."""
        cached = table.whole()
        if isinstance(ranking, Bm25):
            matches = np.zeros(cached.rows, dtype=bool)
            matches[self._relevance(ranking, cached)[0]] = True
            return chunked.compress(chunked.take(matches, candidates), candidates)[0]
        query = self.query_vector(ranking, cached)
        if query is None:
            return candidates[:0]
        if self.by_index and count:
            found = nearest_by_index(
                cached, ranking.field.property, query, candidates, count, self.check
            )
            if found is not None:
                self._near[ranking] = found
                return found[0]
        vectors = _vectors(cached, ranking.field)
        present = chunked.compress(vectors.present(candidates), candidates)[0]
        if count is None:
            return present
        return vectors.possible_nearest(query, present, count) if count else present[:0]

    def _relevance(self, ranking: Bm25, table: CachedTable) -> tuple[Ints, Ints]:
        """The matching entities in order, with their scores."""
        found = self._relevances.get(ranking)
        if found is None:
            query = self._given(ranking.query)
            found = (
                _NOTHING
                if query is None
                else _texts(table, ranking.field).relevance(query, self.check)
            )
            self._relevances[ranking] = found
        return found

    def query_vector(self, ranking: Nearest, table: CachedTable) -> Any:
        """The query vector, embedded if it was given as a text."""
        if ranking not in self._queries:
            given = self._given(ranking.query)
            if isinstance(given, str):
                declared = table.kind.properties[ranking.field.property]
                model = None if declared.embed is None else declared.embed.model
                width = ranking.field.type.dimensions or 0
                given = self.embedder().embed(given, width, model=model)
            vector = None if given is None else np.array(given, dtype=np.float64)
            self._queries[ranking] = vector
        return self._queries[ranking]

    def _given(self, expression: Expression) -> Any:
        if isinstance(expression, Constant):
            return expression.value
        assert isinstance(expression, ParameterValue)
        return self.parameters[expression.name]


def _scored(data: Ints) -> Values:
    """A column of scores; NaN becomes null."""
    valid = chunked.mapped(lambda part: ~np.isnan(part), data)
    return Values(SCORE, chunked.mapped(lambda part: np.nan_to_num(part, nan=0.0), data), valid)


def _texts(table: CachedTable, field: PropertyOf) -> TextIndex:
    return load_text_index(table, field.property)


def _vectors(table: CachedTable, field: PropertyOf) -> Vectors:
    metric = table.kind.properties[field.property].vector.metric
    key = f"{table.key}/vectors/{field.property}/{metric}"
    return table.cache.get_or_make(key, lambda: vectors_of(table.column(field.property), metric))
