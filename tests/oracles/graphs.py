"""Graphs for property tests: small, and with what breaks walks (Hypothesis strategies)."""

from __future__ import annotations

from hypothesis import strategies as st

Edges = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 14) -> tuple[int, Edges]:
    """(nodes, edges without self-loops or duplicates): dangling nodes, cycles, hubs, one node, no
    edges at all.
    """
    n = draw(st.integers(1, max_nodes))
    node = st.integers(0, n - 1)
    edges = set(draw(st.lists(st.tuples(node, node), max_size=4 * n)))
    if draw(st.booleans()):  # a hub that many link to, or that links to many
        hub = draw(node)
        spokes = draw(st.sets(node, max_size=n))
        inward = draw(st.booleans())
        edges |= {(s, hub) if inward else (hub, s) for s in spokes}
    if draw(st.booleans()):  # a cycle
        ring = draw(st.permutations(range(n)))[: draw(st.integers(1, n))]
        edges |= set(zip(ring, ring[1:] + ring[:1], strict=True))
    return n, sorted((a, b) for a, b in edges if a != b)


def in_neighbours(n: int, edges: Edges) -> list[list[int]]:
    """Ascending in-neighbours of every node."""
    found: list[list[int]] = [[] for _ in range(n)]
    for source, target in sorted(edges):
        found[target].append(source)
    return found
