"""PageSim evaluated by texts: figures 1 to 4 of Lin, King and Lyu 2006.

The paper uses 20,000 pages of a department's site. We use the articles of wikispeedia, and the 272
HTML pages of git's manual, few enough for r = n - 1.

Every figure is measured with six seeds; each seed draws its own queries and walks.

Cost: a few minutes of CPU time, mostly for texts and lists of wikispeedia.
"""

from __future__ import annotations

import html.parser
import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import cocite
from benchmarks.reproduction.gamma import SEEDS
from benchmarks.studies.plans import StudySuite, SuiteData, SuiteJudge
from benchmarks.studies.points import MethodPlan, SweepPlan
from benchmarks.studies.run import run_suite
from cocite.evaluation.report import Result
from cocite.index.layouts.rows.reader import FeatureReader

_DEPTH = 20
SITES = ("wikispeedia", "git's manual")


def example(data: Path, work: Path) -> dict[str, Any]:
    """Measure figure 1: the PageRank that v0 passes to v1 and v2; d = 0.8, PR(v0) = 1."""
    links = work / "links.tsv"
    links.write_text("v0\tv1\nv0\tv2\nv1\tv2\nv2\tv0\n")
    graph = cocite.ingest(links, work / "g.graph", header="no", delimiter="tab")
    index = cocite.build(
        graph, work / "i", measure="pagesim", decay=0.8, radius=2, threshold=0.0, threads=1
    )
    reader = index.scorer.readers[0]
    assert isinstance(reader, FeatureReader)
    source = index.nodes.id("v0")
    given = {}
    for name in ("v0", "v1", "v2"):
        members, values = reader.listed(index.nodes.id(name))
        given[name] = float(values[members.tolist().index(source)])
    return {name: round(value / given["v0"], 6) for name, value in given.items()}


def content(site: str, data: Path, work: Path) -> dict[str, Any]:
    """Measure figures 2 to 4: Delta(., T) of PageSim by decay and radius, and of SimRank."""
    folder = data / "wikispeedia"
    plan = SuiteData(links="links.tsv", texts="plaintext_articles.tar.gz")
    settings: dict[str, Any] = {"samples": 1000}
    far = {"radius": 6}
    if site != "wikispeedia":
        folder = work / "site"
        pages = _site(data / "html-git-htmldocs" / "git-htmldocs.tar.gz", folder)
        plan = SuiteData(links="links.tsv", texts="texts")
        far = {"radius": pages - 1}
    suite = StudySuite(
        name=site,
        data=plan,
        judge=SuiteJudge(queries=400, sweep_queries=400, content=_DEPTH, resamples=1),
        settings=settings,
        method=(MethodPlan(measures=("simrank", "pagesim"), directions=("in",)),),
        sweep=(
            SweepPlan("decay", (0.1, 0.3, 0.5, 0.7, 0.9), ("pagesim",), (), ("in",), far),
            SweepPlan("radius", (1, 2, 3, 4, far["radius"]), ("pagesim",), (), ("in",)),
        ),
    )
    titles = [f"content@{t}" for t in range(1, _DEPTH + 1)]
    found: dict[str, Any] = {"radius": far["radius"], "decay": {}, "radius_sweep": {}}
    for seed in SEEDS:
        with tempfile.TemporaryDirectory(dir=work) as scratch:
            study = run_suite(suite, folder, Path(scratch), seed=seed, threads=1)
        found["facts"] = {key: fact for key, fact in study.facts.items() if key != "seed"}
        for result in study.methods:
            found.setdefault(result.name.split()[0], []).append(_curve(result, titles))
        for setting, (series,) in study.sweeps.items():
            curves = found[setting if setting == "decay" else "radius_sweep"]
            for value, result in series.results.items():
                curves.setdefault(str(value), []).append(_curve(result, titles))
    return found


def _curve(result: Result, titles: list[str]) -> list[float]:
    """Return Delta(., T) for T = 1, 2, ..."""
    return [round(float(result.figures[title].value), 4) for title in titles]


# -- a site as links and texts ------------------------------------------------------------------


class _Page(html.parser.HTMLParser):
    """The addresses that a page links to, and its words."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.words: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in ("script", "style")
        self.links += [value for name, value in attrs if (tag, name) == ("a", "href") and value]

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.words.append(data)


def _site(archive: Path, folder: Path) -> int:
    """Write links.tsv and texts; return the number of pages."""
    pages: dict[str, _Page] = {}
    with tarfile.open(archive) as files:
        for member in files:
            content = files.extractfile(member) if member.name.endswith(".html") else None
            if content is not None:
                page = pages[str(PurePosixPath(member.name))] = _Page()
                page.feed(content.read().decode("utf-8", errors="replace"))
    (folder / "texts").mkdir(parents=True)
    called = {path: path.replace("/", "!") for path in pages}
    rows = set()
    for path, page in pages.items():
        (folder / "texts" / called[path]).write_text(" ".join(page.words))
        for link in page.links:
            target = _resolved(path, unquote(link.split("#")[0].split("?")[0]))
            if target in pages and target != path:
                rows.add((called[path], called[target]))
    (folder / "links.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in sorted(rows)))
    return len({name for row in rows for name in row})


def _resolved(path: str, link: str) -> str:
    """Return the target of a link within the archive."""
    parts = list(PurePosixPath(path).parent.parts)
    for part in PurePosixPath(link).parts:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
