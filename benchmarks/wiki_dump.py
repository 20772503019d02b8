"""Reading speed of a MediaWiki dump, in rows of a generated ``pagelinks`` per second.

    python -m benchmarks.wiki_dump [PAGES [LINKS]]

Pages have titles of 5 to 40 letters, one in ten is a redirect, and links refer to pages by ids of
``linktarget``. Prints CPU seconds of reading alone (unpacking, rows, checks) and of a whole
ingest, and the latter's peak memory.
"""

from __future__ import annotations

import gzip
import io
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import cocite
from cocite.io.readers import Found, Source
from cocite.io.readers.contract import no_progress
from cocite.io.readers.wiki import Dump

_ROWS = 20_000
"""Rows of one statement: about a MB, as dumps of Wikimedia have them."""

_LETTERS = r"Title_\'of\'_thirty_letters_or_so"


def _dump(path: Path, table: str, columns: list[str], rows: Iterator[str]) -> None:
    with gzip.open(path, "wb", 6) as file, io.TextIOWrapper(file, "utf-8") as out:
        out.write(f"CREATE TABLE `{table}` (\n")
        out.write("".join(f"  `{name}` int NOT NULL,\n" for name in columns) + ") ENGINE=x;\n")
        held: list[str] = []
        for row in rows:
            held.append(row)
            if len(held) == _ROWS:
                out.write(f"INSERT INTO `{table}` VALUES {','.join(held)};\n")
                held.clear()
        if held:
            out.write(f"INSERT INTO `{table}` VALUES {','.join(held)};\n")


def generate(folder: Path, pages: int, links: int) -> Path:
    """A dump; the path of its links."""
    random = np.random.default_rng(7)
    lengths = random.integers(5, 30, pages).tolist()
    titles = [f"{_LETTERS[:n]}_{i}" for i, n in enumerate(lengths)]
    _dump(
        folder / "xx-page.sql.gz",
        "page",
        ["page_id", "page_namespace", "page_title", "page_len"],
        (f"({i},0,'{title}',{i * 7})" for i, title in enumerate(titles, 1)),
    )
    _dump(
        folder / "xx-linktarget.sql.gz",
        "linktarget",
        ["lt_id", "lt_namespace", "lt_title"],
        (f"({i},0,'{title}')" for i, title in enumerate(titles, 1)),
    )
    _dump(
        folder / "xx-redirect.sql.gz",
        "redirect",
        ["rd_from", "rd_namespace", "rd_title", "rd_interwiki", "rd_fragment"],
        (f"({i},0,'{titles[i // 2]}','','')" for i in range(10, pages, 10)),
    )
    where = folder / "xx-pagelinks.sql.gz"
    ends = random.integers(1, pages + 1, (links, 2))
    _dump(
        where,
        "pagelinks",
        ["pl_from", "pl_from_namespace", "pl_target_id"],
        (f"({a},0,{b})" for a, b in ends.tolist()),
    )
    return where


def main() -> None:
    """Generate, read, and print."""
    pages, links = (int(text) for text in [*sys.argv[1:], "300000", "4000000"][:2])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        where = generate(folder, pages, links)
        for _ in range(2):  # the first one compiles
            with (folder / "out.tsv").open("wb", buffering=0) as out:
                dump = Dump({"pagelinks": out}, Found(str(where)), no_progress, stop=True)
                begun = time.process_time()
                dump.read(Source(where))
                took = time.process_time() - begun
        rows = dump.rows["pagelinks"]
        with gzip.open(where) as file:
            unpacked = sum(map(len, file))
        print(
            f"{rows:,} rows of pagelinks, {unpacked / 1e6:.0f} MB unpacked: {took:.2f} s, "
            f"{rows / took / 1e6:.1f} M rows/s, {unpacked / took / 1e6:.0f} MB/s"
        )
        begun = time.process_time()
        graph = cocite.ingest(where, folder / "graph", memory="1GB")
        took = time.process_time() - begun
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(
            f"whole ingest under 1 GB: {graph.nodes:,} nodes, {graph.edges:,} links in {took:.1f} "
            f"s of CPU time, {rows / took / 1e6:.2f} M rows/s; peak {peak:,} MiB"
        )


if __name__ == "__main__":
    main()
