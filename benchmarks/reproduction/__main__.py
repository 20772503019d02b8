"""Make the papers' figures anew: ``python -m benchmarks.reproduction [--only KEY] [--document]``.

``--only`` takes a row (001.figure5), a paper (001) or a measurement (trees); without it everything
is measured, which takes a quarter of an hour. What is measured is kept in
``results/reproduction.json``, the rest stays as it was; ``docs/reproduction.md`` is then written
anew from all of it, and nothing else: ``--document`` writes it without measuring.

The data is looked for where ``COCITE_DATA`` says, or in ``shared/data`` beside the checkout; a
measurement whose data is not there is left out, and said.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.__main__ import DATA
from benchmarks.reproduction import gamma, ranks, solving, texts, walks
from benchmarks.reproduction.document import DOCUMENT, PAPERS, RESULTS_FILE, document
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
    "order-example": solving.example,
    "sweeps-beforehand": solving.beforehand,
    **{f"sor {name}": partial(solving.experiment, name) for name in solving.KEPT},
    "blocks": ranks.blocks,
    "precision": ranks.precision,
    "orders": ranks.orders,
}


def chosen(only: str | None) -> list[str]:
    """The measurements that a row, a paper or all of them need."""
    rows = [row for paper in PAPERS for row in paper.rows]
    if only in MEASUREMENTS:
        return [only]
    wanted = {
        name
        for row in rows
        if only is None or row.key == only or row.key.split(".")[0] == only
        for name in row.needs
    }
    if only is not None and not any(only in (r.key, r.key.split(".")[0]) for r in rows):
        known = ", ".join([p.number for p in PAPERS] + [r.key for r in rows if r.needs])
        sys.exit(f"{only!r} is no row, paper or measurement; there are {known}")
    return [name for name in MEASUREMENTS if name in wanted]


def main() -> None:
    """Measure, keep, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reproduction", description=__doc__)
    parser.add_argument("--only", metavar="KEY", help="a row, a paper or a measurement")
    parser.add_argument("--document", action="store_true", help="measure nothing: write it anew")
    asked = parser.parse_args()
    results = json.loads(RESULTS_FILE.read_text("utf-8")) if RESULTS_FILE.exists() else {}
    for name in () if asked.document else chosen(asked.only):
        begin = time.process_time()
        try:
            with tempfile.TemporaryDirectory(prefix="cocite-reproduction-") as work:
                found = MEASUREMENTS[name](DATA, Path(work))
        except FileNotFoundError as error:
            print(f"{name}: left out, {error.filename} is not there", file=sys.stderr)
            continue
        seconds = round(time.process_time() - begin, 1)
        print(f"{name}: {seconds} s of processor time", file=sys.stderr, flush=True)
        results[name] = {
            "date": date.today().isoformat(),
            "machine": f"{os.cpu_count()} shared cores, Python {platform.python_version()}",
            "seconds": seconds,
            "found": found,
        }
        ordered = {key: results[key] for key in MEASUREMENTS if key in results}
        RESULTS_FILE.write_text(json.dumps(ordered, indent=1) + "\n", "utf-8")
    DOCUMENT.write_text(document(results), "utf-8")


if __name__ == "__main__":
    main()
