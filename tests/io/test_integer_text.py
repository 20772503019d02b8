"""Integer text takes a fast path with the outcome of the tables: same bytes or same error."""

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
from cocite.io.readers.sources import LOOK
from tests.clock import wait_for
from tests.io.plain import assert_stored

DENSE = b"0\t1\n1\t2\n2\t0\n2\t1\n"
FAST, TABLES = True, False


@pytest.fixture
def fast_path_log(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Which path each ingest took."""
    log: list[bool] = []
    original = integers.store_integers

    def recorded(*arguments: Any) -> Any:
        result = original(*arguments)
        log.append(result is not None)
        return result

    monkeypatch.setattr("cocite.io.pipeline.store_integers", recorded)
    return log


def outcome(paths: list[Path], output: Path, **options: Any) -> dict[str, bytes] | tuple[str, str]:
    """All files of the graph, or the error."""
    try:
        cocite.ingest(paths, output, overwrite=True, **options)
    except CociteError as error:
        return type(error).__name__, str(error)
    return {path.name: path.read_bytes() for path in sorted(output.iterdir())}


def same_outcome(paths: list[Path], output: Path, **options: Any) -> Any:
    """The outcome, equal on both paths."""
    found = outcome(paths, output, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cocite.io.pipeline.store_integers", lambda *arguments: None)
        assert outcome(paths, output, **options) == found
    return found


def write_inputs(folder: Path, *contents: bytes, name: str = "links.txt") -> list[Path]:
    paths = [folder / f"{number}-{name}" for number in range(len(contents))]
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
"""Texts whose rows each link two integers."""
OTHERS = [
    *(b"7\t1048600\n", b"7\t4294967295\n1\t2\n", b"0\t1\n1\t4294967296\n"),
    *(b"0\t1\n1\t18446744073709551615\n", b"0\t1\n1\t18446744073709551616\n"),
    *(b"0\t1\n1\t99999999999999999999999\n", b"0\t1\n-1\t2\n", b"0\t1\n+5\t2\n"),
    *(b"0\t1\n1e3\t2\n", b"0\t1\n1.0\t2\n", b"0\t1\n007\t2\n", b"0\t1\n00\t2\n"),
    *(b"0\t1\n1\tlast\n", b"0\t1\n1 2\t3\n", b"0\t1\n1\t2\t3\n", b"0\t1\n1\n", b'0,1\n"1",2\n'),
    *(b"", b"# only\n", b"\n\n", b"0\t1\n1\t2" + b"2" * (1 << 22), b"0 1 2\n3 4 5\n"),
]
"""Texts with other values, or with integers that are too large."""


@pytest.mark.parametrize(
    ("content", "options"),
    [
        *((content, {}) for content in PLAIN),
        (DENSE.replace(b"\t", b"  \t "), {"delimiter": "space"}),
        (DENSE.replace(b"\t", b" , "), {"delimiter": "comma"}),
        (DENSE.replace(b"\t", b";"), {"delimiter": "semicolon"}),
        (b"% a\n" + DENSE, {"comment": "%"}),
        (b"0\t1\n1\t2\n", {"header": "yes"}),
        (b"0 x 1\n1 y  2 \n", {"columns": "3,1", "delimiter": "space"}),
        (b"0\tx\t1\t\n1\ty y\t2\t\n", {"columns": "1,3"}),
        (b"0\t0\n0\t0\n1\t0\n0\t1\n0\t1\n", {"keep_self_loops": True}),
        (b"0\t0\n0\t0\n1\t0\n0\t1\n2\t1\n", {"undirected": True}),
        (b"0\t0\n1\t1\n1\t0\n", {"undirected": True, "keep_self_loops": True}),
        (DENSE, {"bad_rows": "few"}),
        (DENSE, {"exclude_nodes": ["2"]}),
    ],
)
def test_store_integers_matches_tables(
    tmp_path: Path, fast_path_log: list[bool], content: bytes, options: dict[str, Any]
) -> None:
    found = same_outcome(write_inputs(tmp_path, content), tmp_path / "graph", **options)
    assert isinstance(found, dict)
    assert fast_path_log == [True]


class Declined(Exception):
    """The fast path has declined; the tables need not begin."""


@pytest.mark.parametrize(
    ("content", "options"),
    [
        *((content, {}) for content in OTHERS),
        (b"0\t1\n1\t2\t3\n", {"bad_rows": "few"}),
        (b"0\t1\n\t1\n2\t1\n", {"bad_rows": "few"}),
        (b"0\t1\n1\t\n2\t1\n", {"bad_rows": "few"}),
        (b"0\t1\n1\t\xff\n2\t1\n", {"bad_rows": "few"}),
        (b"0\t1\n1\t2\x00\n2\t1\n", {"bad_rows": "few"}),
        (b"0\t1\nx\n\n\n", {"bad_rows": "few"}),
        (b"0\t1\nx\ny\nz\n", {"bad_rows": "few"}),
        (b'0,x,1\n1,"y\n1",2\n', {"columns": "1,3"}),
        (b'"fr\nom",to\n0,1\n', {"header": "yes"}),
        (b"0\t1\t.5\n1\t2\t.5\n", {"weight_column": 3}),
        (DENSE * 2, {"count_duplicates": True}),
        (DENSE, {"normalize_urls": True}),
        (b"12\t1\n1\t2\n", {"comment": "1"}),
        (b"from\tto\n", {"header": "yes"}),
        (b"x\ty\n0\t1\n", {"columns": "a,b"}),
        (b"0\t1\n", {"columns": "1,3"}),
        (b"0\t1\n", {"weight_column": 3}),
    ],
)
def test_store_integers_declines_other_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, options: dict[str, Any]
) -> None:
    """And writes nothing, so that tables begin as if it had not been called."""
    original = integers.store_integers

    def declining(directory: Path, *arguments: Any) -> Any:
        assert original(directory, *arguments) is None
        assert sorted(os.listdir(directory)) == [".cocite-draft", "work"]
        raise Declined

    monkeypatch.setattr("cocite.io.pipeline.store_integers", declining)
    with pytest.raises(Declined):
        cocite.ingest(write_inputs(tmp_path, content), tmp_path / "graph", **options)


@pytest.mark.parametrize(
    ("contents", "fast"),
    [
        ((DENSE, b"from,to\n3,4\n4,0\n", b"# nothing\n"), FAST),
        ((DENSE, b"", b"5 6\r6 0"), FAST),
        ((gzip.compress(DENSE), bz2.compress(b"2 3\n5 1\n")), FAST),
        ((DENSE, DENSE + b"2\tx\n"), TABLES),
        ((DENSE, DENSE + b"2\t1\t0\n"), TABLES),
        ((DENSE, b"a\tb\n"), TABLES),
        ((b"a\tb\n", DENSE), TABLES),
        ((DENSE, b"<html><body>"), TABLES),
        ((DENSE,) * 101, FAST),
    ],
)
def test_store_integers_matches_tables_on_several_files(
    tmp_path: Path, fast_path_log: list[bool], contents: tuple[bytes, ...], fast: bool
) -> None:
    same_outcome(write_inputs(tmp_path, *contents), tmp_path / "graph")
    assert any(fast_path_log) == fast


def test_store_integers_reports_truncated_gzip(tmp_path: Path) -> None:
    content = gzip.compress(DENSE * 50_000)
    error = same_outcome(write_inputs(tmp_path, content[: len(content) // 2]), tmp_path / "graph")
    assert error[0] == "InputError"


def test_store_integers_declines_nodes_titles_and_bipartite(
    tmp_path: Path, fast_path_log: list[bool]
) -> None:
    links, more = write_inputs(tmp_path, DENSE, b"0\t9\n")
    for options in ({"nodes": more}, {"titles": {"0": "zero"}}, {"bipartite": True}):
        assert isinstance(same_outcome([links], tmp_path / "graph", **options), dict)
    assert not any(fast_path_log)


@pytest.mark.parametrize("undirected", [False, True])
def test_store_integers_is_independent_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undirected: bool
) -> None:
    """A text of many pieces, with gaps in the ids."""
    random = np.random.default_rng(5)
    pairs = 3 * (random.integers(0, 300, (12_000, 2)) ** 2 // 300)
    ends = [b"\n", b"\r\n", b"\r", b"\n\n", b"\n# x\n"]
    rows = [b"%d %d" % (a, b) + ends[(a + b) % 5] for a, b in pairs.tolist()]
    path = write_inputs(tmp_path, b"".join(rows))
    expected = same_outcome(path, tmp_path / "graph", threads=1, undirected=undirected)
    monkeypatch.setattr(integers, "_PIECE", 777)
    monkeypatch.setattr(integers, "_ROWS", 999)
    monkeypatch.setattr("cocite.io.pipeline.threads_for", lambda sources, limit: limit)
    for threads in (1, 2, 5):
        events: list[tuple[str, int, int]] = []
        options: dict[str, Any] = {"threads": threads, "undirected": undirected}
        options["progress"] = lambda *event, events=events: events.append(event)
        assert outcome(path, tmp_path / "graph", **options) == expected
        read = [done for stage, done, _ in events if stage == "reading 0-links.txt"]
        assert len(read) > 40
        assert read == sorted(read)
        assert read[-1] == path[0].stat().st_size
    if not undirected:
        expected_links = [(str(a), str(b)) for a, b in pairs.tolist()]
        assert_stored(cocite.Graph.open(tmp_path / "graph"), expected_links)


def test_store_integers_finds_header_after_long_comments(
    tmp_path: Path, fast_path_log: list[bool]
) -> None:
    """The header comes after the first part that is read."""
    comments = b"# nothing\n" * (integers._PIECE // 8)
    paths = write_inputs(tmp_path, comments + b"from\tto\n" + DENSE, comments[: LOOK - 5] + DENSE)
    same_outcome(paths[:1], tmp_path / "graph", header="yes")
    same_outcome(paths, tmp_path / "graph", header="no")
    same_outcome(paths[1:], tmp_path / "graph")
    assert fast_path_log == [True, False, True]


def test_store_integers_declines_when_memory_is_short(
    tmp_path: Path, fast_path_log: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 36 bytes per number instead of 9, few rows exceed the memory."""
    monkeypatch.setattr(integers, "_ID_BYTES", 36)
    monkeypatch.setattr(integers, "_SPARSE", 1 << 20)
    rows = np.random.default_rng(1).integers(0, 5_000_000, (1000, 2))
    content = b"\n".join(b"%d %d" % (a, b) for a, b in rows.tolist())
    path = write_inputs(tmp_path, content)
    large = outcome(path, tmp_path / "graph", memory="1GB", threads=1)
    small = outcome(path, tmp_path / "graph", memory="288MB", threads=1)
    assert fast_path_log == [True, False]
    assert small == large


FIELDS = st.sampled_from(
    ["0", "1", "2", "3", "17", "40", "05", "-1", "x", "", " 2", "3 ", '"1"', "4294967296"]
)
NUMBERS = st.integers(0, 9).map(str)


@settings(max_examples=20, deadline=None)
@given(
    rows=st.lists(st.lists(NUMBERS, min_size=2, max_size=2), min_size=1, max_size=12),
    odd_rows=st.lists(st.tuples(st.integers(0, 12), st.lists(FIELDS, max_size=3)), max_size=2),
    delimiter=st.sampled_from(["\t", ",", ";", "|", " ", "  "]),
    line_end=st.sampled_from(["\n", "\r\n", "\r", " \n", "\n\n", "\n#\n", "\t\n"]),
    final_line_end=st.booleans(),
    skip=st.booleans(),
    undirected=st.booleans(),
)
def test_store_integers_matches_tables_on_random_text(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[str]],
    odd_rows: list[tuple[int, list[str]]],
    delimiter: str,
    line_end: str,
    final_line_end: bool,
    skip: bool,
    undirected: bool,
) -> None:
    folder = tmp_path_factory.mktemp("drawn")
    all_rows = list(rows)
    for position, row in odd_rows:
        all_rows.insert(position, row)
    text = line_end.join(map(delimiter.join, all_rows)) + line_end * final_line_end
    same_outcome(
        write_inputs(folder, text.encode()),
        folder / "graph",
        bad_rows="few" if skip else "stop",
        undirected=undirected,
    )


def test_store_integers_leaves_nothing_when_interrupted(tmp_path: Path) -> None:
    path = write_inputs(tmp_path, DENSE * 500_000)

    def progress(stage: str, done: int, total: int) -> None:
        if stage == "sorting the links":
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        cocite.ingest(path, tmp_path / "graph", threads=2, progress=progress)
    assert os.listdir(tmp_path) == ["0-links.txt"]
    wait_for(lambda: threading.active_count() <= before)
