"""Reading speed of a web archive, in pages and MB per second.

    python -m benchmarks.warc FOLDER_OF_HTML [TIMES]

Every page of the folder, such as the manual of Git, is written TIMES (10) times to an archive of
gzipped records, under as many hosts. Prints CPU seconds and peak memory of FastWARC and the
checks alone, and of a whole ingest with its processes.
"""

from __future__ import annotations

import gzip
import resource
import sys
import tempfile
from pathlib import Path

import cocite
from cocite.io.readers import Source
from cocite.io.readers.crawl.warc import WarcRecords


def _record(url: str, page: bytes) -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + page
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\n"
        "WARC-Date: 2026-01-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n", 6)


def _used() -> float:
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in each)


def main() -> None:
    """Generate, read, and print."""
    folder, times = Path(sys.argv[1]), int([*sys.argv[2:], "10"][0])
    pages = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.html")}
    with tempfile.TemporaryDirectory() as name:
        archive = Path(name, "x.warc.gz")
        with archive.open("wb") as out:
            for host in range(times):
                for path, page in pages.items():
                    out.write(_record(f"http://h{host}.example.org/{path}", page))
        count, size = times * len(pages), times * sum(map(len, pages.values())) / 1e6

        def refuse(place: int, what: str) -> None:
            raise AssertionError(what)

        begun = _used()
        found = sum(1 for _ in WarcRecords(Source(archive), refuse, ("response",), lambda at: None))
        took = _used() - begun
        assert found == count
        print(f"{count:,} pages, {size:.0f} MB: records alone {took:.2f} s, {size / took:.0f} MB/s")
        begun = _used()
        graph = cocite.ingest(archive, Path(name, "graph"), memory="1GB")
        took = _used() - begun
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
        print(
            f"whole ingest under 1 GB: {graph.nodes:,} nodes, {graph.edges:,} links in {took:.1f} "
            f"s of CPU time, {count / took:,.0f} pages/s; peak {peak:,} MiB, and {largest:,} "
            "of a process that parses"
        )


if __name__ == "__main__":
    main()
