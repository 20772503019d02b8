"""Cost of an index of selected pages compared with an index of all pages.

    python -m benchmarks.keep GRAPH --prefix TEXT [--samples 100] [--threads 2]
    python -m benchmarks.keep GRAPH --ranges COUNT [--threads 2]

For each measure whose layout supports page selection, builds an index of all pages and an index of
the pages with the prefix. Prints the sizes on disk, of all files and of the samples alone, and the
CPU times of the builds, with kernels compiled. ``related`` with k = 20 must be bit-identical
for 100 selected pages.

With ``--ranges``, prints the CPU times of a build of the whole graph, of all ranges together,
of the slowest range, and of the merge. The bytes of the merged index must equal those of the whole.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import cocite
from cocite import Graph, Index
from cocite.index import is_shard

TITLES = ["measure", "pages", "bytes", "of samples", "build", "of all pages", "bytes", "of samples"]
TITLES_OF_RANGES = ["measure", "whole", "all ranges", "slowest range", "merge"]
KINDS: dict[str, dict[str, Any]] = {
    "psimrank": {"measure": "psimrank"},
    "xjaccard": {"measure": "xjaccard"},
    "xjaccard, 8 bits": {"measure": "xjaccard", "bits": 8},
}
ASKED, K = 100, 20


def built(graph: Graph, output: Path, options: dict[str, Any]) -> tuple[Index, float]:
    """The index, and seconds of the processor."""
    begin = time.process_time()
    return cocite.build(graph, output, overwrite=True, **options), time.process_time() - begin


def sizes(index: Index) -> list[str]:
    """Megabytes of all files, and of samples."""
    files = index.stored.store.manifest.files.items()
    samples = sum(entry.nbytes for name, entry in files if is_shard(name))
    return [f"{size / 1e6:.1f} MB" for size in (index.stored.store.nbytes, samples)]


def row(folder: Path, name: str, graph: Graph, options: argparse.Namespace) -> list[str]:
    """One line of the table."""
    kind = {"threads": options.threads, **KINDS[name]}
    built(graph, folder / "whole", kind | {"samples": options.threads})
    chosen = kind | {"samples": options.samples}
    whole, all_seconds = built(graph, folder / "whole", chosen)
    selected, seconds = built(graph, folder / "kept", chosen | {"only_prefix": options.prefix})
    pages = list(selected.nodes)
    for page in pages[:: max(1, len(pages) // ASKED)]:
        assert selected.related(page, K) == whole.related(page, K, prefix=options.prefix)
    share = f"{len(pages):,} ({len(pages) / graph.nodes:.1%})"
    return [
        name,
        share,
        *sizes(selected),
        f"{seconds:.1f} s",
        f"{all_seconds:.1f} s",
        *sizes(whole),
    ]


def ranges(folder: Path, name: str, graph: Graph, options: argparse.Namespace) -> list[str]:
    """One line of the table of ranges."""
    chosen = {"measure": name, "threads": options.threads}
    whole, all_seconds = built(graph, folder / "whole", chosen)
    each, count = list[float](), options.ranges
    for number in range(1, count + 1):
        piece = chosen | {"only_range": f"{number}/{count}"}
        each.append(built(graph, folder / f"{number}", piece)[1])
    begin = time.process_time()
    pieces = [folder / f"{number}" for number in range(1, count + 1)]
    joined = cocite.merge(pieces, folder / "joined", overwrite=True)
    assert joined.stored.digest == whole.stored.digest
    merging = time.process_time() - begin
    return [name, *(f"{s:.1f} s" for s in (all_seconds, sum(each), max(each), merging))]


def main() -> None:
    """Print a line a measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph", type=Graph.open)
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--prefix")
    way.add_argument("--ranges", type=int)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    names, line = list(KINDS), row
    if options.ranges:
        names, line = ["fusion", "ppr-pmi", "snn"], ranges
    print(" | ".join(TITLES_OF_RANGES if options.ranges else TITLES))
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            print(" | ".join(line(Path(folder), name, options.graph, options)), flush=True)


if __name__ == "__main__":
    main()
