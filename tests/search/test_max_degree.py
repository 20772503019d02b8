"""From how many links on a page is left aside: by the size of the graph, unless it is chosen."""

import json
from math import isqrt
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite import Graph
from cocite.cli.main import main
from cocite.measures import companion, snn
from cocite.search.results import RelatedDocument
from tests.conftest import MakeGraph


@pytest.mark.parametrize("links", [0, 1, 10_000, 62_499, 62_500, 62_501, 3_128_710, 10**9])
def test_the_rule(links: int) -> None:
    for setting, factor, least in ((snn.MAX_DEGREE, 4, 1000), (companion.MAX_DEGREE, 1, 100)):
        assert setting.by_links is not None
        assert setting.by_links(links) == max(least, factor * isqrt(links))
        assert str(least) in setting.text


@pytest.fixture
def star(make_graph: MakeGraph) -> Graph:
    """Two pages that 1,200 pages link to, each of which links to one of 40 others, too."""
    rows = [(f"p{i}", hub) for i in range(1200) for hub in ("hub", "other")]
    return make_graph(rows + [(f"p{i}", f"q{i % 40}") for i in range(1200)])


def facts(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "manifest.json").read_text())["facts"]
    return found


def test_index_cut_count(star: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["index", str(star.path), "-o", str(tmp_path / "i"), "--format", "json"]
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert "2 of the 1,242 pages have more than 1,000 links" in err
    found = json.loads(out)
    assert (found["max_degree"], found["excluded"]) == (1000, 2)
    answer = RelatedDocument.of(cocite.open(tmp_path / "i"), "p0", 5).to_json()
    assert (answer["settings"]["max_degree"], answer["excluded"]) == (1000, 2)
    assert main(["index", str(star.path), "-o", str(tmp_path / "j"), "--max-degree", "1201"]) == 0
    assert "pages have more than" not in capsys.readouterr().err
    whole = cocite.open(tmp_path / "j")
    assert "excluded" not in facts(tmp_path / "j")
    assert "excluded" not in RelatedDocument.of(whole, "p0", 5).to_json()
    assert whole.settings["max_degree"] == 1201


def test_python_is_told_the_number_of_the_graph_and_verbs_that_build_many_are_not(
    star: Graph,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level("INFO", "cocite")
    cocite.build(star)
    assert "pages have more than 1,000 links" in caplog.text
    labels = tmp_path / "labels.tsv"
    labels.write_text("".join(f"p{i}\tc{i % 2}\n" for i in range(60)))
    asked = ["--labels", str(labels), "--queries", "5", "--set", "samples=5"]
    assert main(["evaluate", str(star.path), *asked]) == 0
    assert "have more than" not in capsys.readouterr().err


@pytest.mark.parametrize(("direction", "cut"), [("in", 0), ("out", 2), ("both", 2)])
def test_counted_weigh_nothing(star: Graph, tmp_path: Path, direction: str, cut: int) -> None:
    """In-links of the hubs are many, and pages that are compared by out-links share those."""
    options: dict[str, Any] = {"measure": "snn", "direction": direction}
    cocite.build(star, tmp_path / "i", **options)
    assert facts(tmp_path / "i").get("excluded", 0) == cut
    if cut:
        chosen = cocite.build(star, max_degree=1000, **options)
        none = cocite.build(star, max_degree=1201, **options)
        same = cocite.open(tmp_path / "i")
        assert same.related("p0") == chosen.related("p0") != none.related("p0")


def test_a_number_that_is_chosen_wins_and_0_is_the_rule(star: Graph, tmp_path: Path) -> None:
    given: dict[str, dict[str, Any]] = {"a": {}, "b": {"max_degree": 0}, "c": {"max_degree": 1000}}
    for name, options in given.items():
        cocite.build(star, tmp_path / name, measure="snn", **options)
    files = [
        {p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in ("a", "b", "c")
    ]
    assert files[0] == files[1] == files[2]


def test_companion_is_asked_by_the_rule(star: Graph) -> None:
    index = cocite.build(star, measure="companion")
    told = RelatedDocument.of(index, "p0", 5)
    assert told.settings["max_degree"] == max(100, isqrt(star.edges))
    assert told.hits == index.related("p0", 5, max_degree=max(100, isqrt(star.edges)))
    assert told.hits == index.related("p0", 5, max_degree=0)
    assert told.hits != index.related("p0", 5, max_degree=5000)
