"""``docs/reproduction.md``, of what is measured and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS
from benchmarks.reproduction.paged import PAPER_002
from benchmarks.reproduction.ranked import PAPER_004
from benchmarks.reproduction.rows import Paper, Row, between
from benchmarks.reproduction.solved import PAPER_003
from benchmarks.reproduction.walked import PAPER_000, PAPER_001

__all__ = ["DOCUMENT", "PAPERS", "RESULTS_FILE", "document"]

RESULTS_FILE = RESULTS / "reproduction.json"
DOCUMENT = Path(__file__).parents[2] / "docs" / "reproduction.md"
PAPERS: tuple[Paper, ...] = (PAPER_000, PAPER_001, PAPER_002, PAPER_003, PAPER_004)

_HEAD = """# What of the papers reproduces

Every figure and table of the five papers that cocite builds on, beside ours. None of them has data
that is to be had, so nothing is expected to come out to the digit; what is asked is whether what
they *say* of it holds elsewhere, and on which graphs. Where it does not, it says so.

`python -m benchmarks.reproduction` measures all of it, in a quarter of an hour of processor time,
keeps it in `benchmarks/results/reproduction.json` and writes this document from that.
`--only 001.figure5` measures one row, `--only 001` one paper, and `--document` writes without
measuring. Intervals in brackets are of 95 %. Seconds are of processor time on a shared and busy
machine: ratios, not absolute times.

| graph | what it is | what is alike there |
| --- | --- | --- |
| wikispeedia | 4,592 articles of a school encyclopaedia | categories, three levels |
| web | 20,000 generated pages | planted topics of hosts |
| hollins | 6,012 pages of one site | directories in their addresses, two levels |
| cora | 2,708 papers on machine learning | seven topics |
| polblogs | 1,490 blogs | two parties |
| cit-HepPh | 34,546 preprints | the month they came out in, and the year |

Directories and dates are no topics; they come from people who did not look at links.
"""


def document(results: Mapping[str, Any]) -> str:
    """All of it."""
    found = {name: each["found"] for name, each in results.items()}
    return "\n".join([_HEAD, _short(found), *(_paper(paper, found) for paper in PAPERS)])


def _short(found: Mapping[str, Any]) -> str:
    """The two claims of quality that do not reproduce."""

    def methods(graph: str) -> dict[str, Any]:
        return dict(found[f"gamma-001 {graph}"]["methods"])

    def apart(graph: str) -> str:
        return between(methods(graph)["xjaccard"]["difference"], sign=True)

    def longer(graph: str, which: str) -> str:
        return between(found[f"lengths-001 {graph}"][which]["10 - 1"], sign=True)

    wiki = {name: between(each["gamma"]) for name, each in methods("wikispeedia").items()}
    return f"""## Two claims that do not reproduce everywhere

* **That PSimRank is above XJaccard** (001, figure 4). On wikispeedia XJaccard's Γ is
  {wiki["xjaccard"]} and PSimRank's {wiki["psimrank"]}, {apart("wikispeedia")} apart on the same
  queries, and on cora {apart("cora")}. It holds on hollins, the one web site here
  ({apart("hollins")}); on web ({apart("web")}), polblogs and cit-HepPh the queries do not decide.
* **That Γ rises with the length of walks** (001, figure 4). PSimRank's Γ with 10 steps less that
  with one is {longer("wikispeedia", "with a pair")} on wikispeedia, {longer("web", "with a pair")}
  on web and {longer("hollins", "with a pair")} on hollins. Part of it is what
  the mean is taken over: longer walks give more queries a comparable pair, harder ones.
  Where queries without one count as 0, Γ
  rises on hollins ({longer("hollins", "all")}) and cora ({longer("cora", "all")}), as printed, and
  still falls on wikispeedia ({longer("wikispeedia", "all")}).
"""


def _paper(paper: Paper, found: Mapping[str, Any]) -> str:
    lines = [f"## {paper.number}: {paper.title}", "", paper.about, ""]
    lines += ["| figure | printed | ours | holds? | command |", "| --- | --- | --- | --- | --- |"]
    lines += [_row(row, found) for row in paper.rows]
    return "\n".join(lines) + "\n"


def _row(row: Row, found: Mapping[str, Any]) -> str:
    lacking = [name for name in row.needs if name not in found]
    if lacking:
        raise KeyError(f"{row.key} needs {', '.join(lacking)}: measure it with --only {row.key}")
    mine = {name: found[name] for name in row.needs}
    ours, holds = row.tell(mine)
    command = row.command or (f"`--only {row.key}`" if row.needs else "")
    cells = (row.figure, row.printed, ours, holds, command)
    return "| " + " | ".join(cell.replace("\n", " ").replace("|", "\\|") for cell in cells) + " |"
