"""``max_degree``: its default follows the size of the graph."""

import json
from math import isqrt
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite import Graph
from cocite.measures import companion, snn
from cocite.search.results import RelatedDocument
from tests.conftest import MakeGraph, Shell


@pytest.mark.parametrize("links", [0, 1, 10_000, 62_499, 62_500, 62_501, 3_128_710, 10**9])
def test_max_degree_default_follows_graph_size(links: int) -> None:
    for setting, factor, least in ((snn.MAX_DEGREE, 4, 1000), (companion.MAX_DEGREE, 1, 100)):
        assert setting.by_links is not None
        assert setting.by_links(links) == max(least, factor * isqrt(links))
        assert str(least) in setting.text


@pytest.fixture(scope="module")
def star(module_graph: MakeGraph) -> Graph:
    """1,200 pages link to the same two pages, and each to one of 40 others."""
    rows = [(f"p{i}", hub) for i in range(1200) for hub in ("hub", "other")]
    return module_graph(rows + [(f"p{i}", f"q{i % 40}") for i in range(1200)])


def facts(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "manifest.json").read_text())["facts"]
    return found


@pytest.mark.long
def test_index_command_counts_pages_above_max_degree(
    star: Graph, tmp_path: Path, shell: Shell
) -> None:
    out, err = shell(["index", star.path, "-o", tmp_path / "i", "--format", "json"])
    assert "2 of the 1,242 pages have more than 1,000 links" in err
    document = json.loads(out)
    assert (document["max_degree"], document["excluded"]) == (1000, 2)
    answer = RelatedDocument.of(cocite.open(tmp_path / "i"), "p0", 5).to_json()
    assert (answer["settings"]["max_degree"], answer["excluded"]) == (1000, 2)
    printed = shell(["index", star.path, "-o", tmp_path / "j", "--max-degree", "1201"])
    assert "pages have more than" not in printed.err
    reopened = cocite.open(tmp_path / "j")
    assert "excluded" not in facts(tmp_path / "j")
    assert "excluded" not in RelatedDocument.of(reopened, "p0", 5).to_json()
    assert reopened.settings["max_degree"] == 1201


@pytest.mark.long
def test_max_degree_is_logged_by_build_but_not_evaluate(
    star: Graph, tmp_path: Path, caplog: pytest.LogCaptureFixture, shell: Shell
) -> None:
    caplog.set_level("INFO", "cocite")
    cocite.build(star)
    assert "pages have more than 1,000 links" in caplog.text
    labels = tmp_path / "labels.tsv"
    labels.write_text("".join(f"p{i}\tc{i % 2}\n" for i in range(60)))
    options = ["--labels", str(labels), "--queries", "5", "--set", "samples=5"]
    assert "have more than" not in shell(["evaluate", star.path, *options]).err


@pytest.mark.parametrize(("direction", "cut"), [("in", 0), ("out", 2), ("both", 2)])
def test_snn_max_degree_excludes_counted_pages(
    star: Graph, tmp_path: Path, direction: str, cut: int
) -> None:
    """Hubs have many in-links, which count where pages are compared by out-links."""
    options: dict[str, Any] = {"measure": "snn", "direction": direction}
    cocite.build(star, tmp_path / "i", **options)
    assert facts(tmp_path / "i").get("excluded", 0) == cut
    if cut:
        explicit = cocite.build(star, max_degree=1000, **options)
        unlimited = cocite.build(star, max_degree=1201, **options)
        default = cocite.open(tmp_path / "i")
        assert default.related("p0") == explicit.related("p0") != unlimited.related("p0")


def test_max_degree_0_means_default(star: Graph, tmp_path: Path) -> None:
    variants: dict[str, dict[str, Any]] = {
        "a": {},
        "b": {"max_degree": 0},
        "c": {"max_degree": 1000},
    }
    for name, options in variants.items():
        cocite.build(star, tmp_path / name, measure="snn", **options)
    files = [
        {p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in ("a", "b", "c")
    ]
    assert files[0] == files[1] == files[2]


def test_companion_max_degree_follows_graph_size(star: Graph) -> None:
    index = cocite.build(star, measure="companion")
    document = RelatedDocument.of(index, "p0", 5)
    assert document.settings["max_degree"] == max(100, isqrt(star.edges))
    assert document.hits == index.related("p0", 5, max_degree=max(100, isqrt(star.edges)))
    assert document.hits == index.related("p0", 5, max_degree=0)
    assert document.hits != index.related("p0", 5, max_degree=5000)
