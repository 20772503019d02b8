"""Titles in memory, for links in memory or in files; hits show them like any others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite.errors import InputError, UnrecognizedInput, UsageError
from tests.io.plain import title_of, titles_of

LINKS = [("a", "x"), ("b", "x"), ("c", "x"), ("a", "y"), ("b", "y"), ("z", "y")]
TITLES = {"x": "The X", "y": " The   Y ", "nobody": "Nothing", "a": None}
EXPECTED = {"x": "The X", "y": "The Y"}


def pandas() -> Any:
    return pytest.importorskip("pandas")


def polars() -> Any:
    return pytest.importorskip("polars")


FORMS: dict[str, Callable[[], Any]] = {
    "dict": lambda: TITLES,
    "pairs": lambda: list(TITLES.items()),
    "iterator": lambda: iter(TITLES.items()),
    "array": lambda: np.array(list(TITLES.items()), object),
    "series": lambda: pandas().Series(TITLES),
    "frame": lambda: pandas().DataFrame({"Title": TITLES.values(), "n": 1, "Name": TITLES.keys()}),
    "index": lambda: pandas().DataFrame({"heading": TITLES}),
    "polars": lambda: polars().DataFrame({"page": list(TITLES), "text": list(TITLES.values())}),
    "arrow": lambda: pytest.importorskip("pyarrow").table(
        {"name": list(TITLES), "title": list(TITLES.values())}
    ),
}


def titled(graph: cocite.Graph) -> dict[str, str]:
    found = zip(graph.names, titles_of(graph), strict=True)
    return {name: title for name, title in found if title is not None}


@pytest.mark.parametrize("form", FORMS)
def test_titles_option_accepts_mappings_pairs_and_frames(tmp_path: Path, form: str) -> None:
    assert titled(cocite.ingest(LINKS, titles=FORMS[form]())) == EXPECTED
    file = tmp_path / "links.tsv"
    file.write_text("".join(f"{a}\t{b}\n" for a, b in LINKS))
    graph = cocite.ingest(file, titles=FORMS[form]())
    assert titled(graph) == EXPECTED
    assert cocite.info(graph.path).facts()["names"] == "text"


def test_related_shows_titles() -> None:
    hits = cocite.related(LINKS, "x", titles=TITLES)
    assert {hit.node: hit.title for hit in hits}["y"] == "The Y"
    frame = pandas().DataFrame(LINKS, columns=["from", "to"])
    titles = pandas().DataFrame({"page": list(EXPECTED), "called": list(EXPECTED.values())})
    hits = cocite.related(frame, "x", titles=titles, title_columns=("page", "called"))
    assert {hit.node: hit.title for hit in hits}["y"] == "The Y"
    assert "title" in hits.to_pandas()


def test_titles_option_matches_names_that_are_not_text(tmp_path: Path) -> None:
    (tmp_path / "titles.tsv").write_text("1\tOne\n2\tTwo\n")
    links = [(1, 2), (3, 2), (1, 4)]
    graph = cocite.ingest(links, titles=tmp_path / "titles.tsv")
    assert title_of(graph, 2) == "Two"
    assert title_of(cocite.ingest(links, titles={1: "One", 4: "Four"}), 4) == "Four"
    corners = cocite.ingest([((0, 1), (1, 1))], titles={(0, 1): "A corner"})
    assert title_of(corners, (0, 1)) == "A corner"
    networkx = pytest.importorskip("networkx")
    digraph = networkx.DiGraph(LINKS)
    assert titled(cocite.ingest(digraph, titles=TITLES)) == EXPECTED


@pytest.mark.parametrize(
    ("titles", "options", "message"),
    [
        (7, {}, "int contains no titles"),
        ([("x", "The X", 1)], {}, r"is not a pair \(name, title\)"),
        ({"x": ["The X"]}, {}, "titles must be text"),
        ({"x": "The X"}, {"title_columns": (1, 2)}, "omit it for a mapping"),
    ],
)
def test_titles_option_rejects_invalid_objects(
    titles: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        cocite.ingest(LINKS, titles=titles, **options)


def test_titles_option_rejects_unknown_nodes_and_stored_graph(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of the 1 titles belongs to a node"):
        cocite.ingest(LINKS, titles={"nobody": "Nothing"})
    graph = cocite.ingest(LINKS)
    assert graph.titles is None
    with pytest.raises(UsageError, match="do not apply to a stored graph"):
        cocite.related(graph, "x", titles=TITLES)
    with pytest.raises((InputError, UnrecognizedInput)):
        cocite.ingest(LINKS, titles=tmp_path / "missing.tsv")
