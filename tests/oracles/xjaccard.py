"""Extended Jaccard coefficients from the sets themselves (001, Definition 3)."""

import numpy as np
from numpy.typing import NDArray

from tests.oracles import walks


def rings(neighbors: list[list[int]], length: int) -> list[list[set[int]]]:
    """``[k][v]``: I_k(v) for k = 0 to length, by breadth-first search from every node."""
    found: list[list[set[int]]] = [[] for _ in range(length + 1)]
    for node in range(len(neighbors)):
        reached, front = {node}, {node}
        found[0].append(set(reached))
        for k in range(1, length + 1):
            front = {u for v in front for u in neighbors[v]} - reached
            reached |= front
            found[k].append(set(reached))
    return found


def jaccard(sets: list[set[int]]) -> NDArray[np.float64]:
    """|A & B| / |A | B| of all pairs; the sets are not empty."""
    return np.array([[len(a & b) / len(a | b) for b in sets] for a in sets])


def xjaccard(neighbors: list[list[int]], decay: float, length: int) -> NDArray[np.float64]:
    """The sum over k = 1 to length of decay^k (1 - decay) times I_k's Jaccard coefficients."""
    total = np.zeros((len(neighbors),) * 2)
    for k, sets in enumerate(rings(neighbors, length)[1:], 1):
        total += decay**k * (1 - decay) * jaccard(sets)
    return total


def first_nodes(sets: list[set[int]], seed: int, sample: int, turn: int = 0) -> list[int]:
    """The node of each set with the smallest place in the sample's order."""
    key = walks.key_of(seed, sample, turn)
    return [min(members, key=lambda u: walks.place(key, u, len(sets))) for members in sets]
