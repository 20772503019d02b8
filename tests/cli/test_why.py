"""``cocite why``: formats, tables that fit, exit codes, messages."""

import csv
import io
import itertools
import json
import re
import shutil
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import cocite
from cocite.cli.main import main
from tests.conftest import Ask

LINKS = [
    ("hub", "one"),
    ("hub", "two"),
    ("hub", "[red]three[/]"),
    ("other", "one"),
    ("other", "two"),
    ("top", "hub"),
    ("top", "left"),
    ("left", "alpha"),
    ("hub", "beta"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph ``g`` with an index of each of ``trees``, ``paths``, ``both`` and some measures."""
    folder = tmp_path_factory.mktemp("why")
    graph = cocite.ingest(LINKS, folder / "g")
    for name, options in {
        "trees": {"samples": 40, "measure": "psimrank"},
        "paths": {"samples": 40, "layout": "paths", "measure": "psimrank"},
        "both": {"samples": 40, "layout": "paths", "direction": "both", "measure": "psimrank"},
        "cocitation": {"measure": "cocitation"},
        "coupling": {"measure": "coupling"},
        "ppr": {"measure": "ppr"},
        "pagesim": {"measure": "pagesim"},
        "nearest": {"measure": "snn"},
        "nearest-in": {"measure": "snn", "direction": "in"},
        "blend": {"measure": "blend:snn+cocitation"},
    }.items():
        cocite.build(graph, folder / name, **options)  # type: ignore[arg-type]
    return folder


@pytest.fixture
def ask(ask: Ask) -> Ask:
    return lambda *words: ask("why", *words)


def test_why_csv_sums_to_score(folder: Path, ask: Ask) -> None:
    _, out, _ = ask(folder / "paths", "one", "two", "-k", "1", "--format", "csv")
    titles, first, rest = csv.reader(io.StringIO(out))
    assert " ".join(titles) == "rank node contribution links samples steps path_a path_b"
    assert (first[0], first[3], first[5]) == ("1", "in", "1")
    assert json.loads(first[6]) == ["one", first[1]]
    assert rest[:2] == ["", ""]
    score = cocite.open(folder / "paths").similarity("one", "two").score
    assert abs(float(first[2]) + float(rest[2]) - score) < 1e-9


@pytest.mark.parametrize(
    ("index", "a", "b", "path"),
    [
        ("paths", "one", "[red]three[/]", "one ← hub → [red]three[/]"),
        ("paths", "alpha", "beta", "alpha ← left ← top → hub → beta"),
        ("cocitation", "one", "two", "one ← other → two"),
        ("coupling", "hub", "other", "hub → two ← other"),
        ("ppr", "hub", "two", "hub → two"),
        ("ppr", "top", "two", "top → … → hub → two"),
        ("pagesim", "hub", "two", "hub → … → two"),
        ("pagesim", "one", "two", "one ← … ← top → … → two"),
        ("nearest", "one", "two", "one ← hub → two"),
        ("nearest", "one", "two", "one ~ two"),
        ("nearest-in", "one", "two", "one ~ other ~ two"),
        ("nearest", "one", "one", "one"),
        ("blend", "one", "two", "one ← other → two"),
    ],
)
def test_why_arrows_show_links(
    folder: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch, index: str, a: str, b: str, path: str
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    code, out, _ = ask(folder / index, a, b)
    assert code == 0
    assert [line for line in out.splitlines() if line.endswith("   " + path)], out
    score = cocite.open(folder / index).similarity(a, b).score
    assert out.splitlines()[-1].startswith(f"the score of {a} and {b} is {score:.4f} by ")


def test_why_names_direction_of_shares(folder: Path, ask: Ask) -> None:
    _, out, _ = ask(folder / "both", "hub", "other")
    assert out.split("\n")[0].split() == [
        *("share", "percent", "links", "samples", "steps", "page", "path")
    ]
    assert " hub → one ← other" in out
    assert "   out   " in out


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_why_table_fits_terminal(
    tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    site = "https://www.example.org/a/rather/long/path/to"
    links = [(f"the/page/number/{i}.html", leaf) for i in range(30) for leaf in "ab"]
    links += [(a, b) for a, b in ("rp", "rq", "pc", "qd")]
    graph = cocite.ingest([(f"{site}/{a}", f"{site}/{b}") for a, b in links], tmp_path / "g")
    cocite.build(graph, tmp_path / "i", samples=50, measure="psimrank")
    for a, b in (f"{site}/a", f"{site}/b"), (f"{site}/c", f"{site}/d"):
        code, out, _ = ask(tmp_path / "i", a, b, "--graph", tmp_path / "g", "-k", 5)
        assert code == 0
        table = out.splitlines()[:-1]
        assert len(table) in (8, 3)
        assert max(map(len, table)) <= columns
        assert "html" in out or "/r" in out  # both ends of a name are shown
        assert "…" in out


def test_why_drops_counts_before_paths(
    tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = cocite.ingest([("A_page_between", page) for page in ("The_one_page", "Another")])
    cocite.build(graph, tmp_path / "i", samples=5, measure="psimrank")
    for columns, titles in (
        (60, "percent page path"),
        (80, "share percent page path"),
        (100, "share percent samples steps page path"),
    ):
        monkeypatch.setenv("COLUMNS", str(columns))
        _, out, _ = ask(tmp_path / "i", "The_one_page", "Another")
        assert out.splitlines()[0].split() == titles.split()
        assert max(map(len, out.splitlines())) <= columns
        if columns > 60:
            assert "The_one_page ← A_page_between → Another" in out


def test_why_uses_ascii_arrows_without_unicode(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(screen, encoding="ascii"))
    assert main(["why", str(folder / "cocitation"), "one", "two", "-k", "1"]) == 0
    printed = screen.getvalue().decode("ascii")
    assert "one <- hub -> two" in printed
    assert "1 other" in printed


@pytest.mark.parametrize(
    ("index", "a", "b", "reason"),
    [
        ("trees", "one", "top", "their walks do not meet in any of 40 samples of psimrank"),
        ("cocitation", "one", "top", "they have nothing in common according to cocitation"),
        (
            *("ppr", "one", "top"),
            "top was not reached from one along the links that ppr read; the score is at most "
            "0.0001",
        ),
        ("nearest", "alpha", "one", "no page is near both"),
    ],
)
def test_why_explains_zero_score(
    folder: Path, ask: Ask, index: str, a: str, b: str, reason: str
) -> None:
    assert ask(folder / index, a, b)[:2] == (0, f"the score of {a} and {b} is 0: {reason}\n")
    out = ask(folder / index, a, b, "--format", "json")[1]
    assert (json.loads(out)["score"], json.loads(out)["reasons"]) == (0, [])


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain of links, the second in both directions, and a separate pair."""
    folder = tmp_path_factory.mktemp("chain")
    rows = [f"p{i}\tp{i + 1}\n" for i in range(400)] + ["p2\tp1\n", "x\ty\n"]
    (folder / "links.tsv").write_text("".join(rows))
    cocite.ingest(folder / "links.tsv", folder / "g", header="no")
    return folder


@pytest.mark.parametrize("measure", ["neighborhood", "ppr-symmetric", "companion", "ppr"])
def test_why_bounds_zero_score(chain: Path, tmp_path: Path, ask: Ask, measure: str) -> None:
    index = cocite.build(chain / "g", tmp_path / "i", measure=measure)
    for a, b in (("p0", "p300"), ("x", "p5")):
        found = index.similarity(a, b)
        assert found.score == 0
        out = ask(tmp_path / "i", a, b)[1]
        bound = f"the score is at most {found.high:.4g}"
        assert (bound in out) == (found.high > 0)
        if measure == "neighborhood":
            assert ("no links connect them" in out) == (a == "x")


@pytest.mark.parametrize(
    "options",
    [
        {"measure": "ppr-symmetric"},
        {},
        {"measure": "psimrank", "direction": "any", "samples": 30},
        {"measure": "ppr", "direction": "any"},
    ],
)
def test_why_shows_direction_of_undirected_links(
    chain: Path,
    tmp_path: Path,
    ask: Ask,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, object],
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    cocite.build(chain / "g", tmp_path / "i", **options)
    links = {tuple(row.split("\t")) for row in (chain / "links.tsv").read_text().split("\n")}
    steps = 0
    for a, b in (("p0", "p2"), ("p2", "p0"), ("p1", "p2"), ("p3", "p1")):
        out = ask(tmp_path / "i", a, b)[1]
        for one, arrow, other in re.findall(r"(?=\b(p\d+) ([→←↔–]) (p\d+))", out):
            forward, backward = (one, other) in links, (other, one) in links
            assert (
                arrow
                == {(True, True): "↔", (True, False): "→", (False, True): "←"}[forward, backward]
            )
            steps += 1
    assert steps > 2


def test_why_without_graph_omits_direction(chain: Path, tmp_path: Path, ask: Ask) -> None:
    shutil.copytree(chain / "g", tmp_path / "g")
    cocite.build(tmp_path / "g", tmp_path / "i", measure="ppr-symmetric")
    shutil.move(tmp_path / "g", tmp_path / "moved")
    assert "p0 ┄ p1 – p2\n" in ask(tmp_path / "i", "p0", "p2")[1]
    found = ask(tmp_path / "i", "p0", "p2", "--graph", tmp_path / "moved")[1]
    assert "p0 → p1 ↔ p2" in found


def test_why_lists_page_once_and_explains_signs(chain: Path, tmp_path: Path, ask: Ask) -> None:
    """With a blend of two measures that take links in either direction."""
    rows = [(a, b) for a in "abc" for b in "xyz"] + [("a", "b"), ("z", "far"), ("far", "b")]
    graph = cocite.ingest(rows, tmp_path / "g")
    index = cocite.build(graph, tmp_path / "i", measure="neighborhood")
    shown = ""
    for a, b in itertools.combinations("abcxyz", 2):
        found = index.why(a, b)
        assert len({reason.node for reason in found.reasons}) == len(found.reasons)
        assert sum(r.contribution for r in found.reasons) + found.remaining == pytest.approx(
            found.score
        )
        out = ask(tmp_path / "i", a, b)[1]
        assert "links" not in out.splitlines()[0]
        shown += out
        for symbol, meaning in (("~", "near, without a link"), ("┄", "several links")):
            assert (meaning in out) == any(f" {symbol} " in line for line in out.splitlines()[2:-2])
    assert "a ~ b: near" in shown
    assert "a ┄ b: several" in shown
    parts = [
        cocite.build(graph, tmp_path / name, measure=name).why("a", "b")
        for name in ("snn", "ppr-symmetric")
    ]
    sums = defaultdict[str, float](float)
    for weight, one in zip((1, -0.4, -0.6), [index.why("a", "b", 20), *parts], strict=True):
        for reason in one.reasons:  # in lists, nearness of the two is one reason
            sums["b" if reason.node == "a" else reason.node] += weight * reason.contribution
    assert all(abs(total) < 1e-9 for total in sums.values())


def test_why_keeps_long_names_whole(
    tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"guide/{name}.html" for name in ("backup", "mail", "both")]
    titles = {name: f"The page called {name}" for name in names}
    links = [(names[2], name) for name in names[:2]]
    graph = cocite.ingest(links, tmp_path / "g", titles=titles)
    cocite.build(graph, tmp_path / "i", measure="ppr", direction="any")
    for columns, titled in (("90", False), ("200", True)):
        monkeypatch.setenv("COLUMNS", columns)
        out = ask(tmp_path / "i", *names[:2])[1]
        assert "guide/backup.html ← guide/both.html → guide/mail.html\n" in out
        assert ("The page called guide/both.html" in out) == titled


def test_why_prints_enough_decimals(tmp_path: Path, ask: Ask) -> None:
    rows = [
        pair for i in "xy" for pair in [("a", i), (i, "b"), *((i, i + str(j)) for j in range(199))]
    ]
    graph = cocite.ingest(rows, tmp_path / "g")
    cocite.build(graph, tmp_path / "i", measure="ppr")
    _, out, _ = ask(tmp_path / "i", "a", "b")
    score = cocite.open(tmp_path / "i").similarity("a", "b").score
    assert 0.001 < score < 0.01
    assert [line.split()[0] for line in out.splitlines()[2:4]] == [f"{score / 2:.5f}"] * 2
    assert out.endswith(f"is {score:.5f} by ppr\n")


def test_why_node_with_itself_scores_one(folder: Path, ask: Ask) -> None:
    _, out, _ = ask(folder / "trees", "one", "one")
    assert out.splitlines()[2].split() == ["1.0000", "100.0%", "40", "0", "one", "one"]
