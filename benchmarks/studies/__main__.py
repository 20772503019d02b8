"""Run studies: ``python -m benchmarks.studies SUITE... [--data FOLDER]``.

    python -m benchmarks.studies web                      a study that generates its data
    python -m benchmarks.studies wikispeedia --data DIR   a study of data in a folder
    python -m benchmarks.studies cora web --data DIR      the default against all else, on several

A suite is a TOML file, or the name of one in ``suites/`` (``suite.py`` describes the format). A
study compares measures, tries their settings, finds the best of each, and counts the costs of trees
and walks. Prints Markdown; ``--figures`` plots the sweeps into a folder, as SVG and PNG.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.block import DATA
from benchmarks.studies.across import across_tables, run_across
from benchmarks.studies.run import run_suite
from benchmarks.studies.study import tables_of
from benchmarks.studies.suite import load_across, load_suite
from cocite.evaluation.html_report import ReportTable, markdown_table
from cocite.evaluation.report import explained, facts_text


def report(stage: str, done: int, total: int) -> None:
    """Print a line when a stage begins."""
    if done == 0:
        print(stage, file=sys.stderr, flush=True)


def show(tables: list[ReportTable], notes: list[str]) -> None:
    """Print tables as Markdown, and a list of what was omitted."""
    for heading, titles, rows, remark, words in tables:
        print(f"\n## {heading}\n")
        print(f"{remark}\n\n" if remark else "", end="")
        print(markdown_table(titles, rows, words))
    for note in notes:
        print(f"\n* {note}")


def main() -> None:
    """Run one suite, or several side by side."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies", description=__doc__)
    parser.add_argument("suites", nargs="+", metavar="SUITE", help="a name, or a TOML file")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of all data")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figures", type=Path, help="draw into this folder; of one suite")
    chosen = parser.parse_args()
    suites = [load_suite(name) for name in chosen.suites]
    with tempfile.TemporaryDirectory(prefix="cocite-") as work:
        if len(suites) > 1:
            across = run_across(
                suites, chosen.data, Path(work), load_across(), seed=chosen.seed, progress=report
            )
            show(across_tables(across), across.notes)
            return
        (suite,) = suites
        folder = None if suite.data.web else chosen.data / (suite.data.folder or suite.name)
        study = run_suite(suite, folder, Path(work), seed=chosen.seed, progress=report)
    print(f"# {study.about}\n\n{facts_text(study.facts)}\n\n{explained(study.judge)}")
    show(list(tables_of(study)), study.notes)
    if chosen.figures:
        from benchmarks.studies.figures import write_pictures

        for path in write_pictures(study, chosen.figures):
            print(f"\n![{path.stem}]({path})")


if __name__ == "__main__":
    main()
