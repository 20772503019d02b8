"""What kernels take beside what memory must take: a table, and reasons where they are far off."""

from __future__ import annotations

from benchmarks.arithmetic import digits
from benchmarks.kept import Parts, said
from cocite.resources import format_size

__all__ = ["KERNELS", "figures"]

KERNELS = {
    "sweep": "a sweep of PageRank (`kernels/rank.py`)",
    "scan": "a scan of 16 lanes by minimum (`kernels/scan.py`)",
    "walk simrank": "5 samples of walks, SimRank (`kernels/walk.py`)",
    "walk psimrank": "5 samples of walks, PSimRank (`kernels/walk.py`)",
    "related": "200 questions, `related` (`kernels/trees.py`)",
    "similarity": "200,000 pairs and samples (`kernels/trees.py`)",
    "text": "a text of integers to a stored graph (`kernels/integers.py`)",
}
"""What is told of each kernel."""
WHY = {
    "sweep": "a sum waits for the value before it where a row is short, and each row ends with a "
    "branch that is guessed wrong: rows have a few links in the median.",
    "scan": "rows are short, and each one's end is a branch that is guessed wrong.",
    "walk simrank": "each step draws a hash of some 20 operations, and a token that meets another "
    "is told by a branch that nothing foretells.",
    "walk psimrank": "each step hashes every in-link of the page, or finds the least by a search; "
    "in-links of hubs are what most of its time goes to.",
    "related": "each member of a tree adds to a sum of its own, which takes several times as long "
    "as reading it; and a question as a whole includes names, intervals and its list.",
    "similarity": "the largest label between two places is looked for label by label where they "
    "are near, and turns of far ones depend on each other.",
    "text": "digits are read byte by byte, and the end of a number is a branch that is guessed "
    "wrong; checksums, names and files are part of what is measured.",
}
"""Why a kernel is beyond twice its limit, where it is."""


def figures(parts: Parts) -> str:
    """The block of docs/performance.md."""
    rows = [part["found"] for part in parts.values()]
    last = rows[-1]
    pieces = [
        said(parts) if all(part["date"] for part in parts.values()) else "",
        f"Memory is read at {last['bandwidth'] / 1e9:.1f} GB/s in order, and in "
        f"{1e9 * last['access']:.1f} ns anywhere in 320 MB; the second-level cache has "
        f"{last['cache'] >> 10:,} KiB. One thread.",
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
        pieces.append("Why not within twice the limit:")
        pieces.append("\n".join(f"* {KERNELS[name]}: {WHY[name]}" for name in far))
    return "\n\n".join(piece for piece in pieces if piece)
