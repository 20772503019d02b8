"""Companion by sets and dense matrices (Dean, Henzinger 1999, 3.1); HITS as in ``hits.py``."""

from tests.oracles.hits import hits


def vicinity(edges: list[tuple[int, int]], node: int, max_degree: int) -> list[int]:
    """The pages around ``node``, ascending; more than ``max_degree`` links are not followed."""
    ins = {v: {a for a, b in edges if b == v} for v in range(_node_count(edges, node))}
    outs = {v: {b for a, b in edges if a == v} for v in range(_node_count(edges, node))}
    found = {node} | ins[node] | outs[node]
    for parent in ins[node]:
        found |= outs[parent] if len(outs[parent]) <= max_degree else set()
    for child in outs[node]:
        found |= ins[child] if len(ins[child]) <= max_degree else set()
    return sorted(found)


def _node_count(edges: list[tuple[int, int]], node: int) -> int:
    return 1 + max([node, *(end for edge in edges for end in edge)])


def companions(
    edges: list[tuple[int, int]], node: int, max_degree: int
) -> tuple[dict[int, float], float]:
    """The authority of each page around ``node``, and the ratio of the second eigenvalue to the
    first. Without links, all authorities are 0.
    """
    pages = vicinity(edges, node, max_degree)
    place = {page: i for i, page in enumerate(pages)}
    links = [(place[a], place[b]) for a, b in edges if a in place and b in place]
    if not links:
        return dict.fromkeys(pages, 0.0), 0.0
    _, authorities, ratio = hits(len(pages), links)
    return dict(zip(pages, authorities.tolist(), strict=True)), ratio
