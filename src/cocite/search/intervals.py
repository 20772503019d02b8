"""Confidence intervals for scores, and tests whether the order of hits is certain.

A score is the mean of N independent samples in a range of width R. With probability 1 - failure:

    betting      the means that sequential bets on the samples do not reject
    bernstein    +- sqrt(2 V log(4 / failure) / N) + 7 R log(4 / failure) / (3 (N - 1))
    hoeffding    +- max(1, R) sqrt(7 log(2 / failure) / (6 N)), the papers' bound, for R <= 1

V is the sample variance. At 100 samples, betting intervals are 0.46 times as wide as Bernstein's.
Walks stop after ``length`` steps; a pair that has not met may meet later, with a weight of up to
decay**(length + 1). ``high`` includes that weight, so intervals also cover the score of unlimited
walks. A refreshed index has samples from several distributions, so bets use equal stakes.

Source: Waudby-Smith, Ramdas, *Estimating means of bounded random variables by betting*, 2024;
Maurer, Pontil, *Empirical Bernstein bounds*, 2009, theorem 4; Fogaras, Racz, *Scaling link-based
similarity search*, section 4, theorems 5 and 6.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cocite.constants import GRAINS, Bools, Floats, Ids, Ints
from cocite.deadline import check
from cocite.index.layouts.reader import PairEvidence, SampledReader, Span
from cocite.measures import WholeSettings
from cocite.options.query import DEFAULT_INTERVAL
from cocite.search.hits import Score, scores_of
from cocite.search.scorer import ROUNDING, Nodes, Scorer, wealth_at

_FEW = 4
"""Number of hits whose order is tested first; each later batch is twice as large."""
_AT_ONCE, _PAIRS_AT_ONCE = 256, 512
"""Batch sizes, in hits and in pairs."""
_CACHED = 1 << 16
"""Maximum number of sample values cached per list."""

Ends = list[tuple[Floats, Floats]]
"""Lower and upper ends of intervals, float64[h] each, for each confidence."""


@dataclass(frozen=True)
class Draws:
    """Sample values for the scores of some hits.

    ``values`` float64[samples, hits] are lower bounds on the exact values, ``most`` upper bounds.
    For each hit, only the last ``known`` int64[hits] samples are used; None means all. The last
    ``alike`` samples (None: all) come from one graph and have the same distribution.
    """

    values: Floats
    most: Floats
    span: Span
    known: Ints | None = None
    alike: int | None = None

    @property
    def hits(self) -> int:
        """Return the number of hits."""
        return int(self.values.shape[1])

    def pieces(self) -> Iterator[tuple[Any, Floats, Floats]]:
        """Yield (hits, values, upper bounds), grouped by the number of known samples."""
        if self.known is None:
            yield slice(None), self.values, self.most
            return
        for count in np.unique(self.known).tolist():
            which = np.flatnonzero(self.known == count)
            values, most = self.values[-count:, which], self.most[-count:, which]
            yield which, np.ascontiguousarray(values), np.ascontiguousarray(most)

    def part(self, begin: int, end: int) -> Draws:
        """Return the draws of some hits."""
        known = None if self.known is None else self.known[begin:end]
        values, most = self.values[:, begin:end], self.most[:, begin:end]
        return Draws(values, most, self.span, known, self.alike)

    def steps(self) -> Draws:
        """Return lower bounds on the difference between each hit and the next."""
        known = None if self.known is None else np.minimum(self.known[:-1], self.known[1:])
        apart = self.values[:, :-1] - self.most[:, 1:]
        limits = self.span.least - self.span.most, self.span.most - self.span.beyond
        return Draws(apart, apart, Span(limits[0], limits[0], limits[1]), known, self.alike)


def joined(
    found: Sequence[tuple[Floats, Floats]], span: Span, known: Ints | None, alike: int | None
) -> Draws:
    """Sum values, and upper bounds, over all parts, sample by sample."""
    shared = min(len(values) for values, _ in found)
    values, most = found[0][0][-shared:], found[0][1][-shared:]
    for more, greatest in found[1:]:
        values, most = values + more[-shared:], most + greatest[-shared:]
    return Draws(values, most, span, known, alike)


class ListDraws:
    """The samples of a list of hits, for its intervals and its certain ranks."""

    def __init__(self, nodes: Nodes, ids: Ids, settings: WholeSettings) -> None:
        self.nodes, self.ids, self.settings = nodes, ids, settings
        self._most = _CACHED
        self._first: tuple[Intervals, int, Draws] | None = None

    def release(self) -> None:
        """Drop the samples; the next use reads them again."""
        self._most, self._first = 0, None

    def of(self, intervals: Intervals, begin: int, end: int) -> Draws:
        """Return the draws of the hits from ``begin`` to ``end``."""
        part, first = self.ids[begin:end], self._first
        if begin == 0 and first is not None and first[:2] == (intervals, part.size):
            return first[2]
        found = intervals.draws(self.nodes, part, self.settings)
        if begin == 0 and found.values.size <= self._most:
            self._first = intervals, part.size, found
        return found


class Intervals:
    """Computes intervals and certain ranks from the samples of a scorer."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer

    def draws(self, nodes: Nodes, others: Ids, settings: WholeSettings) -> Draws:
        """Return the samples for each of ``others``: means over ``nodes``, summed over parts."""
        span, found = Span(0.0, 0.0, 0.0), []
        for reader in self.scorer.sampling(settings):
            own, weight = reader.part.ask_settings(settings), reader.part.weight
            span, share = span.plus(reader.span(own), weight), weight / len(nodes)
            for node in nodes:
                values, most = reader.values(node, others, own)
                found.append((values, most) if share == 1 else (share * values, share * most))
        freshness = self.scorer.stored.freshness
        known = None if freshness.since is None else self._knowing(nodes, others)
        return joined(found, span, known, freshness.alike)

    def of_pair(
        self, pair: tuple[int, int], settings: WholeSettings, confidence: float, bound: str
    ) -> Score:
        """Return the score and interval of a pair, or of a node with itself."""
        first, second = pair
        score, error = self.scorer.pair(first, second, settings)
        draws = ListDraws((first,), np.array([second], np.uint32), settings)
        same = np.array([first == second])
        ((low, high),) = self.of_list(draws, np.array([score]), [confidence], bound, same)
        return Score(score, error, float(low[0]), float(high[0]))

    def of_list(
        self,
        draws: ListDraws,
        scores: Floats,
        confidences: Sequence[float],
        bound: str,
        same: Bools | None = None,
    ) -> Ends:
        """Return interval ends per confidence; ``same`` marks the query node among the hits."""
        if same is None:
            same = np.zeros(draws.ids.size, bool)
        room = np.zeros((len(confidences), 2, draws.ids.size))
        if not same.all():
            room = self._room(draws, confidences, bound)
        room += self.scorer.certified(draws.nodes, draws.ids, draws.settings).T
        return list(zip(*self.rounded(room, scores, same, draws.settings), strict=True))

    def of_mean(
        self, draws: ListDraws, scores: Floats, confidences: Sequence[float], bound: str
    ) -> tuple[Floats, Ends]:
        """Return standard errors and interval ends for scores that are means over several nodes."""
        errors, size = np.zeros(draws.ids.size), draws.ids.size
        for begin in range(0, size if self.scorer.sampled else 0, _AT_ONCE):
            part = slice(begin, begin + _AT_ONCE)
            errors[part] = errors_of(draws.of(self, begin, begin + _AT_ONCE))
        return errors, self.of_list(draws, scores, confidences, bound)

    def of_least(
        self, draws: ListDraws, confidences: Sequence[float], bound: str
    ) -> tuple[Floats, Ends]:
        """Return standard errors and interval ends of minima over nodes, by a union bound."""
        nodes, ids, settings = draws.nodes, draws.ids, draws.settings
        pairs = np.array(
            [[self.scorer.pair(node, other, settings) for other in ids.tolist()] for node in nodes]
        ).reshape(len(nodes), ids.size, 2)
        shared = [1 - (1 - confidence) / len(nodes) for confidence in confidences]
        levels = [*confidences, *shared]
        ends = np.array(
            [
                self.of_list(ListDraws((node,), ids, settings), row, levels, bound)
                for node, row in zip(nodes, pairs[:, :, 0], strict=True)
            ]
        )
        low, high = ends[:, : len(shared), 0].min(axis=0), ends[:, len(shared) :, 1].min(axis=0)
        least = pairs[:, :, 0].argmin(axis=0)
        return pairs[least, np.arange(ids.size), 1], list(zip(low, high, strict=True))

    def of_pairs(
        self, first: Ids, second: Ids, settings: WholeSettings, confidence: float, bound: str
    ) -> Floats:
        """Return float64[4, pairs] for different nodes: scores, errors, lower and upper ends."""
        scorer = self.scorer
        grains, variances = np.zeros(first.size), np.zeros(first.size)
        reported: list[tuple[float, PairEvidence]] = []
        span = Span(0.0, 0.0, 0.0)
        for reader in scorer.sampling(settings):  # no other part scores pairs in blocks
            check()
            own, weight = reader.part.ask_settings(settings), reader.part.weight
            found, span = reader.pairs(first, second, own), span.plus(reader.span(own), weight)
            grains += weight * found.estimates[:, 0]
            variances += weight * weight * found.estimates[:, 1]
            reported.append((weight, found))
        scorer.check(grains.tolist())
        scores, errors = scores_of(np.column_stack((np.rint(grains), variances)))
        freshness, room = scorer.stored.freshness, np.zeros((1, 2, first.size))
        known = None if freshness.since is None else freshness.knowing(first, second)
        for begin in range(0, first.size, _PAIRS_AT_ONCE):
            check()
            some = slice(begin, begin + _PAIRS_AT_ONCE)
            found_in = ((weight, each.values(some)) for weight, each in reported)
            values = [(v, m) if w == 1 else (w * v, w * m) for w, (v, m) in found_in]
            knowing = None if known is None else known[some]
            draws = joined(values, span, knowing, freshness.alike)
            _, below, above = around(draws, confidence, bound)
            room[0, 0, some], room[0, 1, some] = np.maximum(0.0, below), np.maximum(0.0, above)
        low, high = self.rounded(room, scores, np.zeros(first.size, bool), settings)
        return np.stack((scores, errors, low[0], high[0]))

    def rounded(
        self, room: Floats, scores: Floats, same: Bools, settings: WholeSettings
    ) -> tuple[Floats, Floats]:
        """Return interval ends, float64[confidences, h] each, rounded outward to grains.

        ``room`` float64[confidences, 2, h] contains the distances below and above ``scores``;
        ``same`` marks scores of a node with itself.
        """
        scorer = self.scorer
        room = np.ceil(room * GRAINS)
        middle = np.rint(scores * GRAINS)
        most = np.full(scores.size, np.inf)
        if all(reader.unit for reader in scorer.readers):
            most = np.maximum(middle, GRAINS)
        if len(scorer.sampled) == len(scorer.readers):
            most[~same] = math.ceil(scorer.largest(settings) * GRAINS)
        low = np.maximum(0.0, middle - room[:, 0])
        # An estimate may be negative; an exact score is not.
        high = np.maximum(low, np.minimum(middle + room[:, 1], most))
        scorer.check(high.ravel().tolist())  # a NaN propagates to every upper end
        return low / GRAINS, high / GRAINS

    def certain_ranks(self, draws: ListDraws, confidence: float, bound: str) -> int:
        """Return how many leading hits certainly score higher than the next."""
        nodes, ids, settings = draws.nodes, draws.ids, draws.settings
        scorer = self.scorer
        for begin in range(0, ids.size - 1, _AT_ONCE):
            check()
            end = begin + _AT_ONCE + 1
            part = ids[begin:end]
            room = scorer.certified(nodes, part, settings)
            doubt = room[:-1, 0] + room[1:, 1]
            for reader in scorer.readers:  # unsampled parts contribute equally to all samples
                if not isinstance(reader, SampledReader):
                    doubt += np.diff(scorer.exact(reader, nodes, part, settings))
            sure = leading_certain(draws.of(self, begin, end), confidence, bound, doubt)
            if sure < part.size - 1:
                return begin + sure
        return max(0, ids.size - 1)

    def _room(self, draws: ListDraws, confidences: Sequence[float], bound: str) -> Floats:
        """Return float64[confidences, 2, h]: distances from scores to bounds on exact scores."""
        size = draws.ids.size
        found = np.zeros((len(confidences), 2, size))
        if not self.scorer.sampled:
            return found
        for begin in range(0, size, _AT_ONCE):
            check()
            part = slice(begin, begin + _AT_ONCE)
            some = draws.of(self, begin, begin + _AT_ONCE)
            offset = self._separate(draws.nodes, draws.ids[part], draws.settings)
            for level, confidence in enumerate(confidences):
                _, below, above = around(some, confidence, bound)
                found[level][0, part] = np.maximum(0.0, below + offset)
                found[level][1, part] = np.maximum(0.0, above - offset)
        return found

    def _separate(self, nodes: Nodes, others: Ids, settings: WholeSettings) -> Floats | float:
        """Return float64[h]: scores minus the means over the samples that intervals use.

        Intervals use the samples that all parts have and that contain all ``nodes``. A score uses
        all of a part's samples that contain the pair. These are more samples if parts have lost
        different samples, or if nodes were added at different times.
        """
        lost = len({reader.part.freshness.held.size for reader in self.scorer.sampled}) > 1
        if not lost and (len(nodes) == 1 or self.scorer.stored.freshness.since is None):
            return 0.0
        shared, found = self._knowing(nodes, others).tolist(), np.zeros(others.size)
        for reader in self.scorer.sampling(settings):
            share = reader.part.weight / len(nodes)
            for node in nodes:
                values, _ = reader.values(node, others, reader.part.ask_settings(settings))
                own = reader.part.freshness.knowing(node, others).tolist()
                for row, (mine, all_) in enumerate(zip(own, shared, strict=True)):
                    offset = values[-mine:, row].mean() - values[-all_:, row].mean()
                    found[row] += share * offset
        return found

    def _knowing(self, nodes: Nodes, others: Ids) -> Ints:
        """Return int64[h]: how many samples contain all ``nodes`` and each of ``others``."""
        each = [self.scorer.stored.freshness.knowing(node, others) for node in nodes]
        least: Ints = np.min(each, axis=0)
        return least


def half_width(
    stderr: ArrayLike, samples: ArrayLike, width: float, confidence: float, bound: str = "bernstein"
) -> Floats:
    """Return interval half-widths for standard errors, elementwise.

    ``samples`` is N, a scalar or an array; ``width`` is R; ``bound`` is ``bernstein`` or
    ``hoeffding``. For a single sample, the Bernstein half-width is R.
    """
    errors = np.asarray(stderr, np.float64)
    count = np.broadcast_to(np.asarray(samples, np.float64), errors.shape)
    failure = 1 - confidence
    if bound == "hoeffding":
        half = max(1.0, width) * np.sqrt(7 * math.log(2 / failure) / (6 * count))
    else:
        log = math.log(4 / failure)
        rest = 7 * width * log / (3 * np.maximum(count - 1, 1))
        half = np.where(count == 1, width, errors * math.sqrt(2 * log) + rest)
    narrowest: Floats = np.minimum(half, width)
    return narrowest


def around(
    draws: Draws, confidence: float, bound: str = DEFAULT_INTERVAL
) -> tuple[Floats, Floats, Floats]:
    """Return means, and distances to lower and upper bounds on exact means, float64[hits] each."""
    means, low = _ends(draws, confidence, bound)
    _, high = _ends(draws, confidence, bound, upper=True)
    return means, means - low + ROUNDING, high - means + ROUNDING


def _ends(
    draws: Draws, confidence: float, bound: str, *, upper: bool = False
) -> tuple[Floats, Floats]:
    """Return means of values, or of upper bounds on them, and bounds on exact means."""
    means, ends, span = np.empty(draws.hits), np.empty(draws.hits), draws.span
    limits = (span.most, span.beyond) if upper else (span.least, span.most)
    for which, *both in draws.pieces():
        values = both[upper]
        if bound == "betting":
            alike = draws.alike is None or len(values) <= draws.alike
            ends[which], means[which] = _bet(values, *limits, confidence, alike)
        else:
            means[which], half = _about(values, span.width, confidence, bound)
            ends[which] = means[which] + (half if upper else -half)
    return means, ends


def errors_of(draws: Draws) -> Floats:
    """Return float64[hits], the means' standard errors; NaN for a single sample."""
    errors = np.full(draws.hits, np.nan)
    for which, values, _ in draws.pieces():
        count = len(values)
        if count > 1:
            _, spreads = _moments(values)
            errors[which] = np.sqrt(spreads / (count * (count - 1)))
    return errors.round(12)


def counted_ends(
    values: Floats, most: Floats, counts: Floats, span: Span, confidence: float
) -> tuple[Floats, Floats]:
    """Return the ends of betting intervals from counts of values: float64[hits] each.

    ``values`` float64[s] are the distinct values, ``most`` float64[s] upper bounds on the exact
    ones, and ``counts`` float64[hits, s] their frequencies. Order and distribution do not matter,
    so values from several independent parts may be mixed.
    """
    low, _ = _mixed(values, counts, span.least, span.most, confidence)
    high, _ = _mixed(most, counts, span.most, span.beyond, confidence)
    return np.maximum(low - ROUNDING, span.least), np.minimum(high + ROUNDING, span.most)


def leading_certain(
    draws: Draws, confidence: float, bound: str = DEFAULT_INTERVAL, doubt: ArrayLike = 0.0
) -> int:
    """Return how many leading hits, best first, certainly score higher than the next.

    Two hits are compared over the samples that contain both. ``doubt`` is how much smaller the
    difference may be, in addition to sampling error: a scalar, or an array with a value per step.
    """
    if draws.hits < 2:
        return 0
    doubts = np.broadcast_to(np.asarray(doubt, np.float64), (draws.hits - 1,))
    begin = 0
    while begin < draws.hits - 1:  # one of the first few usually fails
        end = min(draws.hits, 2 * begin + _FEW)
        steps = draws.part(begin, end).steps()
        if bound == "hoeffding":  # Fogaras and Racz bound a difference like a value
            steps = replace(steps, span=Span(0.0, 0.0, draws.span.width))
        _, low = _ends(steps, confidence, bound)
        sure: Bools = low - ROUNDING > doubts[begin : end - 1]
        if steps.known is not None:
            sure &= steps.known > 1
        if not sure.all():
            return begin + int(sure.argmin())
        begin = end - 1
    return begin


def _moments(values: Floats) -> tuple[Floats, Floats]:
    from cocite.kernels import totals

    means, spreads = np.empty(values.shape[1]), np.empty(values.shape[1])
    totals.moments(values, means, spreads)
    return means, spreads


def _about(values: Floats, width: float, confidence: float, bound: str) -> tuple[Floats, Floats]:
    means, spreads = _moments(values)
    count = len(values)
    errors = np.sqrt(spreads / (count * max(1, count - 1)))
    return means, half_width(errors, count, width, confidence, bound)


def _bet(
    values: Floats, first: float, last: float, confidence: float, alike: bool
) -> tuple[Floats, Floats]:
    """Return interval ends and means for float64[samples, hits].

    An end is the first mean that bets do not reject, searched from ``first`` to ``last``, the
    limits of the values; ``first`` > ``last`` gives upper ends.
    """
    from cocite.kernels import totals

    if not alike:
        kinds, places = np.unique(values, return_inverse=True)
        counts = np.zeros((values.shape[1], kinds.size))
        hits = np.broadcast_to(np.arange(values.shape[1]), values.shape)
        np.add.at(counts, (hits.ravel(), places.ravel()), 1.0)
        return _mixed(kinds, counts, first, last, confidence)
    found, means = np.full(values.shape[1], first), np.full(values.shape[1], first)
    if last != first:
        totals.ordered_ends(values, first, last - first, wealth_at(confidence), found, means)
    return found, means


def _mixed(
    values: Floats, counts: Floats, first: float, last: float, confidence: float
) -> tuple[Floats, Floats]:
    """Return the result of :func:`_bet` with equal stakes, for distinct ``values`` float64[s] and
    their counts.
    """
    from cocite.kernels import totals

    found, means = np.full(len(counts), first), np.full(len(counts), first)
    if last != first:
        totals.mixed_ends(values, counts, first, last - first, wealth_at(confidence), found, means)
    return found, means
