"""Compare the default with every measure at its best and both embeddings, on several graphs.

    python -m benchmarks.suites [--write]

Runs ``python -m benchmarks.studies wikispeedia cora ...`` (``benchmarks/studies/across.py``) on
four suites with labels and two without, and formats the results as blocks of docs/evaluation.md.

``--write`` stores the tables under results/ and in docs/evaluation.md. Takes about ten minutes of
CPU time.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.block import DATA, ROOT, Block, run_today
from benchmarks.studies.across import across_tables, run_across
from benchmarks.studies.suite import load_across, load_suite
from cocite.evaluation.html_report import markdown_table

SUITES = ("wikispeedia", "cora", "polblogs", "web", "cit-hepph", "hollins")
SHOWN = ("precision@10", "best settings", "answered / full lists of 20")
Results = dict[str, Any]


def measure() -> Results:
    """Run all suites and return their tables."""
    spent = time.process_time()
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as work:
        suites = [load_suite(name) for name in SUITES]
        across = run_across(suites, DATA, Path(work), load_across(), progress=told)
    return {
        **run_today(),
        "processor_s": time.process_time() - spent,
        "tables": [table._asdict() for table in across_tables(across)],
        "notes": across.notes,
    }


def told(stage: str, done: int, total: int) -> None:
    """Print one line per stage."""
    if done in (0, total):
        print(stage, file=sys.stderr, flush=True)


def figures(results: Results) -> str:
    """Return the block of docs/evaluation.md."""
    minutes = results["processor_s"] / 60
    provenance = f"{results['date']}, {results['machine']}; {minutes:.0f} minutes of CPU time."
    pieces = [provenance]
    for table in (each for each in results["tables"] if each["heading"] in SHOWN):
        pieces += [f"**{table['heading']}**. {table['remark']}".strip()]
        pieces += [markdown_table(table["titles"], table["rows"])]
    return "\n\n".join(pieces)


BLOCK = Block("suites", ROOT / "docs" / "evaluation.md", "<!-- end of suites -->", figures)


def main() -> None:
    """Measure, print, and write with ``--write``."""
    chosen = BLOCK.parser(__doc__).parse_args()
    results = measure()
    print(figures(results))
    BLOCK.keep(results, chosen)


if __name__ == "__main__":
    main()
