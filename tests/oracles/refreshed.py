"""Answers of an index with samples of several graphs: every sample by brute force, on names.

A sample follows from its graph and its number: the walk of each page, or the winners of its rings.
It knows the pages of its graph that every later refresh kept. A score is the mean over the samples
that know both pages.
"""

import math
from dataclasses import dataclass, field

from tests.oracles import walks, xjaccard

Pairs = set[tuple[str, str]]


@dataclass
class Sample:
    """The pages that a sample knows, and by direction its walk or winners for each page."""

    knows: set[str]
    held: dict[str, dict[str, list[str]]] = field(default_factory=dict)


def neighbors_of(names: list[str], links: Pairs, direction: str) -> list[list[int]]:
    ids = {name: i for i, name in enumerate(names)}
    found: list[list[int]] = [[] for _ in names]
    for a, b in links:
        node, neighbor = (b, a) if direction == "in" else (a, b)
        found[ids[node]].append(ids[neighbor])
    return [sorted(row) for row in found]


def drawn(names: list[str], links: Pairs, step: str, seed: int, number: int, length: int) -> Sample:
    """Sample ``number`` of the graph with these links, and these names in order of id."""
    sample = Sample(set(names))
    for direction, turn in (("in", 0), ("out", 16)):
        neighbors = neighbors_of(names, links, direction)
        if step == "rings":
            rings = xjaccard.rings(neighbors, length)[1:]
            firsts = [xjaccard.first_nodes(sets, seed, number, turn) for sets in rings]
            rows = [[ring[v] for ring in firsts] for v in range(len(names))]
        else:
            rows = walks.paths(neighbors, step, seed, number, length, turn)
        sample.held[direction] = {
            name: [names[v] for v in row] for name, row in zip(names, rows, strict=True)
        }
    return sample


def refreshed(samples: list[Sample], fresh: list[Sample], names: list[str]) -> list[Sample]:
    """The samples after a refresh: the oldest retire, the others forget removed pages."""
    for sample in samples:
        sample.knows &= set(names)
    return [*samples[len(fresh) :], *fresh]


def common(sample: Sample, direction: str, a: str, b: str, step: str) -> list[tuple[int, str]]:
    """(step or ring, page) where two pages first meet, or all shared ring winners."""
    one, other = sample.held[direction][a], sample.held[direction][b]
    met = [(t, p) for t, (p, q) in enumerate(zip(one, other, strict=False)) if p == q]
    return [(t + 1, page) for t, page in met] if step == "rings" else met[:1]


def worth(t: int, decay: float, step: str) -> float:
    return decay**t * (1 - decay) if step == "rings" else decay**t


def values(
    samples: list[Sample], a: str, b: str, decay: float, directions: list[str], step: str
) -> list[float]:
    """The value of each sample that knows both, as the mean over directions."""
    return [
        sum(
            worth(t, decay, step)
            for direction in directions
            for t, _ in common(sample, direction, a, b, step)
        )
        / len(directions)
        for sample in samples
        if {a, b} <= sample.knows
    ]


def mean(scores: list[float]) -> float:
    return math.fsum(scores) / len(scores)


def stderr(scores: list[float]) -> float:
    """The standard error of the mean; nan for one sample."""
    if len(scores) == 1:
        return math.nan
    average = mean(scores)
    return math.sqrt(
        math.fsum((x - average) ** 2 for x in scores) / (len(scores) - 1) / len(scores)
    )


def reasons(
    samples: list[Sample], a: str, b: str, decay: float, direction: str, step: str
) -> dict[str, float]:
    """The contribution of each page to the score of two different pages."""
    known = [sample for sample in samples if {a, b} <= sample.knows]
    shares: dict[str, float] = {}
    for sample in known:
        for t, page in common(sample, direction, a, b, step):
            shares[page] = shares.get(page, 0.0) + worth(t, decay, step) / len(known)
    return shares
