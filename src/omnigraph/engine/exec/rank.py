"""Ranking: queries ordered by a vector search, a text search, or a fusion of both.

The candidates of the searched variable are the entities that satisfy its own predicates. A vector
search keeps the nearest of them, up to the limit; a text search keeps those that match. The rest of
the pattern is applied afterwards and may leave fewer rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from omnigraph.engine.exec import integer_sets as sets
from omnigraph.engine.exec.evaluator import Evaluator
from omnigraph.engine.exec.match import PatternMatcher
from omnigraph.engine.exec.match_frame import MatchFrame
from omnigraph.engine.exec.sort import SortColumn, first_rows
from omnigraph.engine.search.searcher import Searcher
from omnigraph.errors import InvalidInput
from omnigraph.lang.query.plan.logical import ReadPlan
from omnigraph.lang.query.typed_expressions import Bm25, Fusion, Nearest, Ranking
from omnigraph.model.checkpoint import checkpoint
from omnigraph.predicates import chunked
from omnigraph.predicates.values import Ints, Values


@dataclass(frozen=True, slots=True)
class Ranker:
    """Matches a plan whose first sort key is a search."""

    plan: ReadPlan
    ranking: Ranking
    matcher: PatternMatcher
    evaluator: Evaluator
    """Has the tables of all variables of the pattern."""
    searcher: Searcher

    def match(self, needed: frozenset[str]) -> tuple[MatchFrame, SortColumn]:
        """The matches of the plan, and their first sort key."""
        if isinstance(self.ranking, Fusion):
            return self._fused(self.ranking, needed)
        return self._ranked(self.ranking, needed)

    def _ranked(
        self, ranking: Nearest | Bm25, needed: frozenset[str]
    ) -> tuple[MatchFrame, SortColumn]:
        name = ranking.field.variable
        best = self._best(ranking)
        matcher = replace(self.matcher, restricted={**self.matcher.restricted, name: best})
        frame = matcher.match(self.plan.pattern, needed | {name}).expand_weights()
        return frame, self._scores(ranking, frame)

    def _best(self, ranking: Nearest | Bm25) -> Ints:
        """The entities that a search keeps for its variable."""
        name = ranking.field.variable
        table: Any = self.evaluator.tables[name]
        candidates = self.matcher.candidates(self.plan.pattern.variable(name))
        limit = self.plan.rows_max if isinstance(ranking, Nearest) else None
        possible = self.searcher.best(ranking, table, candidates, limit)
        if limit is None or len(possible) <= limit:
            return possible
        scores = self.searcher.scores(ranking, table, possible)
        keys = [SortColumn.of(scores, descending=False)]
        rows = first_rows(keys, [(table, possible)], len(possible), limit)
        return chunked.sort(possible[rows])

    def _scores(self, ranking: Nearest | Bm25, frame: MatchFrame) -> SortColumn:
        value = self.evaluator.value(ranking, frame)
        assert isinstance(value, Values)
        return SortColumn.of(value, descending=isinstance(ranking, Bm25))

    # Fusion

    def _fused(self, ranking: Fusion, needed: frozenset[str]) -> tuple[MatchFrame, SortColumn]:
        """Reciprocal rank fusion of the entities of the first arm's variable."""
        k = self._k(ranking)
        name = ranking.first.field.variable
        arms = [self._arm(arm, needed | {name}, name) for arm in (ranking.first, ranking.second)]
        scores: dict[int, float] = {}
        for _, order in arms:
            for rank, entity in enumerate(order):
                if not rank % chunked.CHUNK_ROWS:
                    checkpoint()
                scores[entity] = scores.get(entity, 0.0) + 1.0 / (k + rank + 1)
        seen = dict.fromkeys([entity for _, order in arms for entity in order])
        entities = np.array(list(seen), dtype=np.int64)
        by_score = chunked.order((np.array([-scores[entity] for entity in seen]),))
        best = entities[by_score[: self.plan.rows_max]].tolist()
        self.searcher.fused[ranking] = scores
        place = {entity: at for at, entity in enumerate(best)}
        first, second = arms[0][0], arms[1][0]
        only_second = ~sets.among(second.columns[name], sets.unique(first.columns[name]))
        frame = _joined(first, second.keep(only_second))
        ranks = np.empty(frame.rows, dtype=np.int64)
        for part in chunked.chunks(frame.rows):
            ranks[part] = [place.get(e, -1) for e in frame.columns[name][part].tolist()]
        kept = chunked.nonzero(ranks >= 0)
        return frame.take(kept), SortColumn(chunked.take(ranks, kept))

    def _arm(
        self, arm: Nearest | Bm25, needed: frozenset[str], name: str
    ) -> tuple[MatchFrame, list[int]]:
        """The matches of one arm, and its entities in ranked order."""
        frame, scores = self._ranked(arm, needed | {arm.field.variable})
        ties: list[Any] = [
            (self.evaluator.tables[item], frame.columns[item]) for item in self.plan.tie_break
        ]
        rows = first_rows([scores], ties, frame.rows, None)
        entities: dict[int, None] = {}
        for part in chunked.chunks(len(rows)):
            entities.update(dict.fromkeys(frame.columns[name][rows[part]].tolist()))
        return frame, list(entities)

    def _k(self, ranking: Fusion) -> float:
        k = self.evaluator.literal(ranking.k).value
        if not isinstance(k, int) or k <= 0:
            raise InvalidInput("`k` of `rrf` must be a positive integer", details={"k": k})
        return float(k)


def _joined(first: MatchFrame, second: MatchFrame) -> MatchFrame:
    names = first.columns.keys() & second.columns.keys()
    columns = {n: chunked.concatenate((first.columns[n], second.columns[n])) for n in names}
    return MatchFrame(first.rows + second.rows, columns)
