"""Samples that an index has lost: shards that are missing, cut, or found to be damaged.

Samples are independent, so those that are left are an index of their own: scores are means over
them, and intervals go by their number. Of a shard that is missing or has another size this is known
when the index is opened; of one that points outside of itself, when a question meets it; of a bit
that changed, when it is verified. Everything else of an index cannot be spared.

A lost shard is made again by itself, and put in its place:

    cocite index GRAPH -o PATCH --measure NAME --numbers 16..31 ...   the settings of the index
    cocite merge INDEX PATCH -o INDEX --overwrite

Parts of an index lose samples independently of each other. A score takes those of each part that
are there; its interval goes by the part that has the fewest, which is never too narrow: a sum of
independent terms of which none has more weight than they all would have then.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.layouts.plan import PartPlan
from cocite.layouts.stored import runs_of
from cocite.store import Store

__all__ = [
    "Lost",
    "in_runs",
    "lost_in_words",
    "lost_of",
    "numbers_in_words",
    "numbers_there",
]


class Lost(NamedTuple):
    """A shard that is not there: its ``file``, which begins with sample number ``first`` and has so
    many ``samples``, and what is wrong with it.
    """

    file: str
    first: int
    samples: int
    fault: str


def lost_of(store: Store, parts: Iterable[tuple[PartPlan, int]]) -> tuple[Lost, ...]:
    """What sampled parts, each with the number of its first sample, have lost."""
    found = []
    for plan, oldest in parts:
        for name, run in runs_of(store, plan.prefix, oldest, plan.settings).items():
            if name in store.lost:
                found.append(Lost(name, run.start, len(run), store.lost[name]))
    return tuple(found)


def numbers_there(store: Store, plan: PartPlan, oldest: int) -> NDArray[np.int64]:
    """int64[samples]: the numbers of the samples of a part that are there, ascending."""
    runs = runs_of(store, plan.prefix, oldest, plan.settings)
    there = [np.arange(run.start, run.stop) for name, run in runs.items() if name not in store.lost]
    return np.concatenate([np.empty(0, np.int64), *there])


def in_runs(numbers: Iterable[int]) -> list[range]:
    """Ascending numbers as runs of consecutive ones."""
    runs = groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0])
    found = [[number for _, number in group] for _, group in runs]
    return [range(run[0], run[-1] + 1) for run in found]


def numbers_in_words(runs: Sequence[range]) -> str:
    """``16..31, 48 and 64..79``, as ``--numbers`` takes them."""
    words = [f"{r.start}..{r.stop - 1}" if len(r) > 1 else f"{r.start}" for r in runs]
    return " and ".join([", ".join(words[:-1])] * (len(words) > 1) + words[-1:])


def lost_in_words(path: str, measure: str, lost: Sequence[Lost], left: int) -> str:
    """What the index at ``path`` by a measure has lost, that so many samples are left, and how to
    make it whole; empty if nothing is lost.
    """
    if not lost:
        return ""
    runs = in_runs({n for each in lost for n in range(each.first, each.first + each.samples)})
    likewise = ", and the others likewise" if len(runs) > 1 else ""
    return (
        f"{path} has lost samples {numbers_in_words(runs)} with "
        f"{' and '.join(each.file for each in lost)}; the other {left:,} answer. To make it whole, "
        "with the settings of the index: cocite index GRAPH -o PATCH --measure "
        f"{shlex.quote(measure)} --numbers {numbers_in_words(runs[:1])}{likewise}; then "
        f"cocite merge {path} PATCH -o {path} --overwrite"
    )
