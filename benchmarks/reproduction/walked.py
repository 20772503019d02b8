"""Rows of Fogaras and Rácz 2004 and 2005: sampled SimRank, PSimRank and XJaccard."""

from __future__ import annotations

from typing import Any

from benchmarks.arithmetic import mean
from benchmarks.kept import ResultStore
from benchmarks.papers_table import SAMPLES, TITLES
from benchmarks.reproduction.rows import (
    Measured,
    Paper,
    Row,
    apart,
    between,
    decided,
    each,
    grows,
    over_seeds,
    picture,
    unavailable,
)
from cocite.resources import format_time

GAMMA_000 = ("wikispeedia", "web", "hollins")
GAMMA_001 = ("wikispeedia", "web", "hollins", "cora", "polblogs", "cit-HepPh")
_PAPERS = "`python -m benchmarks.papers FOLDER`"
_CRAWL = "the crawl and the topics of the directory are not available"


def _of(measured: Measured, kind: str) -> dict[str, Any]:
    """Return the measurements of one kind, by graph."""
    start = kind + " "
    return {k.removeprefix(start): v for k, v in measured.items() if k.startswith(start)}


def _needs(kind: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{kind} {name}" for name in names)


def _swept(found: dict[str, Any], setting: str, measure: str, what: str) -> dict[str, list[float]]:
    """Return gamma or pairs by value of a setting, one number per seed."""
    return {value: point[what] for value, point in found["sweeps"][setting][measure].items()}


def _shown(values: dict[str, list[float]], shown: tuple[str, ...], digits: int = 3) -> str:
    return ", ".join(over_seeds(values[value], digits) for value in shown)


# -- 000 ------------------------------------------------------------------------------------------


def _pairs(measured: Measured) -> tuple[str, str]:
    lines, holds = {}, {}
    shown = ("1", "4", "7", "10")
    for name, one in _of(measured, "gamma-000").items():
        mine = _swept(one, "length", "simrank", "pairs")
        other = _swept(one, "length", "compact-simrank", "pairs")
        lines[name] = f"{_shown(mine, shown, 0)}; compacted, L = 10: {over_seeds(other['10'], 0)}"
        holds[name] = apart(mine["10"], mine["1"])
    return each(lines) + f"<br>(L = {', '.join(shown)})", decided(holds)


def _by_length(measured: Measured) -> tuple[str, str]:
    lines, rises, falls = {}, {}, {}
    shown = ("1", "2", "4", "7", "10")
    for name, one in _of(measured, "gamma-000").items():
        mine = _swept(one, "length", "simrank", "gamma")
        lines[name] = _shown(mine, shown)
        rises[name] = apart(mine["7"], mine["1"])
        falls[name] = apart(mine["7"], mine["10"])
    return (
        each(lines) + f"<br>(L = {', '.join(shown)})",
        f"rises from 1 to 7: {decided(rises)}<br>falls from 7 to 10: {decided(falls)}",
    )


def _loss(measured: Measured) -> tuple[str, str]:
    shown = ("1", "4", "10")
    lines, holds = {}, {}
    for name, one in _of(measured, "gamma-000").items():
        whole = _swept(one, "length", "simrank", "gamma")
        compact = _swept(one, "length", "compact-simrank", "gamma")
        lines[name] = ", ".join(between(apart(compact[v], whole[v])) for v in shown)
        holds[name] = apart(whole["10"], compact["10"])
    return (
        each(lines) + f"<br>(compacted − whole, L = {', '.join(shown)})",
        f"loses quality at L = 10: {decided(holds)}",
    )


def _linear(measured: Measured) -> tuple[str, str]:
    lines, holds = {}, {}
    for name, one in _of(measured, "gamma-000").items():
        mine = _swept(one, "samples", "simrank", "pairs")
        rates = [a / b for a, b in zip(mine["100"], mine["10"], strict=True)]
        lines[name] = f"{_shown(mine, ('10', '100'), 0)}: {over_seeds(rates, 1)} times"
        holds[name] = mean(rates).low <= 10 <= mean(rates).high
    return each(lines) + "<br>(N = 10, 100; linear growth is 10 times)", grows(holds)


def _by_samples(kind: str, measures: tuple[str, ...], rises: bool) -> Any:
    shown = ("10", "30", "100")

    def tell(measured: Measured) -> tuple[str, str]:
        lines: dict[str, str] = {}
        holds: dict[str, dict[str, list[float]]] = {measure: {} for measure in measures}
        for name, one in _of(measured, kind).items():
            for measure in measures:
                mine = _swept(one, "samples", measure, "gamma")
                lines[f"{name}, {measure}"] = _shown(mine, shown)
                change = apart(mine["100"], mine["10"])
                holds[measure][name] = change if rises else [-value for value in change]
        verdicts = (f"{measure}: {decided(found)}" for measure, found in holds.items())
        return each(lines) + f"<br>(N = {', '.join(shown)})", "<br>".join(verdicts)

    return tell


def _by_decay(kind: str, measures: tuple[str, ...]) -> Any:
    shown = ("0.1", "0.5", "0.9")

    def tell(measured: Measured) -> tuple[str, str]:
        lines: dict[str, str] = {}
        changes = []
        holds: dict[str, dict[str, list[float]]] = {measure: {} for measure in measures}
        for name, one in _of(measured, kind).items():
            for measure in measures:
                mine = _swept(one, "decay", measure, "gamma")
                lines[f"{name}, {measure}"] = _shown(mine, shown)
                holds[measure][name] = apart(mine["0.1"], mine["0.9"])
                pairs = _swept(one, "decay", measure, "pairs")
                changes.append(mean(pairs["0.9"]).value / mean(pairs["0.1"]).value - 1)
        verdicts = (f"{measure}: {decided(found)}" for measure, found in holds.items())
        most = max(map(abs, changes))
        return (
            each(lines)
            + f"<br>(c = {', '.join(shown)}; comparable pairs differ by at most {most:.1%})",
            "<br>".join(verdicts),
        )

    return tell


def _hours(steps: tuple[str, ...], pages: int | None = None) -> Any:
    """Extrapolate stored times of ``benchmarks.papers`` to 100 samples and to ``pages``."""

    def tell(measured: Measured) -> tuple[str, str]:
        parts = {step: part["found"] for step, part in ResultStore("papers").newest().items()}
        lines = {}
        for step in steps:
            found = parts[step]
            nodes, samples = found["chosen"]["nodes"], found["samples"]
            scale = SAMPLES / samples * (pages or nodes) / nodes
            busy, clock = (format_time(seconds * scale) for seconds in found["spent"])
            bits = f" of {found['bits']} bits" if "bits" in found else ""
            lines[TITLES[step].removeprefix("index, ")] = (
                f"{busy} of CPU time, {clock} of wall time; extrapolated from {samples} "
                f"samples{bits}, length {found['length']}, {nodes:,} generated pages"
            )
        return each(lines) + "<br>(`docs/performance.md`)", (
            "**not comparable**: a different web, and a machine 20 years newer"
        )

    return tell


PAPER_000 = Paper(
    "000",
    "Fogaras and Rácz 2004",
    "A scalable randomized method to compute link-based similarity rank on the web graph",
    "Γ is macro-averaged over whole lists, including the query; c = 0.65, L = 10, N = 100. The "
    "paper shows its results as charts; the column *published* quotes its text.",
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
            "compacted SimRank loses more quality with longer paths",
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
            _by_samples("gamma-000", ("simrank",), rises=False),
        ),
        Row(
            "000.decay",
            "Section 6.1, decay",
            "the smaller c, the higher Γ; pairs unchanged",
            _needs("gamma-000", GAMMA_000),
            _by_decay("gamma-000", ("simrank",)),
        ),
        Row(
            "000.time",
            "Section 6, time",
            "fingerprints of 11 million pages in 40 minutes, 1.4 GHz Xeon",
            (),
            _hours(("simrank",), 11_000_000),
            _PAPERS,
        ),
        unavailable(
            "000.size",
            "Section 6, size",
            "1.3 GB for 161,000 pages, with an inverted index",
            f"{_CRAWL}; for the bytes of a partial index see 001.size-kept",
        ),
    ),
)

# -- 001 ------------------------------------------------------------------------------------------


def _witnesses(measured: Measured) -> tuple[str, str]:
    lines, holds = {}, {}
    for k, one in measured["witnesses"].items():
        expected = 0.6 / int(k)
        lines[f"k = {k}"] = (
            f"SimRank {over_seeds(one['simrank'], 4)} (c / k = {expected:.4f}), "
            f"PSimRank {over_seeds(one['psimrank'], 4)}"
        )
        found = mean(one["simrank"])
        near = found.low - 1e-9 <= expected <= found.high + 1e-9
        holds[f"k = {k}"] = near and all(abs(score - 0.6) < 1e-9 for score in one["psimrank"])
    return each(lines) + "<br>(c = 0.6, 10,000 samples per seed)", grows(holds)


def _lengths(measured: Measured) -> tuple[str, str]:
    shown = ("1", "4", "10")
    found = _of(measured, "lengths-001")
    lines = {}
    for name, one in found.items():
        some, every = one["with a pair"], one["all"]
        shares = ", ".join(f"{mean(one['queries with a pair'][v]).value:.0%}" for v in shown)
        lines[name] = (
            f"{_shown(some, shown)} over the {shares} of the queries that have a comparable pair "
            f"(10 − 1: {between(apart(some['10'], some['1']))}); others as 0: "
            f"{_shown(every, shown)} ({between(apart(every['10'], every['1']))})"
        )
    verdicts = (
        f"{what}: "
        + decided({name: apart(one[kind]["10"], one[kind]["1"]) for name, one in found.items()})
        for what, kind in (
            ("queries without a comparable pair omitted", "with a pair"),
            ("counted as 0", "all"),
        )
    )
    return each(lines) + f"<br>(PSimRank, ℓ = {', '.join(shown)})", "<br>".join(verdicts)


def _xjaccard_by_length(measured: Measured) -> tuple[str, str]:
    shown = ("1", "2", "4", "6", "10")
    lines, holds = {}, {}
    for name, one in _of(measured, "gamma-001").items():
        mine = _swept(one, "length", "xjaccard", "gamma")
        best = max(mine, key=lambda v: mean(mine[v]).value)
        lines[name] = f"{_shown(mine, shown)}; best at {best}"
        beyond = max(("1", "2", "6", "10"), key=lambda v: mean(mine[v]).value)
        holds[name] = apart(mine["4"], mine[beyond])
    return (
        each(lines) + f"<br>(ℓ = {', '.join(shown)})",
        f"ℓ = 4 beats the best of 1, 2, 6 and 10: {decided(holds)}",
    )


def _best(measured: Measured) -> tuple[str, str]:
    found = {name: one["methods"] for name, one in _of(measured, "gamma-001").items()}
    less = {
        other: {name: apart(m["psimrank"]["gamma"], m[other]["gamma"]) for name, m in found.items()}
        for other in ("xjaccard", "simrank")
    }
    lines = {
        name: "; ".join(f"{m} {over_seeds(v['gamma'])}" for m, v in methods.items())
        + f"; PSimRank − XJaccard {between(less['xjaccard'][name])}, "
        + f"PSimRank − SimRank {between(less['simrank'][name])}"
        for name, methods in found.items()
    }
    return each(lines), (
        f"better than XJaccard: {decided(less['xjaccard'])}<br>better than SimRank: "
        f"{decided(less['simrank'])}"
    )


def _trees(measured: Measured) -> tuple[str, str]:
    shown = ("1", "4", "10")
    lines, holds = {}, {}
    for name, one in measured["trees"].items():
        for measure in ("simrank", "psimrank"):
            mine = one[measure]
            largest = ", ".join(f"{max(mine[v]['largest']):,}" for v in shown)
            means = {value: found["mean"] for value, found in mine.items()}
            lines[f"{name}, {measure}"] = f"mean {_shown(means, shown, 0)}; largest {largest}"
        holds[name] = apart(one["psimrank"]["10"]["mean"], one["simrank"]["10"]["mean"])
    return (
        each(lines) + f"<br>(ℓ = {', '.join(shown)}; 20 samples per seed)",
        f"PSimRank's trees are larger: {decided(holds)}<br>mean size as published: **no**: trees "
        "are small compared with the graph, but ten times as large as published, although the "
        "graphs have a 240th of the pages",
    )


def _sizes(measured: Measured) -> tuple[str, str]:
    found = measured["sizes"]
    here = {"PSimRank": found["psimrank"], "XJaccard": found["xjaccard"]}
    printed = {"PSimRank": 68e9 / 78_636_371 / 100, "XJaccard": 640e9 / 78_636_371 / 100}
    holds = {name: abs(mean(here[name]).value / printed[name] - 1) < 0.1 for name in here}
    lines = {
        name: f"{over_seeds(here[name], 2)} bytes, published {printed[name]:.1f}" for name in here
    }
    four = over_seeds(found["xjaccard 4"], 2)
    return (
        each(lines) + f"<br>(per node per sample; cnr-2000, ℓ = 10; XJaccard at ℓ = 4: {four})",
        f"within 10%: {grows(holds)}",
    )


def _kept(measured: Measured) -> tuple[str, str]:
    here, printed = measured["sizes"]["kept"], 200e6 / 218_720 / 100
    return (
        f"a tenth of the pages of cnr-2000 (`--only-nodes`): {over_seeds(here, 2)} bytes per "
        f"stored page per sample, published {printed:.1f}",
        f"within 15%: {grows({'cnr-2000': abs(mean(here).value / printed - 1) < 0.15})}",
    )


PAPER_001 = Paper(
    "001",
    "Fogaras and Rácz 2005",
    "Scaling link-based similarity search",
    "Γ is micro-averaged over the best 100, without the query; c = 0.1, N = 100, ℓ = 10 (XJaccard: "
    "4). A claim holds on a graph if the difference is positive and its 95% interval over seeds "
    "excludes 0.",
    (
        picture(
            "001.figure1",
            "Figure 1",
            "walks of five pages, and their fingerprint graph",
            "defined by the reference implementation in `tests/oracles/walks.py`",
        ),
        picture(
            "001.figure2", "Figure 2", "notation for a proof", "tested with the same reference"
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
            "Γ rises steeply from ℓ = 1 to 4, then slightly",
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
            _by_samples("gamma-001", ("psimrank", "simrank", "xjaccard"), rises=True),
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
            "on 80 million pages, trees have 100 to 200 pages on average, and at most 10,000 to "
            "20,000; PSimRank's trees are larger",
            ("trees",),
            _trees,
        ),
        Row(
            "001.size",
            "Section 5.2, size",
            "68 GB for (P)SimRank, 640 GB for XJaccard; 78,636,371 pages, 100 samples",
            ("sizes",),
            _sizes,
        ),
        Row(
            "001.size-kept",
            "Section 5.2, selected pages",
            "200 MB for an index of 218,720 selected pages, with the same scores",
            ("sizes",),
            _kept,
        ),
        Row(
            "001.time",
            "Section 5.2, time",
            "4, 14 and 27 hours for SimRank, PSimRank and XJaccard; 78,636,371 pages, 2.8 GHz "
            "Pentium 4, 2 GB",
            (),
            _hours(("simrank", "psimrank", "xjaccard")),
            _PAPERS,
        ),
    ),
)
