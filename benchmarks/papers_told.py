"""The web of the papers, as a table beside what the papers say.

What was measured with fewer samples than the papers' 100 is told as measured, and in brackets what
100 would take, by the samples: they are drawn one after another, each as long as the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.kept import Parts, said
from cocite.resources import format_size, format_time

SAMPLES = 100
MACHINE = "2.8 GHz Pentium 4, 2 GB, section 5.2"
PRINTED = {
    "rank": "“roughly an hour” for 19 M pages in 32 MB, 450 MHz Pentium III (004, section 6)",
    "psimrank": f"14 h, 68 GB, 100 samples of length 10 (001, {MACHINE})",
    "simrank": f"4 h, 68 GB, 100 samples of length 10 (001, {MACHINE})",
    "xjaccard": f"27 h, 640 GB, 100 samples of length 10 (001, {MACHINE})",
    "related psimrank": "trees of 100 to 200 pages are read a sample (001, section 5.3)",
}
TITLES = {
    "generate": "the web is generated",
    "rank": "PageRank",
    "psimrank": "index, PSimRank",
    "related psimrank": "`related`, PSimRank",
    "related-all": "`related-all`, PSimRank",
    "leave out": "1 % of the pages are left out",
    "refresh": "`refresh` once they are gone",
    "simrank": "index, SimRank",
    "xjaccard": "index, XJaccard",
    "neighborhood": "index, `neighborhood`",
    "related neighborhood": "`related`, `neighborhood`",
    "fusion": "index, the default (`fusion`)",
    "related fusion": "`related`, the default",
}


def what(step: str, found: Mapping[str, Any]) -> str:
    """What a step gave."""
    if "warm_ms" in found:
        cold, warm = found["cold_ms"], found["warm_ms"]
        return (
            f"cold {cold[0]:.0f} ms (most {cold[1]:.0f}), "
            f"warm {warm[0]:.2f} ms (99 %: {warm[1]:.1f})"
        )
    if step == "rank":
        return f"{found['sweeps']} sweeps, error ≤ {found['error']:.1e}"
    if step == "related-all":
        return f"{found['nodes']:,} pages, {found['nodes'] / found['spent'][1]:,.0f} a second"
    if "samples" in found:
        bits = f", {found['bits']} bits of each min-hash" if "bits" in found else ""
        return f"{found['samples']} samples of length {found['length']}{bits}"
    if "links" in found:
        return f"{found['nodes']:,} pages, {found['links']:,} links"
    return ""


def extrapolated(found: Mapping[str, Any], value: float, show: Any) -> str:
    """A figure, and what 100 samples would take."""
    samples = found.get("samples", SAMPLES)
    more = f" (100: {show(value * SAMPLES / samples)})" if samples < SAMPLES else ""
    return f"{show(value)}{more}"


def cells(step: str, found: Mapping[str, Any]) -> list[str]:
    """A line of the table."""
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
    """A step, for whoever waits."""
    return ", ".join(cell for cell in cells(step, found)[:-1] if cell)


def figures(parts: Parts) -> str:
    """The block of docs/performance.md. Steps of other sizes than the largest are left out."""
    most = max(part["found"]["chosen"]["nodes"] for part in parts.values())
    mine = {s: p for s, p in parts.items() if p["found"]["chosen"]["nodes"] == most}
    chosen = next(iter(mine.values()))["found"]["chosen"]
    titles = ["step", "", "processor", "clock", "peak memory", "on disk", "the papers"]
    head = (
        f"A generated web of {chosen['nodes']:,} pages and {chosen['links']:,} links, with "
        f"`--memory {format_size(chosen['memory'])}`; what 100 samples would take, in brackets, is "
        "extrapolated by their number. Measured "
    )
    lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    lines += [
        "| " + " | ".join(cells(step, mine[step]["found"])) + " |"
        for step in TITLES
        if step in mine
    ]
    return f"{head}{said(mine)}\n\n" + "\n".join(lines)
