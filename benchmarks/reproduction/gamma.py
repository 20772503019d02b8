"""Sibling Gamma by path length, decay and number of samples: figures of Fogaras and Rácz.

Figure 1 of *A scalable randomized method ...* (2004), figure 4 of *Scaling link-based similarity
search* (2005). The papers evaluate crawls by the Open Directory; neither is available. Here the
same figure (``cocite/evaluation/judge.py``) uses other graphs and labels:

    wikispeedia   articles, by their categories                                    3 levels
    web           generated pages, by the topics of their hosts
    hollins       the pages of one site, by the directories in their URLs            2 levels
    cora          papers, by topic                                                  flat
    polblogs      blogs, by party                                                   flat
    cit-HepPh     papers, by year and month of publication                 2 levels

Flat classes are siblings of each other. Directories and months are not topics, but they were chosen
independently of the links.

Every figure is measured with six seeds. Each seed draws its own walks and queries, so the six
values are independent, and their mean has a Student's t interval (``arithmetic.mean``).

Cost: up to ten minutes of CPU time per graph, mostly for XJaccard's whole lists.
"""

from __future__ import annotations

import gzip
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.studies.checks import graph_of
from benchmarks.studies.plans import StudySuite, SuiteData, SuiteJudge
from benchmarks.studies.points import MethodPlan, SweepPlan
from benchmarks.studies.run import run_suite
from cocite.evaluation.judge import Judgment
from cocite.evaluation.rankers import IndexRanker
from cocite.evaluation.report import Result
from cocite.evaluation.truth import read_truth
from cocite.search import build

SEEDS = range(6)
"""Each seed draws its own walks and its own queries."""
_PSIMRANK_LENGTHS = (1, 2, 3, 4, 6, 10)
_THREE = ("psimrank", "simrank", "xjaccard")
_TWO = ("simrank", "compact-simrank")
_DECAYS, _SAMPLES = (0.1, 0.5, 0.9), (10, 30, 100)
_Sweeps = tuple[tuple[str, tuple[float, ...], tuple[str, ...]], ...]
"""Settings, their values, and the measures that take them."""
_SWEEPS_000: _Sweeps = (
    ("length", (1, 2, 4, 7, 10), _TWO),
    ("decay", _DECAYS, ("simrank",)),
    ("samples", _SAMPLES, ("simrank",)),
)
_SWEEPS_001: _Sweeps = (
    ("length", (1, 2, 3, 4, 5, 6, 10), ("xjaccard",)),
    ("decay", _DECAYS, _THREE),
    ("samples", _SAMPLES, _THREE),
)


@dataclass(frozen=True)
class Truth:
    """A data set: its folder, what is read from it, and what is made of it beforehand."""

    folder: str
    data: SuiteData
    make: Callable[[Path, Path], None] | None = None
    """Makes labels and links from the data folder, in another."""
    queries: int = 400
    """Of a seed, or all nodes where these are fewer: many on small graphs, where they are cheap."""


def _hollins(source: Path, target: Path) -> None:
    rows = [line.split(" ", 1) for line in (source / "hollins_urls.txt").read_text().splitlines()]
    labels = []
    for number, address in rows[1:]:
        path = re.sub(r"^[a-z]+://[^/]*/?", "", address.strip()).lower().split("/")[:-1]
        labels.append(f"{number}\t{'/'.join(path) or 'top'}\n")
    (target / "labels.tsv").write_text("".join(labels))
    (target / "links.txt").write_text((source / "hollins_edges.txt").read_text())


def _months(source: Path, target: Path) -> None:
    with gzip.open(source / "cit-HepPh.txt.gz", "rt") as file:
        text = file.read()
    (target / "links.txt").write_text(text)
    ids = {i for line in text.splitlines() if not line.startswith("#") for i in line.split()}
    rows = [f"{i}\t{i.zfill(7)[:2]}/{i.zfill(7)[2:4]}\n" for i in sorted(ids)]
    (target / "labels.tsv").write_text("".join(rows))


GRAPHS = {
    "wikispeedia": Truth(
        "wikispeedia", SuiteData(links="links.tsv", labels="categories.tsv", depth=3)
    ),
    "web": Truth("", SuiteData(web={"nodes": 20_000, "links": 200_000, "seed": 1})),
    "hollins": Truth(
        "hollins",
        SuiteData(links="links.txt", labels="labels.tsv", separator="/", depth=2),
        _hollins,
    ),
    "cora": Truth(
        "cora-linqs",
        SuiteData(links="cora.cites", columns=(2, 1), labels="labels.tsv", separator="", depth=1),
        queries=2000,
    ),
    "polblogs": Truth(
        "polblogs",
        SuiteData(
            links="edges.tsv", labels="labels.tsv", label_columns=(1, 3), separator="", depth=1
        ),
        queries=2000,
    ),
    "cit-HepPh": Truth(
        "cit-HepPh",
        SuiteData(links="links.txt", labels="labels.tsv", separator="/", depth=2),
        _months,
    ),
}


def gamma_001(name: str, data: Path, work: Path) -> dict[str, Any]:
    """Measure figure 4 of Fogaras and Rácz 2005: c = 0.1, l = 10 (4 for XJaccard), N = 100."""
    suite = _suite(name, _THREE, {"samples": 100, "decay": 0.1}, _SWEEPS_001)
    return _study(suite, "gamma", data, work)


def gamma_000(name: str, data: Path, work: Path) -> dict[str, Any]:
    """Measure figure 1 of Fogaras and Rácz 2004: c = 0.65, L = 10, N = 100."""
    suite = _suite(name, _TWO, {"samples": 100, "decay": 0.65}, _SWEEPS_000)
    return _study(suite, "gamma_macro", data, work)


def lengths_001(name: str, data: Path, work: Path) -> dict[str, Any]:
    """Measure PSimRank by length on the same queries; c = 0.1, N = 100.

    Returns one Gamma per seed: over queries with a comparable pair, and over all, others as 0.
    """
    suite = _suite(name, ("psimrank",), {"samples": 100, "decay": 0.1})
    found: dict[str, dict[str, list[float]]] = {
        title: {str(length): [] for length in _PSIMRANK_LENGTHS}
        for title in ("with a pair", "all", "queries with a pair")
    }
    for seed, folder, scratch in _folders(name, data, work):
        graph, plan = graph_of(suite.data, folder, scratch, lambda *_: None)
        truth = read_truth(graph.names, plan, suite.judge, folder, seed, lambda *_: None)
        judge = truth.judge(suite.judge, truth.queries)
        for length in _PSIMRANK_LENGTHS:
            index = build(
                graph,
                scratch / f"{length}.index",
                measure="psimrank",
                length=length,
                seed=seed,
                threads=1,
            )
            judged = judge(IndexRanker(index, truth.candidates, decay=0.1))
            answered = judged.wholes[:, judged.titles.index("gamma")].mean()
            for title, value in (
                ("with a pair", judged.value("gamma")),
                ("all", _all(judged).value("gamma")),
                ("queries with a pair", answered),
            ):
                found[title][str(length)].append(round(float(value), 4))
    return {"queries": int(truth.queries.size), **found}


def _all(judgment: Judgment) -> Judgment:
    """Return the judgment with a Gamma of 0 for queries without a comparable pair."""
    wholes = judgment.wholes.copy()
    wholes[:, judgment.titles.index("gamma")] = 1
    return replace(judgment, wholes=wholes)


def _suite(
    name: str, measures: tuple[str, ...], settings: dict[str, Any], sweeps: _Sweeps = ()
) -> StudySuite:
    """Return a suite with a quarter of the queries, at least 125, for sweeps."""
    queries = GRAPHS[name].queries
    return StudySuite(
        name=name,
        data=GRAPHS[name].data,
        judge=SuiteJudge(
            queries=queries, sweep_queries=max(125, queries // 4), cutoffs=(10,), resamples=1
        ),
        settings=settings,
        method=(MethodPlan(measures=measures, directions=("in",)),),
        sweep=tuple(
            SweepPlan(setting=setting, values=values, measures=takers, directions=("in",))
            for setting, values, takers in sweeps
        ),
    )


def _folders(name: str, data: Path, work: Path) -> Iterator[tuple[int, Path, Path]]:
    """Yield each seed with the data folder and a temporary folder."""
    truth = GRAPHS[name]
    folder = data / truth.folder
    if truth.make is not None:
        folder = work / "data"
        folder.mkdir()
        truth.make(data / truth.folder, folder)
    for seed in SEEDS:
        with tempfile.TemporaryDirectory(dir=work) as scratch:
            yield seed, folder, Path(scratch)


def _study(suite: StudySuite, title: str, data: Path, work: Path) -> dict[str, Any]:
    """Return Gamma and comparable pairs of methods and sweeps, one value per seed."""
    found: dict[str, Any] = {"methods": {}, "sweeps": {}}
    for seed, folder, scratch in _folders(suite.name, data, work):
        study = run_suite(suite, folder, scratch, seed=seed, threads=1)
        found["facts"] = {key: fact for key, fact in study.facts.items() if key != "seed"}
        for result in study.methods:
            _append(found["methods"], result.name.split(" ")[0], result, title)
        for setting, series in study.sweeps.items():
            for one in series:
                points = found["sweeps"].setdefault(setting, {}).setdefault(one.measure, {})
                for value, result in one.results.items():
                    _append(points, str(value), result, title)
    return found


def _append(points: dict[str, Any], name: str, result: Result, title: str) -> None:
    """Append the values of one seed."""
    point = points.setdefault(name, {"gamma": [], "pairs": []})
    point["gamma"].append(round(float(result.figures[title].value), 4))
    point["pairs"].append(result.pairs)
