"""The rows of 002: PageSim."""

from __future__ import annotations

import numpy as np

from benchmarks.reproduction.rows import Measured, Paper, Row, each, grows

__all__ = ["PAPER_002"]

_SHOWN = (1, 5, 10, 20)
_NEEDS = ("content wikispeedia", "content git's manual")


def _sites(measured: Measured) -> dict[str, dict[str, object]]:
    return {name.removeprefix("content "): found for name, found in measured.items()}


def _at(values: list[float]) -> str:
    return ", ".join(f"{values[t - 1]:.3f}" for t in _SHOWN)


def _example(measured: Measured) -> tuple[str, str]:
    found = measured["pagesim-example"]
    fine = [round(found[v], 6) for v in ("v0", "v1", "v2")] == [1.0, 0.4, 0.72]
    told = f"PR(v0, v1) = {found['v1']:g}, PR(v0, v2) = {found['v2']:g}"
    return told, "**yes**" if fine else "**no**"


def _decay(measured: Measured) -> tuple[str, str]:
    lines, best, spread = {}, {}, {}
    for name, one in _sites(measured).items():
        means = {d: float(np.mean(v)) for d, v in one["decay"].items()}  # type: ignore[attr-defined]
        top = max(means, key=lambda d: means[d])
        wide = (max(means.values()) - min(means.values())) / max(means.values())
        rows = {d: _at(v) for d, v in one["decay"].items() if d in ("0.1", "0.5", "0.9")}  # type: ignore[attr-defined]
        lines[f"{name}, r = {one['radius']}"] = (
            "; ".join(f"d {d}: {text}" for d, text in rows.items())
            + f"; mean over T best at d = {top}, {wide:.1%} between best and worst"
        )
        best[name], spread[name] = top == "0.5", wide < 0.1
    return (
        each(lines) + f"<br>(T = {', '.join(map(str, _SHOWN))})",
        f"curves are close: {grows(spread)}; d = 0.5 is best: {grows(best)}",
    )


def _radius(measured: Measured) -> tuple[str, str]:
    lines, holds = {}, {}
    for name, one in _sites(measured).items():
        series = one["radius_sweep"]
        far = str(one["radius"])
        apart = max(
            abs(a - b) / b
            for a, b in zip(series["3"], series[far], strict=True)  # type: ignore[index]
        )
        lines[name] = (
            "; ".join(f"r {r}: {_at(series[r])}" for r in ("1", "2", "3", far))  # type: ignore[index]
            + f"; 3 and {far} differ by {apart:.1%} at most"
        )
        holds[name] = apart < 0.02
    return each(lines) + f"<br>(T = {', '.join(map(str, _SHOWN))})", grows(holds)


def _beside(measured: Measured) -> tuple[str, str]:
    lines, holds = {}, {}
    for name, one in _sites(measured).items():
        ours = np.array([v[0] for v in one["pagesim"]])  # type: ignore[attr-defined]
        other = np.array([v[0] for v in one["simrank"]])  # type: ignore[attr-defined]
        lows = [v[1] for v in one["difference"]]  # type: ignore[attr-defined]
        gain = float(np.mean(ours / other - 1))
        lines[name] = (
            f"PageSim {_at(ours.tolist())}; SimRank {_at(other.tolist())}; {gain:+.0%} on average"
        )
        holds[name] = min(lows) > 0
    return each(lines) + f"<br>(T = {', '.join(map(str, _SHOWN))})", grows(holds)


PAPER_002 = Paper(
    "002",
    "PageSim: a novel link-based similarity measure for the World Wide Web",
    "Δ(A, T): how alike the words of a page and of its best T are, by TF-IDF. The paper's 20,000 "
    "pages of one department are not to be had: here the articles of wikispeedia, and the 250 "
    "linked pages of git's manual in HTML, where r = n − 1 can be had (paths that carry less than "
    "a hundred-thousandth of an average page's PageRank are cut). SimRank of 1,000 samples.",
    (
        Row(
            "002.figure1",
            "Figure 1",
            "PR(v0, v1) = 0.4, PR(v0, v2) = 0.72, d = 0.8",
            ("pagesim-example",),
            _example,
        ),
        Row(
            "002.figure2",
            "Figure 2",
            "at r = n − 1 the curves of d are very close; d = 0.5 is best; they fall with T",
            _NEEDS,
            _decay,
        ),
        Row("002.figure3", "Figure 3", "r = 3 is very close to r = n − 1", _NEEDS, _radius),
        Row(
            "002.figure4",
            "Figure 4",
            "PageSim (r = 3, d = 0.5) is 8 % above SimRank on average, at every T above",
            _NEEDS,
            _beside,
        ),
    ),
)
