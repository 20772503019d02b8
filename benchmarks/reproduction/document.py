"""``docs/reproduction.md``, of what is measured and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS
from benchmarks.reproduction.paged import PAPER_002
from benchmarks.reproduction.ranked import PAPER_004
from benchmarks.reproduction.rows import Paper, Row
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

`python -m benchmarks.reproduction` measures all of it, in twenty minutes of processor time, keeps
it in `benchmarks/results/reproduction.json` and writes this document from that.
`--only 001.figure5` measures one row, `--only 001` one paper, and `--document` writes without
measuring. Intervals in brackets are of 95 %. Seconds are of two shared and busy cores: ratios, not
absolute times.

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
    return "\n".join([_HEAD, *(_paper(paper, found) for paper in PAPERS)])


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
