"""The rows of 000 and 001: SimRank, PSimRank and XJaccard from samples."""

from __future__ import annotations

from typing import Any

from benchmarks.reproduction.rows import (
    Measured,
    Paper,
    Row,
    between,
    decided,
    each,
    grows,
    picture,
    unavailable,
)

__all__ = ["GAMMA_000", "GAMMA_001", "PAPER_000", "PAPER_001"]

GAMMA_000 = ("wikispeedia", "web", "hollins")
GAMMA_001 = ("wikispeedia", "web", "hollins", "cora", "polblogs", "cit-HepPh")
_CRAWL = "the crawl and the directory's topics are not to be had"


def _of(measured: Measured, kind: str) -> dict[str, Any]:
    """Measurements of one kind, by graph."""
    start = kind + " "
    return {k.removeprefix(start): v for k, v in measured.items() if k.startswith(start)}


def _needs(kind: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{kind} {name}" for name in names)


def _swept(found: dict[str, Any], setting: str, measure: str, what: str) -> dict[str, float]:
    """Values by setting: gamma itself, or pairs."""
    series = found["sweeps"][setting][measure]
    return {v: r["pairs"] if what == "pairs" else r["gamma"][0] for v, r in series.items()}


def _line(values: dict[str, float], shown: tuple[str, ...], name: str) -> str:
    return ", ".join(f"{values[v]:.3f}" for v in shown) + f" ({name} {', '.join(shown)})"


# -- 000 ------------------------------------------------------------------------------------------


def _pairs(measured: Measured) -> tuple[str, str]:
    found = _of(measured, "gamma-000")
    lines, holds = {}, {}
    for name, one in found.items():
        mine = _swept(one, "length", "simrank", "pairs")
        other = _swept(one, "length", "compact-simrank", "pairs")
        shown = ("1", "4", "7", "10")
        lines[name] = (
            ", ".join(f"{mine[v]:,.0f}" for v in shown)
            + f" (L {', '.join(shown)}); compacted, L 10: {other['10']:,.0f}"
        )
        holds[name] = mine["1"] < mine["4"] < mine["10"]
    return each(lines), grows(holds)


def _by_length(measured: Measured) -> tuple[str, str]:
    found = _of(measured, "gamma-000")
    lines, holds = {}, {}
    for name, one in found.items():
        mine = _swept(one, "length", "simrank", "gamma")
        lost = one["methods"]["compact-simrank"]["difference"]
        lines[name] = (
            _line(mine, ("1", "2", "4", "7", "10"), "L")
            + f"; compacted at L 10: {between(lost, sign=True)}"
        )
        holds[name] = mine["1"] < mine["4"] and mine["1"] < mine["10"]
    return each(lines), grows(holds)


def _loss(measured: Measured) -> tuple[str, str]:
    found = _of(measured, "gamma-000")
    lost = {n: one["methods"]["compact-simrank"]["difference"] for n, one in found.items()}
    return (
        each({name: between(each_lost, sign=True) for name, each_lost in lost.items()}),
        decided(lost, rises=False),
    )


def _linear(measured: Measured) -> tuple[str, str]:
    found = _of(measured, "gamma-000")
    lines, holds = {}, {}
    for name, one in found.items():
        mine = _swept(one, "samples", "simrank", "pairs")
        rate = mine["100"] / mine["10"]
        lines[name] = f"{mine['10']:,.0f} and {mine['100']:,.0f} (N 10, 100): {rate:.1f} times"
        holds[name] = 8 <= rate <= 12
    return each(lines), grows(holds)


def _by_samples(measured: Measured) -> tuple[str, str]:
    found = _of(measured, "gamma-000")
    lines, holds = {}, {}
    for name, one in found.items():
        mine = _swept(one, "samples", "simrank", "gamma")
        lines[name] = _line(mine, ("10", "30", "100"), "N")
        holds[name] = mine["10"] > mine["100"]
    return each(lines), grows(holds)


def _by_decay(kind: str, measures: tuple[str, ...]) -> Any:
    def tell(measured: Measured) -> tuple[str, str]:
        lines, holds = {}, {}
        for name, one in _of(measured, kind).items():
            mine = {m: _swept(one, "decay", m, "gamma") for m in measures}
            lines[name] = "; ".join(
                f"{m} {v['0.1']:.3f}, {v['0.5']:.3f}, {v['0.9']:.3f}" for m, v in mine.items()
            )
            holds[name] = all(v["0.1"] > v["0.9"] for v in mine.values())
        return each(lines) + "<br>(c 0.1, 0.5, 0.9)", grows(holds)

    return tell


PAPER_000 = Paper(
    "000",
    "A scalable randomized method to compute link-based similarity rank on the web graph",
    "Γ macro-averaged over whole lists, with the query; c = 0.65, L = 10, N = 100. The charts are "
    "in the paper; what its text says of them is printed here.",
    (
        Row(
            "000.figure1a",
            "Figure 1a",
            "comparable pairs increase with L",
            _needs("gamma-000", GAMMA_000),
            _pairs,
        ),
        Row(
            "000.figure1b",
            "Figure 1b",
            "Γ ≈ 0.5, increases with L, falls slightly after L = 7",
            _needs("gamma-000", GAMMA_000),
            _by_length,
        ),
        Row(
            "000.figure1b-compacted",
            "Figure 1b, right bars",
            "compacted SimRank loses quality, the more the longer the paths",
            _needs("gamma-000", GAMMA_000),
            _loss,
        ),
        Row(
            "000.figure1c",
            "Figure 1c",
            "pairs increase linearly with N",
            _needs("gamma-000", GAMMA_000),
            _linear,
        ),
        Row(
            "000.figure1d",
            "Figure 1d",
            "Γ generally falls with N",
            _needs("gamma-000", GAMMA_000),
            _by_samples,
        ),
        Row(
            "000.decay",
            "Section 6.1, decay",
            "the smaller c, the higher Γ; pairs unchanged",
            _needs("gamma-000", GAMMA_000),
            _by_decay("gamma-000", ("simrank",)),
        ),
        unavailable(
            "000.time",
            "Section 6, time and size",
            "11 million pages in 40 minutes; 1.3 GB for 161,000 of them",
            f"{_CRAWL}; times on other graphs: README",
        ),
    ),
)

# -- 001 ------------------------------------------------------------------------------------------


def _witnesses(measured: Measured) -> tuple[str, str]:
    found = measured["witnesses"]
    lines, holds = {}, {}
    for k, one in found.items():
        simrank, psimrank = one["simrank"], one["psimrank"]
        lines[f"k = {k}"] = (
            f"SimRank {simrank['score']:.4f} (c / k = {0.6 / int(k):.4f}), "
            f"PSimRank {psimrank['score']:.4f}"
        )
        near = simrank["low"] <= 0.6 / int(k) + 1e-9 and 0.6 / int(k) <= simrank["high"] + 1e-9
        holds[f"k = {k}"] = near and abs(psimrank["score"] - 0.6) < 1e-9
    return each(lines) + "<br>(c = 0.6, 10,000 samples)", grows(holds)


def _lengths(measured: Measured) -> tuple[str, str]:
    lines = {}
    for name, one in _of(measured, "lengths-001").items():
        some, every = one["with a pair"], one["all"]
        lines[name] = (
            f"{some['1'][0]:.3f}, {some['4'][0]:.3f}, {some['10'][0]:.3f} over the "
            f"{one['queries with a pair']['1']:.0%}, {one['queries with a pair']['4']:.0%}, "
            f"{one['queries with a pair']['10']:.0%} of the queries that have a comparable pair "
            f"(10 less 1: {between(some['10 - 1'], sign=True)}); others counted as 0: "
            f"{every['1'][0]:.3f}, {every['4'][0]:.3f}, {every['10'][0]:.3f} "
            f"({between(every['10 - 1'], sign=True)})"
        )
    found = _of(measured, "lengths-001")
    return (
        each(lines) + "<br>(PSimRank, ℓ 1, 4, 10)",
        "queries without a comparable pair left out: "
        + decided({name: one["with a pair"]["10 - 1"] for name, one in found.items()})
        + "<br>counted as 0: "
        + decided({name: one["all"]["10 - 1"] for name, one in found.items()}),
    )


def _xjaccard_by_length(measured: Measured) -> tuple[str, str]:
    lines, holds = {}, {}
    for name, one in _of(measured, "gamma-001").items():
        mine = _swept(one, "length", "xjaccard", "gamma")
        best = max(mine, key=lambda v: mine[v])
        lines[name] = _line(mine, ("1", "2", "4", "6", "10"), "ℓ") + f", best at {best}"
        holds[name] = best in ("3", "4", "5")
    return each(lines), grows(holds)


def _samples_001(measured: Measured) -> tuple[str, str]:
    lines, holds = {}, {}
    for name, one in _of(measured, "gamma-001").items():
        mine = {m: _swept(one, "samples", m, "gamma") for m in ("psimrank", "simrank", "xjaccard")}
        lines[name] = "; ".join(
            f"{m} {v['10']:.3f}, {v['30']:.3f}, {v['100']:.3f}" for m, v in mine.items()
        )
        holds[name] = all(v["100"] > v["10"] for v in mine.values())
    return each(lines) + "<br>(N 10, 30, 100)", grows(holds)


def _best(measured: Measured) -> tuple[str, str]:
    lines = {}
    for name, one in _of(measured, "gamma-001").items():
        methods = one["methods"]
        lines[name] = "; ".join(f"{m} {between(v['gamma'])}" for m, v in methods.items()) + (
            f"; XJaccard less PSimRank {between(methods['xjaccard']['difference'], sign=True)}, "
            f"SimRank less PSimRank {between(methods['simrank']['difference'], sign=True)}"
        )
    found = _of(measured, "gamma-001")
    rings, plain = (
        decided({n: one["methods"][m]["difference"] for n, one in found.items()}, rises=False)
        for m in ("xjaccard", "simrank")
    )
    return each(lines), f"above XJaccard: {rings}<br>above SimRank: {plain}"


def _trees(measured: Measured) -> tuple[str, str]:
    lines, holds = {}, {}
    for name, one in measured["trees"].items():
        for measure in ("simrank", "psimrank"):
            mine = one[measure]
            lines[f"{name}, {measure}"] = (
                f"mean {mine['1']['mean']:,.0f}, {mine['4']['mean']:,.0f}, "
                f"{mine['10']['mean']:,.0f}; largest {mine['1']['largest']:,}, "
                f"{mine['4']['largest']:,}, {mine['10']['largest']:,}"
            )
        holds[name] = one["psimrank"]["10"]["mean"] > one["simrank"]["10"]["mean"]
    return (
        each(lines) + "<br>(ℓ 1, 4, 10)",
        f"PSimRank's are larger: {grows(holds)}. They are small beside the graph, but their mean "
        "is ten times what is printed, on graphs of a 240th of the pages: **no**",
    )


def _sizes(measured: Measured) -> tuple[str, str]:
    found = measured["sizes"]
    here = {"PSimRank": found["psimrank"], "XJaccard": found["xjaccard"]}
    printed = {"PSimRank": 68e9 / 78_636_371 / 100, "XJaccard": 640e9 / 78_636_371 / 100}
    holds = {name: abs(here[name] / printed[name] - 1) < 0.1 for name in here}
    lines = {name: f"{here[name]:.1f} bytes, printed {printed[name]:.1f}" for name in here}
    return each(lines) + f"<br>(cnr-2000, ℓ = 10; XJaccard at ℓ = 4: {found['xjaccard 4']:.1f})", (
        grows(holds)
    )


def _kept(measured: Measured) -> tuple[str, str]:
    here, printed = measured["sizes"]["kept"], 200e6 / 218_720 / 100
    return (
        f"a tenth of the pages of cnr-2000 (`--keep`): {here:.1f} bytes a page kept and sample, "
        f"printed {printed:.1f}",
        grows({"cnr-2000": abs(here / printed - 1) < 0.15}),
    )


PAPER_001 = Paper(
    "001",
    "Scaling link-based similarity search",
    "Γ micro-averaged over the best 100, without the query; c = 0.1, N = 100, ℓ = 10, XJaccard 4. "
    "Intervals of 95 % tell how Γ would vary with other queries. A claim holds on a graph where "
    "the interval says so.",
    (
        picture(
            "001.figure1",
            "Figure 1",
            "walks of five pages, and their fingerprint graph",
            "its definition is the twin in `tests/oracles/walks.py`",
        ),
        picture(
            "001.figure2", "Figure 2", "notation for a proof", "the lemma is held by the same twin"
        ),
        Row(
            "001.figure3",
            "Figure 3",
            "two pages with the same k witnesses: SimRank c / k, PSimRank c",
            ("witnesses",),
            _witnesses,
        ),
        Row(
            "001.figure4-length",
            "Figure 4, top: PSimRank",
            "Γ rises steeply from ℓ = 1 to 4, slightly on",
            _needs("lengths-001", GAMMA_001),
            _lengths,
        ),
        Row(
            "001.figure4-rings",
            "Figure 4, top: XJaccard",
            "largest at ℓ = 4",
            _needs("gamma-001", GAMMA_001),
            _xjaccard_by_length,
        ),
        Row(
            "001.figure4-decay",
            "Figure 4, middle",
            "the smaller c, the higher Γ, for all three",
            _needs("gamma-001", GAMMA_001),
            _by_decay("gamma-001", ("psimrank", "simrank", "xjaccard")),
        ),
        Row(
            "001.figure4-samples",
            "Figure 4, bottom",
            "Γ rises slightly with N",
            _needs("gamma-001", GAMMA_001),
            _samples_001,
        ),
        Row(
            "001.figure4",
            "Figure 4, all",
            "PSimRank outperforms the others; Γ = 0.3 to 0.4",
            _needs("gamma-001", GAMMA_001),
            _best,
        ),
        Row(
            "001.figure5",
            "Figure 5",
            "of 80 million pages, trees of 100 to 200 pages on average, 10,000 to 20,000 at most; "
            "PSimRank's are larger",
            ("trees",),
            _trees,
        ),
        Row(
            "001.size",
            "Section 5.2, size",
            "68 GB for (P)SimRank, 640 GB for XJaccard, of 78,636,371 pages with 100 samples",
            ("sizes",),
            _sizes,
        ),
        Row(
            "001.size-kept",
            "Section 5.2, wanted pages",
            "200 MB for the 218,720 pages that are asked for, with the same scores",
            ("sizes",),
            _kept,
        ),
        unavailable(
            "001.time",
            "Section 5.2, time",
            "4, 14 and 27 hours for SimRank, PSimRank and XJaccard",
            f"{_CRAWL}; times on other graphs: `docs/measures.md`",
        ),
    ),
)
