"""How time, memory and size grow with pages, links, samples and length, on generated webs.

    python -m benchmarks.growth [--from 100k] [--largest 10M] [--only SERIES]... [--force]
                                [--folder DIR] [--write]

The first of five series varies the nodes for the default measure. Each of the others varies one of
four numbers:

    default    from --from to --largest, in factors of about three, 10 links per page
    nodes      the same
    links      5, 10, 20 and 40 per page
    samples    5, 10, 20, 40 and 80
    length     5, 7, 10 and 15 steps

The others are 10 links, 10 samples and 10 steps, and --middle pages in the last three series. Each
point of the first series generates a web, builds an index and queries it. The other series also
rank, and their index is one of PSimRank. ``nodes`` also lists 2,000 pages by related-all, refreshes
the index after 1% of the pages are removed, and builds an index of XJaccard (16 samples of 4
steps, 8 bits of each min-hash). Every step runs in its own process (``papers_steps.py``).

Power-law exponents are fitted to the points, with 95% intervals (``arithmetic.py``); 1 is linear.
``--write`` stores each point when it ends, and table and plot in docs/performance.md; the plot
requires Matplotlib. Points stored today are measured again only with ``--force``.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.block import add_write
from benchmarks.growth_table import DEFAULT, SERIES, figures, picture
from benchmarks.kept import ResultStore, watched
from benchmarks.papers import number, run
from benchmarks.performance import write
from cocite.errors import UsageError
from cocite.resources import format_size, parse_size

RESULTS = ResultStore("growth")
DEGREE, SAMPLES, LENGTH = 10, 10, 10
DEGREES, MANY_SAMPLES, LENGTHS = (5, 10, 20, 40), (5, 10, 20, 40, 80), (5, 7, 10, 15)
STEPS = ("generate", "rank", "psimrank", "related psimrank")
NODE_STEPS = (*STEPS, "related-all", "leave out", "refresh", "xjaccard")
DEFAULT_STEPS = "generate", "fusion", "related fusion", "related-all fusion"
BESIDE = {"asked": 2000, "rings": 4}
"""Pages of related-all, and steps of XJaccard, whose scratch is 64 bytes per node and step."""
Point = dict[str, int]


def sizes(least: int, largest: int) -> list[int]:
    """Numbers of pages: ``least`` and on, by the root of 10, to two digits; ``largest`` last."""
    count = max(0, round(2 * math.log10(largest / least)))
    found = [float(f"{least * 10 ** (i / 2):.1e}") for i in range(count)]
    return [*(round(size) for size in found if size < largest), largest]


def points(series: str, least: int, largest: int, middle: int) -> list[Point]:
    """What is measured of a series."""
    usual = {"nodes": middle, "degree": DEGREE, "samples": SAMPLES, "length": LENGTH}
    key, values = {
        "default": ("nodes", sizes(least, largest)),
        "nodes": ("nodes", sizes(least, largest)),
        "links": ("degree", DEGREES),
        "samples": ("samples", MANY_SAMPLES),
        "length": ("length", LENGTHS),
    }[series]
    return [{**usual, key: value} for value in values]


def measured(point: Point, memory: int, folder: Path, steps: Sequence[str]) -> dict[str, Any]:
    """What the steps of a point found."""
    links = point["nodes"] * point["degree"]
    chosen = {**point, "links": links, "memory": memory, **BESIDE}
    found: dict[str, Any] = {"point": {**point, "links": links}}
    for step in steps:
        found[step] = run(step, folder, chosen)
    shutil.rmtree(folder)
    return found


def main() -> None:
    """Measure, keep, tell."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.growth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--from", dest="least", type=number, default=100_000, metavar="N")
    parser.add_argument("--largest", type=number, default=10_000_000, metavar="N")
    parser.add_argument("--middle", type=number, default=1_000_000, metavar="N")
    parser.add_argument("--memory", type=parse_size, default="4GB")
    parser.add_argument("--only", action="append", choices=(DEFAULT, *SERIES), metavar="SERIES")
    parser.add_argument("--force", action="store_true", help="measure what is kept, too")
    parser.add_argument("--folder", type=Path, help="where webs are made [a temporary directory]")
    add_write(parser, "keep the results under results/ and put them into docs/performance.md")
    given = parser.parse_args()
    if not given.least < given.largest:
        parser.error("--largest is above --from")
    parts = RESULTS.newest()
    for series in given.only or (DEFAULT, *SERIES):
        for point in points(series, given.least, given.largest, given.middle):
            value = point[{"links": "degree", "default": "nodes"}.get(series, series)]
            key = f"{series} {value} of {point['nodes']}"
            if not given.force and parts.get(key, {}).get("date") == date.today().isoformat():
                print(f"{key}: measured today", file=sys.stderr)
                continue
            with tempfile.TemporaryDirectory(prefix="cocite-bench-", dir=given.folder) as place:
                free = format_size(shutil.disk_usage(place).free)
                print(f"{key}: {free} of disk free", file=sys.stderr, flush=True)
                steps = {"default": DEFAULT_STEPS, "nodes": NODE_STEPS}.get(series, STEPS)
                with watched() as watch:
                    found = measured(point, given.memory, Path(place, "web"), steps)
            parts[key] = {"date": date.today().isoformat(), "machine": "", "others": watch.others}
            parts[key]["found"] = {**found, "series": series}
            if given.write:
                RESULTS.keep(key, parts[key]["found"], watch.others)
    print(figures(parts))
    if given.write:
        write()
        try:
            picture(RESULTS.newest())
        except UsageError as error:
            sys.exit(f"the table is written, the picture is not: {error}")


if __name__ == "__main__":
    main()
