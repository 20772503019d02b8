"""Hypothesis strategies for graphs: small ones with the cases that break walks."""

from hypothesis import strategies as st

Edges = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 14) -> tuple[int, Edges]:
    """(nodes, edges without self-loops or duplicates), with dangling nodes, cycles, hubs, one
    node, or no edges.
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


WEIGHTS = st.one_of(st.sampled_from([1.0, 1.0, 2.0, 3.0, 0.5]), st.floats(2**-10, 1000, width=32))
"""Weights that float32 holds exactly; equal ones are common."""


@st.composite
def weighted_graphs(draw: st.DrawFn, max_nodes: int = 12) -> tuple[int, Edges, list[float]]:
    """(nodes, edges, the weight of each edge)."""
    n, edges = draw(graphs(max_nodes))
    return n, edges, draw(st.lists(WEIGHTS, min_size=len(edges), max_size=len(edges)))


def in_weights(n: int, edges: Edges, weights: list[float]) -> list[list[float]]:
    """The weights of every node's in-links, in the order of ``in_neighbors``."""
    found: list[list[float]] = [[] for _ in range(n)]
    for (_, target), weight in sorted(zip(edges, weights, strict=True)):
        found[target].append(weight)
    return found


def in_neighbors(n: int, edges: Edges) -> list[list[int]]:
    """Ascending in-neighbors of every node."""
    found: list[list[int]] = [[] for _ in range(n)]
    for source, target in sorted(edges):
        found[target].append(source)
    return found
