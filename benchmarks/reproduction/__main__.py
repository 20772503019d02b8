"""Measure the papers' figures: ``python -m benchmarks.reproduction [--only KEY] [--write]``.

``--only`` accepts a row (001.figure5), a paper (001) or a measurement (trees). ``--document``
prints the stored results without measuring. ``--write`` stores new results in
``results/reproduction.json`` and regenerates ``docs/reproduction.md`` from all stored results.

The data is read from the folder ``COCITE_DATA``, by default ``shared/data`` next to the checkout.
Measurements whose data is missing are skipped with a message.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.block import DATA, add_write, edit, run_today
from benchmarks.exact_figures import FIGURES
from benchmarks.reproduction import gamma, ranks, solving, texts, walks
from benchmarks.reproduction.document import DOCUMENT, PAPERS, RESULTS_FILE, document, in_text
from benchmarks.reproduction.farm import farm
from benchmarks.reproduction.rows import Row
from benchmarks.reproduction.walked import GAMMA_000, GAMMA_001

MEASUREMENTS: dict[str, Callable[[Path, Path], Any]] = {
    **{f"gamma-000 {name}": partial(gamma.gamma_000, name) for name in GAMMA_000},
    **{f"gamma-001 {name}": partial(gamma.gamma_001, name) for name in GAMMA_001},
    **{f"lengths-001 {name}": partial(gamma.lengths_001, name) for name in GAMMA_001},
    "witnesses": walks.witnesses,
    "trees": walks.trees,
    "sizes": walks.sizes,
    "pagesim-example": texts.example,
    **{f"content {site}": partial(texts.content, site) for site in texts.SITES},
    "farm": farm,
    "order-example": solving.example,
    "sweeps-beforehand": solving.beforehand,
    **{f"sor {name}": partial(solving.experiment, name) for name in solving.KEPT},
    **{f"exact {name}": partial(solving.figure, name) for name in FIGURES},
    "blocks": ranks.blocks,
    "paging": ranks.paging,
    "precision": ranks.precision,
    "orders": ranks.orders,
}


def rows_of(only: str | None) -> list[Row]:
    """Return the rows of a key: a row, a paper or a measurement; None for all."""
    rows = [row for paper in PAPERS for row in paper.rows]
    keys = {None, *MEASUREMENTS, *(paper.number for paper in PAPERS), *(row.key for row in rows)}
    if only not in keys:
        known = ", ".join([p.number for p in PAPERS] + [r.key for r in rows])
        sys.exit(f"{only!r} is no row, paper or measurement; there are {known}")
    return [row for row in rows if only in (None, row.key, row.key.split(".")[0], *row.needs)]


def chosen(only: str | None) -> list[str]:
    """Return the names of the measurements that a key needs."""
    if only in MEASUREMENTS:
        return [only]
    wanted = {name for row in rows_of(only) for name in row.needs}
    return [name for name in MEASUREMENTS if name in wanted]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and, with --write, store."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reproduction",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", metavar="KEY", help="a row, a paper or a measurement")
    parser.add_argument(
        "--document", action="store_true", help="print the stored results without measuring"
    )
    where = f"results/{RESULTS_FILE.name} and docs/{DOCUMENT.name}"
    add_write(parser, f"store the results in {where}")
    asked = parser.parse_args(arguments)
    rows = rows_of(asked.only)
    results = json.loads(RESULTS_FILE.read_text("utf-8")) if RESULTS_FILE.exists() else {}
    missing: set[str] = set()
    for name in () if asked.document else chosen(asked.only):
        measured = measure(name)
        if measured is None:
            missing.add(name)
            continue
        results[name] = measured
        ordered = {key: results[key] for key in MEASUREMENTS if key in results}
        edit(RESULTS_FILE, json.dumps(ordered, indent=1) + "\n", write=asked.write)
    found = {name: each["found"] for name, each in results.items()}
    if asked.document and asked.only is None:
        print(document(results), end="")
    else:
        print(
            "\n".join(in_text(row, found) for row in rows if set(row.needs) <= set(found) - missing)
        )
    if asked.write:
        edit(DOCUMENT, document(results), write=True)


def measure(name: str) -> dict[str, Any] | None:
    """Run a measurement; if its data is missing, print a message and return None."""
    begin = time.process_time()
    try:
        with tempfile.TemporaryDirectory(prefix="cocite-reproduction-") as work:
            found = MEASUREMENTS[name](DATA, Path(work))
    except FileNotFoundError as error:
        print(f"{name}: skipped, {error.filename} is missing", file=sys.stderr)
        return None
    seconds = round(time.process_time() - begin, 1)
    print(f"{name}: {seconds} s of CPU time", file=sys.stderr, flush=True)
    return {**run_today(), "seconds": seconds, "found": found}


if __name__ == "__main__":
    main()
