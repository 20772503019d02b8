"""BVGraph files, as LAW publishes them, against a plain writer."""

import gzip
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph
from cocite.errors import InputError, ResourceError
from cocite.io.readers import bvgraph
from cocite.kernels import bvgraph as k
from tests.io.plain import graph_of, links, nothing_left, source_of
from tests.oracles.bvgraph import FLAGS, Writer, coded, packed

LISTS = [[1, 2, 3, 4, 9], [], [1, 2, 3, 4, 5, 6, 9], [0], [1, 2, 9], [], [5, 6], [0, 9], [], []]


def pairs(lists: list[list[int]]) -> list[tuple[str, str]]:
    return sorted((str(a), str(b)) for a, row in enumerate(lists) for b in row)


stored = partial(graph_of, keep_self_loops=True)


def change(path: Path, pattern: str, replacement: str) -> None:
    text = path.read_text()
    path.write_text(re.sub(pattern, replacement, text))
    assert path.read_text() != text


@pytest.mark.parametrize("name", ["web.graph", "web.properties", "web"])
def test_bvgraph_accepts_either_file_or_base_name(tmp_path: Path, name: str) -> None:
    Writer().write(tmp_path / "web", LISTS)
    graph = stored(tmp_path / name)
    assert sorted(links(graph)) == pairs(LISTS)
    assert list(graph.names) == list(map(str, range(10)))  # 8 has no link
    assert source_of(graph)["read_as"].endswith(": BVGraph, 10 nodes, numbered from 0")
    assert graph.info().rows == len(pairs(LISTS))


CODES = st.sampled_from(["UNARY", "GAMMA", "DELTA"])
WRITERS = st.builds(
    Writer,
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(1, 5),
    st.fixed_dictionaries(
        {},
        optional={
            "OUTDEGREES": CODES,
            "REFERENCES": CODES,
            "BLOCK_COUNT": CODES,
            "BLOCKS": CODES,
            "RESIDUALS": st.sampled_from(["GAMMA", "DELTA", "ZETA", "NIBBLE", "GOLOMB"]),
        },
    ),
)
GRAPHS = st.integers(1, 12).flatmap(
    lambda n: st.lists(st.sets(st.integers(0, n - 1)).map(sorted), min_size=n, max_size=n)
)


def decoded(writer: Writer, lists: list[list[int]], seed: int, piece: int) -> list[list[int]]:
    """The lists that the kernel decodes, with small buffers and ``piece`` bytes at a time."""
    content = packed(writer.bits(lists, seed))
    rules = np.zeros(k.RULES, np.int64)
    rules[[k.NODES, k.WINDOW, k.LEAST, k.K]] = [len(lists), writer.window, writer.least, writer.k]
    codes = {**FLAGS, **writer.flags}
    rules[k.DEGREE : k.RESIDUAL + 1] = [k.CODES[code] for code in codes.values()]
    decoder = bvgraph._Decoder(rules, links=4, rows=2)
    found: list[list[int]] = [[] for _ in lists]
    while True:
        status = decoder.run()
        for sources, targets in decoder.taken(all_of_it=status == k.DONE):
            for a, b in zip(sources.tolist(), targets.tolist(), strict=True):
                found[a].append(b)
        if status == k.DONE:
            return found
        assert status != k.DAMAGED, decoder.place()
        if status == k.MORE_BITS:
            decoder.feed(content[:piece])
            content = content[piece:]
        else:
            decoder.grow()


@settings(max_examples=150)
@given(WRITERS, GRAPHS, st.integers(0, 9), st.integers(1, 9))
def test_bvgraph_decoder_matches_writer(
    writer: Writer, lists: list[list[int]], seed: int, piece: int
) -> None:
    assert decoded(writer, lists, seed, piece) == lists


@given(st.binary(min_size=1, max_size=60), st.integers(0, 3), st.integers(0, 3))
def test_bvgraph_decoder_survives_random_bytes(content: bytes, window: int, least: int) -> None:
    rules = np.zeros(k.RULES, np.int64)
    rules[[k.NODES, k.WINDOW, k.LEAST, k.K]] = [50, window, least, 3]
    rules[k.DEGREE : k.RESIDUAL + 1] = [k.CODES[code] for code in FLAGS.values()]
    decoder = bvgraph._Decoder(rules)
    decoder.feed(content)
    if decoder.run() == k.MORE_BITS:
        decoder.feed(b"")
    status = decoder.run()
    assert status in (k.DONE, k.DAMAGED)
    for sources, targets in decoder.taken(all_of_it=True):
        assert sources.max() < 50
        assert targets.max() < 50


def test_bvgraph_decoder_grows_for_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The buffers hold less than a list here; normally a million links."""
    monkeypatch.setattr(bvgraph, "_Decoder", partial(bvgraph._Decoder, links=1 << 8, rows=1 << 6))
    n = 1 << 11
    lists = [list(range(0, n, 2)), [], [*range(1, n, 3)]] + [[] for _ in range(n - 3)]
    Writer(window=2, least=0).write(tmp_path / "hub", lists, seed=3)
    graph = stored(tmp_path / "hub")
    assert (graph.nodes, graph.edges) == (n, len(lists[0]) + len(lists[2]))


def test_bvgraph_takes_names_from_urls_file(tmp_path: Path) -> None:
    Writer().write(tmp_path / "web", [[1, 2], [0], []])
    urls = ["http://b.org/", "http://a.org/#top", "http://a.org/x"]
    (tmp_path / "web.urls.gz").write_bytes(gzip.compress("\n".join(urls).encode()))
    graph = stored(tmp_path / "web")
    expected = [(urls[0], urls[1]), (urls[0], urls[2]), (urls[1], urls[0])]
    assert sorted(links(graph)) == sorted(expected)
    assert source_of(graph)["read_as"] == "web.graph: BVGraph, 3 nodes, named by web.urls.gz"
    (tmp_path / "web.urls.gz").write_bytes(b"a\nb\n")
    with pytest.raises(InputError, match=r"web\.urls\.gz has 2 names .* but the graph has 3"):
        stored(tmp_path / "web")
    (tmp_path / "web.urls.gz").write_bytes(b"a\nb\na\n")
    with pytest.raises(InputError, match="several nodes the name 'a'"):
        stored(tmp_path / "web")


@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        ("nodes=10", "nodes=9", r"web\.graph is damaged.*: the successors of node 0, at byte 0"),
        ("nodes=10", "nodes=11", "the successors of node 10, at byte "),
        ("arcs=20", "arcs=19", r"has 20 links, but .*web\.properties says 19"),
        ("nodes=10", "nodes=ten", r"web\.properties: nodes is 'ten'; it must be a whole number"),
        ("nodes=10\n", "", r"web\.properties: nodes is ''"),
        (
            "nodes=10",
            "nodes=4294967296",
            "declares 4,294,967,296 nodes; the maximum is 4,294,967,295",
        ),
        ("nodes=10", "nodes=" + "9" * 30, "nodes is '9999"),
        ("version=0", "version=1", "describes a BVGraph of version 1"),
        ("version=0", "endianness=little", "little-endian; cocite reads"),
        ("BVGraph\n$", "EFGraph\n", "of class 'EFGraph'; cocite reads only BVGraph"),
        ("flags=", "flags=RESIDUALS_MORSE", "compressionflags has 'RESIDUALS_MORSE', which is no"),
        ("windowsize=7", "windowsize=99999999", "windowsize, minintervallength or zetak is out"),
        ("zetak=3", "zetak=0", "windowsize, minintervallength or zetak is out of range"),
    ],
)
def test_bvgraph_reports_invalid_properties(
    tmp_path: Path, pattern: str, replacement: str, message: str
) -> None:
    Writer().write(tmp_path / "web", LISTS)
    change(tmp_path / "web.properties", pattern, replacement)
    with pytest.raises((InputError, ResourceError), match=message) as caught:
        stored(tmp_path / "web.graph")
    assert caught.value.exit_code == 1
    assert nothing_left(tmp_path)


def test_bvgraph_reports_place_of_damage(tmp_path: Path) -> None:
    Writer().write(tmp_path / "web", LISTS)
    path = tmp_path / "web.graph"
    original = path.read_bytes()
    for content, place in (
        (original[:5], "node 2, at byte 2"),
        (b"", "node 0"),
        (bytes(100), "node 0"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=rf"web\.graph is damaged.* of {place}.*, are invalid"):
            stored(path)


def test_bvgraph_reports_missing_graph_file(tmp_path: Path) -> None:
    Writer().write(tmp_path / "web", LISTS)
    (tmp_path / "web.graph").unlink()
    with pytest.raises(InputError, match=r"web\.graph does not exist: a BVGraph has two files"):
        stored(tmp_path / "web.properties")


@pytest.mark.parametrize("code", ["UNARY", "GAMMA", "DELTA", "ZETA", "NIBBLE", "GOLOMB"])
def test_bvgraph_oracle_codes_match_papers(code: str) -> None:
    codewords = {
        "UNARY": "1 01 001 0001",
        "GAMMA": "1 010 011 00100",
        "DELTA": "1 0100 0101 01100",
        "ZETA": "100 1010 1011 1100",
        "NIBBLE": "1000 1001 1010 1011",
        "GOLOMB": "10 110 111 010",
    }
    assert [coded(value, code, 3) for value in range(4)] == codewords[code].split()


@pytest.mark.long
def test_bvgraph_of_cnr_2000_matches_edge_list(data: Callable[[str], Path], tmp_path: Path) -> None:
    folder = data("cnr-2000")
    graph = ingest_to(folder / "cnr-2000", tmp_path / "graph")
    from_text = ingest_to(folder / "cnr-2000.edges.txt.gz", tmp_path / "from_text")
    assert (graph.nodes, graph.edges) == (325_557, 3_216_152)
    assert np.array_equal(graph.in_offsets, from_text.in_offsets)
    assert np.array_equal(graph.in_sources, from_text.in_sources)
    transposed = ingest_to(folder / "cnr-2000-t.properties", tmp_path / "transposed")
    assert sorted_links(transposed, transpose=True) == sorted_links(graph, transpose=False)


def ingest_to(path: Path, output: Path) -> Graph:
    return cocite.ingest(path, output, keep_self_loops=True)


def sorted_links(graph: Graph, *, transpose: bool) -> bytes:
    targets = np.repeat(
        np.arange(graph.nodes, dtype=np.uint64), np.diff(graph.in_offsets).astype(np.int64)
    )
    sources = graph.in_sources.astype(np.uint64)
    high, low = (sources, targets) if transpose else (targets, sources)
    return np.sort(high << np.uint64(32) | low).tobytes()
