"""Measure costs, reproduce measured runs, and estimate the cost of larger webs.

    python -m benchmarks.simulator measure GRAPH      constants of this machine, about two minutes
    python -m benchmarks.simulator reproduce          the stored runs, measured and simulated
    python -m benchmarks.simulator sizes              1, 4 and 100 billion pages

``measure --write`` stores its results in ``benchmarks/results/cluster.json``. These commands
measure the runs again:

    python -m benchmarks.cluster_build GRAPH --write
    python -m benchmarks.cluster_blocks GRAPH --samples 32 --write
    python -m benchmarks.cluster_serving INDEX --write

with the same GRAPH and an index of it by psimrank. Each takes less than five minutes and stores its
figures there, too. ``sizes`` and ``reproduce`` print tables, and ``--write`` puts them into
docs/cluster.md. ``reproduce`` fails if a figure is off by more than 30 %.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.block import ROOT, add_write, edit
from benchmarks.simulator import reproduce, sizes
from benchmarks.simulator.constants import add_keep, keep_quiet, read, stored

DOCUMENT = ROOT / "docs" / "cluster.md"
MARKS = {
    "sizes": (
        "<!-- figures: python -m benchmarks.simulator sizes --write -->",
        "<!-- end of figures -->",
    ),
    "reproduce": (
        "<!-- runs: python -m benchmarks.simulator reproduce --write -->",
        "<!-- end of runs -->",
    ),
}


def block(name: str) -> str:
    """What the document has between the marks of that name."""
    found, runs = read()
    if name == "sizes":
        return "\n".join(
            sizes.table([each for web in sizes.WEBS for each in sizes.plans(web, found)])
        )
    here = stored()["constants"]["here"]
    summary = (
        f"The constants were measured on {here['date']} ({here['machine']}; other processes took "
        f"{100 * here['others']:.0f}% of the CPU time), on a graph of "
        f"{here['of']['nodes']:,} nodes and {here['of']['edges']:,} links."
    )
    rows = list(reproduce.figures(found, runs))
    if not rows:
        return summary + " No runs are stored: they need a quiet machine."
    dates = sorted(run["date"] for run in runs.values())
    period = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    summary += f" Date of the runs: {period}."
    return summary + "\n\n" + "\n".join(reproduce.table(rows))


def within(text: str, name: str) -> str:
    """The document's ``text`` with that block anew."""
    begin, end = MARKS[name]
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    return f"{head}{begin}\n{block(name)}\n{end}{tail}"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.simulator",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    measured = verbs.add_parser("measure", help="the constants")
    measured.add_argument("graph", metavar="GRAPH")
    measured.add_argument(
        "--only", metavar="PARTS", help="samples,blocks,workers,calls,questions: some of them"
    )
    add_keep(measured)
    for name in MARKS:
        add_write(verbs.add_parser(name), f"put the table into {DOCUMENT.relative_to(ROOT)}")
    asked = parser.parse_args()
    if asked.verb == "measure":
        _measure(asked)
        return
    print(block(asked.verb))
    text = within(DOCUMENT.read_text("utf-8"), asked.verb)
    edit(DOCUMENT, text, write=asked.write)
    if asked.verb == "reproduce":
        off = [row for row in reproduce.figures(*read()) if abs(row.off) > reproduce.ALLOWED]
        if off:
            raise SystemExit(
                "\n".join(f"{row.run}, {row.what}: {100 * row.off:+.0f}%" for row in off)
            )


def _measure(asked: argparse.Namespace) -> None:
    from benchmarks.simulator.measure import PARTS, measure  # with Ray, which sizes do not take

    parts = asked.only.split(",") if asked.only else PARTS
    if not set(parts) <= set(PARTS):
        raise SystemExit(f"--only takes some of {','.join(PARTS)}")
    found: dict[str, Any] = stored().get("constants", {}).get("here", {}) if asked.only else {}

    def note(more: dict[str, Any]) -> None:
        busy = max(more.get("others", 0.0), found.get("others", 0.0))
        found.update(more, others=busy)
        keep_quiet("constants", "here", found, asked)

    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as name:
        measure(asked.graph, parts, Path(name), note)


if __name__ == "__main__":
    main()
