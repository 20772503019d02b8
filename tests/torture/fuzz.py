"""Fuzzing, by atheris, of what reads bytes of others, a target each; guided by coverage where that
is Python.

    pip install atheris
    python -m tests.torture.fuzz manifest -runs=200000 CORPUS

What follows the target goes to libFuzzer. A target takes bytes and either ends well or raises an
error of cocite's own tree; anything else ends the run, with the input. Readers of links are called
as ``ingest`` calls them, on one small file. atheris is no dependency of the tests: it needs a
compiler where it has no wheel.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import cocite
from cocite.errors import CociteError
from tests.store.enemy import rewrite

__all__ = ["TARGETS"]

_FOLDER = Path(tempfile.mkdtemp(prefix="fuzz"))
_NAMES = [f"http://s{i % 5}.org/p{i}" for i in range(24)] + [f"page {i}" for i in range(16)]


def _store() -> tuple[Path, Path]:
    """A graph and an index of trees, made once."""
    graph, index = _FOLDER / "web.graph", _FOLDER / "web.index"
    if not graph.exists():
        rng = np.random.default_rng(1)
        rows = [f"{_NAMES[a]}\t{_NAMES[b]}\n" for a, b in rng.integers(0, 40, (150, 2)).tolist()]
        (_FOLDER / "links.tsv").write_text("".join(sorted(set(rows))), "utf-8")
        made = cocite.ingest(_FOLDER / "links.tsv", graph, delimiter="tab", header="no")
        cocite.build(made, index, measure="psimrank", samples=3, length=5)
    return graph, index


def _manifest(content: bytes) -> None:
    from cocite.store import Manifest
    from cocite.store.manifest import _parsed

    try:
        _parsed(content)
    except (ValueError, RecursionError):
        return  # most are no JSON: these are told so before anything is written

    path = _FOLDER / "manifest"
    path.mkdir(exist_ok=True)
    (path / "manifest.json").write_bytes(content)
    Manifest.read(path, "graph")


def _facts(content: bytes) -> None:
    """The facts of an index are JSON out of the input, behind a key; the checksum fits."""
    import json

    from cocite.index.facts import IndexFacts
    from cocite.store import Manifest

    _, index = _store()
    path = _FOLDER / "facts"
    path.mkdir(exist_ok=True)
    shutil.copyfile(index / "manifest.json", path / "manifest.json")
    keys = ("measure", "parts", "settings", "graph", "nodes", "by", "asks", "generations", "wanted")
    try:
        value = json.loads(content[1:])
    except (ValueError, RecursionError):
        value = content[1:].decode("utf-8", "replace")
    with contextlib.suppress(ValueError, RecursionError):  # what Python writes is no JSON then
        rewrite(path, lambda told: told["facts"].update({keys[content[0] % len(keys)]: value}))
        manifest = Manifest.read(path, "index")
        IndexFacts.read(path, manifest.facts)


def _names(content: bytes) -> None:
    from cocite.graph.coded import coded_texts
    from cocite.kernels.names import distances

    data = np.frombuffer(content[8:], np.uint8)
    blocks = np.frombuffer((content[:8] * 3)[:24].ljust(24, b"\0"), np.uint8)
    begins = np.array([0, blocks[1] % (data.size + 2), int(blocks[2]) * 2**56], np.uint64)
    begins.flags.writeable = False
    coded_texts(data, begins, np.arange(40))
    wanted = np.frombuffer(b"page 1", np.uint8)
    distances(data, begins, 40, wanted, np.empty(40, np.int32))


def _trees(content: bytes) -> None:
    """A shard of one sample of eight nodes, whatever its words."""
    from cocite.kernels import trees_lookup

    words = np.zeros(32, np.uint32)
    given = np.frombuffer(content[: len(content) // 4 * 4], "<u4")[:32]
    words[: given.size] = given
    places = [words.ctypes.data + 4 * at for at in (0, 8, 16)]
    table = np.array([[*places, len(content) % 9]], np.uint64)
    weights, sums = np.ones((16, 2), np.uint64), np.zeros(16, np.uint64)
    others = np.arange(8, dtype=np.uint32)
    for node in range(8):
        out = np.zeros((1, 8), np.uint8)
        trees_lookup.meeting_times(table, np.uint32(node), others, out)
        used = np.zeros(17, np.uint32)
        trees_lookup.gather(table, np.uint32(node), weights, sums, used, 0)
        sums[:] = 0


def _read(name: str) -> Callable[[bytes], None]:
    """A file of links, read as ``ingest`` reads it, up to its rows."""

    def target(content: bytes) -> None:
        path, output = _FOLDER / name, _FOLDER / "out.graph"
        path.write_bytes(content)
        cocite.ingest(path, output, overwrite=True, threads=1)

    return target


def _html(content: bytes) -> None:
    from cocite.graph.readers.html.page import links_of

    links_of(content, "http://a.org/x")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "manifest": _manifest,
    "facts": _facts,
    "names": _names,
    "trees": _trees,
    "text": _read("links.tsv"),
    "parquet": _read("links.parquet"),
    "html": _html,
}
"""What is fuzzed -> what takes the bytes."""


def main() -> None:
    import atheris

    target = TARGETS[sys.argv[1]]

    def once(content: bytes) -> None:
        with contextlib.suppress(CociteError):
            target(content)

    # All is imported now, what runs as Python with its branches counted, and kernels are compiled.
    compiled = target in (_names, _trees)
    guided = atheris.instrument_imports(include=["cocite"], exclude=["cocite.kernels"])
    with contextlib.nullcontext() if compiled else guided:
        once(b"12345678")
    atheris.Setup([sys.argv[0], *sys.argv[2:]], once)
    try:
        atheris.Fuzz()
    finally:
        shutil.rmtree(_FOLDER, ignore_errors=True)
        os._exit(0)


if __name__ == "__main__":
    main()
