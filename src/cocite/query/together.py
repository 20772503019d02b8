"""Several nodes asked together: the mean, or the least, of what each scores with a node.

    mean     score(v) = mean over the nodes a asked of s(a, v): near to all of them on the whole
    least    score(v) = min over a of s(a, v): near to each of them

Scores of pairs are those of ``similarity``; nodes asked are no hits, each counts once.

Intervals come from the same samples. Of means they are those of the values of each sample, averaged
over the nodes: samples say more of a mean than of each of its scores. Of the least they are
made of those of the pairs: the least of their lower ends, and the least of their upper ends. Below
it is wrong only if the lower end of the truly least pair is; above if any upper end is, so these
hold with a failure of 1 / nodes of the one allowed. The standard error is that of the pair that
scores least.

Of an index that was refreshed a pair's score is the mean over the samples that know both. What is
said of a mean over several is said by the samples that know them all.

Cost: a question for each node, and 20 bytes for each node that it touches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cocite.codes import GRAINS
from cocite.errors import UsageError
from cocite.layouts.scratch import borrowed
from cocite.measures import WholeSettings
from cocite.query.answers import Answers, Asked
from cocite.query.confidence import errors_of
from cocite.query.filters import Filter

__all__ = ["DEFAULT_TOGETHER", "TOGETHER", "Several", "checked_together"]

TOGETHER = ("mean", "least")
DEFAULT_TOGETHER = "mean"
_AT_ONCE = 256
Ids = NDArray[np.uint32]
Ends = list[tuple[list[float], list[float]]]


def checked_together(together: str) -> None:
    """Raises :class:`UsageError` for a way to ask together that there is not."""
    if together not in TOGETHER:
        raise UsageError(f"together is {together!r}; it is " + " or ".join(TOGETHER))


class Several(Answers):
    """Answers to questions about several different nodes."""

    def best_together(
        self,
        nodes: Asked,
        together: str,
        k: int,
        min_score: float,
        chosen: Filter,
        asked: WholeSettings,
    ) -> tuple[Ids, NDArray[np.float64]]:
        """The ids of the best ``k`` and their scores in grains, float64[h]."""
        found = [self._scored(node, asked) for node in nodes]
        ids: Ids = np.unique(np.concatenate([there for there, _ in found]))
        grains = np.zeros((len(nodes), ids.size))
        for row, (there, scored) in zip(grains, found, strict=True):
            row[np.searchsorted(ids, there)] = scored
        joined = grains.min(axis=0) if together == "least" else np.rint(grains.mean(axis=0))
        with borrowed(self._stored.nodes) as scratch:
            ids, joined = ids[joined != 0], joined[joined != 0]
            scratch.have = ids.size
            scratch.touched[: ids.size] = ids
            scratch.totals[ids, 0] = joined
            ids, best = chosen.best(scratch, k, min_score)
        return ids, best[:, 0]

    def _scored(self, node: int, asked: WholeSettings) -> tuple[Ids, NDArray[np.float64]]:
        """The nodes that ``node`` touches, ascending, and their scores in grains."""
        with borrowed(self._stored.nodes) as scratch:
            scratch.below = True
            self._gather(node, asked, scratch)
            ids = np.unique(scratch.touched[: scratch.have])
            grains = np.rint(scratch.totals[ids, 0])
            scratch.totals[ids] = 0.0
        return ids, grains

    def held_together(
        self,
        nodes: Asked,
        together: str,
        ids: Ids,
        scores: list[float],
        asked: WholeSettings,
        confidences: Sequence[float],
        bound: str,
    ) -> tuple[list[float], Ends]:
        """The standard errors of some hits, and the ends of their intervals for each confidence."""
        if together == "least":
            return self._held_least(nodes, ids, asked, confidences, bound)
        errors = np.zeros(ids.size)
        for begin in range(0, ids.size if self._sampled else 0, _AT_ONCE):
            part = slice(begin, begin + _AT_ONCE)
            errors[part] = errors_of(self._draws(nodes, ids[part], asked))
        return errors.tolist(), self._intervals(nodes, ids, scores, asked, confidences, bound)

    def _held_least(
        self, nodes: Asked, ids: Ids, asked: WholeSettings, confidences: Sequence[float], bound: str
    ) -> tuple[list[float], Ends]:
        pairs = np.array(
            [[self._estimate(node, other, asked) for other in ids.tolist()] for node in nodes]
        ).reshape(len(nodes), ids.size, 2)
        shared = [1 - (1 - confidence) / len(nodes) for confidence in confidences]
        ends = np.array(
            [
                self._intervals((node,), ids, row.tolist(), asked, [*confidences, *shared], bound)
                for node, row in zip(nodes, pairs[:, :, 0], strict=True)
            ]
        )
        low, high = ends[:, : len(shared), 0].min(axis=0), ends[:, len(shared) :, 1].min(axis=0)
        least = pairs[:, :, 0].argmin(axis=0)
        errors = pairs[least, np.arange(ids.size), 1].tolist()
        return errors, list(zip(low.tolist(), high.tolist(), strict=True))

    def shares(
        self, nodes: Asked, other: int, together: str, asked: WholeSettings
    ) -> tuple[float, list[float], list[float]]:
        """The score of a hit, what each of the nodes scores with it, and its share of the score: of
        the least all is the share of the first that scores so.
        """
        grains = [round(self._estimate(node, other, asked)[0][0] * GRAINS) for node in nodes]
        scores = [each / GRAINS for each in grains]
        if together == "least":
            least = grains.index(min(grains))
            return scores[least], scores, [scores[i] * (i == least) for i in range(len(nodes))]
        mean = float(np.rint(np.mean(np.array(grains, float)))) / GRAINS
        return mean, scores, [round(score / len(nodes), 12) for score in scores]
