"""Parts of the pages, for any input: the state in a URL, names as links, and the map."""

import unicodedata
from itertools import combinations, pairwise
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import escape

pytest.importorskip("jinja2", reason="the extra serve is not installed")

import cocite
from cocite.search.explainer import Reason, links_between
from cocite.search.hits import Hit
from cocite.search.results import WhyDocument
from cocite.server.pages import graph_map
from cocite.server.pages.reasons import percentages, reasons_of, said_of
from cocite.server.pages.view import _TEMPLATES, PageState, _labels, decoded, outward, readable

TEXTS = st.text(min_size=1, max_size=30)


@given(
    st.lists(TEXTS, max_size=3, unique=True),
    st.none() | TEXTS,
    st.lists(st.tuples(st.sampled_from(["k", "decay", "only"]), TEXTS), max_size=4),
    st.lists(TEXTS, max_size=3),
)
def test_page_state_round_trips_through_href(
    nodes: list[str], why: str | None, others: list[tuple[str, str]], trail: list[str]
) -> None:
    state = PageState(tuple(nodes), why, tuple(others), tuple(trail))
    url = urlsplit(state.href())
    assert (url.scheme, url.netloc, url.path) == ("", "", "/")
    assert PageState.of(parse_qsl(url.query, keep_blank_values=True)) == state


@pytest.mark.parametrize(
    "name",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)//http://a.org/",
        " http://a.org/",
        "http:/\\a.org",
        "http://",
        "http:///path",
        "//a.org/",
        "data:text/html,http://a.org/",
        "http://a.org/\njavascript:alert(1)",
        'http://a.org/"onmouseover="alert(1)',
        "http://a.org/<script>",
        "http://a\u202e.org/",
        "http://[::1",
        "ftp://a.org/",
        "https:a.org",
        "http://a.org/" + "x" * 3000,
    ],
)
def test_outward_rejects_unsafe_urls(name: str) -> None:
    assert outward(name) is None


@pytest.mark.parametrize(
    "name", ["http://a.org", "HTTPS://a.org/b?c=d&e=f#g", "http://été.example/ü", "http://[::1]/"]
)
def test_outward_keeps_plain_urls(name: str) -> None:
    assert outward(name) == name


@given(st.text(max_size=200), st.integers(5, 40))
def test_readable_is_short_and_printable(name: str, most: int) -> None:
    text = readable(name, most)
    assert len(text) <= most
    assert text.isprintable()


def test_labels_drop_common_prefix() -> None:
    assert _labels(["com,a)/b/c1", "com,a)/b/c2"]) == ["…c1", "…c2"]
    assert _labels(["com,a)/b/", "com,a)/b/c2"]) == ["com,a)/b/", "com,a)/b/c2"]
    assert _labels(["asyncio.a", "asyncio.b", "ssl"]) == ["asyncio.a", "asyncio.b", "ssl"]
    assert _labels(["http://a.org/one", "http://a.org/two"]) == ["…one", "…two"]
    assert _labels(["http://only.org/one/"]) == ["only.org/one"]


PAGE_A, PAGE_B = {"name": "a"}, {"name": "b"}


@pytest.mark.parametrize(
    ("links", "steps", "paths", "measure", "sentence"),
    [
        ("in", 1, (("a", "x"), ("b", "x")), "psimrank", "x links to both"),
        (
            "in",
            3,
            (("a", "", "", "x"), ("b", "", "", "x")),
            "simrank",
            "x leads to both in 3 links",
        ),
        ("out", 1, (("a", "x"), ("b", "x")), "coupling", "x is linked to by both"),
        ("out", 2, (("a", "", "x"), ("b", "", "x")), "simrank", "x is led to by both in 2 links"),
        ("both", 1, (("a", "x"), ("b", "x")), "prank", "x is linked with both"),
        ("out", None, ((), ("b", "x")), "ppr", "x is near a, and links to b"),
        ("in", None, ((), ("b", "x")), "ppr", "x is near a, and is linked to by b"),
        ("out", None, (("a",), ("b", "a")), "ppr", "a links to b"),
        ("any", None, ((), ("b", "x")), "neighborhood", "x is near a, and is linked with b"),
        ("any", None, ((), ()), "neighborhood", "x is near both"),
        ("in", None, ((), ()), "xjaccard", "x leads to both"),
        ("out", None, ((), ()), "pagesim", "x is led to by both"),
        ("in", None, (("a",), ()), "pagesim", "a leads to b"),
        ("in", None, ((), ("b",)), "pagesim", "b leads to a"),
        ("in", None, ((), ()), "companion", "x is near a, and links to b"),
        ("none", None, ((), ()), "text", "x a word in both texts"),
    ],
)
def test_said_of_builds_sentences(
    links: str, steps: int | None, paths: tuple[tuple[str, ...], ...], measure: str, sentence: str
) -> None:
    reason = Reason(sentence[0], 0.1, links, None, steps, *paths)
    parts = said_of(reason, PAGE_A, PAGE_B, measure)
    text = "".join(each if isinstance(each, str) else each["name"] for each in parts)
    assert f"{reason.node} {text}" == sentence


@given(st.text(max_size=40))
def test_breaks_filter_keeps_name(name: str) -> None:
    broken = _TEMPLATES.from_string("{{ name | breaks }}").render(name=name)
    assert broken.replace("<wbr>", "") == str(escape(decoded(name)))


def make_hits(scores: list[float]) -> list[Hit]:
    return [Hit(f"n{i}", s, 0.0, s, s) for i, s in enumerate(sorted(scores, reverse=True))]


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.floats(1e-9, 1.0), st.text("aMi中…", max_size=22), st.integers(0, 400)),
        min_size=1,
        max_size=graph_map.MOST,
    )
)
def test_plot_map_avoids_overlaps(rows: list[tuple[float, str, int]]) -> None:
    hits = make_hits([score for score, _, _ in rows])
    near = np.zeros((len(rows), len(rows)))
    for i, (score, _, other) in enumerate(rows):
        if i != other % len(rows):
            near[i, other % len(rows)] = near[other % len(rows), i] = score
    spots = graph_map.plot_map(hits, [label for _, label, _ in rows], near, 1, "middle")
    assert [spot.rank for spot in spots] == list(range(1, len(rows) + 1))
    middle = graph_map.WIDTH / 2, graph_map.HEIGHT / 2
    distances = [np.hypot(spot.x - middle[0], spot.y - middle[1]) for spot in spots]
    assert all(a <= b + 0.2 for a, b in pairwise(distances))
    for spot, neighbor in combinations(spots, 2):
        assert np.hypot(spot.x - neighbor.x, spot.y - neighbor.y) >= 26
    boxes = []
    for spot in spots:
        if spot.label:
            wide = sum(13 if unicodedata.east_asian_width(s) in "WF" else 7.6 for s in spot.label)
            left = spot.at[0] - {"start": 0, "middle": wide / 2, "end": wide}[spot.anchor]
            boxes.append((left, spot.at[1] - 7, left + wide, spot.at[1] + 7))
            assert 0 <= left < left + wide <= graph_map.WIDTH
            for each in spots:
                x, y = (
                    min(max(each.x, left), left + wide),
                    min(max(each.y, boxes[-1][1]), boxes[-1][3]),
                )
                assert np.hypot(x - each.x, y - each.y) > 12.9
    for a, b in combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_plot_map_keeps_groups_together() -> None:
    groups = np.arange(12) % 3
    near = (groups[:, None] == groups[None, :]) * 0.5
    np.fill_diagonal(near, 0)
    spots = graph_map.plot_map(make_hits([0.5] * 12), [""] * 12, near, 1, "middle")
    angles = np.array(
        [np.arctan2(s.y - graph_map.HEIGHT / 2, s.x - graph_map.WIDTH / 2) for s in spots]
    )
    ordered = groups[np.argsort(angles)]
    assert (ordered != np.roll(ordered, 1)).sum() == 3


def test_lines_of_connects_similar_spots() -> None:
    near = np.zeros((3, 3))
    near[0, 2] = near[2, 0] = 0.4
    near[1, 2] = near[2, 1] = 0.1
    spots = graph_map.plot_map(make_hits([0.9, 0.5, 0.1]), ["a", "b", "c"], near, 4, "middle")
    weak, strong = graph_map.lines_of(spots, near)
    assert (weak.ends, weak.strength) == ((5, 6), 0.25)
    assert (strong.ends, strong.strength) == ((4, 6), 1.0)
    assert (strong.x1, strong.y1, strong.x2, strong.y2) == (
        *(spots[0].x, spots[0].y),
        *(spots[2].x, spots[2].y),
    )


@given(st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=12))
def test_percentages_add_up_to_100(parts: list[float]) -> None:
    shown = percentages(parts)
    assert sum(0 if each == "under 1" else int(each) for each in shown) == 100
    for each, part in zip(shown, parts, strict=True):
        exact = 100 * part / sum(parts)
        assert abs((0 if each == "under 1" else int(each)) - exact) < 1
    assert percentages([0.25, 0.25], 0.5) == ["25", "25"]
    assert percentages([0.0]) == ["0"]


def test_reasons_of_looks_up_links_in_graph(tmp_path: Path) -> None:
    """The same nodes are similar to both pages; the graph says which of them link to both."""
    links = (
        {(a, b) for a in "xyz" for b in "ab"} | {(a, b) for a in "ab" for b in "pq"} | {("a", "b")}
    )
    graph = cocite.ingest(sorted(links), tmp_path / "g")
    index = cocite.build(graph, tmp_path / "i")
    linked = links_between(index.stored, index.given)
    reasons = reasons_of(WhyDocument.of(index, ("a",), "b", 20), PageState(("a",)), linked)
    own, *rows = reasons["parts"][0]["rows"]
    assert own["own"] == "Linked from it"
    assert own["outline"].startswith("M0 0C")
    assert all(row["own"] is None for row in rows)
    assert not any(any(row["near"]) for row in (own, *rows))
    sentences = {row["name"]: "".join(map(str, row["said"])) for row in rows}
    assert {sentences[name] for name in "xyz" if name in sentences} == {"links to both"}
    assert {sentences[name] for name in "pq" if name in sentences} == {"is linked to by both"}
    percents = [row["percent"] for row in (own, *rows)]
    assert sum(0 if each == "under 1" else int(each) for each in percents) == 100
    graph.store.path.rename(tmp_path / "gone")
    unlinked = links_between(cocite.open(tmp_path / "i").stored, None)
    assert unlinked("a", "b") == (False, False)


def test_scale_circles_labels_similarities() -> None:
    hits = make_hits([0.5, 0.25, 0.1])
    spots = graph_map.plot_map(hits, ["a", "b", "c"], np.zeros((3, 3)), 1, "middle")
    radii = graph_map.INNER, graph_map.OUTER
    assert graph_map.scale_circles(spots, hits, 3) == [(radii[0], "0.500"), (radii[1], "0.100")]
    farther = graph_map.scale_circles(spots[1:], hits[1:], 2)
    assert farther == [(radii[0], "over 0.25"), (radii[1], "0.10")]
