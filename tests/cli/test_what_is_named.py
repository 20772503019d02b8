"""What is named in the place of links: answers of ours, folders, patterns of several files; and
verbs that take a file of links as others do.
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


def said(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    capsys.readouterr()
    assert main(list(arguments)) == code
    return capsys.readouterr().err


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl"])
@pytest.mark.parametrize("titled", [False, True])
def test_an_answer_is_no_list_of_links(
    here: Path, capsys: pytest.CaptureFixture[str], ending: str, titled: bool
) -> None:
    Path("titles.tsv").write_text("x\tThe X\n")
    more = ["--titles", "titles.tsv"] * titled
    assert main(["related-all", "links.tsv", "-o", f"all.{ending}", *more]) == 0
    told = said(capsys, 2, "related", f"all.{ending}", "x")
    what = f"Error: all.{ending} is output of cocite related-all, not an edge list. "
    assert what + "Pass the graph or index that it came from" in told
    if ending == "jsonl":
        return
    assert "to use its hits as links: --columns node,related" in told
    assert main(["ingest", f"all.{ending}", "-o", "g", "--columns", "node,related"]) == 0
    assert set(cocite.Graph.open("g").names) <= set("abcxyz")


def test_other_answers_are_known_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["related", "links.tsv", "x", "--format", "csv"]) == 0
    Path("x.csv").write_text(capsys.readouterr().out)
    assert "is output of cocite related" in said(capsys, 2, "related", "x.csv", "x")
    assert main(["rank", "links.tsv", "-o", "ranks.csv"]) == 0
    assert "is output of cocite rank" in said(capsys, 2, "related", "ranks.csv", "x")


def test_guessed_columns_can_be_chosen(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text("when,who,whom\n2001,ann,bob\n2002,bob,cid\n2003,cid,ann\n")
    told = said(capsys, 0, "ingest", "t.csv", "-o", "g")
    assert (
        "3 columns, with links from column 1 to column 2 (to choose others: --columns "
        "SOURCE,TARGET)" in told
    )
    told = said(capsys, 0, "ingest", "t.csv", "-o", "h", "--columns", "who,whom")
    assert "to choose others" not in told
    Path("w.csv").write_text("source,target,weight\na,b,1\nb,c,2\n")
    told = said(capsys, 0, "ingest", "w.csv", "-o", "w", "--weight-column", "weight")
    assert "to choose others" not in told


def test_a_pattern_is_several_files(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = LINKS.splitlines(keepends=True)
    Path("tsvs/more").mkdir(parents=True)
    Path("tsvs/1.tsv").write_text("".join(rows[:3]))
    Path("tsvs/2.tsv").write_text("".join(rows[3:]))

    def asked(links: str) -> tuple[str, str]:
        capsys.readouterr()
        assert main(["related", links, "x", "--format", "csv"]) == 0
        found = capsys.readouterr()
        return found.out, found.err

    whole = asked("links.tsv")[0]
    for pattern in ("tsvs/*.tsv", "tsvs/*", "ts*/[12].tsv", "**/?.tsv"):
        if pattern == "tsvs/*":
            Path("tsvs/more").rmdir()
        out, err = asked(pattern)
        assert out == whole
        assert "a graph and an index built from it" in err
        assert "unchanged" in asked(pattern)[1].splitlines()[-1]
    assert [p.name for p in Path("tsvs").iterdir()].count("1.tsv") == 1
    assert len(list(Path("tsvs").iterdir())) == 2
    Path("tsvs/3.tsv").write_text("new\tx\n")
    out, err = asked("tsvs/*.tsv")
    assert "built from it" in err
    assert "new" in out


def test_verify_takes_links(here: Path, shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing is cached for it" in said(capsys, 2, "verify", "links.tsv")
    shell("related links.tsv x")
    lines = shell("verify links.tsv").out.splitlines()
    graph, index = cached_stores("links.tsv")
    assert [line.split()[0] for line in lines] == [str(graph), str(index)]
    stores = json.loads(shell("verify links.tsv --format json").out)["stores"]
    assert [store["kind"] for store in stores] == ["graph", "index"]
    data = index / "names.data"
    data.write_bytes(bytes(data.stat().st_size))
    assert f"{index}: " in said(capsys, 1, "verify", "links.tsv")
    shutil.rmtree(index.parent)
    assert main(["related", "links.tsv", "x"]) == 0
    Path("labels.tsv").write_text("a\tone\nb\tone\nc\ttwo\nz\ttwo\nx\ttwo\ny\tone\n")
    asked = ["--labels", "labels.tsv", "--format", "csv"]
    capsys.readouterr()
    found = shell(["evaluate", "links.tsv", *asked])
    assert "unchanged, so the cached index is used; measure: fusion" in found.err
    assert "fusion" in found.out
    reply = shell(["evaluate", index, *asked])
    assert reply.out.splitlines()[1:] == found.out.splitlines()[1:]


# -- the cache -------------------------------------------------------------------------


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache that holds what was made of a file of links."""
    monkeypatch.setenv("COCITE_CACHE", str(tmp_path / "copies"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    (tmp_path / "links.tsv").write_text("a\tc\nb\tc\n")
    user_cache.place.cache_clear()
    assert main(["-q", "related", str(tmp_path / "links.tsv"), "a"]) == 0
    yield tmp_path
    user_cache.place.cache_clear()


def test_cache_info_listed(cached: Path, shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
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
def test_cache_clear_removes_what_is_chosen(
    cached: Path, flags: list[str], left: int, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert ("0 copies" in (said := shell(["cache", "clear", *flags]).out)) is (flags != ["--links"])
    assert (f"{1 - left} cached graph, " in said) is (flags != ["--remote"])
    assert len(json.loads(shell("info --cache --format json").out)["links"]) == left
