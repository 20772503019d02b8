"""Sibling Gamma by path length, decay and number of samples: figure 1 of 000, figure 4 of 001.

The papers judge by the Open Directory, which is gone, on crawls that nobody else has. Here the
same judge (``cocite/evaluation/gamma.py``) has other graphs, and what says there what is alike:

    wikispeedia   articles, by their categories                                    3 levels
    web           a generated web, whose hosts have planted topics
    hollins       the pages of one site, by the directories in their addresses      2 levels
    cora          papers, by topic                                                  flat
    polblogs      blogs, by party                                                   flat
    cit-HepPh     papers, by the month in which they came out: same month, same year

Flat classes are siblings of each other. Directories and months are no topics, but somebody chose
them who did not look at links.

Cost: a minute to three of processor time a graph, most of it for XJaccard's whole lists.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cocite.evaluation.bootstrap import Bootstrap
from cocite.evaluation.data import graph_of, read_truth
from cocite.evaluation.judge import Judgement
from cocite.evaluation.plans import DataPlan, JudgePlan, MethodPlan, SweepPlan
from cocite.evaluation.rankings import IndexRanker
from cocite.evaluation.running import run_suite
from cocite.evaluation.suite import Suite
from cocite.query import build

__all__ = ["GRAPHS", "gamma_000", "gamma_001", "lengths_001", "rounded"]

_LENGTHS = tuple(range(1, 11))
_DECAYS = (0.1, 0.3, 0.5, 0.7, 0.9)
_SAMPLES = (10, 20, 30, 50, 70, 100)
_THREE = ("psimrank", "simrank", "xjaccard")
_TWO = ("simrank", "compact-simrank")


@dataclass(frozen=True)
class Truth:
    """A data set: its folder, what is read from it, and what is made of it beforehand."""

    folder: str
    data: DataPlan
    make: Callable[[Path, Path], None] | None = None
    """Makes labels and links from the data folder, in another."""


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
        "wikispeedia", DataPlan(links="links.tsv", labels="categories.tsv", depth=3)
    ),
    "web": Truth("", DataPlan(web={"nodes": 20_000, "links": 200_000, "seed": 1})),
    "hollins": Truth(
        "hollins",
        DataPlan(links="links.txt", labels="labels.tsv", separator="/", depth=2),
        _hollins,
    ),
    "cora": Truth(
        "cora-linqs",
        DataPlan(links="cora.cites", columns=(2, 1), labels="labels.tsv", separator="", depth=1),
    ),
    "polblogs": Truth(
        "polblogs",
        DataPlan(
            links="edges.tsv", labels="labels.tsv", label_columns=(1, 3), separator="", depth=1
        ),
    ),
    "cit-HepPh": Truth(
        "cit-HepPh",
        DataPlan(links="links.txt", labels="labels.tsv", separator="/", depth=2),
        _months,
    ),
}


def gamma_001(name: str, data: Path, work: Path) -> dict[str, Any]:
    """Figure 4 of 001 on one graph: c = 0.1, l = 10 (4 for XJaccard), N = 100."""
    suite = _suite(
        name,
        _THREE,
        {"samples": 100, "decay": 0.1},
        {"length": _LENGTHS, "decay": _DECAYS, "samples": _SAMPLES},
    )
    return _figures(_run(name, suite, data, work), "gamma")


def gamma_000(name: str, data: Path, work: Path) -> dict[str, Any]:
    """Figure 1 of 000: c = 0.65, L = 10, N = 100; SimRank and compacted SimRank."""
    suite = _suite(
        name,
        _TWO,
        {"samples": 100, "decay": 0.65},
        {"length": _LENGTHS, "decay": _DECAYS, "samples": _SAMPLES},
    )
    return _figures(_run(name, suite, data, work), "gamma_macro")


def lengths_001(name: str, data: Path, work: Path) -> dict[str, Any]:
    """PSimRank by length, on the same queries, c = 0.1, N = 100: Gamma over the queries that have a
    comparable pair, and with 0 for those that have none; the difference of 10 steps from 1.
    """
    suite = _suite(name, ("psimrank",), {"samples": 100, "decay": 0.1}, {})
    folder, scratch = _folders(name, data, work)
    graph, plan = graph_of(suite.data, folder, scratch, lambda *_: None)
    truth = read_truth(graph.names, plan, suite.judge, folder, 0, lambda *_: None)
    judge, bootstrap = truth.judge(suite.judge, truth.queries), Bootstrap(truth.queries.size)
    judged = {}
    for length in (1, 2, 3, 4, 6, 10):
        index = build(graph, scratch / f"{length}.index", length=length, threads=1)
        judged[length] = judge(IndexRanker(index, truth.candidates, decay=0.1))
    found: dict[str, Any] = {"queries": int(truth.queries.size)}
    for title, kept in (("with a pair", judged), ("all", {n: _all(j) for n, j in judged.items()})):
        found[title] = {str(n): rounded(j.figures(bootstrap)["gamma"]) for n, j in kept.items()} | {
            "10 - 1": rounded(kept[10].differences(kept[1], bootstrap)["gamma"])
        }
    answered = {n: j.wholes[:, j.titles.index("gamma")].mean() for n, j in judged.items()}
    return found | {
        "queries with a pair": {str(n): round(float(a), 4) for n, a in answered.items()}
    }


def _all(judgement: Judgement) -> Judgement:
    """The same with a Gamma of 0 for queries without a comparable pair."""
    wholes = judgement.wholes.copy()
    wholes[:, judgement.titles.index("gamma")] = 1
    return replace(judgement, wholes=wholes)


def _suite(
    name: str, measures: tuple[str, ...], settings: dict[str, Any], sweeps: dict[str, Any]
) -> Suite:
    return Suite(
        name=name,
        baseline=f"{measures[0]} in",
        data=GRAPHS[name].data,
        judge=JudgePlan(queries=2000, sweep_queries=500, cutoffs=(10,)),
        settings=settings,
        method=(MethodPlan(measures=measures, directions=("in",)),),
        sweep=tuple(
            SweepPlan(setting=setting, values=values, measures=measures, directions=("in",))
            for setting, values in sweeps.items()
        ),
    )


def _run(name: str, suite: Suite, data: Path, work: Path) -> Any:
    return run_suite(suite, *_folders(name, data, work), threads=1)


def _folders(name: str, data: Path, work: Path) -> tuple[Path, Path]:
    """Where the data is, and an empty folder."""
    truth = GRAPHS[name]
    folder = data / truth.folder
    if truth.make is not None:
        made = work / "data"
        made.mkdir()
        truth.make(folder, made)
        folder = made
    scratch = work / "work"
    scratch.mkdir()
    return folder, scratch


def _figures(study: Any, title: str) -> dict[str, Any]:
    """Gamma, its interval, the difference from the first measure, and the sweeps."""
    found: dict[str, Any] = {"facts": dict(study.facts), "methods": {}, "sweeps": {}}
    for result in study.methods:
        measure = result.name.split(" ")[0]
        told = found["methods"][measure] = {
            "gamma": rounded(result.figures[title]),
            "pairs": result.pairs,
            "bytes": result.bytes,
        }
        if result.name in study.differences:
            told["difference"] = rounded(study.differences[result.name][title])
    for setting, series in study.sweeps.items():
        for one in series:
            found["sweeps"].setdefault(setting, {})[one.measure] = {
                str(value): {"gamma": rounded(r.figures[title]), "pairs": r.pairs}
                for value, r in one.results.items()
            }
    return found


def rounded(interval: Any) -> list[float]:
    """Value, low and high, with four digits."""
    return [round(float(each), 4) for each in interval]
