"""Rows of Lin, King and Lyu 2006: PageSim."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.arithmetic import mean
from benchmarks.reproduction.rows import Measured, Paper, Row, decided, each, grows, over_seeds

_SHOWN = (1, 5, 10, 20)
_NEEDS = ("content wikispeedia", "content git's manual")


def _sites(measured: Measured) -> dict[str, dict[str, Any]]:
    return {name.removeprefix("content "): found for name, found in measured.items()}


def _at(curves: list[list[float]]) -> str:
    """Format curves over T, one per seed."""
    return ", ".join(over_seeds([curve[t - 1] for curve in curves]) for t in _SHOWN)


_T = f"<br>(T = {', '.join(map(str, _SHOWN))})"


def _example(measured: Measured) -> tuple[str, str]:
    found = measured["pagesim-example"]
    fine = [round(found[v], 6) for v in ("v0", "v1", "v2")] == [1.0, 0.4, 0.72]
    told = f"PR(v0, v1) = {found['v1']:g}, PR(v0, v2) = {found['v2']:g}"
    return told, "**yes**" if fine else "**no**"


def _decay(measured: Measured) -> tuple[str, str]:
    lines, best, spread = {}, {}, {}
    for name, one in _sites(measured).items():
        seeds = {d: np.mean(curves, axis=1) for d, curves in one["decay"].items()}
        means = {d: float(np.mean(of_seed)) for d, of_seed in seeds.items()}
        top = max(means, key=lambda d: means[d])
        wide = (max(means.values()) - min(means.values())) / max(means.values())
        lines[f"{name}, r = {one['radius']}"] = (
            "; ".join(f"d {d}: {_at(one['decay'][d])}" for d in ("0.1", "0.5", "0.9"))
            + f"; mean over T best at d = {top}, {wide:.1%} between best and worst"
        )
        others = np.max([of_seed for d, of_seed in seeds.items() if d != "0.5"], axis=0)
        best[name] = (seeds["0.5"] - others).tolist()
        spread[name] = wide < 0.1
    return (
        each(lines) + _T,
        f"curves are close, within 10%: {grows(spread)}<br>d = 0.5 is best: {decided(best)}",
    )


def _radius(measured: Measured) -> tuple[str, str]:
    lines, holds = {}, {}
    for name, one in _sites(measured).items():
        series = one["radius_sweep"]
        far = str(one["radius"])
        near, all_of_it = (np.mean(series[radius], axis=0) for radius in ("3", far))
        off = float(np.max(np.abs(near - all_of_it) / all_of_it))
        lines[name] = (
            "; ".join(f"r {r}: {_at(series[r])}" for r in ("1", "2", "3", far))
            + f"; 3 and {far} differ by at most {off:.1%}"
        )
        holds[name] = off < 0.02
    return each(lines) + _T, f"within 2%: {grows(holds)}"


def _beside(measured: Measured) -> tuple[str, str]:
    lines, holds = {}, {}
    for name, one in _sites(measured).items():
        ours, other = np.array(one["pagesim"]), np.array(one["simrank"])
        gains = 100 * (ours / other - 1).mean(axis=1)
        lines[name] = (
            f"PageSim {_at(one['pagesim'])}; SimRank {_at(one['simrank'])}; "
            f"PageSim {over_seeds(gains.tolist(), 1)}% better on average"
        )
        holds[name] = all(mean(at.tolist()).low > 0 for at in (ours - other).T)
    return each(lines) + _T, f"better at every T: {grows(holds)}"


def _robustness(measured: Measured) -> tuple[str, str]:
    found = dict(measured["farm"])
    before = found.pop("no farm")
    lines, holds, same = {}, {}, {}
    for name, one in found.items():
        effect = one["score"]["pagesim"] - before["score"]["pagesim"]
        lines[name] = (
            f"raises s(target, popular) by {effect:.1f}; farm and target have a PageRank of "
            f"{one['farm rank']:,.0f} in total; the target is at rank "
            f"{one['place in list']['pagesim']} of the popular page's related pages "
            f"(cocitation: {one['place in list']['cocitation']})"
        )
        holds[name] = effect < one["farm rank"]
        same[name] = one["farm rank"] <= 1.01 * found["farm"]["farm rank"]
    return (
        each(lines) + "<br>(1,000 pages added to cnr-2000; without them, both scores are 0. An "
        "average page has a PageRank of 1)",
        f"the effect is below the farm's PageRank: {grows(holds)}<br>structure does not raise "
        f"the PageRank: {grows(same)}<br>The bound does not keep the target off the list",
    )


def _trust(measured: Measured) -> tuple[str, str]:
    found = measured["farm"]
    lines = {
        name: f"rank {one['place']:,} by PageRank, {one['trust place']:,} by trust; spam mass "
        f"{one['spam mass']:.4f} (popular page: {one['popular spam mass']:.2f})"
        for name, one in found.items()
    }
    holds = {
        name: one["trust place"] > 100 * one["place"] and one["top with as much"] == 1
        for name, one in found.items()
        if name != "no farm"
    }
    return (
        each(lines)
        + "<br>(the target is the page of cnr-2000 with the median PageRank, of 325,557)",
        "the target keeps a low rank by trust, and has the highest spam mass of the top 1,000: "
        f"{grows(holds)}",
    )


PAPER_002 = Paper(
    "002",
    "Lin, King and Lyu 2006",
    "PageSim: a novel link-based similarity measure for the World Wide Web",
    "Δ(A, T) is the mean TF-IDF similarity of a page's text and the texts of its T best hits. The "
    "paper's 20,000 pages of one department are not available. We use the articles of wikispeedia "
    "and the 250 linked pages of git's HTML manual; the manual is small enough for r = n − 1. "
    "Paths are cut below a hundred-thousandth of an average page's PageRank. SimRank uses 1,000 "
    "samples per seed. Each seed has 400 queries, or all pages if there are fewer.",
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
            "at r = n − 1, the curves for all d are very close and fall with T; d = 0.5 is best",
            _NEEDS,
            _decay,
        ),
        Row("002.figure3", "Figure 3", "r = 3 is very close to r = n − 1", _NEEDS, _radius),
        Row(
            "002.figure4",
            "Figure 4",
            "PageSim (r = 3, d = 0.5) is 8% better than SimRank on average, and better at every T",
            _NEEDS,
            _beside,
        ),
        Row(
            "002.robustness",
            "Section 5.3, robustness",
            "a link farm that links to two pages raises their score by less than the farm's "
            "PageRank; the farm's structure does not raise this PageRank",
            ("farm",),
            _robustness,
        ),
        Row(
            "002.trust",
            "Section 5.3, extended",
            "not in the paper: TrustRank and spam mass of the same farm (`docs/pagerank.md`)",
            ("farm",),
            _trust,
        ),
    ),
)
