"""Texts of integers take a way of their own, to what the tables come to: bytes, or an error."""

import bz2
import gzip
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite.errors import CociteError
from cocite.io import integers
from cocite.io import integers as straight
from cocite.io.readers.sources import LOOK
from tests.clock import wait_for
from tests.io.plain import assert_stored

DENSE = b"0\t1\n1\t2\n2\t0\n2\t1\n"
STRAIGHT, TABLES = True, False


@pytest.fixture
def ways_taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Which way each ingest took."""
    taken: list[bool] = []
    way = straight.store_integers

    def told(*arguments: Any) -> Any:
        found = way(*arguments)
        taken.append(found is not None)
        return found

    monkeypatch.setattr("cocite.io.pipeline.store_integers", told)
    return taken


def outcome(paths: list[Path], output: Path, **options: Any) -> dict[str, bytes] | tuple[str, str]:
    """All files of the graph, or the error."""
    try:
        cocite.ingest(paths, output, overwrite=True, **options)
    except CociteError as error:
        return type(error).__name__, str(error)
    return {path.name: path.read_bytes() for path in sorted(output.iterdir())}


def both(paths: list[Path], output: Path, **options: Any) -> Any:
    """What comes of either way, which is the same."""
    found = outcome(paths, output, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cocite.io.pipeline.store_integers", lambda *arguments: None)
        assert outcome(paths, output, **options) == found
    return found


def written(folder: Path, *contents: bytes, name: str = "links.txt") -> list[Path]:
    paths = [folder / f"{at}-{name}" for at in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return paths


PLAIN = [
    *(DENSE, DENSE[:-1], DENSE.replace(b"\t", b" "), DENSE.replace(b"\t", b",")),
    *(DENSE.replace(b"\t", b"|"), DENSE.replace(b"\n", b"\r\n"), DENSE.replace(b"\n", b"\r")),
    *(DENSE.replace(b"\n", b"\r\n\r \t \n\n\r"), b"\xef\xbb\xbf" + DENSE),
    *(b"\xef\xbb\xbffrom\tto\n" + DENSE, DENSE.decode().encode("utf-16")),
    *(b"# a\n#b\tc\n\n" + DENSE + b"  # \xff end", b"source,target\n0,1\n1,2\n"),
    *(b"sep=;\n0;1\n1;2\n", b"sep=;\nfrom;to\n0;1\n1;2\n"),
    *(b"a,b,source,target\nx,\xff\x01,0,1\n y ,,1,2\n", b"0\t0\n0\t0\n1\t0\n0\t1\n0\t1\n"),
    *(b"3\t3\n", b"7\t5\n5\t9\n9\t7\n100\t5\n", b"1\t2\n2\t1\n", b"7\t1000000\n"),
]
"""Texts of which each row links two integers."""
OTHERS = [
    *(b"7\t1048600\n", b"7\t4294967295\n1\t2\n", b"0\t1\n1\t4294967296\n"),
    *(b"0\t1\n1\t18446744073709551615\n", b"0\t1\n1\t18446744073709551616\n"),
    *(b"0\t1\n1\t99999999999999999999999\n", b"0\t1\n-1\t2\n", b"0\t1\n+5\t2\n"),
    *(b"0\t1\n1e3\t2\n", b"0\t1\n1.0\t2\n", b"0\t1\n007\t2\n", b"0\t1\n00\t2\n"),
    *(b"0\t1\n1\tlast\n", b"0\t1\n1 2\t3\n", b"0\t1\n1\t2\t3\n", b"0\t1\n1\n", b'0,1\n"1",2\n'),
    *(b"", b"# only\n", b"\n\n", b"0\t1\n1\t2" + b"2" * (1 << 22), b"0 1 2\n3 4 5\n"),
]
"""Texts with something else, or with integers that are too large."""


@pytest.mark.parametrize(
    ("content", "options", "way"),
    [
        *((content, {}, STRAIGHT) for content in PLAIN),
        *((content, {}, TABLES) for content in OTHERS),
        (DENSE.replace(b"\t", b"  \t "), {"delimiter": "space"}, STRAIGHT),
        (DENSE.replace(b"\t", b" , "), {"delimiter": "comma"}, STRAIGHT),
        (DENSE.replace(b"\t", b";"), {"delimiter": "semicolon"}, STRAIGHT),
        (b"% a\n" + DENSE, {"comment": "%"}, STRAIGHT),
        (b"0\t1\n1\t2\n", {"header": "yes"}, STRAIGHT),
        (b"0 x 1\n1 y  2 \n", {"columns": "3,1", "delimiter": "space"}, STRAIGHT),
        (b"0\tx\t1\t\n1\ty y\t2\t\n", {"columns": "1,3"}, STRAIGHT),
        (b"0\t0\n0\t0\n1\t0\n0\t1\n0\t1\n", {"keep_self_loops": True}, STRAIGHT),
        (b"0\t0\n0\t0\n1\t0\n0\t1\n2\t1\n", {"undirected": True}, STRAIGHT),
        (b"0\t0\n1\t1\n1\t0\n", {"undirected": True, "keep_self_loops": True}, STRAIGHT),
        (DENSE, {"bad_rows": "few"}, STRAIGHT),
        (b"0\t1\n1\t2\t3\n", {"bad_rows": "few"}, TABLES),
        (b"0\t1\n\t1\n2\t1\n", {"bad_rows": "few"}, TABLES),
        (b"0\t1\n1\t\n2\t1\n", {"bad_rows": "few"}, TABLES),
        (b"0\t1\n1\t\xff\n2\t1\n", {"bad_rows": "few"}, TABLES),
        (b"0\t1\n1\t2\x00\n2\t1\n", {"bad_rows": "few"}, TABLES),
        (b"0\t1\nx\n\n\n", {"bad_rows": "few"}, TABLES),
        (b"0\t1\nx\ny\nz\n", {"bad_rows": "few"}, TABLES),
        (b'0,x,1\n1,"y\n1",2\n', {"columns": "1,3"}, TABLES),
        (b'"fr\nom",to\n0,1\n', {"header": "yes"}, TABLES),
        (b"0\t1\t.5\n1\t2\t.5\n", {"weight_column": 3}, TABLES),
        (DENSE * 2, {"count_duplicates": True}, TABLES),
        (DENSE, {"normalize_urls": True}, TABLES),
        (b"12\t1\n1\t2\n", {"comment": "1"}, TABLES),
        (b"from\tto\n", {"header": "yes"}, TABLES),
        (b"x\ty\n0\t1\n", {"columns": "a,b"}, TABLES),
        (b"0\t1\n", {"columns": "1,3"}, TABLES),
        (b"0\t1\n", {"weight_column": 3}, TABLES),
    ],
)
def test_both_ways_come_to_the_same(
    tmp_path: Path, ways_taken: list[bool], content: bytes, options: dict[str, Any], way: bool
) -> None:
    both(written(tmp_path, content), tmp_path / "graph", **options)
    assert any(ways_taken) == way


@pytest.mark.parametrize(
    ("contents", "way"),
    [
        ((DENSE, b"from,to\n3,4\n4,0\n", b"# nothing\n"), STRAIGHT),
        ((DENSE, b"", b"5 6\r6 0"), STRAIGHT),
        ((DENSE, DENSE + b"2\tx\n"), TABLES),
        ((DENSE, DENSE + b"2\t1\t0\n"), TABLES),
        ((DENSE, b"a\tb\n"), TABLES),
        ((b"a\tb\n", DENSE), TABLES),
        ((DENSE, b"<html><body>"), TABLES),
        ((DENSE,) * 101, STRAIGHT),
    ],
)
def test_several_files_come_to_the_same(
    tmp_path: Path, ways_taken: list[bool], contents: tuple[bytes, ...], way: bool
) -> None:
    both(written(tmp_path, *contents), tmp_path / "graph")
    assert any(ways_taken) == way


def test_packed_texts_come_to_the_same(tmp_path: Path, ways_taken: list[bool]) -> None:
    paths = written(tmp_path, gzip.compress(DENSE), bz2.compress(b"2 3\n5 1\n"))
    assert isinstance(both(paths, tmp_path / "graph"), dict)
    assert any(ways_taken)


def test_a_packed_text_that_is_cut_is_told_the_same(tmp_path: Path) -> None:
    content = gzip.compress(DENSE * 50_000)
    told = both(written(tmp_path, content[: len(content) // 2]), tmp_path / "graph")
    assert told[0] == "InputError"


def test_options_beyond_numbers_go_through_tables(tmp_path: Path, ways_taken: list[bool]) -> None:
    links, more = written(tmp_path, DENSE, b"0\t9\n")
    for options in ({"nodes": more}, {"titles": {"0": "zero"}}, {"bipartite": True}):
        assert isinstance(both([links], tmp_path / "graph", **options), dict)
    assert not any(ways_taken)


def test_nodes_are_excluded_from_what_either_way_has_stored(
    tmp_path: Path, ways_taken: list[bool]
) -> None:
    found = both(written(tmp_path, DENSE), tmp_path / "graph", exclude_nodes=["2"])
    assert isinstance(found, dict)
    assert any(ways_taken)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("undirected", [False, True])
def test_threads_and_pieces_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, undirected: bool
) -> None:
    """A text of many pieces, whose ids are not all of those below the largest."""
    random = np.random.default_rng(5)
    pairs = 3 * (random.integers(0, 300, (40_000, 2)) ** 2 // 300)
    ends = [b"\n", b"\r\n", b"\r", b"\n\n", b"\n# x\n"]
    rows = [b"%d %d" % (a, b) + ends[(a + b) % 5] for a, b in pairs.tolist()]
    path = written(tmp_path, b"".join(rows))
    wanted = both(path, tmp_path / "graph", threads=1, undirected=undirected)
    monkeypatch.setattr(integers, "_PIECE", 777)
    monkeypatch.setattr(straight, "_ROWS", 999)
    monkeypatch.setattr("cocite.io.pipeline.threads_for", lambda sources, most: most)
    seen: list[tuple[str, int, int]] = []
    found = outcome(
        path,
        tmp_path / "graph",
        threads=threads,
        undirected=undirected,
        progress=lambda *told: seen.append(told),
    )
    assert found == wanted
    read = [done for stage, done, _ in seen if stage == "reading 0-links.txt"]
    assert len(read) > 100
    assert read == sorted(read)
    assert read[-1] == path[0].stat().st_size
    if not undirected:
        every = [(str(a), str(b)) for a, b in pairs.tolist()]
        assert_stored(cocite.Graph.open(tmp_path / "graph"), every)


def test_titles_may_stand_below_many_comments(tmp_path: Path, ways_taken: list[bool]) -> None:
    """Longer than what is read first, so that the row of titles comes later."""
    comments = b"# nothing\n" * (integers._PIECE // 8)
    paths = written(tmp_path, comments + b"from\tto\n" + DENSE, comments[: LOOK - 5] + DENSE)
    both(paths[:1], tmp_path / "graph", header="yes")
    both(paths, tmp_path / "graph", header="no")
    both(paths[1:], tmp_path / "graph")
    assert ways_taken == [True, False, True]


def test_what_does_not_fit_goes_through_tables(
    tmp_path: Path, ways_taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here a number takes 36 bytes, in the place of 9, so that few rows are too many."""
    monkeypatch.setattr(straight, "_ID_BYTES", 36)
    rows = np.random.default_rng(1).integers(0, 4_500_000, (300_000, 2))
    content = b"\n".join(b"%d %d" % (a, b) for a, b in rows.tolist())
    path = written(tmp_path, content)
    large = outcome(path, tmp_path / "graph", memory="1GB", threads=1)
    small = outcome(path, tmp_path / "graph", memory="288MB", threads=1)
    assert ways_taken == [True, False]
    assert small == large


FIELDS = st.sampled_from(
    ["0", "1", "2", "3", "17", "40", "05", "-1", "x", "", " 2", "3 ", '"1"', "4294967296"]
)
NUMBERS = st.integers(0, 9).map(str)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(NUMBERS, min_size=2, max_size=2), min_size=1, max_size=12),
    odd=st.lists(st.tuples(st.integers(0, 12), st.lists(FIELDS, max_size=3)), max_size=2),
    sign=st.sampled_from(["\t", ",", ";", "|", " ", "  "]),
    end=st.sampled_from(["\n", "\r\n", "\r", " \n", "\n\n", "\n#\n", "\t\n"]),
    last=st.booleans(),
    skip=st.booleans(),
    undirected=st.booleans(),
)
def test_drawn_texts_come_to_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[str]],
    odd: list[tuple[int, list[str]]],
    sign: str,
    end: str,
    last: bool,
    skip: bool,
    undirected: bool,
) -> None:
    folder = tmp_path_factory.mktemp("drawn")
    every = list(rows)
    for at, row in odd:
        every.insert(at, row)
    text = end.join(map(sign.join, every)) + end * last
    both(
        written(folder, text.encode()),
        folder / "graph",
        bad_rows="few" if skip else "stop",
        undirected=undirected,
    )


def test_an_interruption_leaves_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, DENSE * 500_000)

    def progress(stage: str, done: int, total: int) -> None:
        if stage == "sorting the links":
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        cocite.ingest(path, tmp_path / "graph", threads=2, progress=progress)
    assert os.listdir(tmp_path) == ["0-links.txt"]
    wait_for(lambda: threading.active_count() <= before)
