"""Query stores with damaged files, again and again; run as a separate process.

    python -m tests.search.fuzz SEED COUNT STORE...

Each round changes a bit, a word or a third of one file of a store, runs all queries, and restores
the file. A query must succeed or raise Damaged; anything else is printed and ends the process.
COUNT is the number of rounds per store; with 0, every bit of ``names.blocks`` is flipped in turn.
"""

import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cocite
from cocite import Index
from cocite.errors import Damaged, NotAStore, UsageError
from cocite.index.layouts.reader import is_sampled, sampled_builder, sampled_format
from cocite.index.layouts.trees.reader import TreeReader
from cocite.search.results import RelatedDocument, SimilarityDocument, WhyDocument
from cocite.storage import kind_of

Change = tuple[str, int, bytes]
"""The file, the offset of the change, and the new bytes."""
INTEGERS = 0, 1, 2**31, 2**32 - 2, 2**32 - 1, 2**63, 2**63 - 1, 2**64 - 1
FLOATS = 0x7F800000, 0xFF800000, 0x7FC00000, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48
"""Infinities and NaNs, of both widths."""


def main(seed: int, count: int, stores: list[Path]) -> None:
    rng = random.Random(seed)
    for store in stores:
        names = list(open_index(store).nodes)
        outcomes = {"answered": 0, "damaged": 0}
        for name, offset, content in changes(store, count, rng):
            print(f"{store.name} {name} at {offset}: {content.hex()}", end=" ", flush=True)
            with (store / name).open("r+b") as file:
                file.seek(offset)
                before = file.read(len(content))
                file.seek(offset)
                file.write(content)
                file.flush()
                query_all(store, rng.sample(names, 2), outcomes)
                file.seek(offset)
                file.write(before)
            print("ok", flush=True)
        print(json.dumps({"store": store.name, **outcomes}), flush=True)


def changes(store: Path, count: int, rng: random.Random) -> Iterator[Change]:
    if not count:
        content = (store / "names.blocks").read_bytes()
        for bit in range(8 * len(content)):
            yield "names.blocks", bit // 8, bytes([content[bit // 8] ^ 1 << bit % 8])
        return
    files = {file.name: file.stat().st_size for file in sorted(store.iterdir())}
    files = {name: size for name, size in files.items() if size and name != "manifest.json"}
    for _ in range(count):
        name = rng.choice(sorted(files))
        content = (store / name).read_bytes()
        offset = rng.randrange(len(content))
        if rng.random() < 0.5:
            yield name, offset, bytes([content[offset] ^ 1 << rng.randrange(8)])
            continue
        width = rng.choice((4, 8))
        if rng.random() < 0.3:  # many bytes at once
            length = -(-len(content) // 3)
            pattern = rng.choice((b"\0", b"\1\0\0\0", b"\x11", b"\xff", rng.randbytes(length)))
            yield name, offset, (pattern * length)[: min(length, len(content) - offset)]
            continue
        offset = offset // width * width
        value = rng.choice((*INTEGERS, *FLOATS, len(content)))
        encoded = (value % 2 ** (8 * width)).to_bytes(width, "little")
        yield name, offset, encoded[: len(content) - offset]


def open_index(store: Path) -> Index:
    if kind_of(store) == "index":
        return cocite.open(store, verify=False)
    graph = cocite.Graph.open(store, verify=False)
    return cocite.build(graph, measure="simrank", samples=5, length=3, unweighted=True)


def query_all(store: Path, names: list[str], outcomes: dict[str, int]) -> None:
    try:
        index = open_index(store)
    except Damaged:
        outcomes["damaged"] += 1
        return
    for query in (*QUERIES, *([] if kind_of(store) == "graph" else INTERNAL_QUERIES)):
        try:
            answer = query(index, *names)
            json.dumps(answer, allow_nan=False)
            outcomes["answered"] += 1
        except Damaged:
            outcomes["damaged"] += 1
        except cocite.UnknownNode:
            outcomes["damaged"] += 1  # a name that is gone
        except NotAStore:
            raise
        except UsageError as error:
            if not any(words in str(error) for words in ("is not a URL", "instead of pages")):
                raise


def carry_samples(index: Index, a: str, b: str) -> None:
    """Carry over all samples to a graph without every other node."""
    nodes = index.stored.nodes
    ids = np.full(nodes, 2**32 - 1, np.uint32)
    ids[::2] = np.arange(-(-nodes // 2))
    for part in index.stored.parts:
        if is_sampled(part.layout) and sampled_format(part.layout).carries(part.settings):
            carry = sampled_builder(part.layout).carrier(ids, -(-nodes // 2), part.settings)
            for shard in part.shards:
                for blob in shard.blobs:
                    try:
                        carry(shard.words, blob)
                    except IndexError:
                        raise part.damaged(shard.first) from None


def carry_batch(index: Index, a: str, b: str) -> None:
    """Run the batch kernel."""
    nodes = np.arange(index.stored.nodes, dtype=np.uint32)
    for reader in index.scorer.readers:
        if isinstance(reader, TreeReader):
            settings = reader.part.ask_settings(index.stored.measure.ask_settings({}))
            reader._carry(nodes, 3, 1.0, settings)


QUERIES: list[Callable[[Index, str, str], Any]] = [
    lambda index, a, b: RelatedDocument.of(index, a, 5).to_json(),
    lambda index, a, b: SimilarityDocument.of(index, a, b).to_json(),
    lambda index, a, b: SimilarityDocument.of(index, a, a).to_json(),
    lambda index, a, b: WhyDocument.of(index, a, b).to_json(),
    lambda index, a, b: index.related(b, 3, prefix=a[:1]) and None,
    lambda index, a, b: index.related(b, 3, exclude_same_site=True) and None,
    lambda index, a, b: list(index.nodes),
    lambda index, a, b: index.nodes.with_prefix(a[:2]).tolist(),
    lambda index, a, b: index.nodes.suggest(b + "x"),
    lambda index, a, b: [index.nodes.id(name) for name in (a, b)],
]
INTERNAL_QUERIES: list[Callable[[Index, str, str], Any]] = [carry_samples, carry_batch]


if __name__ == "__main__":
    np.seterr(all="ignore")
    main(int(sys.argv[1]), int(sys.argv[2]), [Path(store) for store in sys.argv[3:]])
