"""Generate the documents' tables of figures from results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cocite.resources import format_size

RESULTS = Path(__file__).parent / "results"
BEGIN, END = "<!-- figures: python -m benchmarks --document --write -->", "<!-- end of figures -->"
ROOT = Path(__file__).parents[1]
DOCUMENTS = {ROOT / "README.md": True, ROOT / "docs" / "performance.md": False}
"""Those with a block of figures, and which of them are brief."""

COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "graph": lambda r: r["name"],
    "nodes": lambda r: f"{r['nodes']:,}",
    "links": lambda r: f"{r['edges']:,}",
    "measure": lambda r: r["measure"],
    "ingest": lambda r: f"{r['ingest_s']:.1f} s",
    "build": lambda r: f"{r['build_s']:.1f} s",
    "walk step": lambda r: "" if r["ns_live_step"] is None else f"{r['ns_live_step']:.0f} ns",
    "index": lambda r: format_size(r["bytes"]),
    "per node per sample": lambda r: (
        "" if r["bytes_node_sample"] is None else f"{r['bytes_node_sample']:.2f} B"
    ),
    "peak memory": lambda r: format_size(r["build_peak_bytes"]),
    "`related`, median": lambda r: f"{r['related_ms_median']:.2f} ms",
    "99th percentile": lambda r: f"{r['related_ms_p99']:.1f} ms",
    "from the shell": lambda r: f"{r['shell_s']:.2f} s",
}
BRIEF = ["graph", "nodes", "links", "measure", "build", "index", *list(COLUMNS)[-3:-1]]
"""What the README shows, of the default and of PSimRank on graphs that people have."""


def newest() -> dict[str, Any]:
    """The results file with the latest date in its name."""
    found: dict[str, Any] = json.loads(sorted(RESULTS.glob("????-??-??.json"))[-1].read_text())
    return found


def table(rows: list[dict[str, Any]], columns: Iterable[str] = COLUMNS) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(list(columns))]
    lines += ["| " + " | ".join(COLUMNS[name](row) for name in columns) + " |" for row in rows]
    return "\n".join(lines)


def figures(results: dict[str, Any], brief: bool = False) -> str:
    """The block of a document; a ``brief`` one for the README."""
    b, rows = results["build"], results["rows"]
    if brief:
        shown = [
            row
            for row in rows
            if row["measure"] in ("fusion", "psimrank") and row["name"] != "stdlib"
        ]
        return f"{table(shown, BRIEF)}\n\n{results['date']}, {results['machine']}."
    return (
        f"{b['samples']} samples, length {b['length']}, {b['threads']} threads; `related` with "
        f"k = {results['query']['k']}; {results['date']}, {results['machine']}.\n\n" + table(rows)
    )


def with_figures(text: str, results: dict[str, Any], brief: bool = False) -> str:
    """A document with its block of figures replaced."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{figures(results, brief)}\n{END}{tail}"
