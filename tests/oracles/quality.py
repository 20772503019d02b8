"""Plain measures of quality: over all triples, directly from their definitions."""

import math
from collections.abc import Sequence
from itertools import permutations
from statistics import fmean

from tests.oracles.fusion import order

Paths = dict[int, set[tuple[str, ...]]]


def same_class(a: set[tuple[str, ...]], b: set[tuple[str, ...]], depth: int) -> bool:
    return any(p[:depth] == q[:depth] for p in a for q in b)


def siblings(a: set[tuple[str, ...]], b: set[tuple[str, ...]], depth: int) -> bool:
    """Whether both have classes with a common parent, but share no class."""
    same_parent = any(p[: depth - 1] == q[: depth - 1] for p in a for q in b)
    return same_parent and not same_class(a, b, depth)


def comparisons(
    query: int, scores: dict[int, float], paths: Paths, depth: int, least: float = 0
) -> list[tuple[int, int, int]]:
    """(v, w, 1 or -1) for all pairs of scored nodes: v in the query's class, w in a sibling."""
    own = paths.get(query, set())
    found = []
    for v, w in permutations(scores, 2):
        if min(scores[v], scores[w]) <= least or scores[v] == scores[w]:
            continue
        related = bool(own) if v == query else same_class(own, paths.get(v, set()), depth)
        if related and w != query and siblings(own, paths.get(w, set()), depth):
            found.append((v, w, 1 if scores[v] > scores[w] else -1))
    return found


def micro_gamma(
    matrix: list[list[float]],
    paths: Paths,
    depth: int,
    top: int,
    queries: list[int],
    least: float = 0,
) -> float:
    """The mean Gamma of the queries that have one, over the ``top`` other nodes."""
    gammas = []
    for query in queries:
        others = [v for v in range(len(matrix)) if v != query and matrix[query][v] > 0]
        others = [v for v in others if v in paths]
        best = sorted(others, key=lambda v: (-matrix[query][v], order(v)))[:top]
        credits = [
            c
            for *_, c in comparisons(
                query, {v: matrix[query][v] for v in best}, paths, depth, least
            )
        ]
        if credits:
            gammas.append(sum(credits) / len(credits))
    return sum(gammas) / len(gammas) if gammas else math.nan


def macro_gamma(
    matrix: list[list[float]], paths: Paths, depth: int, queries: list[int], least: float = 0
) -> tuple[float, int]:
    """(Gamma, comparable pairs) over all triples, the query itself scoring above all others."""
    credits = []
    for query in queries:
        scores = {v: matrix[query][v] for v in range(len(matrix)) if v in paths}
        scores[query] = math.inf
        credits += [c for *_, c in comparisons(query, scores, paths, depth, least)]
    return (sum(credits) / len(credits) if credits else math.nan), len(credits)


def relevance(listed: Sequence[int], alike: set[int], k: int) -> tuple[float, float, float]:
    """Precision, recall and nDCG of the first k of a list; ``alike`` are the relevant nodes."""
    right = [place for place, node in enumerate(listed[:k]) if node in alike]
    ideal = sum(1 / math.log2(place + 2) for place in range(min(k, len(alike))))
    gain = sum(1 / math.log2(place + 2) for place in right)
    return len(right) / k, len(right) / len(alike), gain / ideal


def filled(listed: Sequence[int], others: set[int], alike: set[int], k: int) -> tuple[float, ...]:
    """Mean relevance over all ways to continue the list with ``others``."""
    missing = min(len(others), max(0, k - len(listed)))
    rows = [relevance([*listed, *more], alike, k) for more in permutations(others, missing)]
    return tuple(map(fmean, zip(*rows, strict=True)))
