"""Pages per second of ``related-all``, with the default measure and with PSimRank.

    python -m benchmarks.related_all [--write]

Uses evenly spaced pages and the CPU time of one thread; on a quiet machine, more cores
multiply the rates.

    pages       per second, k = 20
    written     per second, as Parquet, which a single thread writes
    related     mean number of nodes with a score per page, all of which must be examined

The graphs are those of the shared data, and a generated one like a social network: 77,000 pages,
each linked with six earlier ones on average, mostly popular ones, and mostly both ways.

``--write`` stores the results under results/ and in docs/related-all.md. Takes about two minutes.
"""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

import cocite
from benchmarks.block import DATA, ROOT, Block, run_today
from cocite import Graph, Index
from cocite.index.layouts.reader import borrowed
from cocite.search.batch.estimate import Work, strata
from cocite.search.batch.outputs import output_of
from cocite.search.batch.pieces import rows_of

GRAPHS = {
    "wikispeedia": "wikispeedia/links.tsv",
    "cit-HepPh": "cit-HepPh/cit-HepPh.txt.gz",
    "web-NotreDame": "web-NotreDame/web-NotreDame.txt.gz",
    "cnr-2000": "cnr-2000/cnr-2000.edges.txt.gz",
}
MEASURES = ("fusion", "psimrank")
K, RUNS, SIZE, LOOKED = 20, 12, 128, 100
Row = dict[str, Any]


def social(path: Path) -> Path:
    """Links of a graph like a social network, as text."""
    rng, nodes = np.random.default_rng(1), 77_000
    ends, links = [0, 1], [(0, 1)]
    for page in range(2, nodes):
        count = min(1 + int(rng.geometric(1 / 6)), 60)
        some = rng.integers(0, len(ends), count)
        others = {ends[i] for i in some} - {page}
        ends += [*others, *([page] * len(others))]
        links += [(page, other) for other in others]
    pairs = np.array(links)
    back = rng.random(len(pairs)) < 0.84
    np.savetxt(path, np.concatenate((pairs, pairs[back][:, ::-1])), "%d", "\t")
    return path


def row(name: str, graph: Graph, index: Index) -> Row:
    """The figures of one index."""
    work = Work(index, K, threads=1)
    runs = strata([range(work.nodes)], RUNS, SIZE)
    with closing(work.pieces(runs[:1])) as first:
        list(first)  # compiles, and reads what all questions read
    begin = time.process_time()
    with closing(work.pieces(runs)) as found:
        pieces = list(found)
    asking = time.process_time() - begin
    rows = rows_of(pieces, work.nodes, work.words)
    asked = np.sort(np.concatenate([np.arange(p.begin, p.begin + p.size) for p in pieces]))
    with tempfile.TemporaryDirectory() as folder:
        written = []
        for some in (asked[:1], asked):
            begin = time.process_time()
            output_of("all.parquet").trial([work.pages(rows, some)], Path(folder))
            written.append(time.process_time() - begin)
    related = []
    settings = index.stored.ask_settings({})
    for node in work.asked[asked][:: max(1, asked.size // LOOKED)].tolist():
        with borrowed(index.stored.nodes) as scratch:
            index.scorer._gather(node, settings, scratch)
            related.append(scratch.have)
            scratch.totals[scratch.touched[: scratch.have]] = 0.0
    return {
        "graph": name,
        "nodes": graph.nodes,
        "links": graph.edges,
        "measure": index.measure,
        "pages": asked.size / asking,
        "written": asked.size / max(1e-9, written[1] - written[0]),
        "related": float(np.mean(related)),
    }


def measure() -> list[Row]:
    """A row a graph and measure."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as place:
        folder = Path(place)
        for name, file in {**GRAPHS, "social (made)": ""}.items():
            links = DATA / file if file else social(folder / "social.tsv")
            graph = cocite.ingest(links, folder / "graph", overwrite=True)
            for chosen in MEASURES:
                index = cocite.build(graph, folder / "index", measure=chosen, overwrite=True)
                rows.append(row(name, graph, index))
                print(json.dumps(rows[-1]), flush=True)
    return rows


def figures(results: Row) -> str:
    """The block of docs/related-all.md."""
    lines = [
        f"k = {K}, pages per second of one thread's CPU time; {results['date']}, "
        f"{results['machine']}.",
        "",
        "| graph | nodes | links | measure | computed | written as Parquet "
        "| related nodes per page |",
        "| --- " * 7 + "|",
    ]
    lines += [
        f"| {r['graph']} | {r['nodes']:,} | {r['links']:,} | `{r['measure']}` | {r['pages']:,.0f} "
        f"| {r['written']:,.0f} | {r['related']:,.0f} |"
        for r in results["rows"]
    ]
    return "\n".join(lines)


def in_words(results: Row) -> str:
    """The speed as docs/start.md states it: pages per second per core, to two digits."""
    found = []
    for measure in MEASURES:
        pages = [row["pages"] for row in results["rows"] if row["measure"] == measure]
        low, high = (f"{float(f'{value:.1e}'):,.0f}" for value in (min(pages), max(pages)))
        found.append(f"{low} to {high}")
    return f"{found[0]} pages per second per core with `fusion`, and {found[1]} with `psimrank`"


BLOCK = Block("related_all", ROOT / "docs" / "related-all.md", "<!-- end of table -->", figures)


def main() -> None:
    """Measure, print, and write with ``--write``."""
    chosen = BLOCK.parser(__doc__).parse_args()
    results = {**run_today(), "rows": measure()}
    BLOCK.keep(results, chosen)


if __name__ == "__main__":
    main()
