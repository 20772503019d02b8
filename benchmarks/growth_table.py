"""Growth as a table of exponents, a table of points, and a picture.

Memory is the peak minus the memory of Python, its modules and compiled kernels without data.
Queries are measured in wall time, all other steps in CPU time. Values too small to measure
are shown as a dash and ignored by the fit. Series of fewer than three points have no exponent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.arithmetic import digits, exponent
from benchmarks.block import ROOT
from benchmarks.kept import Parts, provenance
from cocite.resources import format_size, format_time

SERIES = ("nodes", "links", "samples", "length")
PICTURE = ROOT / "docs" / "growth.svg"
Row = Mapping[str, Any]


def _seconds(step: str) -> Callable[[Row], float]:
    return lambda found: float(found[step]["spent"][0]) if step in found else 0.0


def _memory(step: str) -> Callable[[Row], float]:
    return lambda found: float(found[step]["peak"] - found[step]["base"]) if step in found else 0.0


def _milliseconds(step: str, which: int) -> Callable[[Row], float]:
    return lambda found: float(found[step]["warm_ms"][which]) if step in found else 0.0


def _bytes(step: str) -> Callable[[Row], float]:
    return lambda found: float(found[step]["bytes"]) if step in found else 0.0


def _size(size: float) -> str:
    return format_size(round(size))


def _time(seconds: float) -> str:
    """A tenth of a second is too coarse for small webs."""
    return format_time(seconds) if seconds >= 10 else f"{digits(seconds)} s"


QUANTITIES: dict[str, tuple[Callable[[Row], float], Callable[[float], str]]] = {
    "generating": (_seconds("generate"), _time),
    "PageRank": (_seconds("rank"), _time),
    "PageRank, memory": (_memory("rank"), format_size),
    "building": (_seconds("psimrank"), _time),
    "building, memory": (_memory("psimrank"), format_size),
    "bytes of the graph": (_bytes("generate"), _size),
    "bytes of the index": (_bytes("psimrank"), _size),
    "`related`, median": (_milliseconds("related psimrank", 0), lambda ms: f"{digits(ms)} ms"),
    "`related`, 99%": (_milliseconds("related psimrank", 1), lambda ms: f"{digits(ms)} ms"),
}


def _listing(step: str) -> tuple[Callable[[Row], float], Callable[[float], str]]:
    """Milliseconds of related-all per page."""

    def each(found: Row) -> float:
        return 1e3 * _seconds(step)(found) / found[step]["nodes"] if step in found else 0.0

    return each, lambda ms: f"{digits(ms)} ms"


OTHERS: dict[str, tuple[Callable[[Row], float], Callable[[float], str]]] = {
    "`related-all`, per page": _listing("related-all"),
    "`refresh`": (_seconds("refresh"), _time),
    "`refresh`, memory": (_memory("refresh"), format_size),
    "XJaccard, building": (_seconds("xjaccard"), _time),
    "XJaccard, memory": (_memory("xjaccard"), format_size),
    "XJaccard, bytes": (_bytes("xjaccard"), _size),
}
DEFAULT = "default"
DEFAULTS: dict[str, tuple[Callable[[Row], float], Callable[[float], str]]] = {
    "building": (_seconds("fusion"), _time),
    "building, memory": (_memory("fusion"), format_size),
    "bytes of the index": (_bytes("fusion"), _size),
    "bytes per node": (
        lambda found: _bytes("fusion")(found) / found["point"]["nodes"],
        lambda size: f"{size:,.0f}",
    ),
    "`related`, median": (_milliseconds("related fusion", 0), lambda ms: f"{digits(ms)} ms"),
    "`related`, 99%": (_milliseconds("related fusion", 1), lambda ms: f"{digits(ms)} ms"),
    "`related-all`, per page": _listing("related-all fusion"),
}


def _of(parts: Parts, series: str) -> list[Row]:
    """The points of a series, ascending."""
    rows = [part["found"] for part in parts.values() if part["found"]["series"] == series]
    return sorted(rows, key=lambda row: _x(row, series))


def _x(row: Row, series: str) -> int:
    return int(row["point"]["nodes" if series == DEFAULT else series])


def fitted(rows: list[Row], series: str, get: Callable[[Row], float]) -> str:
    """An exponent with its interval, or a dash."""
    points = [(_x(row, series), get(row)) for row in rows if get(row) > 0]
    x, y = [a for a, _ in points], [b for _, b in points]
    return str(exponent(x, y)) if len(set(x)) > 2 else "–"


def _table(titles: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def figures(parts: Parts) -> str:
    """The block of docs/performance.md."""
    found = {series: _of(parts, series) for series in SERIES}
    there = {series: rows for series, rows in found.items() if rows}
    exponents = [
        [name, *(fitted(rows, series, get) for series, rows in there.items())]
        for name, (get, _) in QUANTITIES.items()
    ]
    pieces = [provenance(parts), "Exponents, with 95% intervals:"]
    pieces += [_table(["", *there], exponents)]
    for series, rows in there.items():
        fixed = rows[0]["point"]
        others = ", ".join(
            f"length {fixed[key]}" if key == "length" else f"{fixed[key]:,} {key}"
            for key in SERIES
            if _constant(rows, key)
        )
        pieces += [f"**{series.capitalize()}** ({others}):"]
        lines = [
            [f"{_x(row, series):,}", *(_cell(row, *each) for each in QUANTITIES.values())]
            for row in rows
        ]
        pieces += [_table([series, *QUANTITIES], lines)]
    for series, title, quantities in (
        (
            "nodes",
            "**More commands** (PSimRank; XJaccard: 16 samples of 4 steps, 8 bits per "
            "min-hash; 10 links per page):",
            OTHERS,
        ),
        (DEFAULT, "**The default measure** (`fusion`; 10 links per page):", DEFAULTS),
    ):
        some = _of(parts, series)
        lines = [
            [f"{_x(row, 'nodes'):,}", *(_cell(row, *each) for each in quantities.values())]
            for row in some
        ]
        lines += [["*exponent*", *(fitted(some, "nodes", get) for get, _ in quantities.values())]]
        pieces += [title, _table(["nodes", *quantities], lines)] if some else []
    return "\n\n".join(pieces)


def _cell(row: Row, get: Callable[[Row], float], show: Callable[[float], str]) -> str:
    """Format a figure; a dash if too small to measure."""
    return show(get(row)) if get(row) > 0 else "–"


def _constant(rows: list[Row], key: str) -> bool:
    return len({row["point"][key] for row in rows}) == 1


def picture(parts: Parts, path: Path = PICTURE) -> None:
    """A panel a series, both axes as multiples of the least point; a gray line is linear.

    Raises :class:`~cocite.errors.UsageError` without matplotlib.
    """
    from benchmarks import plots

    plots.require()
    panels = []
    for series in SERIES:
        rows = _of(parts, series)
        if len(rows) < 2:
            continue

        def panel(axes: Any, rows: list[Row] = rows, series: str = series) -> None:
            x = [_x(row, series) / _x(rows[0], series) for row in rows]
            axes.plot(x, x, color="#BBBBBB", linestyle="--", label="linear")
            drawn = [name for name in QUANTITIES if not name.startswith("bytes of the graph")]
            for at, name in enumerate(drawn):
                get = QUANTITIES[name][0]
                color = plots.SERIES[at % len(plots.SERIES)]
                y = [get(row) for row in rows]
                if min(y) <= 0:
                    continue
                style = "-" if at < len(plots.SERIES) else ":"
                axes.plot(
                    x,
                    [value / y[0] for value in y],
                    style,
                    color=color,
                    marker="o",
                    markersize=3,
                    label=name.replace("`", ""),
                )
            axes.set(
                xscale="log", yscale="log", title=series, xlabel=f"times {_x(rows[0], series):,}"
            )
            axes.set_ylabel("times the first point")

        panels.append(panel)
    if panels:
        plots.draw(path, "Growth on generated webs", panels)
