"""Titles beside names: wherever pages are listed, in every format, only where there are some."""

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite.cli.main import main
from cocite.cli.output import cut_to, padded, width_of
from tests.conftest import Shell, Told

LINKS = "a\tx\nb\tx\nc\tx\na\ty\nb\ty\nz\ty\nc\tz\n"
LONG = "Ypsilon, or the letter that comes before the last one in the alphabet of the Romans"
TITLES = f"x\tThe page X\ny\t{LONG}\na\t東京の頁は広い\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("titles")
    (place / "links.tsv").write_text(LINKS)
    (place / "titles.tsv").write_text(TITLES, "utf-8")
    options: dict[str, Any] = {"measure": "psimrank", "samples": 32, "direction": "both"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        cocite.ingest("links.tsv", "g", titles="titles.tsv")
        cocite.ingest("links.tsv", "plain")
        cocite.build("g", "i", **options)
        cocite.build("plain", "j", **options)
    return place


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, to work in."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize(
    "asked",
    [
        *("related {} x", "related {} x --order pagerank", "related {} x a", "similarity {} x y"),
        *("nodes {}", "nodes {} --links", "rank {}", "rank {} --score hubs"),
        *("why {} x y", "why {} x b y"),
    ],
)
def test_without_titles_nothing_is_another(here: Path, shell: Shell, asked: str) -> None:
    """What has titles says all that the other one does, and titles beside it."""
    kinds = ("g", "plain") if asked.startswith("rank") else ("i", "j")
    parsers: dict[str, Callable[[str], Any]] = {"json": json.loads, "csv": rows}
    for form, parsed in parsers.items():
        titled, plain = (shell(f"{asked.format(kind)} --format {form}").out for kind in kinds)
        assert "title" not in plain
        assert _without_titles(parsed(titled)) == _without_titles(parsed(plain))


def _without_titles(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if "title" not in k and k not in ("path", "graph")}
        return {key: _without_titles(inner) for key, inner in kept.items()}
    return list(map(_without_titles, value)) if isinstance(value, list) else value


def test_hits_have_titles(here: Path, shell: Shell, told: Told) -> None:
    called = {"x": "The page X", "y": LONG, "a": "東京の頁は広い"}
    index = cocite.open("i")
    hits = index.related("b")
    assert {hit.node: hit.title for hit in hits} == {h.node: called.get(h.node) for h in hits}
    assert any(hit.title for hit in hits)
    refined = index.related("b", refine=True)
    assert {hit.node: hit.title for hit in refined} == {h.node: called.get(h.node) for h in refined}
    assert all(hit.title is None for hit in cocite.open("j").related("b"))
    assert [tuple(hit) for hit in hits] == [tuple(hit) for hit in cocite.open("j").related("b")]
    found = told("related", "i", "x")
    assert found["title"] == "The page X"
    assert {h["node"]: h["title"] for h in found["hits"]}["y"] == LONG
    table = rows(shell("related i x --format csv").out)
    assert {row["node"]: row["title"] for row in table} == {
        row["node"]: called.get(row["node"], "") for row in table
    }
    several = told("related", "i", "x", "b")
    assert several["titles"] == ["The page X", None]
    pair = told("similarity", "i", "x", "b")
    assert (pair["a_title"], pair["b_title"]) == ("The page X", None)
    assert shell("similarity i x b").out.startswith("a         x  The page X\nb    ")


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_tables_fit_the_terminal(
    here: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """Titles give way, wide characters counted, and names stay whole and in their column."""
    monkeypatch.setenv("COLUMNS", str(columns))
    for asked in ("related i x", "rank g", "nodes i", "rank g --score hubs"):
        lines = [line for line in shell(asked).out.splitlines() if line[-1:] in set("abcxyz")]
        assert len(lines) >= 2
        ends = {width_of(line) for line in lines}
        assert len(ends) == 1
        assert max(ends) <= columns
        assert any(LONG[:8] in line for line in lines)
        assert (LONG in "\n".join(lines)) == (columns == 200)


def test_widths_are_those_of_a_terminal() -> None:
    assert [width_of(text) for text in ("abc", "東京", "e\u0301", "日本a", "")] == [3, 4, 1, 5, 0]
    assert cut_to("abcdef", 6) == "abcdef"
    assert width_of(cut_to("東京の頁は広い", 8)) <= 8
    assert cut_to("東京の頁は広い", 8).startswith("東京")
    assert width_of(padded("東京", 7)) == 7


def test_nodes_are_found_by_their_titles(here: Path, shell: Shell, told: Told) -> None:
    def found(text: str) -> list[str]:
        document = told("nodes", "i", text)
        return [each["node"] for each in document["nodes"]]

    assert found("page") == ["x"]
    assert found("YPSILON") == ["y"]
    assert found("東京") == ["a"]
    assert found("x") == ["x"]
    assert found("the") == ["x", "y"]
    assert found("nowhere") == []
    assert shell("nodes i page --links").out.startswith("x  The page X\n")
    table = rows(shell("nodes i page --format csv").out)
    assert table == [{"node": "x", "in_links": "3", "out_links": "0", "title": "The page X"}]


def test_all_related_pages_have_titles(here: Path) -> None:
    for kind in ("csv", "jsonl"):
        assert main(["related-all", "i", "-o", f"all.{kind}"]) == 0
        assert main(["related-all", "j", "-o", f"plain.{kind}"]) == 0
    titled, plain = (rows(Path(f"{name}.csv").read_text("utf-8")) for name in ("all", "plain"))
    assert _without_titles(titled) == plain
    assert {row["title"] for row in titled if row["related"] == "x"} == {"The page X"}
    assert {row["title"] for row in titled if row["related"] == "b"} == {""}
    lines = [json.loads(line) for line in Path("all.jsonl").read_text("utf-8").splitlines()]
    others = [json.loads(line) for line in Path("plain.jsonl").read_text("utf-8").splitlines()]
    assert _without_titles(lines) == others
    pages = {line["node"]: line for line in lines}
    assert pages["x"]["title"] == "The page X"
    assert pages["b"]["title"] is None
    assert {hit["node"]: hit["title"] for hit in pages["x"]["hits"]}["y"] == LONG


def test_a_draft_has_no_title(here: Path, told: Told) -> None:
    Path("draft").write_text("x\ny\n")
    found = told("related", "i", "--draft", "draft")
    assert found["title"] is None
    assert any(hit["title"] for hit in found["hits"])


def test_a_table_of_hits_has_a_column_of_titles(here: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = cocite.open("i").related("x").to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert set(frame["title"].dropna()) >= {LONG}
    assert "title" not in cocite.open("j").related("x").to_pandas()
    lists = cocite.open("i").related_many(["x", "b"]).to_pandas()
    assert set(lists["title"].dropna()) >= {LONG}
    assert LONG in cocite.open("i").related("x")._repr_html_()


def test_links_have_titles(here: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is cached has them from then on, until other titles are named or the links change."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))

    def title(*more: str) -> tuple[Any, bool, bool]:
        out, err = shell(["related", "links.tsv", "x", "--format", "json", *more])
        made, gone = "built from it" in err, "pass them with --titles" in err
        return json.loads(out).get("title"), made, gone

    named = "--titles", "titles.tsv"
    assert title() == (None, True, False)
    assert title(*named) == ("The page X", True, False)
    assert title(*named) == title() == ("The page X", False, False)
    Path("titles.tsv").write_text("x\tAnother title\n")
    assert title() == ("The page X", False, False)  # the cache names nothing that is read
    assert title(*named) == ("Another title", True, False)
    assert title() == ("Another title", False, False)
    reply = shell(["nodes", "links.tsv", "another", *named])
    assert "Another title   x" in reply.out
    assert title(*named, "--no-cache")[0] == "Another title"
    for verb in ("related i x", "nodes g"):
        assert "is not an edge list: omit --titles" in shell([*verb.split(), *named], 2).err
    assert "none.tsv" in shell("related links.tsv x --titles none.tsv", 1).err
    assert title() == ("Another title", False, False)
    with Path("links.tsv").open("a") as file:
        file.write("new\tx\n")
    assert title() == (None, True, True)
    assert title() == (None, False, False)


def test_reasons_have_titles(here: Path, shell: Shell, told: Told) -> None:
    found = told("why", "i", "x", "y")
    assert (found["a_title"], found["b_title"]) == ("The page X", LONG)
    titles = {reason["node"]: reason["title"] for reason in found["reasons"]}
    assert titles["a"] == "東京の頁は広い"
    assert titles["b"] is None
    table = rows(shell("why i x y --format csv").out)
    assert {row["node"]: row["title"] for row in table} == {n: t or "" for n, t in titles.items()}
    assert "a  東京" in shell("why i x y").out
    several = told("why", "i", "x", "b", "y")
    assert [page["title"] for page in several["pages"]] == ["The page X", None]
    assert any(r["title"] for page in several["pages"] for r in page["reasons"])
    assert "title" in shell("why i x b y --format csv").out.split("\n")[0]
    assert shell("why i x b y").out


@pytest.mark.parametrize("columns", [30, 40, 60, 80])
def test_columns_give_way_to_names(
    here: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """Tables of short names fit a narrow terminal, and say what they are without."""
    monkeypatch.setenv("COLUMNS", str(columns))
    left = {30: "error, low, high", 40: "error"}.get(columns)
    text = shell("related j x").out
    table = [line for line in text.splitlines() if line[-1:] in set("abcyz")]
    assert table
    assert max(map(len, table)) <= columns
    said = f"omitted on this narrow terminal: {left}; --format csv shows all"
    assert (said in text) if left else ("omitted" not in text)
    assert all(title in shell("related j x --format csv").out for title in TITLED)
    text = shell("measures psimrank").out
    assert max(len(line) for line in text.partition("\n\n")[2].splitlines()) <= max(40, columns)


TITLED = ("rank", "score", "stderr", "low", "high", "node")


# -- asked for by a title --------------------------------------------------------------


PAGES = {"a": "Apples", "b": "Pears", "faq": "Questions &amp;  Answers", "old": "Old Questions"}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site").mkdir()
    links = "".join(f"<a href='{name}.html'>{name}</a>" for name in PAGES)
    for name, title in PAGES.items():
        page = f"<html><head><title>{title}</title></head><body>{links}</body></html>"
        (tmp_path / "site" / f"{name}.html").write_text(page)
    return "site"


@pytest.mark.parametrize(
    "asked", ["Questions & Answers", "questions & answers", "QUESTIONS  &  answers", "FAQ.html"]
)
def test_the_only_title_names_the_page(site: str, shell: Shell, asked: str) -> None:
    expected = shell(["related", site, "faq.html", "-k", "3"]).out
    told = shell(["related", site, asked, "-k", "3"])
    assert told.out == expected
    assert f"{asked!r} matches 'faq.html'\n" in told.err
    assert main(["why", site, "a.html", asked]) == 0


@pytest.mark.parametrize("asked", ["& Answers", "ANSWERS"])
def test_what_to_type_is_told(site: str, shell: Shell, asked: str) -> None:
    reply = shell(["related", site, asked, "-k", "3"], 2)
    assert reply.err.endswith(
        f"Error: no node is named {asked!r}; 'Questions & Answers' is the title of 'faq.html'. "
        "Use the name of the node. Type: cocite related site faq.html -k 3\n"
    )
    assert "Type: cocite why site a.html faq.html\n" in shell(["why", site, "a.html", asked], 2).err


def test_programs_are_told_too(site: str) -> None:
    graph = cocite.ingest(site, "g")
    with pytest.raises(cocite.UnknownNode) as found:
        graph.names.id("old questions")
    assert found.value.titled == (("old.html", "Old Questions"),)
    assert found.value.suggestions == ("old.html",)
    with pytest.raises(cocite.UnknownNode, match="'Apples' is the title of"):
        cocite.build(graph, "i").related("apples")
