"""Write ``docs/reproduction.md`` from the stored results."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS
from benchmarks.reproduction.paged import PAPER_002
from benchmarks.reproduction.ranked import PAPER_004
from benchmarks.reproduction.rows import Paper, Row, apart, between, decided, over_seeds
from benchmarks.reproduction.solved import PAPER_003
from benchmarks.reproduction.walked import GAMMA_001, PAPER_000, PAPER_001

RESULTS_FILE = RESULTS / "reproduction.json"
DOCUMENT = Path(__file__).parents[2] / "docs" / "reproduction.md"
PAPERS: tuple[Paper, ...] = (PAPER_000, PAPER_001, PAPER_002, PAPER_003, PAPER_004)

_HEAD = """# Which results of the papers reproduce

cocite builds on five papers. This page repeats each of their figures and tables, and lists the
published result next to ours. The papers' data is not available, so the numbers differ. The
question is whether the papers' *claims* hold on other graphs.

{papers}

To repeat one row, pass its key: `python -m benchmarks.reproduction --only 001.figure5`. To repeat
one paper, use `--only 001`. Without `--only`, the command runs everything, which takes half an hour
of CPU time and 16 GB of memory. Runs that do not fit in memory are only planned, and their
rows say so. `--document` prints the stored results. `--write` stores new results in
`benchmarks/results/reproduction.json` and regenerates this page.

* Sampled results are means over six seeds. Each seed draws its own walks and 400 queries (2,000 on
  cora, all pages on polblogs). Parameter sweeps use a quarter of these queries, but at least 125.
* `±` is the half-width of the 95% confidence interval (Student's t). Differences are computed per
  seed, with their interval in brackets.
* Times are CPU times of one thread on a shared, busy machine. Compare ratios.

| graph | contents | labels |
| --- | --- | --- |
| wikispeedia | 4,592 articles of a school encyclopedia | categories, three levels |
| web | 20,000 generated pages | generated topics of hosts |
| hollins | 6,012 pages of one site | directories in the URLs, two levels |
| cora | 2,708 papers on machine learning | seven topics |
| polblogs | 1,490 blogs | two parties |
| cit-HepPh | 34,546 preprints | year and month of publication |

Directories and dates are not topics, but they were chosen independently of the links.
"""


def document(results: Mapping[str, Any]) -> str:
    """Return the whole page."""
    found = {name: each["found"] for name, each in results.items()}
    legend = [f"| {paper.number} | {paper.authors}, *{paper.title}* |" for paper in PAPERS]
    head = _HEAD.format(papers="\n".join(["| key | paper |", "| --- | --- |", *legend]))
    return "\n".join([head, _short(found), *(_paper(paper, found) for paper in PAPERS)])


def _short(found: Mapping[str, Any]) -> str:
    """Return the section on the two quality claims that do not hold on every graph."""
    less: dict[str, list[float]] = {}
    longer: dict[str, list[float]] = {}
    every: dict[str, list[float]] = {}
    lines = []
    for graph in GAMMA_001:
        methods = found[f"gamma-001 {graph}"]["methods"]
        gammas = {name: methods[name]["gamma"] for name in ("psimrank", "xjaccard")}
        less[graph] = apart(gammas["psimrank"], gammas["xjaccard"])
        lengths = found[f"lengths-001 {graph}"]
        longer[graph], every[graph] = (
            apart(lengths[which]["10"], lengths[which]["1"]) for which in ("with a pair", "all")
        )
        cells = [graph, *map(over_seeds, gammas.values())]
        cells += [between(each[graph]) for each in (less, longer, every)]
        lines.append("| " + " | ".join(cells) + " |")
    table = "\n".join(lines)
    return f"""## Two claims that do not reproduce everywhere

Both come from figure 4 of Fogaras and Rácz 2005:

{_bullet(f"PSimRank has a higher Γ than XJaccard. {_sentence(less)}")}
{_bullet(f"Γ rises as walks grow from 1 to 10 steps. {_sentence(longer)}")}

Longer walks give more queries a comparable pair, and the additional queries are harder. This
partly explains the second result. If queries without a pair count as 0:

{_bullet(f"Γ rises as walks grow from 1 to 10 steps. {_sentence(every)}")}

| graph | PSimRank | XJaccard | PSimRank − XJaccard | 10 steps − 1 step | without a pair: 0 |
| --- | --- | --- | --- | --- | --- |
{table}
"""


def _bullet(text: str) -> str:
    return textwrap.fill(
        text, 100, break_on_hyphens=False, initial_indent="* ", subsequent_indent="  "
    )


def _sentence(differences: Mapping[str, Sequence[float]]) -> str:
    """Return a sentence that says where a claim holds."""
    _, _, told = decided(differences).partition(": ")
    return told[:1].upper() + told[1:] + "."


def _paper(paper: Paper, found: Mapping[str, Any]) -> str:
    lines = [
        f"## {paper.authors}",
        "",
        textwrap.fill(paper.about, 100, break_on_hyphens=False),
        "",
    ]
    lines += ["| figure | published | ours | holds? | command |", "| --- | --- | --- | --- | --- |"]
    lines += [_row(row, found) for row in paper.rows]
    return "\n".join(lines) + "\n"


def told(row: Row, found: Mapping[str, Any]) -> tuple[str, str]:
    """Return two cells of a row: our result and the verdict.

    Raises KeyError if a measurement is missing.
    """
    lacking = [name for name in row.needs if name not in found]
    if lacking:
        raise KeyError(f"{row.key} needs {', '.join(lacking)}: measure it with --only {row.key}")
    return row.tell({name: found[name] for name in row.needs})


def in_text(row: Row, found: Mapping[str, Any]) -> str:
    """Return a row as text for a terminal."""
    ours, holds = (cell.replace("<br>", "\n    ") for cell in told(row, found))
    return (
        f"{row.key}  {row.figure}\n  published\n    {row.printed}\n  ours\n    {ours}\n"
        f"  holds?\n    {holds}\n"
    )


def _row(row: Row, found: Mapping[str, Any]) -> str:
    command = row.command or (f"`--only {row.key}`" if row.needs else "")
    cells = (row.figure, row.printed, *told(row, found), command)
    return "| " + " | ".join(cell.replace("\n", " ").replace("|", "\\|") for cell in cells) + " |"
