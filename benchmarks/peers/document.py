"""Tables of comparisons: ratios of medians, with the smallest and largest ratio of a round.

Below 1, cocite is faster. ``docs/performance.md`` explains the columns.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.arithmetic import Ratio, digits, ratio
from benchmarks.kept import Parts, provenance
from benchmarks.peers.nearest import EMBEDDING, OURS
from benchmarks.peers.tasks import TASKS
from cocite.resources import format_size

BUSY, CLOCK = 0, 1
Row = Mapping[str, Any]
Get = Callable[[Any], float]
_NEAREST: dict[str, Get] = {
    "build": lambda r: float(r["build"][BUSY]),
    "query": lambda r: float(r["query"][0]),
    "p99": lambda r: float(r["query"][1]),
    "bytes": lambda r: float(r["bytes"]),
}


def ratios(row: Row) -> dict[str, Ratio]:
    """Return the ratios of a row by name; empty without our turns."""
    if not row.get("ours"):
        return {}
    if row["task"] == EMBEDDING:
        return {
            f"{what} {method}": ratio([get(r) for r in row["ours"][method]], _theirs(get, row))
            for method in OURS
            for what, get in _NEAREST.items()
        }
    ours = row["ours"]
    return {
        "solve": ratio([r["again"][-1][BUSY] for r in ours], _theirs(_solve(BUSY), row)),
        "asked": ratio([r["again"][0][BUSY] for r in ours], _theirs(_solve(BUSY), row)),
        "wall": ratio([r["again"][-1][CLOCK] for r in ours], _theirs(_solve(CLOCK), row)),
        "whole": ratio([_whole(r) for r in ours], _theirs(_whole, row)),
    }


def _theirs(get: Get, row: Row) -> list[float]:
    """Return a quantity for each of their turns."""
    return [get(run) for run in row["theirs"]]


def _solve(which: int) -> Get:
    return lambda run: float(run["again"][0][which])


def _whole(run: Row) -> float:
    return float(run["load"][BUSY] + run["first"][BUSY])


def wholes(parts: Parts) -> dict[str, dict[str, Ratio]]:
    """Return all stored ratios, by part."""
    return {key: ratios(part["found"]) for key, part in parts.items()}


def warnings(now: Mapping[str, Ratio], kept: Mapping[str, Ratio], by: float) -> list[str]:
    """Return a line for each task that got slower by more than ``by`` and the spread of turns."""
    from benchmarks.arithmetic import slower

    return [
        f"{name}: {now[name]} of its time, and {before} when last kept"
        for name, before in kept.items()
        if name in now and slower(now[name], before, by)
    ]


def seconds(value: float) -> str:
    """Format seconds."""
    return f"{digits(value)} s"


def cells(row: Row) -> list[str]:
    """Return the cells of one row."""
    middle = statistics.median
    theirs = row["theirs"]
    line = [
        f"{row['graph']} ({row['nodes']:,} / {row['links']:,})",
        row["library"],
        f"{row['error']:.0e}" if row["error"] else "0",
        seconds(middle(r["load"][BUSY] for r in theirs)),
        seconds(middle(r["again"][0][BUSY] for r in theirs)),
    ]
    if row.get("unlike"):
        return [*line, *["different answer"] * 4]
    found = ratios(row)
    return [*line, *(str(found[key]) for key in ("solve", "asked", "wall", "whole"))]


TITLES = (
    "graph (pages / links)",
    "library",
    "error",
    "loading",
    "computing",
    "ratio",
    "ratio at requested error",
    "ratio of wall times",
    "ratio with loading",
)
NEAREST_TITLES = (
    "graph (pages / links)",
    "method",
    "build",
    "size",
    "query, median",
    "99th percentile",
    "precision@10",
)


def told(row: Row) -> str:
    """Return a progress line."""
    line = f"{row['task']}, {row['graph']}, {row['library']}: "
    if "why" in row:
        return f"{line}{row['why']}"
    if row.get("unlike"):
        return line + f"different answer, {row['error']:.1g} from the reference"
    return line + ", ".join(f"{name} {found}" for name, found in ratios(row).items())


def table(titles: tuple[str, ...], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _nearest(rows: list[Row]) -> list[list[str]]:
    found = []
    for row in rows:
        graph = f"{row['graph']} ({row['nodes']:,} / {row['links']:,})"
        rate = ratios(row)
        for way, runs in {row["library"]: row["theirs"], **row["ours"]}.items():
            mine = way in OURS
            first = runs[0]
            named = f"`{way}`, as a ratio to {row['library']}" if mine else way
            line = [graph, named]
            if mine:
                line += [str(rate[f"{w} {way}"]) for w in ("build", "bytes", "query", "p99")]
            else:
                line += [
                    seconds(statistics.median(r["build"][BUSY] for r in runs)),
                    format_size(first["bytes"]),
                    f"{statistics.median(r['query'][0] for r in runs):.2f} ms",
                    f"{statistics.median(r['query'][1] for r in runs):.2f} ms",
                ]
            found.append([*line, f"{first['precision']:.3f}" if "precision" in first else "–"])
    return found


def figures(parts: Parts) -> str:
    """The block of docs/performance.md."""
    pieces = [provenance(parts)]
    for name in (*TASKS, EMBEDDING):
        rows = [p["found"] for p in parts.values() if p["found"]["task"] == name]
        fine = [row for row in rows if "why" not in row]
        if not rows:
            continue
        if name == EMBEDDING:
            pieces += ["**Nearest pages by an embedding**", table(NEAREST_TITLES, _nearest(fine))]
        else:
            task = TASKS[name]
            asked = f"; requested: {task.error:.0e}" if task.error else ""
            pieces += [
                f"**{task.title}** (error: {task.error_is}{asked})",
                table(TITLES, [cells(row) for row in fine]),
            ]
            pieces += [f"* {who} {why}." for who, why in task.without.items()]
        pieces += [
            f"* {row['library']} on {row['graph']}: {row['why']}." for row in rows if "why" in row
        ]
    return "\n\n".join(pieces)
