"""Silent bit flips: one bit of a file changes on the disk.

Whatever is built from the store, or queried, either raises :class:`Damaged` with the file's name,
or equals the result of the sound store, to the byte (an unread file may hold anything). A batch
leaves out damaged shards, and reports them.
"""

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import cocite
from cocite import Graph, Index
from cocite.errors import Damaged
from cocite.index import StoredIndex
from cocite.index.verify import VerifyDocument
from cocite.ranking import hits
from cocite.resources import Resources
from cocite.storage import Store, kind_of
from tests.torture.results import Given, Row
from tests.torture.stores import NAMES

_FLIPS = 4_000
"""For all stores together, if time allows."""
_SAME, _DAMAGED = "the same", "damaged"
_LOST = "related-all of a damaged in.sam"
"""A batch without a shard: other bytes, and a list of the omitted samples."""

Make = Callable[[Path, Path], object]
"""Builds something from a store in an empty folder; returns a comparable value."""


def edges(seed: int) -> list[tuple[str, str, int]]:
    """Links between forty pages, with weights."""
    rng = np.random.default_rng(seed)
    pairs = {(a, b) for a, b in rng.integers(0, 40, (150, 2)).tolist() if a != b}
    return [(NAMES[a], NAMES[b], 1 + a % 3) for a, b in sorted(pairs)]


def bytes_of(folder: Path) -> dict[str, bytes]:
    """The bytes of all files of a store."""
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@contextmanager
def flipped(file: Path, bit: int) -> Iterator[None]:
    """A context in which one bit of the file is flipped."""
    sound = file.read_bytes()
    damaged = bytearray(sound)
    damaged[bit // 8] ^= 1 << bit % 8
    file.write_bytes(damaged)
    try:
        yield
    finally:
        file.write_bytes(sound)


def flip_bits(
    store: Path, makes: dict[str, Make], count: int, folder: Path, seed: int = 1
) -> Iterator[str]:
    """Flip ``count`` bits of a store's files, evenly, and build something each time; yield whether
    that raised an error that names the file, gave the same result, or did not detect the bit.
    """
    rng, sound = np.random.default_rng(seed), dict[str, object]()
    entries = Store.open(store, kind_of(store) or "").manifest.files
    files = [name for name, entry in entries.items() if entry.nbytes]

    def make(verb: str) -> object:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return makes[verb](store, folder)

    for verb in makes:
        sound[verb] = make(verb)
        assert make(verb) == sound[verb]
    for number in range(count):
        name, verb = files[number % len(files)], list(makes)[number // len(files) % len(makes)]
        with flipped(store / name, int(rng.integers(8 * (store / name).stat().st_size))):
            try:
                is_same = make(verb) == sound[verb]
            except Damaged as error:
                outcome = _DAMAGED if str(store / name) in str(error) else f"{verb}: {error}"
            else:
                outcome = _SAME if is_same else f"{verb} of a damaged {name}"
        yield outcome


def flip_stores(given: Given) -> dict[str, Row]:
    """Flip bits, in turns, of a graph, of indexes of three layouts, and of pieces to merge."""
    folder = given.folder / "flips"
    stores = {name: store for name, store in _stores(folder).items() if given.only in name}
    count = given.count(_FLIPS) // max(len(stores), 1) + 1

    def flips(name: str, row: Row) -> Iterator[str]:
        path, makes = stores[name]
        for outcome in flip_bits(path, makes, count, folder / "made", given.seed):
            row.seen[outcome] += 1
            reported = outcome == _DAMAGED or outcome.startswith(_LOST)
            row.add(f"a bit of {name}", "" if reported or outcome == _SAME else outcome, reported)
            yield outcome

    logging.disable(logging.WARNING)  # about each omitted shard
    try:
        return given.in_turns(stores, flips)
    finally:
        logging.disable(logging.NOTSET)


def _stores(folder: Path) -> dict[str, tuple[Path, dict[str, Make]]]:
    """Name -> the store, and what to build from it."""
    graphs = {}
    folder.mkdir()
    for name, rows in (
        ("plain", edges(1)),
        ("older", edges(2)),
        ("newer", [*edges(1), ("page 1", "new", 2)]),
    ):
        links = folder / f"{name}.tsv"
        links.write_text("".join(f"{a}\t{b}\t{w}\n" for a, b, w in rows), "utf-8")
        output = folder / f"{name}.graph"
        cocite.ingest(links, output, delimiter="tab", header="no", weight_column="3")
        graphs[name] = output
    graph, older = graphs["plain"], folder / "older"
    cocite.build(graphs["older"], older, measure="psimrank", samples=4, length=4)
    stores: dict[str, tuple[Path, dict[str, Make]]] = {
        "graph": (graph, graph_makes(older) | {"verify": _verified})
    }
    makes = index_makes(graph, graphs["newer"]) | {"verify": _verified}
    for measure in ("psimrank", "neighborhood", "xjaccard"):
        options: dict[str, Any] = {"measure": measure, "unweighted": True}
        if measure != "neighborhood":
            options |= {"samples": 5, "shard": 2, "length": 3}
        cocite.build(graph, folder / measure, **options)
        stores[f"index, {measure}"] = folder / measure, makes
    for name, numbers in (("a", range(3)), ("b", range(3, 6))):
        cocite.build(graph, folder / name, measure="psimrank", length=4, numbers=numbers)

    def merge(first: Path, place: Path) -> object:
        cocite.merge([folder / "a", folder / "b"], place / "x")
        return bytes_of(place / "x")

    pieces = (("first", "a"), ("second", "b"))
    return stores | {f"{n} index to merge": (folder / at, {"merge": merge}) for n, at in pieces}


def _verified(store: Path, folder: Path) -> object:
    """The files that ``verify`` checks; raise its faults."""
    verified = VerifyDocument.of(store)
    if verified.faults:
        raise Damaged("; ".join(f"{store}/{fault}" for fault in verified.faults))
    return verified.files


# -- makes -----------------------------------------------------------------------------------


def built(**options: Any) -> Make:
    """Build an index of a graph."""

    def make(graph: Path, folder: Path) -> object:
        cocite.build(graph, folder / "x", **options)
        return bytes_of(folder / "x")

    return make


def refreshed_to(index: Path) -> Make:
    """Refresh a copy of an index to a graph."""

    def make(graph: Path, folder: Path) -> object:
        shutil.copytree(index, folder / "x")
        cocite.refresh(folder / "x", graph, fraction=0.5, date="2026-11-21")
        return bytes_of(folder / "x")

    return make


def exact(graph: Path) -> object:
    """Exact SimRank of all pairs."""
    scores = cocite.exact_simrank(Graph.open(graph), weighted=False)
    return [scores.row(node).tolist() for node in range(scores.nodes)]


def graph_makes(index: Path) -> dict[str, Make]:
    """Builds from a graph; ``index`` is refreshed to it."""
    return {
        "index": built(),
        "index of samples": built(measure="psimrank", samples=3, length=4),
        "index of some pages": built(
            measure="psimrank", samples=3, length=4, only_prefix="page", unweighted=True
        ),
        "rank": lambda graph, folder: cocite.pagerank(Graph.open(graph)).values.tolist(),
        "hits": lambda graph, folder: hits(Graph.open(graph), weighted=False).hubs.tolist(),
        "exact": lambda graph, folder: exact(graph),
        "refresh": refreshed_to(index),
        "related": lambda graph, folder: cocite.build(graph).related("page 3"),
    }


def index_makes(graph: Path, newer: Path) -> dict[str, Make]:
    """Builds from an index of ``graph``."""

    def refresh(to: Path, share: float) -> Make:
        def make(index: Path, folder: Path) -> object:
            before = bytes_of(index)
            try:
                cocite.refresh(index, to, fraction=share, date="2026-11-21", force=True)
                return bytes_of(index)
            finally:
                shutil.rmtree(index)
                shutil.rmtree(f"{index}.building", ignore_errors=True)
                index.mkdir()
                for name, content in before.items():
                    (index / name).write_bytes(content)

        return make

    def batch(index: Path, folder: Path) -> object:
        opened = Index(StoredIndex.open(index), Resources.checked())
        opened.related_all(folder / "all.csv", 5)
        return (folder / "all.csv").read_bytes(), opened.missing_samples

    return {
        "refresh": refresh(newer, 0.2),
        "refresh of links": refresh(graph, 0.2),
        "related-all": batch,
    }
