"""Companion by sets and dense matrices (Dean, Henzinger 1999, 3.1); HITS is that of ``hits.py``."""

from tests.oracles.hits import hits


def vicinity(edges: list[tuple[int, int]], node: int, max_degree: int) -> list[int]:
    """The pages around ``node``, ascending; more links than ``max_degree`` lead nowhere."""
    ins = {v: {a for a, b in edges if b == v} for v in range(_most(edges, node))}
    outs = {v: {b for a, b in edges if a == v} for v in range(_most(edges, node))}
    found = {node} | ins[node] | outs[node]
    for parent in ins[node]:
        found |= outs[parent] if len(outs[parent]) <= max_degree else set()
    for child in outs[node]:
        found |= ins[child] if len(ins[child]) <= max_degree else set()
    return sorted(found)


def _most(edges: list[tuple[int, int]], node: int) -> int:
    return 1 + max([node, *(end for edge in edges for end in edge)])


def companions(
    edges: list[tuple[int, int]], node: int, max_degree: int
) -> tuple[dict[int, float], float]:
    """The authority of each page around ``node``, and how far the second eigenvalue is below the
    first: their ratio. No page has any where there are no links.
    """
    around = vicinity(edges, node, max_degree)
    place = {page: i for i, page in enumerate(around)}
    among = [(place[a], place[b]) for a, b in edges if a in place and b in place]
    if not among:
        return dict.fromkeys(around, 0.0), 0.0
    _, authorities, ratio = hits(len(around), among)
    return dict(zip(around, authorities.tolist(), strict=True)), ratio
