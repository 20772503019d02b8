"""Asking for pairs: one, or many at once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.measures import AskValue, WholeSettings
from cocite.memory import checked_threads
from cocite.query.confidence import DEFAULT_BOUND, checked_confidence
from cocite.query.draft import Drafting
from cocite.query.opened import DEFAULT_CONFIDENCE, from_the_others
from cocite.query.scores import Score

if TYPE_CHECKING:
    from cocite.query.pairs import Progress
    from cocite.query.refine.refiner import Level
    from cocite.query.similarities import Similarities

__all__ = ["Comparing"]

Ids = NDArray[np.uint32]


class Comparing(Drafting):
    """An index that is asked how similar nodes are."""

    @from_the_others
    def similarity(
        self,
        a: object,
        b: object,
        *,
        refine: bool = False,
        target_error: float | None = None,
        confidence: float = DEFAULT_CONFIDENCE,
        bound: str = DEFAULT_BOUND,
        **settings: AskValue,
    ) -> Score:
        """How similar two nodes are.

        Parameters
        ----------
        a, b
            Names of nodes.
        refine, target_error
            As in :meth:`related`. Where ``related(a)`` computes the score of ``b`` (SimRank,
            XJaccard) this is the same; where it takes more samples, it stops as soon as the list is
            settled, and a pair when its own error is reached.
        confidence
            The probability with which the interval holds the true score, in (0, 1).
        bound
            Where the interval comes from: ``betting``, ``bernstein`` or ``theorem5``
            (``query/confidence.py``).
        settings
            What the measure takes when asking, such as ``decay=0.6`` (``cocite measures``). For
            measures of walks ``by`` says what a meeting after t steps is worth, from 0 to 1: a
            function of t, numbers for t = 1, 2, ..., an expression such as ``"t <= 3"``, or
            ``"hitting"`` (``measures/meeting.py``). For ``simrank`` and ``psimrank``
            ``evidence="geometric"`` or ``"exponential"`` takes scores times what the neighbours
            that pages share tell (``measures/evidence.py``); it reads the graph.

        Returns
        -------
        Score
            ``score``, its ``stderr``, and its interval from ``low`` to ``high``.

        Raises
        ------
        UnknownNode
            If no node has the name.
        UsageError
            For a setting that the measure does not have, or a value that is not allowed.
        """
        asked = self._asked(settings)
        checked_confidence(confidence, bound)
        first, second = self._pair_of(a, b)
        level = self._level(asked, refine, target_error, confidence, bound)
        return self._score(first, second, asked, level, confidence, bound)

    def similarities(
        self,
        a: Any,
        b: Any = None,
        *,
        ids: bool = False,
        threads: int | None = None,
        progress: Progress = lambda stage, done, total: None,
        refine: bool = False,
        target_error: float | None = None,
        confidence: float = DEFAULT_CONFIDENCE,
        bound: str = DEFAULT_BOUND,
        **settings: AskValue,
    ) -> Similarities:
        """How similar the nodes of many pairs are: :meth:`similarity` of each, to the bit.

        Of an index of trees (``trees``, ``packed``, ``paths``) some million pairs are asked
        together, sample by sample; else one after another, on several threads.

        Parameters
        ----------
        a, b
            Names of nodes, two columns of equal length: lists, arrays, or columns of pandas, polars
            or Arrow. Or ``a`` alone: a table of two columns, an array (pairs, 2), or rows of two.
        ids
            What is given are the numbers of nodes, from 0 on, and not their names.
        threads
            How many blocks of pairs at a time; by default as many as the index was opened with.
        progress
            Called with (``"scoring"``, done, total), in pairs.
        refine, target_error, confidence, bound, settings
            As for :meth:`similarity`.

        Returns
        -------
        Similarities
            Arrays ``score``, ``stderr``, ``low`` and ``high``, a :class:`Score` for each pair, and
            a table of a, b and these: ``to_pandas()``, ``to_polars()``, ``to_arrow()``,
            ``write("pairs.parquet")``.

        Raises
        ------
        UnknownNode, UsageError
            For names that no node has, before any work is done, and as :meth:`similarity`.
        """
        from cocite.query.similarities import Similarities, columns_of_pairs, ids_of

        columns = columns_of_pairs(a, b)
        first, second = (
            ids_of(self.nodes, column, title, ids)
            for column, title in zip(columns, "ab", strict=True)
        )
        sides = self.nodes.sides
        if sides is not None:
            for place in np.flatnonzero((first < sides.left) != (second < sides.left))[:1].tolist():
                pair = int(first[place]), int(second[place])
                sides.check_alike(pair, self.nodes.names(np.array(pair)))
        count = self.means.threads if threads is None else checked_threads(threads)
        level = refine, target_error
        found = self._scores(first, second, level, confidence, bound, count, progress, settings)
        return Similarities(*columns, *found)

    @from_the_others
    def _scores(
        self,
        first: Ids,
        second: Ids,
        refined: tuple[bool, float | None],
        confidence: float,
        bound: str,
        threads: int,
        progress: Progress,
        settings: dict[str, AskValue],
    ) -> NDArray[np.float64]:
        """float64[4, pairs]: scores, errors, and the ends of intervals of pairs, by their ids."""
        from cocite.query.pairs import blocks_of, scores_of_pairs, together

        asked = self._asked(settings)
        checked_confidence(confidence, bound)
        level = self._level(asked, *refined, confidence, bound)
        by_samples = not (level and self.refiner)
        blocks = blocks_of(self, asked, first.size, threads) if by_samples else 0

        def one(a: int, b: int) -> Score:
            return self._score(a, b, asked, level, confidence, bound)

        block = partial(together, self, asked, confidence, bound) if blocks else None
        return scores_of_pairs(first, second, one, block, blocks, threads, progress)

    def _score(
        self,
        first: int,
        second: int,
        asked: WholeSettings,
        level: Level | None,
        confidence: float,
        bound: str,
    ) -> Score:
        """What is said of one pair."""
        if level and self.refiner and first != second:
            return Score(*next(self.refiner.pair(first, second, asked, level).rows()))
        scores, errors = self._estimate(first, second, asked)
        others = np.array([second], np.uint32)
        ((low, high),) = self._intervals((first,), others, scores, asked, [confidence], bound)
        return Score(scores[0], errors[0], low[0], high[0])

    def _level(
        self,
        asked: WholeSettings,
        refine: bool,
        target: float | None,
        confidence: float,
        bound: str,
        above: float | None = None,
    ) -> Level | None:
        """How far to refine; None for not at all."""
        if not refine and target is None:
            return None
        from cocite.query.evidence import refuse_evidence
        from cocite.query.refine.refiner import Level

        if self._stored.drafted:
            raise UsageError(
                "refined answers are of pages that are in the graph: leave refine out for a draft"
            )

        refuse_evidence(self._stored.parts, asked)
        level = Level.checked(target, confidence, above)
        if bound != DEFAULT_BOUND and self.refiner:
            raise UsageError(
                f"refined answers have intervals of their own, not by {bound}: leave the bound out"
            )
        return level
