"""Table of kernel times against memory limits, with reasons for large differences."""

from __future__ import annotations

from benchmarks.arithmetic import digits
from benchmarks.kept import Parts, provenance
from cocite.resources import format_size

KERNELS = {
    "sweep": "one sweep of PageRank (`kernels/rank.py`)",
    "scan": "one scan of 16 lanes by minimum (`kernels/scan.py`)",
    "walk simrank": "5 samples of walks, SimRank (`kernels/walk.py`)",
    "walk psimrank": "5 samples of walks, PSimRank (`kernels/walk.py`)",
    "related": "200 queries of `related` (`kernels/trees.py`)",
    "similarity": "200,000 times `similarity` of a pair in one sample (`kernels/trees.py`)",
    "text": "reading a text of integers into a stored graph (`kernels/integers.py`)",
}
"""Descriptions of the kernels."""
WHY = {
    "sweep": "the median row has only a few links. In short rows, each addition waits for the "
    "previous one, and the end of each row is a mispredicted branch.",
    "scan": "rows are short, and the end of each row is a mispredicted branch.",
    "walk simrank": "each step computes a hash of about 20 operations, and the branch that detects "
    "meetings is unpredictable.",
    "walk psimrank": "each step hashes every in-link of the page, or searches for the smallest "
    "hash; most of the time is spent on in-links of hubs.",
    "related": "each member of a tree updates its own sum, which takes several times as long as "
    "reading the member; a query also includes names, intervals and the list of hits.",
    "similarity": "the largest label between two near positions is found label by label, and the "
    "steps for distant positions depend on each other.",
    "text": "digits are read byte by byte, and the end of each number is a mispredicted branch; "
    "the time includes checksums, names and files.",
}
"""Reasons why a kernel takes more than twice its limit."""


def figures(parts: Parts) -> str:
    """The block of docs/performance.md."""
    rows = [part["found"] for part in parts.values()]
    last = rows[-1]
    pieces = [
        provenance(parts) if all(part["date"] for part in parts.values()) else "",
        f"One thread reads memory in order at {last['bandwidth'] / 1e9:.1f} GB/s, and a random "
        f"position in 320 MB in {1e9 * last['access']:.1f} ns. The second-level cache has "
        f"{last['cache'] >> 10:,} KiB.",
    ]
    titles = ["kernel", "graph (pages / links)", "streamed", "missed", "limit", "takes", "share"]
    lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    far = []
    for kernel, what in KERNELS.items():
        for row in (row for row in rows if row["kernel"] == kernel):
            share = row["limit"] / row["seconds"]
            if share < 0.5 and kernel not in far:
                far.append(kernel)
            cells = [
                what,
                f"{row['graph']} ({row['nodes']:,} / {row['links']:,})",
                format_size(row["streamed"]),
                f"{row['missed']:,.0f}",
                f"{digits(1e3 * row['limit'])} ms",
                f"{digits(1e3 * row['seconds'])} ms",
                f"{share:.2f}",
            ]
            lines.append("| " + " | ".join(cells) + " |")
    pieces.append("\n".join(lines))
    if far:
        pieces.append("Reasons for shares below 0.5:")
        pieces.append("\n".join(f"* {KERNELS[name]}: {WHY[name]}" for name in far))
    return "\n\n".join(piece for piece in pieces if piece)
