"""Table of measurements on a web of the papers' size, next to the papers' results.

Steps measured with fewer than the papers' 100 samples also show an extrapolation to 100, as time
and size are proportional to the number of samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.kept import Parts, provenance
from cocite.resources import format_size, format_time

SAMPLES = 100
MACHINE = "Fogaras and Rácz 2005, section 5.2; 2.8 GHz Pentium 4, 2 GB"
PRINTED = {
    "rank": "“roughly an hour” for 19 M pages in 32 MB, 450 MHz Pentium III (Haveliwala 1999, "
    "section 6)",
    "psimrank": f"14 h, 68 GB, 100 samples of length 10 ({MACHINE})",
    "simrank": f"4 h, 68 GB, 100 samples of length 10 ({MACHINE})",
    "xjaccard": f"27 h, 640 GB, 100 samples of length 10 ({MACHINE})",
    "related psimrank": "reads a tree of 100 to 200 pages per sample (Fogaras and Rácz 2005, "
    "section 5.3)",
}
TITLES = {
    "generate": "generating the web",
    "rank": "PageRank",
    "psimrank": "index, PSimRank",
    "related psimrank": "`related`, PSimRank",
    "related-all": "`related-all`, PSimRank",
    "leave out": "removing 1% of the pages",
    "refresh": "`refresh` after the removal",
    "simrank": "index, SimRank",
    "xjaccard": "index, XJaccard",
    "neighborhood": "index, `neighborhood`",
    "related neighborhood": "`related`, `neighborhood`",
    "fusion": "index, the default (`fusion`)",
    "related fusion": "`related`, the default",
}


def what(step: str, found: Mapping[str, Any]) -> str:
    """Return the outcome of a step as text."""
    if "warm_ms" in found:
        cold, warm = found["cold_ms"], found["warm_ms"]
        return (
            f"cold {cold[0]:.0f} ms (at most {cold[1]:.0f}), "
            f"warm {warm[0]:.2f} ms (99%: {warm[1]:.1f})"
        )
    if step == "rank":
        return f"{found['sweeps']} sweeps, error ≤ {found['error']:.1e}"
    if step == "related-all":
        return f"{found['nodes']:,} pages, {found['nodes'] / found['spent'][1]:,.0f} per second"
    if "samples" in found:
        bits = f", {found['bits']} bits per min-hash" if "bits" in found else ""
        return f"{found['samples']} samples of length {found['length']}{bits}"
    if "links" in found:
        return f"{found['nodes']:,} pages, {found['links']:,} links"
    return ""


def extrapolated(found: Mapping[str, Any], value: float, show: Any) -> str:
    """Return a figure and its extrapolation to 100 samples, as text."""
    samples = found.get("samples", SAMPLES)
    more = f" (100: {show(value * SAMPLES / samples)})" if samples < SAMPLES else ""
    return f"{show(value)}{more}"


def cells(step: str, found: Mapping[str, Any]) -> list[str]:
    """Return the cells of one row."""
    busy, clock = found["spent"]
    size = found.get("bytes")
    return [
        TITLES[step],
        what(step, found),
        extrapolated(found, busy, format_time),
        extrapolated(found, clock, format_time),
        format_size(found["peak"]),
        extrapolated(found, size, lambda b: format_size(round(b))) if size else "",
        PRINTED.get(step, ""),
    ]


def line(step: str, found: Mapping[str, Any]) -> str:
    """Return a progress line for one step."""
    return ", ".join(cell for cell in cells(step, found)[:-1] if cell)


def figures(parts: Parts) -> str:
    """Return the block of docs/performance.md, for the largest web measured."""
    most = max(part["found"]["chosen"]["nodes"] for part in parts.values())
    mine = {s: p for s, p in parts.items() if p["found"]["chosen"]["nodes"] == most}
    chosen = next(iter(mine.values()))["found"]["chosen"]
    titles = ["step", "", "CPU time", "wall time", "peak memory", "on disk", "the papers"]
    head = (
        f"A generated web of {chosen['nodes']:,} pages and {chosen['links']:,} links, with "
        f"`--memory {format_size(chosen['memory'])}`. Values for 100 samples, in brackets, are "
        "extrapolated. Measured "
    )
    lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    lines += [
        "| " + " | ".join(cells(step, mine[step]["found"])) + " |"
        for step in TITLES
        if step in mine
    ]
    return f"{head}{provenance(mine)}\n\n" + "\n".join(lines)
