"""Inputs in place of links: output of cocite, file patterns; and ``verify``, ``evaluate`` and the
cache with a file of links.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import cocite
from cocite.cli.main import main
from cocite.search.cache import cached_stores
from cocite.storage import user_cache
from tests.cli.conftest import LINKS
from tests.conftest import Shell


def stderr_of(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    capsys.readouterr()
    assert main(list(arguments)) == code
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("extension", "titled"),
    [("csv", True), ("tsv", False), ("parquet", True), ("jsonl", False), ("jsonl", True)],
)
def test_related_refuses_related_all_output(
    workdir: Path, capsys: pytest.CaptureFixture[str], extension: str, titled: bool
) -> None:
    Path("titles.tsv").write_text("x\tThe X\n")
    options = ["--titles", "titles.tsv"] * titled
    assert main(["related-all", "links.tsv", "-o", f"all.{extension}", *options]) == 0
    message = stderr_of(capsys, 2, "related", f"all.{extension}", "x")
    expected = f"Error: all.{extension} is output of cocite related-all, not an edge list. "
    assert expected + "Pass the graph or index that it came from" in message
    if extension == "jsonl":
        return
    assert "to use its hits as links: --columns node,related" in message
    assert main(["ingest", f"all.{extension}", "-o", "g", "--columns", "node,related"]) == 0
    assert set(cocite.Graph.open("g").names) <= set("abcxyz")


def test_related_refuses_other_command_output(
    workdir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["related", "links.tsv", "x", "--format", "csv"]) == 0
    Path("x.csv").write_text(capsys.readouterr().out)
    assert "is output of cocite related" in stderr_of(capsys, 2, "related", "x.csv", "x")
    assert main(["rank", "links.tsv", "-o", "ranks.csv"]) == 0
    assert "is output of cocite rank" in stderr_of(capsys, 2, "related", "ranks.csv", "x")


def test_ingest_hints_columns_option_after_guess(
    workdir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.csv").write_text("when,who,whom\n2001,ann,bob\n2002,bob,cid\n2003,cid,ann\n")
    message = stderr_of(capsys, 0, "ingest", "t.csv", "-o", "g")
    assert (
        "3 columns, with links from column 1 to column 2 (to choose others: --columns "
        "SOURCE,TARGET)" in message
    )
    message = stderr_of(capsys, 0, "ingest", "t.csv", "-o", "h", "--columns", "who,whom")
    assert "to choose others" not in message
    Path("w.csv").write_text("source,target,weight\na,b,1\nb,c,2\n")
    message = stderr_of(capsys, 0, "ingest", "w.csv", "-o", "w", "--weight-column", "weight")
    assert "to choose others" not in message


def test_related_accepts_file_pattern(workdir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = LINKS.splitlines(keepends=True)
    Path("tsvs/more").mkdir(parents=True)
    Path("tsvs/1.tsv").write_text("".join(rows[:3]))
    Path("tsvs/2.tsv").write_text("".join(rows[3:]))

    def query(links: str) -> tuple[str, str]:
        capsys.readouterr()
        assert main(["related", links, "x", "--format", "csv"]) == 0
        found = capsys.readouterr()
        return found.out, found.err

    expected = query("links.tsv")[0]
    for pattern in ("tsvs/*.tsv", "tsvs/*", "ts*/[12].tsv", "**/?.tsv"):
        if pattern == "tsvs/*":
            Path("tsvs/more").rmdir()
        out, err = query(pattern)
        assert out == expected
        assert "a graph and an index built from it" in err
        assert "unchanged" in query(pattern)[1].splitlines()[-1]
    assert [p.name for p in Path("tsvs").iterdir()].count("1.tsv") == 1
    assert len(list(Path("tsvs").iterdir())) == 2
    Path("tsvs/3.tsv").write_text("new\tx\n")
    out, err = query("tsvs/*.tsv")
    assert "built from it" in err
    assert "new" in out


def test_verify_and_evaluate_accept_links_file(
    workdir: Path, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "nothing is cached for it" in stderr_of(capsys, 2, "verify", "links.tsv")
    shell("related links.tsv x")
    lines = shell("verify links.tsv").out.splitlines()
    graph, index = cached_stores("links.tsv")
    assert [line.split()[0] for line in lines] == [str(graph), str(index)]
    stores = json.loads(shell("verify links.tsv --format json").out)["stores"]
    assert [store["kind"] for store in stores] == ["graph", "index"]
    data = index / "names.data"
    data.write_bytes(bytes(data.stat().st_size))
    assert f"{index}: " in stderr_of(capsys, 1, "verify", "links.tsv")
    shutil.rmtree(index.parent)
    assert main(["related", "links.tsv", "x"]) == 0
    Path("labels.tsv").write_text("a\tone\nb\tone\nc\ttwo\nz\ttwo\nx\ttwo\ny\tone\n")
    options = ["--labels", "labels.tsv", "--format", "csv"]
    capsys.readouterr()
    found = shell(["evaluate", "links.tsv", *options])
    assert "unchanged, so the cached index is used; measure: fusion" in found.err
    assert "fusion" in found.out
    reply = shell(["evaluate", index, *options])
    assert reply.out.splitlines()[1:] == found.out.splitlines()[1:]


# -- the cache -------------------------------------------------------------------------


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache with an entry for a file of links."""
    monkeypatch.setenv("COCITE_CACHE", str(tmp_path / "copies"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    (tmp_path / "links.tsv").write_text("a\tc\nb\tc\n")
    user_cache.place.cache_clear()
    assert main(["-q", "related", str(tmp_path / "links.tsv"), "a"]) == 0
    yield tmp_path
    user_cache.place.cache_clear()


def test_info_cache_lists_entries(
    cached: Path, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    shown = shell("info --cache").out
    assert f"{cached / 'copies'}\n" in shown
    assert "graphs and indexes of 1 input, " in shown
    assert "0 of remote stores" in shown
    found = json.loads(shell("info --cache --format json").out)
    assert (found["path"], found["because"]) == (str(cached / "copies"), "COCITE_CACHE")
    assert list(found["links"]) == [str(cached / "links.tsv")]
    assert found["links"][str(cached / "links.tsv")] > 1000


@pytest.mark.parametrize(("flags", "left"), [([], 0), (["--links"], 0), (["--remote"], 1)])
def test_cache_clear_removes_selected_kind(
    cached: Path, flags: list[str], left: int, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert ("0 copies" in (printed := shell(["cache", "clear", *flags]).out)) is (
        flags != ["--links"]
    )
    assert (f"{1 - left} cached graph, " in printed) is (flags != ["--remote"])
    assert len(json.loads(shell("info --cache --format json").out)["links"]) == left
