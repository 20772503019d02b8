"""Titles next to names: wherever pages are listed, in every format, if there are any."""

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
from tests.conftest import CliJson, Shell

LINKS = "a\tx\nb\tx\nc\tx\na\ty\nb\ty\nz\ty\nc\tz\n"
LONG = "Ypsilon, or the letter that comes before the last one in the alphabet of the Romans"
TITLES = f"x\tThe page X\ny\t{LONG}\na\t東京の頁は広い\n"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("titles")
    (folder / "links.tsv").write_text(LINKS)
    (folder / "titles.tsv").write_text(TITLES, "utf-8")
    options: dict[str, Any] = {"measure": "psimrank", "samples": 32, "direction": "both"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        cocite.ingest("links.tsv", "g", titles="titles.tsv")
        cocite.ingest("links.tsv", "plain")
        cocite.build("g", "i", **options)
        cocite.build("plain", "j", **options)
    return folder


@pytest.fixture
def workdir(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working copy."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize(
    "command",
    [
        *("related {} x", "related {} x --order pagerank", "related {} x a", "similarity {} x y"),
        *("nodes {}", "nodes {} --links", "rank {}", "rank {} --score hubs"),
        *("why {} x y", "why {} x b y"),
    ],
)
def test_titles_change_no_other_output(workdir: Path, shell: Shell, command: str) -> None:
    """Output with titles is the plain output and titles."""
    kinds = ("g", "plain") if command.startswith("rank") else ("i", "j")
    parsers: dict[str, Callable[[str], Any]] = {"json": json.loads, "csv": rows}
    for output_format, parse in parsers.items():
        titled, plain = (
            shell(f"{command.format(kind)} --format {output_format}").out for kind in kinds
        )
        assert "title" not in plain
        assert _without_titles(parse(titled)) == _without_titles(parse(plain))


def _without_titles(value: Any) -> Any:
    if isinstance(value, dict):
        untitled = {
            k: v for k, v in value.items() if "title" not in k and k not in ("path", "graph")
        }
        return {key: _without_titles(inner) for key, inner in untitled.items()}
    return list(map(_without_titles, value)) if isinstance(value, list) else value


def test_related_hits_have_titles(workdir: Path, shell: Shell, cli_json: CliJson) -> None:
    titles = {"x": "The page X", "y": LONG, "a": "東京の頁は広い"}
    index = cocite.open("i")
    hits = index.related("b")
    assert {hit.node: hit.title for hit in hits} == {h.node: titles.get(h.node) for h in hits}
    assert any(hit.title for hit in hits)
    refined = index.related("b", refine=True)
    assert {hit.node: hit.title for hit in refined} == {h.node: titles.get(h.node) for h in refined}
    assert all(hit.title is None for hit in cocite.open("j").related("b"))
    assert [tuple(hit) for hit in hits] == [tuple(hit) for hit in cocite.open("j").related("b")]
    found = cli_json("related", "i", "x")
    assert found["title"] == "The page X"
    assert {h["node"]: h["title"] for h in found["hits"]}["y"] == LONG
    table = rows(shell("related i x --format csv").out)
    assert {row["node"]: row["title"] for row in table} == {
        row["node"]: titles.get(row["node"], "") for row in table
    }
    several = cli_json("related", "i", "x", "b")
    assert several["titles"] == ["The page X", None]
    pair = cli_json("similarity", "i", "x", "b")
    assert (pair["a_title"], pair["b_title"]) == ("The page X", None)
    assert shell("similarity i x b").out.startswith("a         x  The page X\nb    ")


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_tables_with_titles_fit_terminal(
    workdir: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """Titles are cut, by display width; names stay whole and aligned."""
    monkeypatch.setenv("COLUMNS", str(columns))
    for command in ("related i x", "rank g", "nodes i", "rank g --score hubs"):
        lines = [line for line in shell(command).out.splitlines() if line[-1:] in set("abcxyz")]
        assert len(lines) >= 2
        ends = {width_of(line) for line in lines}
        assert len(ends) == 1
        assert max(ends) <= columns
        assert any(LONG[:8] in line for line in lines)
        assert (LONG in "\n".join(lines)) == (columns == 200)


def test_width_of_counts_terminal_columns() -> None:
    assert [width_of(text) for text in ("abc", "東京", "e\u0301", "日本a", "")] == [3, 4, 1, 5, 0]
    assert cut_to("abcdef", 6) == "abcdef"
    assert width_of(cut_to("東京の頁は広い", 8)) <= 8
    assert cut_to("東京の頁は広い", 8).startswith("東京")
    assert width_of(padded("東京", 7)) == 7


def test_nodes_search_matches_titles(workdir: Path, shell: Shell, cli_json: CliJson) -> None:
    def found(text: str) -> list[str]:
        document = cli_json("nodes", "i", text)
        return [row["node"] for row in document["nodes"]]

    assert found("page") == ["x"]
    assert found("YPSILON") == ["y"]
    assert found("東京") == ["a"]
    assert found("x") == ["x"]
    assert found("the") == ["x", "y"]
    assert found("nowhere") == []
    assert shell("nodes i page --links").out.startswith("x  The page X\n")
    table = rows(shell("nodes i page --format csv").out)
    assert table == [{"node": "x", "in_links": "3", "out_links": "0", "title": "The page X"}]


def test_related_all_writes_titles(workdir: Path) -> None:
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


def test_draft_option_has_no_title(workdir: Path, cli_json: CliJson) -> None:
    Path("draft").write_text("x\ny\n")
    found = cli_json("related", "i", "--draft", "draft")
    assert found["title"] is None
    assert any(hit["title"] for hit in found["hits"])


def test_to_pandas_includes_titles(workdir: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = cocite.open("i").related("x").to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert set(frame["title"].dropna()) >= {LONG}
    assert "title" not in cocite.open("j").related("x").to_pandas()
    lists = cocite.open("i").related_many(["x", "b"]).to_pandas()
    assert set(lists["title"].dropna()) >= {LONG}
    assert LONG in cocite.open("i").related("x")._repr_html_()


def test_titles_option_updates_cached_links(
    workdir: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cached links keep their titles until others are given or the links change."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(workdir / "cache"))

    def title(*options: str) -> tuple[Any, bool, bool]:
        out, err = shell(["related", "links.tsv", "x", "--format", "json", *options])
        rebuilt, missing = "built from it" in err, "pass them with --titles" in err
        return json.loads(out).get("title"), rebuilt, missing

    titles_option = "--titles", "titles.tsv"
    assert title() == (None, True, False)
    assert title(*titles_option) == ("The page X", True, False)
    assert title(*titles_option) == title() == ("The page X", False, False)
    Path("titles.tsv").write_text("x\tAnother title\n")
    assert title() == ("The page X", False, False)  # the cache does not refer to the file
    assert title(*titles_option) == ("Another title", True, False)
    assert title() == ("Another title", False, False)
    reply = shell(["nodes", "links.tsv", "another", *titles_option])
    assert "Another title   x" in reply.out
    assert title(*titles_option, "--no-cache")[0] == "Another title"
    for verb in ("related i x", "nodes g"):
        assert "is not an edge list: omit --titles" in shell([*verb.split(), *titles_option], 2).err
    assert "none.tsv" in shell("related links.tsv x --titles none.tsv", 1).err
    assert title() == ("Another title", False, False)
    with Path("links.tsv").open("a") as file:
        file.write("new\tx\n")
    assert title() == (None, True, True)
    assert title() == (None, False, False)


def test_why_reasons_have_titles(workdir: Path, shell: Shell, cli_json: CliJson) -> None:
    found = cli_json("why", "i", "x", "y")
    assert (found["a_title"], found["b_title"]) == ("The page X", LONG)
    titles = {reason["node"]: reason["title"] for reason in found["reasons"]}
    assert titles["a"] == "東京の頁は広い"
    assert titles["b"] is None
    table = rows(shell("why i x y --format csv").out)
    assert {row["node"]: row["title"] for row in table} == {n: t or "" for n, t in titles.items()}
    assert "a  東京" in shell("why i x y").out
    several = cli_json("why", "i", "x", "b", "y")
    assert [page["title"] for page in several["pages"]] == ["The page X", None]
    assert any(r["title"] for page in several["pages"] for r in page["reasons"])
    assert "title" in shell("why i x b y --format csv").out.split("\n")[0]
    assert shell("why i x b y").out


@pytest.mark.parametrize("columns", [30, 40, 60, 80])
def test_related_table_omits_columns_on_narrow_terminal(
    workdir: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """Tables of short names fit a narrow terminal, and list what they omit."""
    monkeypatch.setenv("COLUMNS", str(columns))
    omitted = {30: "error, low, high", 40: "error"}.get(columns)
    text = shell("related j x").out
    table = [line for line in text.splitlines() if line[-1:] in set("abcyz")]
    assert table
    assert max(map(len, table)) <= columns
    note = f"omitted on this narrow terminal: {omitted}; --format csv shows all"
    assert (note in text) if omitted else ("omitted" not in text)
    assert all(title in shell("related j x --format csv").out for title in COLUMN_TITLES)
    text = shell("measures psimrank").out
    assert max(len(line) for line in text.partition("\n\n")[2].splitlines()) <= max(40, columns)


COLUMN_TITLES = ("rank", "score", "stderr", "low", "high", "node")


# -- queries by title ------------------------------------------------------------------


PAGES = {"a": "Apples", "b": "Pears", "faq": "Questions &amp;  Answers", "old": "Old Questions"}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``site``, whose graph and index are cached once."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "site").mkdir()
    links = "".join(f"<a href='{name}.html'>{name}</a>" for name in PAGES)
    for name, title in PAGES.items():
        page = f"<html><head><title>{title}</title></head><body>{links}</body></html>"
        (folder / "site" / f"{name}.html").write_text(page)
    return folder


@pytest.fixture
def site(pages: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(pages)
    return "site"


@pytest.mark.parametrize(
    "title", ["Questions & Answers", "questions & answers", "QUESTIONS  &  answers", "FAQ.html"]
)
def test_related_accepts_unique_title(site: str, shell: Shell, title: str) -> None:
    expected = shell(["related", site, "faq.html", "-k", "3"]).out
    reply = shell(["related", site, title, "-k", "3"])
    assert reply.out == expected
    assert f"{title!r} matches 'faq.html'\n" in reply.err
    assert main(["why", site, "a.html", title]) == 0


@pytest.mark.parametrize("title", ["& Answers", "ANSWERS"])
def test_related_partial_title_suggests_command(site: str, shell: Shell, title: str) -> None:
    reply = shell(["related", site, title, "-k", "3"], 2)
    assert reply.err.endswith(
        f"Error: no node is named {title!r}; 'Questions & Answers' is the title of 'faq.html'. "
        "Use the name of the node. Type: cocite related site faq.html -k 3\n"
    )
    assert "Type: cocite why site a.html faq.html\n" in shell(["why", site, "a.html", title], 2).err


def test_unknown_node_lists_titled_nodes(site: str) -> None:
    graph = cocite.ingest(site, "g")
    with pytest.raises(cocite.UnknownNode) as found:
        graph.names.id("old questions")
    assert found.value.titled == (("old.html", "Old Questions"),)
    assert found.value.suggestions == ("old.html",)
    with pytest.raises(cocite.UnknownNode, match="'Apples' is the title of"):
        cocite.build(graph, "i").related("apples")
