"""``docs/reproduction.md``, of what is measured and of nothing else."""

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

Every figure and table of the five papers that cocite builds on, beside ours. Their data is not
available, so the numbers cannot be equal. The question is whether the papers' *claims* hold on
other graphs, and on which ones. Each row says so.

`python -m benchmarks.reproduction --only 001.figure5` measures one row and prints it; `--only 001`
measures one paper. Without `--only`, the command measures everything, in half an hour of processor
time and 16 GB of memory. A run that does not fit in memory is planned only, and its row says so.
`--document` measures nothing and prints the kept results. No command edits a file of the repository
without `--write`, which keeps the results in `benchmarks/results/reproduction.json` and writes this
document from them.

* Figures that rest on samples are means over six seeds. Each seed draws its own walks and its own
  queries: 400 of them (2,000 on cora, all pages on polblogs). Series over a setting have a quarter
  of these, at least 125. `±` is half the width of the 95 % interval by Student's t. Differences are
  taken seed by seed, and have their interval in brackets.
* Seconds are of processor time on one thread of a shared and busy machine: compare ratios.

| graph | what it is | what is alike there |
| --- | --- | --- |
| wikispeedia | 4,592 articles of a school encyclopedia | categories, three levels |
| web | 20,000 generated pages | planted topics of hosts |
| hollins | 6,012 pages of one site | directories in their addresses, two levels |
| cora | 2,708 papers on machine learning | seven topics |
| polblogs | 1,490 blogs | two parties |
| cit-HepPh | 34,546 preprints | month of publication, and year |

Directories and dates are not topics, but the people who chose them did not look at links.
"""


def document(results: Mapping[str, Any]) -> str:
    """All of it."""
    found = {name: each["found"] for name, each in results.items()}
    return "\n".join([_HEAD, _short(found), *(_paper(paper, found) for paper in PAPERS)])


def _short(found: Mapping[str, Any]) -> str:
    """The two claims of quality that do not reproduce everywhere."""
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

Both are of 001, figure 4:

{_bullet(f"PSimRank's Γ is above XJaccard's. {_sentence(less)}")}
{_bullet(f"Γ rises with the length of walks, from 1 to 10. {_sentence(longer)}")}

With longer walks, more queries have a comparable pair, and the new ones are harder. That explains
a part of the second. If queries without a pair count as 0:

{_bullet(f"Γ rises with the length of walks. {_sentence(every)}")}

| graph | PSimRank | XJaccard | PSimRank less XJaccard | 10 steps less 1 | pairless count as 0 |
| --- | --- | --- | --- | --- | --- |
{table}
"""


def _bullet(text: str) -> str:
    return textwrap.fill(
        text, 100, break_on_hyphens=False, initial_indent="* ", subsequent_indent="  "
    )


def _sentence(differences: Mapping[str, Sequence[float]]) -> str:
    """Where a claim holds, in a sentence."""
    _, _, told = decided(differences).partition(": ")
    return (told[:1].upper() + told[1:]).replace("No, the reverse,", "The reverse") + "."


def _paper(paper: Paper, found: Mapping[str, Any]) -> str:
    lines = [
        f"## {paper.number}: {paper.title}",
        "",
        textwrap.fill(paper.about, 100, break_on_hyphens=False),
        "",
    ]
    lines += ["| figure | printed | ours | holds? | command |", "| --- | --- | --- | --- | --- |"]
    lines += [_row(row, found) for row in paper.rows]
    return "\n".join(lines) + "\n"


def told(row: Row, found: Mapping[str, Any]) -> tuple[str, str]:
    """Two cells of a row: ours, and whether it holds. Raises :class:`KeyError`."""
    lacking = [name for name in row.needs if name not in found]
    if lacking:
        raise KeyError(f"{row.key} needs {', '.join(lacking)}: measure it with --only {row.key}")
    return row.tell({name: found[name] for name in row.needs})


def in_text(row: Row, found: Mapping[str, Any]) -> str:
    """A row for a terminal."""
    ours, holds = (cell.replace("<br>", "\n    ") for cell in told(row, found))
    return (
        f"{row.key}  {row.figure}\n  printed\n    {row.printed}\n  ours\n    {ours}\n"
        f"  holds?\n    {holds}\n"
    )


def _row(row: Row, found: Mapping[str, Any]) -> str:
    command = row.command or (f"`--only {row.key}`" if row.needs else "")
    cells = (row.figure, row.printed, *told(row, found), command)
    return "| " + " | ".join(cell.replace("\n", " ").replace("|", "\\|") for cell in cells) + " |"
