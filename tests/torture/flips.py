"""Bits that changed on the disk: one bit of a file is another one, and nobody is told.

Each flip is judged by what a sound store gives. Whatever is made of the store, or asked of it,
either raises :class:`Damaged` with the file's name, or is what it was before, to the byte (a file
that it does not read may be anything). A batch leaves out shards that are damaged, and says so.
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
"""Over all stores, if there is time for all."""
_SAME, _DAMAGED = "the same", "damaged"
_LOST = "related-all of a damaged in.sam"
"""A batch without a shard: other bytes, and a list of what was left out."""

Make = Callable[[Path, Path], object]
"""Makes something of a store, in an empty folder; what it returns can be compared."""


def edges(seed: int) -> list[tuple[str, str, int]]:
    """Links between forty pages, with weights."""
    rng = np.random.default_rng(seed)
    pairs = {(a, b) for a, b in rng.integers(0, 40, (150, 2)).tolist() if a != b}
    return [(NAMES[a], NAMES[b], 1 + a % 3) for a, b in sorted(pairs)]


def bytes_of(folder: Path) -> dict[str, bytes]:
    """All files of a store."""
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@contextmanager
def flipped(file: Path, bit: int) -> Iterator[None]:
    """The file with one bit flipped, as a disk does it: nobody is told."""
    whole = file.read_bytes()
    spoilt = bytearray(whole)
    spoilt[bit // 8] ^= 1 << bit % 8
    file.write_bytes(spoilt)
    try:
        yield
    finally:
        file.write_bytes(whole)


def flip_bits(
    store: Path, makes: dict[str, Make], count: int, folder: Path, seed: int = 1
) -> Iterator[str]:
    """Flip ``count`` bits of a store's files, each file as often, and make something each time;
    yields whether that was an error that names the file, the same result, or undetected.
    """
    rng, sound = np.random.default_rng(seed), dict[str, object]()
    kept = Store.open(store, kind_of(store) or "").manifest.files
    files = [name for name, entry in kept.items() if entry.nbytes]

    def made(verb: str) -> object:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return makes[verb](store, folder)

    for verb in makes:
        sound[verb] = made(verb)
        assert made(verb) == sound[verb]
    for number in range(count):
        name, verb = files[number % len(files)], list(makes)[number // len(files) % len(makes)]
        with flipped(store / name, int(rng.integers(8 * (store / name).stat().st_size))):
            try:
                fine = made(verb) == sound[verb]
            except Damaged as error:
                told = _DAMAGED if str(store / name) in str(error) else f"{verb}: {error}"
            else:
                told = _SAME if fine else f"{verb} of a damaged {name}"
        yield told


def flip_stores(given: Given) -> dict[str, Row]:
    """Flip bits, in turns, of a graph, of indexes of three layouts, and of a piece to be merged."""
    folder = given.folder / "flips"
    stores = {name: made for name, made in _stores(folder).items() if given.only in name}
    count = given.count(_FLIPS) // max(len(stores), 1) + 1

    def flips(name: str, row: Row) -> Iterator[str]:
        path, makes = stores[name]
        for what in flip_bits(path, makes, count, folder / "made", given.seed):
            row.seen[what] += 1
            told = what == _DAMAGED or what.startswith(_LOST)
            row.add(f"a bit of {name}", "" if told or what == _SAME else what, told)
            yield what

    logging.disable(logging.WARNING)  # of each shard that is left out
    try:
        return given.in_turns(stores, flips)
    finally:
        logging.disable(logging.NOTSET)


def _stores(folder: Path) -> dict[str, tuple[Path, dict[str, Make]]]:
    """Name -> the store, and what is made of it."""
    made = {}
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
        made[name] = output
    graph, older = made["plain"], folder / "older"
    cocite.build(made["older"], older, measure="psimrank", samples=4, length=4)
    found: dict[str, tuple[Path, dict[str, Make]]] = {
        "graph": (graph, of_a_graph(older) | {"verify": _verified})
    }
    asked = of_an_index(graph, made["newer"]) | {"verify": _verified}
    for measure in ("psimrank", "neighborhood", "xjaccard"):
        options: dict[str, Any] = {"measure": measure, "unweighted": True}
        if measure != "neighborhood":
            options |= {"samples": 5, "shard": 2, "length": 3}
        cocite.build(graph, folder / measure, **options)
        found[f"index, {measure}"] = folder / measure, asked
    for name, numbers in (("a", range(3)), ("b", range(3, 6))):
        cocite.build(graph, folder / name, measure="psimrank", length=4, numbers=numbers)

    def merge(first: Path, place: Path) -> object:
        cocite.merge([folder / "a", folder / "b"], place / "x")
        return bytes_of(place / "x")

    both = (("first", "a"), ("second", "b"))
    return found | {f"{n} index to merge": (folder / at, {"merge": merge}) for n, at in both}


def _verified(store: Path, folder: Path) -> object:
    """What ``verify`` says; faults are raised."""
    found = VerifyDocument.of(store)
    if found.faults:
        raise Damaged("; ".join(f"{store}/{fault}" for fault in found.faults))
    return found.files


# -- what is made of them --------------------------------------------------------------------


def built(**options: Any) -> Make:
    """An index of a graph."""

    def make(graph: Path, folder: Path) -> object:
        cocite.build(graph, folder / "x", **options)
        return bytes_of(folder / "x")

    return make


def refreshed_to(index: Path) -> Make:
    """An index, refreshed to a graph."""

    def make(graph: Path, folder: Path) -> object:
        shutil.copytree(index, folder / "x")
        cocite.refresh(folder / "x", graph, fraction=0.5, date="2026-11-21")
        return bytes_of(folder / "x")

    return make


def exact(graph: Path) -> object:
    """All of SimRank."""
    scores = cocite.exact_simrank(Graph.open(graph), weighted=False)
    return [scores.row(node).tolist() for node in range(scores.nodes)]


def of_a_graph(index: Path) -> dict[str, Make]:
    """What is made of a graph; ``index`` is refreshed to it."""
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


def of_an_index(graph: Path, newer: Path) -> dict[str, Make]:
    """What is made of an index of ``graph``."""

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
