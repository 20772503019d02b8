"""What an index with samples of several graphs answers: every sample by brute force, on names.

A sample is what its graph and its number make it: the walk of each page, or the winners of its
rings. The pages that it knows are those of its graph that were there at every refresh since. A
score is the mean over the samples that know both pages.
"""

import math
from dataclasses import dataclass, field

from tests.oracles import walks, xjaccard

Pairs = set[tuple[str, str]]


@dataclass
class Sample:
    """The pages that it knows, and by direction what it holds of each page of its graph."""

    knows: set[str]
    held: dict[str, dict[str, list[str]]] = field(default_factory=dict)


def neighbors_of(names: list[str], links: Pairs, direction: str) -> list[list[int]]:
    ids = {name: i for i, name in enumerate(names)}
    found: list[list[int]] = [[] for _ in names]
    for a, b in links:
        here, there = (b, a) if direction == "in" else (a, b)
        found[ids[here]].append(ids[there])
    return [sorted(row) for row in found]


def drawn(names: list[str], links: Pairs, step: str, seed: int, number: int, length: int) -> Sample:
    """Sample ``number`` of the graph with these names, in order of id, and these links."""
    sample = Sample(set(names))
    for direction, turn in (("in", 0), ("out", 16)):
        near = neighbors_of(names, links, direction)
        if step == "rings":
            rings = xjaccard.rings(near, length)[1:]
            firsts = [xjaccard.first_nodes(sets, seed, number, turn) for sets in rings]
            rows = [[ring[v] for ring in firsts] for v in range(len(names))]
        else:
            rows = walks.paths(near, step, seed, number, length, turn)
        sample.held[direction] = {
            name: [names[v] for v in row] for name, row in zip(names, rows, strict=True)
        }
    return sample


def refreshed(samples: list[Sample], fresh: list[Sample], names: list[str]) -> list[Sample]:
    """The samples after a refresh: the oldest retire, the others forget who is gone."""
    for sample in samples:
        sample.knows &= set(names)
    return [*samples[len(fresh) :], *fresh]


def common(sample: Sample, direction: str, a: str, b: str, step: str) -> list[tuple[int, str]]:
    """(step or ring, page) where two pages first meet, or all rings that they share."""
    one, other = sample.held[direction][a], sample.held[direction][b]
    met = [(t, p) for t, (p, q) in enumerate(zip(one, other, strict=False)) if p == q]
    return [(t + 1, page) for t, page in met] if step == "rings" else met[:1]


def worth(t: int, decay: float, step: str) -> float:
    return decay**t * (1 - decay) if step == "rings" else decay**t


def values(
    samples: list[Sample], a: str, b: str, decay: float, directions: list[str], step: str
) -> list[float]:
    """The value of each sample that knows both, the mean over the directions."""
    return [
        sum(worth(t, decay, step) for way in directions for t, _ in common(sample, way, a, b, step))
        / len(directions)
        for sample in samples
        if {a, b} <= sample.knows
    ]


def mean(found: list[float]) -> float:
    return math.fsum(found) / len(found)


def stderr(found: list[float]) -> float:
    """Of the mean, from the spread of the samples; nan for one."""
    if len(found) == 1:
        return math.nan
    middle = mean(found)
    return math.sqrt(math.fsum((x - middle) ** 2 for x in found) / (len(found) - 1) / len(found))


def reasons(
    samples: list[Sample], a: str, b: str, decay: float, direction: str, step: str
) -> dict[str, float]:
    """What each page adds to the score of two different pages."""
    known = [sample for sample in samples if {a, b} <= sample.knows]
    shares: dict[str, float] = {}
    for sample in known:
        for t, page in common(sample, direction, a, b, step):
            shares[page] = shares.get(page, 0.0) + worth(t, decay, step) / len(known)
    return shares
