"""Fuzzing, by atheris, of what reads bytes of others, a target each; guided by coverage where that
is Python.

    pip install atheris
    python -m tests.torture.fuzz manifest -runs=200000 CORPUS

What follows the target goes to libFuzzer. A target takes bytes and either ends well or raises an
error of cocite's own tree; anything else ends the run, with the input. Readers of links are called
as ``ingest`` calls them, on one small file, up to the rows that DuckDB has of it. Where bytes at
random would be refused at once, a run begins with sound ones (:data:`SEEDS`), or its bytes say what
of a sound store is changed. atheris is no dependency of the tests: it needs a compiler where it has
no wheel.

Cost: nothing is forked, compiled or synced in a run. Of one processor about 25,000 runs a second of
trees, 12,000 of html, 1,300 of facts, and 500 of text and of parquet, which ask DuckDB.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np

import cocite
from cocite.errors import CociteError
from cocite.measures import PartSettings
from tests.storage.enemy import rewrite
from tests.torture.stores import NAMES

if TYPE_CHECKING:
    from cocite.io.tables import Tables


_FOLDER = Path(tempfile.mkdtemp(prefix="fuzz"))


def _store() -> tuple[Path, Path]:
    """A graph and an index of trees, made once."""
    graph, index = _FOLDER / "web.graph", _FOLDER / "web.index"
    if not graph.exists():
        rng = np.random.default_rng(1)
        rows = [f"{NAMES[a]}\t{NAMES[b]}\n" for a, b in rng.integers(0, 40, (150, 2)).tolist()]
        (_FOLDER / "links.tsv").write_text("".join(sorted(set(rows))), "utf-8")
        made = cocite.ingest(_FOLDER / "links.tsv", graph, delimiter="tab", header="no")
        cocite.build(made, index, measure="psimrank", samples=3, length=5)
    return graph, index


def _manifest(content: bytes) -> None:
    from cocite.storage import Manifest
    from cocite.storage.manifest import _parsed

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

    from cocite.index.manifest import IndexFacts
    from cocite.storage import Manifest

    _, index = _store()
    path = _FOLDER / "facts"
    path.mkdir(exist_ok=True)
    shutil.copyfile(index / "manifest.json", path / "manifest.json")
    if not content:
        return
    keys = (
        "measure",
        "parts",
        "settings",
        "graph",
        "nodes",
        "meeting_weight",
        "query_defaults",
        "generations",
        "wanted",
    )
    try:
        value = json.loads(content[1:])
    except (ValueError, RecursionError):
        value = content[1:].decode("utf-8", "replace")
    with contextlib.suppress(ValueError, RecursionError):  # what Python writes is no JSON then
        rewrite(path, lambda told: told["facts"].update({keys[content[0] % len(keys)]: value}))
        manifest = Manifest.read(path, "index")
        IndexFacts.read(path, manifest.facts)


def _names(content: bytes) -> None:
    from cocite.graph.spelling import coded_texts
    from cocite.kernels.names import distances

    data = np.frombuffer(content[8:], np.uint8)
    blocks = np.frombuffer((content[:8] * 3)[:24].ljust(24, b"\0"), np.uint8)
    begins = np.array([0, blocks[1] % (data.size + 2), int(blocks[2]) * 2**56], np.uint64)
    begins.flags.writeable = False
    coded_texts(data, begins, np.arange(40))
    wanted = np.frombuffer(b"page 1", np.uint8)
    distances(data, begins, 40, wanted, np.empty(40, np.int32))


def _trees(content: bytes) -> None:
    """A shard of one sample of eight nodes, with some of its words changed. Which is drawn, by the
    bytes: libFuzzer sees no branch of a kernel, and so would change the same few bytes for ever.
    """
    from cocite.kernels import trees, trees_batch

    words = np.zeros(32, np.uint32)
    words[:8], words[8:16], words[16] = np.arange(8), np.arange(8), 0x11032010
    chance = random.Random(content)
    for _ in range(chance.randint(1, 6)):
        edge = chance.choice((8, 9, 2**32 - 1, chance.getrandbits(32)))
        words[chance.randrange(17)] = chance.choice((chance.randrange(8), edge))
    places = [words.ctypes.data + 4 * at for at in (0, 8, 16)]
    table = np.array([[*places, chance.choice((8, 8, 8, 5, 0))]], np.uint64)
    weights, sums = np.ones((16, 2), np.uint64), np.zeros((8, 2), np.uint64)
    others = np.arange(8, dtype=np.uint32)
    for node in range(8):
        out = np.zeros((1, 8), np.uint8)
        trees.meeting_times(table, np.uint32(node), others, out)
        used, progress = np.zeros(17, np.uint32), np.array([0, 0, 99], np.uint64)
        trees.gather(table, np.uint32(node), weights, sums, used, progress)
        sums[:] = 0
    changes, marks = np.zeros((9, 2), np.uint64), np.zeros(8, np.uint8)
    scratch = sums, np.zeros(17, np.uint32), changes, marks, marks.view(np.uint64)
    _carry(trees_batch, table, others, scratch)


def _carry(kernels: Any, table: Any, nodes: Any, scratch: Any) -> None:
    """Answer some nodes, each from the sums of the one before."""
    weights = np.ones((17, 16, 2), np.uint64)
    out = np.empty((nodes.size, 5), np.uint32), np.empty((nodes.size, 5, 4))
    counts = np.empty((nodes.size, 2), np.int64)
    kernels.places(table, nodes, np.empty(nodes.size, np.uint64))
    kernels.carry(table, nodes, (weights, weights), 1.0, scratch, (*out, counts))


def _packed(content: bytes) -> None:
    """The same of a packed sample of seventy nodes, which all its kernels read."""
    from cocite.constants import UNFINISHED
    from cocite.index.layouts.trees.build import packed_blob
    from cocite.index.layouts.trees.format import PackedFormat
    from cocite.kernels import runs, runs_lookup, trees_batch

    chance, nodes = random.Random(content), 70
    member = np.roll(np.arange(nodes, dtype=np.uint32), chance.randrange(nodes))[:66]
    labels = np.array([chance.choice((0, 1, 1, 1, 2)) for _ in member], np.uint8)
    labels[0] = 0
    blob = packed_blob(member, labels, np.empty(nodes, np.uint32))
    (words,) = blob.parts
    for _ in range(chance.randint(1, 6)):
        edge = chance.choice((nodes - 1, nodes, 2**32 - 1, chance.getrandbits(32)))
        words[chance.randrange(words.size)] = chance.choice((chance.getrandbits(8), edge))
    table, _ = PackedFormat().place(nodes, [blob.members], PartSettings())
    table[:, :3] = table[:, :3] * np.uint64(4) + np.uint64(words.ctypes.data)
    weights, changes = np.ones((17, 2), np.uint64), np.zeros((nodes + 1, 2), np.uint64)
    marks, used = np.zeros(8, np.uint8), np.zeros(2 * nodes + 1, np.uint32)
    flat, numbers = np.zeros(nodes + 1, np.uint64), np.array([1, 0.1, 0, 0, 1, 1e12, 0])
    runs.unpack(table[0], np.empty(nodes, np.uint32), np.empty(nodes, np.uint8))
    for node in range(0, nodes, 9):
        one, out = np.uint32(node), np.zeros((1, 8), np.uint8)
        some = np.arange(node, min(node + 8, nodes), dtype=np.uint32)
        runs_lookup.meeting_times(table, one, some, out[:, : some.size])
        runs_lookup.spread(table, one, weights[:16], changes, marks)
        runs_lookup.collect(changes, marks, marks.view(np.uint64), used)
        progress = np.array([0, 0, chance.choice((1, 99, 1 << 26))], np.uint64)
        scratch = flat, marks, marks.view(np.uint64), progress
        ids, rows = np.empty(5, np.uint32), np.empty((5, 4))
        asked = table, one, weights[:16], np.ones((2, 256)), scratch, numbers, ids, rows
        while runs_lookup.answer(*asked)[0] == UNFINISHED:
            pass
        changes[:], marks[:], flat[:] = 0, 0, 0
    sums = np.zeros((nodes, 2), np.uint64)
    room = sums, used, changes, marks, marks.view(np.uint64)
    _carry(trees_batch, np.concatenate((table, table)), np.arange(nodes, dtype=np.uint32), room)


@cache
def _tables() -> Tables:
    """A database, as ``ingest`` has one."""
    from cocite.io.readers import Source
    from cocite.io.tables import Tables

    places = [Source(_FOLDER / name) for name in ("links.tsv", "links.parquet")]
    shutil.rmtree(_FOLDER / "work", ignore_errors=True)
    (_FOLDER / "work" / "input").mkdir(parents=True)
    return Tables(_FOLDER / "work", places, 80 << 20, 1)


def _new_schema() -> None:
    """Begin anew with the schema that readers may use; with the database, if it gave up on an input
    before, as DuckDB does where it finds itself in error.
    """
    try:
        _tables()._db.execute("DROP SCHEMA IF EXISTS reading CASCADE")
    except duckdb.FatalException:
        _tables()._db.close()
        _tables.cache_clear()
    _tables()._db.execute("CREATE SCHEMA reading")


def _read(name: str) -> Callable[[bytes], None]:
    """A file of links, read as ``ingest`` reads it, up to its rows."""

    def target(content: bytes) -> None:
        from cocite.io.readers import Job, ReadOptions, Source, reader_of

        _new_schema()
        path, tables, options = _FOLDER / name, _tables(), ReadOptions(bad_rows="all")
        path.write_bytes(content)
        source, scratch = Source(path), _FOLDER / "work" / "input"
        job = Job(source, 2, options, scratch, tables._db, lambda *told: None)
        read = reader_of(source, options, 2).read(job)
        tables._run(f"SELECT sum(hash(a)), sum(hash(b)) FROM ({read.rows})")

    return target


def _html(content: bytes) -> None:
    from cocite.io.readers.html.page import links_of

    links_of(content, "http://a.org/x")


def _notes(content: bytes) -> None:
    from cocite.io.readers.notes.note import links_of
    from cocite.io.readers.notes.vault import Vault

    vault = Vault(["a", "b/a", "c"], ["d.png"], ["b"])
    for kind, written in links_of(content)["links"]:
        vault.find(kind, written, "b/a")


def _vault() -> list[bytes]:
    front = "---\ntitle: A note\naliases: [x, 'y']\ntags: z\nup: '[[c]]'\n---\n"
    links = "# H\n[[b/a#p|t]] ![[d.png]] [e](../f%20g.md 'h') [i][r] #tag %% [[no]] %%\n"
    code = "```\n[[no]]\n```\n<!-- [[no]] -->\n- > [[c]] `[[no]]`\n\n[r]: <j k.md>\n"
    toml = "+++\ntitle = 'T'\n+++\n{{< ref \"x\" >}} {% link y.md %}\n"
    return [(front + links + code).encode(), toml.encode(), links.encode("utf-16")]


def _pages() -> list[bytes]:
    head = "<!DOCTYPE html><html><head><meta charset=utf-8><title>A page</title>"
    links = "<a href=b.html#x>b</a><area href='?q'><iframe src=//c.org/></iframe>"
    return [
        f"{head}<base href=/d/><link rel=canonical href=e.html></head>{links}".encode(),
        f"{head}<meta http-equiv=refresh content='0; url=f.html'></head>{links}".encode("utf-16"),
        f"<frameset><frame src=g.html></frameset><nav>{links}</nav><main>{links}</main>".encode(),
        f"<svg><a href=h></a></svg><template>{links}</template><table>{links}<tr>".encode(),
    ]


def _texts() -> list[bytes]:
    rows = ["a\tb\t2.5\nb\tc\t1e3\n", 'source,target\n"a, b",c\n"x""y",z\n', "1 2\n3 4\r\n"]
    rows += [
        '{"source": "a", "target": "b"}\n',
        "%%MatrixMarket matrix coordinate pattern general\n",
    ]
    rows += ["graph [ node [ id 1 ] edge [ source 1 target 1 ] ]", "a: b c\n", "sep=;\na;b\n"]
    rows += ['<graphml><graph><edge source="a" target="b"/></graph></graphml>']
    packed = [gzip.compress(rows[0].encode()), bz2.compress(rows[1].encode())]
    return [row.encode() for row in rows] + [rows[0].encode("utf-16"), *packed]


def _parquets() -> list[bytes]:
    path, found = _FOLDER / "seed.parquet", []
    for columns in (
        "'a' AS source, 'b' AS target",
        "1 AS a, 2 AS b, 0.5 AS w",
        "[1] AS a, NULL AS b",
    ):
        for packing in ("uncompressed", "snappy", "zstd"):
            some = f"SELECT {columns} FROM range(20)"
            duckdb.sql(f"COPY ({some}) TO '{path}' (FORMAT parquet, COMPRESSION {packing})")
            found.append(path.read_bytes())
    return found


TARGETS: dict[str, Callable[[bytes], None]] = {
    "manifest": _manifest,
    "facts": _facts,
    "names": _names,
    "trees": _trees,
    "packed": _packed,
    "text": _read("links.tsv"),
    "parquet": _read("links.parquet"),
    "html": _html,
    "notes": _notes,
}
"""What is fuzzed -> what takes the bytes."""
SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "text": _texts,
    "parquet": _parquets,
    "html": _pages,
    "notes": _vault,
}
"""What is fuzzed -> sound bytes, to begin with."""


def main() -> None:
    import atheris

    target = TARGETS[sys.argv[1]]

    def once(content: bytes) -> None:
        with contextlib.suppress(CociteError):
            target(content)

    # All is imported now, what runs as Python with its branches counted, and kernels are compiled.
    compiled = target in (_names, _trees, _packed)
    guided = atheris.instrument_imports(include=["cocite"], exclude=["cocite.kernels"])
    with contextlib.nullcontext() if compiled else guided:
        once(b"12345678")
    sound = _FOLDER / "sound"
    sound.mkdir()
    for number, content in enumerate(SEEDS.get(sys.argv[1], list)()):
        once(content)
        (sound / str(number)).write_bytes(content)
    atheris.Setup([sys.argv[0], *sys.argv[2:], str(sound)], once)
    try:
        atheris.Fuzz()
    finally:
        shutil.rmtree(_FOLDER, ignore_errors=True)
        os._exit(0)


if __name__ == "__main__":
    main()
