"""Evidence: a factor that grows with the number of common neighbors.

    score(u, v) = evidence(n) * s(u, v)  for u != v,   score(u, u) = 1
    geometric     1 - 2**-n      exponential     1 - e**-n

n is the number of common neighbors of u and v in the index's direction. The factor is exact,
ignores link weights, and also multiplies the errors and intervals of s.
Source: Antonellis, Garcia-Molina, Chang 2008, *Simrank++: query rewriting through link analysis of
the click graph*, section 7.

This module also has the formulas for the minimum memory of a build; a test compares them with
``index/layouts/memory_plan.py``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_MOST = 64
"""With this many common neighbors, both forms equal 1 in float64."""
_FORMS = {
    "geometric": np.array([1.0 - 0.5**n for n in range(_MOST + 1)]),
    "exponential": np.array([-math.expm1(-n) for n in range(_MOST + 1)]),
}


def evidence_of(shared: NDArray[np.int64], form: str) -> NDArray[np.float64]:
    """Return the evidence for int64[h] counts of common neighbors: float64[h] in [0, 1]."""
    found: NDArray[np.float64] = _FORMS[form][np.minimum(shared, _MOST)]
    return found


FLOORS = {
    "compact": "min(28 n + block, max(4 MiB, (L + 13 n) / 256))",
    "features": "max((76 + 8 rows) n + 1 MiB + min(24 MiB, 2 L), 16 n + 16 MiB)",
    "links": "min(8 n + L, 8 MiB + max(8 MiB, (8 n + L) / 128))",
    "minhash": (
        "min(min((8 + 24 length) n, max(4 MiB, 2 n)) + 12 MiB, (136 + (24 + 4 s) length) n + L)"
    ),
    "nearest": "min(88 n + 6 MiB + min(24 MiB, 2 L), 12 n + 30 MiB)",
    "packed": "(28.8 + b / 4) n + block",
    "paths": "min((30 + 12 length) n + block, max(4 MiB, (L + 13 n) / 256))",
    "rows": "96 n + 30 MiB",
    "sketch": (
        "min(min(length bits n / 4, max(4 MiB, 2 n)) + 12 MiB, "
        "(128 + (4 s + bits / 4) length) n + L)"
    ),
    "text": "40 n + 200 w + 32 MiB",
    "trees": "min(26.5 n + block, max(4 MiB, (L + 13 n) / 256))",
}
"""Minimum memory of a build in bytes, in addition to ``PROCESS_MEMORY``; see ``FLOOR_WORDS``."""

FLOOR_WORDS = (
    "Memory is in bytes, for n nodes and m links, in addition to 52 MB for Python. L is "
    "8 n + 4 m, or 8 n + 8 m with link weights, and twice as much for the direction any; block "
    "is min(L, max(1 MiB, L / 256), 16 MiB); rows is radius, at most 8, or 0 with a threshold of "
    "0; s is samples, at most 16; w is the number of distinct words in the texts; b is the bits "
    "of n - 1. Link weights and hubs take 4 n to 8 m more. The directions out, both and any take "
    "at least as much as the layout links. With more memory, a build uses more cores and reads "
    "links less often."
)


def floor_text(layout: str) -> str:
    """Return the sentence on minimum memory for error messages."""
    return f". The minimum for the layout {layout} is {FLOORS[layout]} (see: cocite measures)"
