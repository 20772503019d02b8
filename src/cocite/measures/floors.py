"""The least memory that an index takes to build, by layout: formulas for people.

Builders refuse less (``layouts/memory_plan.py``, and the builder of each layout); a test holds
them to these.
"""

from __future__ import annotations

__all__ = ["FLOORS", "FLOOR_WORDS", "told_floor"]

FLOORS = {
    "compact": "28 n + block",
    "features": "(76 + 8 rows) n + 1 MiB + min(24 MiB, 2 L)",
    "links": "8 n + min(16 MiB, L)",
    "minhash": "(8 + 24 length) n + 4 MiB",
    "nearest": "min(88 n + 6 MiB + min(24 MiB, 2 L), 12 n + 30 MiB)",
    "packed": "(28.8 + b / 4) n + block",
    "paths": "(30 + 12 length) n + block",
    "sketch": "length bits n / 4 + 4 MiB",
    "text": "40 n + 200 w + 32 MiB",
    "trees": "min(26.5 n + block, max(4 MiB, (L + 13 n) / 256))",
}
"""In bytes, for n nodes, beside what Python takes; names of settings are their values."""

FLOOR_WORDS = (
    "Memory is in bytes, for n nodes and m links, beside some 170 MB for Python: L is 8 n + 4 m, "
    "or 8 n + 8 m with weights of links, and twice as much for the direction any; block is min(L, "
    "max(1 MiB, L / 256), 16 MiB); rows is radius, at most 8, or 0 with a threshold of 0; w is how "
    "many different words the texts have; b is the bits of n - 1. Weights of links, and hubs, take "
    "4 n to 8 m more; the directions out, both and any take as much as links at least. With more "
    "memory a build uses all cores and reads links less often."
)


def told_floor(layout: str) -> str:
    """What an error says behind what is missing."""
    return f". The least for the layout {layout} is {FLOORS[layout]} (see: cocite measures)"
