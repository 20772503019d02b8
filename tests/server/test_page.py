"""The pages that a browser without scripts gets, over a real connection, as parsed HTML."""

import gzip
import re
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import numpy as np
import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

import cocite
from cocite.server.pages.view import readable
from tests.conftest import Shell
from tests.server.conftest import Answer, Server, Start

pytestmark = pytest.mark.process

NAME = "été & <b>"


@pytest.fixture(scope="module")
def server(folder: Path, start: Start) -> Server:
    graph = cocite.Graph.open(folder / "web.graph")
    cocite.build(graph, folder / "near.index")
    return start(str(folder / "web.index"), f"near={folder / 'near.index'}")


def address(**query: object) -> str:
    return f"/?{urlencode(query, doseq=True, quote_via=quote)}"


def parsed(response: Answer, status: int = 200) -> LexborHTMLParser:
    assert response.status == status, response.body
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    return LexborHTMLParser(response.body.decode())


def one(tree: LexborHTMLParser | LexborNode, css: str) -> LexborNode:
    (node,) = tree.css(css)
    return node


def href(node: LexborNode) -> str:
    target = node.attributes["href"]
    assert target is not None
    return target


def hits(tree: LexborHTMLParser) -> list[str]:
    """The names in the list of a page."""
    return [name.text() for name in tree.css("tr[data-rank] th bdi")]


def labeled(tree: LexborHTMLParser, css: str, text: str) -> list[str]:
    """The targets of links with a text."""
    return [href(link) for link in tree.css(css) if link.text() == text]


def starts(server: Server, path: str) -> LexborHTMLParser:
    """The front page, once its starts are ready."""
    while (tree := parsed(server.get(path))).css("ul.starts[data-later]"):
        assert tree.css("noscript a")
    return tree


def test_front_page_has_search_and_index_tabs(server: Server) -> None:
    tree = parsed(server.get("/"))
    one(tree, "main #node")
    tabs = tree.css("ul.tabs a")
    nodes = [f"{each['nodes']:,}" for each in server.get("/v1/indexes").json["indexes"]]
    assert [tab.text() for tab in tabs] == [f"web {nodes[0]} pages", f"near {nodes[1]}"]
    assert [tab.attributes.get("aria-current") for tab in tabs] == ["page", None]
    other = starts(server, href(tabs[1]))
    assert one(other, "#node").attributes["data-index"] == "near"
    assert all("index=near" in href(link) for link in other.css("ul.starts a"))


@pytest.mark.parametrize("index", ["web", "near"])
def test_starts_show_hits_and_small_maps(server: Server, index: str) -> None:
    cards = starts(server, f"/?index={index}").css("ul.starts a")
    assert len({href(card) for card in cards}) == len(cards) > 3
    for card in cards:
        target = parsed(server.get(href(card)))
        assert one(target, "h1 bdi").text() == one(card, "b").text()
        assert one(card, "span").text() == ", ".join(readable(hit, 40) for hit in hits(target)[:3])
        drawing = one(card, "svg")
        assert len(drawing.css("circle:not(.own)")) == min(len(hits(target)), 20)
        markup = (drawing.html or "").replace("></circle>", "/>").replace("></path>", "/>")
        assert len(markup) <= 1536
        assert "style=" not in (card.html or "")


def test_surprise_redirects_to_page_with_hits(server: Server) -> None:
    response = server.get(href(one(parsed(server.get("/")), "a.surprise")))
    assert response.status == 303
    assert response.headers["cache-control"] == "no-store"
    assert parsed(server.get(response.headers["location"])).css("tr[data-rank]")


def test_not_found_is_page_or_problem_by_accept(server: Server) -> None:
    tree = parsed(server.get("/nowhere", Accept="text/html,*/*"), 404)
    assert "/nowhere" in one(tree, ".lead").text()
    assert href(one(tree, "main a")) == "/"
    assert server.get("/nowhere").json["type"] == "/docs#not-found"


def test_decoded_keeps_deceptive_escapes() -> None:
    from cocite.server.pages.view import decoded

    assert decoded("/wiki/%C3%89t%C3%A9%20100%25") == "/wiki/Été 100%"
    for name in ("/a%0Ab", "/%E2%80%AEtxt", "/%FF", "100%"):
        assert decoded(name) == name


@pytest.mark.parametrize("index", ["web", "near"])
@pytest.mark.parametrize("node", ["red", NAME, "https://example.org/?a=1&b=2"])
def test_page_equals_api(server: Server, index: str, node: str) -> None:
    answer = server.ask("related", node=node, index=index, k=7).json
    tree = parsed(server.get(address(node=node, index=index, k=7)))
    assert one(tree, "h1 bdi").text() == node
    rows = tree.css("tr[data-rank]")
    assert hits(tree) == [hit["node"] for hit in answer["hits"]]
    ranks = [row.attributes["data-rank"] for row in rows]
    assert ranks == [str(rank) for rank in range(1, len(rows) + 1)]
    best = max(hit["high"] for hit in answer["hits"])
    for row, hit in zip(rows, answer["hits"], strict=True):
        assert float(one(row, ".score").text()) == pytest.approx(hit["score"], abs=5.1e-4)
        width = one(row, "rect.bar").attributes["width"]
        assert float(width or "") == pytest.approx(100 * hit["score"] / best, abs=0.051)
        assert len(row.css("path.whisker")) == (hit["low"] < hit["high"])
        query = dict(parse_qsl(urlsplit(href(row.css("th a")[0])).query))
        assert query == {"node": hit["node"], "index": index, "k": "7", "from": node}
        outward_links = [href(link) for link in row.css("a.out")]
        assert outward_links == [hit["node"]] * hit["node"].startswith("https://")
        assert all("noopener noreferrer" in link.html for link in row.css("a.out") if link.html)
    cut = tree.css("tr.cut")
    assert len(cut) == (0 < answer["certain_ranks"] < len(rows))
    if cut:
        before = cut[0].prev
        while before is not None and before.tag != "tr":
            before = before.prev
        assert before is not None
        assert before.attributes["data-rank"] == str(answer["certain_ranks"])
    around = one(tree, ".around").attributes["data-map"]
    assert around is not None
    assert href(one(LexborHTMLParser(one(tree, ".around noscript").html or ""), "a")) == around
    dots = parsed(server.get(around)).css("svg.map a")
    assert [dot.attributes["data-rank"] for dot in dots] == ranks
    files = {link.text(): href(link) for link in tree.css(".files a")}
    assert server.get(files["JSON"]).json == answer


def test_csv_equals_command_line(server: Server, folder: Path, shell: Shell) -> None:
    tree = parsed(server.get(address(node="red", k=5, prefix="l", why="blue")))
    response = server.get(*labeled(tree, ".files a", "CSV"))
    command = ["related", str(folder / "web.index"), "red", "-k", "5", "--prefix", "l"]
    assert response.body.decode() == shell([*command, "--format", "csv", "--safe-csv"]).out
    assert response.headers["content-type"].startswith("text/csv")
    assert "attachment" in response.headers["content-disposition"]


def test_reasons_equal_api(server: Server) -> None:
    answer = server.ask("why", a="red", b="blue").json
    tree = parsed(server.get(address(node="red", why="blue")))
    panel = one(tree, "#why")
    assert [link.text() for link in panel.css(".reason a bdi")] == [
        reason["node"] for reason in answer["reasons"]
    ]
    for item, reason in zip(panel.css("li[data-node]"), answer["reasons"], strict=True):
        links = reason["steps"]
        sentence = "links to both" if links == 1 else f"leads to both in {links} links"
        assert one(item, ".said").text() == sentence
        paths = item.css(".path")
        assert len(paths) == (links > 1)
        for path in paths:
            names = [link.text() for link in path.css("a")]
            assert names == [*reason["path_a"], *reversed(reason["path_b"][:-1])]
            assert one(path, "b").text() == reason["node"]
    assert one(tree, "tr.seen th bdi").text() == "blue"
    closed = parsed(server.get(href(one(panel, "a.less"))))
    assert not closed.css("#why")
    failed = one(parsed(server.get(address(node="red", why="nobody"))), "#why")
    assert "no node is named 'nobody'" in failed.text()


def test_page_adds_and_removes_query_nodes(server: Server) -> None:
    tree = parsed(server.get(address(node="red", k=3)))
    both = server.get(href(tree.css("a.add")[0]))
    joint = parsed(both)
    assert len(joint.css("h1 bdi")) == 2
    answer = server.ask("related", node=[link.text() for link in joint.css("h1 bdi")], k=3).json
    assert hits(joint) == [hit["node"] for hit in answer["hits"]]
    back = parsed(server.get(href(joint.css("h1 a.less")[1])))
    assert [node.text() for node in back.css("h1 bdi")] == ["red"]
    parts = parsed(server.get(address(node=["red", "blue"], why="green"))).css("#why h3 bdi")
    assert {part.text() for part in parts} == {"red", "blue"}


def test_page_redirects_without_empty_fields(server: Server) -> None:
    response = server.get("/?node=red&prefix=&decay=&k=5&why=")
    assert (response.status, response.headers["location"]) == (303, "/?node=red&k=5")
    assert server.get("/?node=&index=near").headers["location"] == "/?index=near"


def test_settings_form_reflects_query_and_index(server: Server) -> None:
    tree = parsed(server.get(address(node="red", decay="0.8", aggregate="min", refine="true")))
    form = one(tree, ".controls form")
    fields = {
        node.attributes["name"]: node.attributes.get("value")
        for node in form.css("input")
        if "checkbox" not in (node.html or "") or "checked" in node.attributes
    }
    expected = {"node": "red", "decay": "0.8", "aggregate": "min", "refine": "true"}
    assert {name: fields[name] for name in expected} == expected
    assert one(form, "select#f-index").css("option[selected]")[0].attributes["value"] == "web"
    other = parsed(server.get(address(node="red", index="near", decay="0.8")))
    assert "decay was ignored" in one(other, ".note").text()
    assert not other.css("#f-decay")
    assert "decay" not in href(other.css(".files a")[0])


def test_settings_form_describes_fields_and_links_presets(server: Server) -> None:
    tree = parsed(server.get(address(node="red", index="near", prefix="b")))
    for field in tree.css(
        ".controls form select:not(#f-index), .controls form input:not([type=hidden])"
    ):
        description = field.attributes["aria-describedby"]
        assert one(tree, f"#{description}").text().strip()
    first, *others = tree.css(".presets a")
    assert dict(parse_qsl(urlsplit(href(first)).query)) == {"node": "red", "index": "near"}
    for link in (first, *others):
        target = parsed(server.get(href(link)))
        (current,) = target.css(".presets [aria-current]")
        assert href(current) == href(link)


def test_compare_shows_answers_side_by_side(server: Server) -> None:
    page = parsed(server.get(address(node="red", index="near", k=5)))
    tree = parsed(server.get(href(one(page, "nav[aria-label=View] a:not([aria-current])"))))
    lists = [
        [
            (link.text(), "only here" in (row.text()))
            for row in side.css("li")
            for link in row.css("a")
        ]
        for side in tree.css(".compare section")
    ]
    near, web = (
        [hit["node"] for hit in server.ask("related", node="red", index=index, k=5).json["hits"]]
        for index in ("near", "web")
    )
    assert [[name for name, _ in side] for side in lists] == [near, web]
    shared = {*near} & {*web}
    assert all(only == (name not in shared) for side in lists for name, only in side)
    assert len(tree.css(".slopes path")) == len(shared)
    assert f"{len(shared)} of 5" in one(tree, ".both-of").text()
    query = {"node": "red", "index": "web", "with.index": "web", "with.decay": "0.9"}
    same = parsed(server.get("/compare?" + urlencode(query)))
    assert one(same, "input[name='with.decay']").attributes["value"] == "0.9"
    assert server.get("/compare").status == 303
    ordered = parsed(server.get("/compare?" + urlencode({"node": "red", "with.order": "pagerank"})))
    (left, right) = (side.text() for side in ordered.css(".compare .facts"))
    assert ("order pagerank" in left, "order pagerank" in right) == (False, True)


def test_page_list_is_paginated(server: Server) -> None:
    tree = parsed(server.get(address(node="red", index="near", k=4)))
    assert one(tree, ".under").text().split()[:4] == ["1", "to", "4", "of"]
    next_page = parsed(server.get(href(one(tree, 'a[rel="next"]'))))
    assert next_page.css("tr[data-rank]")[0].attributes["data-rank"] == "5"
    previous_page = parsed(server.get(href(one(next_page, 'a[rel="prev"]'))))
    assert previous_page.css("tr[data-rank]")[0].attributes["data-rank"] == "1"
    empty = parsed(server.get(address(node="red", prefix="zzz")))
    assert "pass the filters" in one(empty, ".none").text()


def test_page_suggests_names_for_unknown_node(server: Server) -> None:
    tree = parsed(server.get(address(node="LEA", k=3)), 404)
    links = tree.css("ul.like a")
    assert "leaf1" in [link.text() for link in links]
    assert parsed(server.get(href(links[0]))).css("tr[data-rank]")
    words = parsed(server.get("/?node=af+LE+f1"), 404).css("ul.like a")
    assert {link.text() for link in words} == {"leaf1", "leaf10", "leaf11"}
    corrected = parsed(server.get("/?node=gren"), 404).css("ul.like a")
    assert corrected[0].text() == "green"
    assert "No page is named" in one(parsed(server.get("/?node=zzzz"), 404), "h1").text()
    two = parsed(server.get(address(node=["red", "LEA"])), 404)
    names = [node.text() for node in parsed(server.get(href(two.css(".like a")[0]))).css("h1 bdi")]
    assert names[0] == "red"


def test_page_redirects_to_only_spelling_of_name(server: Server) -> None:
    response = server.get(address(node="LEAF1", k=3))
    assert response.status == 303
    assert response.headers["location"] == address(node="leaf1", k=3)
    assert server.ask("related", node="LEAF1").json == server.ask("related", node="leaf1").json
    problem = server.ask("related", node="graen")
    assert problem.status == 404
    assert problem.json["suggestions"][0] == "green"


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/?node=red&k=two", 422, "k is 'two'; it must be a whole number"),
        ("/?node=red&index=other", 404, "this server has web, near"),
        ("/?node=red&nodes=1", 422, "Did you mean node"),
        ("/?node=%FF", 422, "not UTF-8"),
        ("/embed", 422, "node is required"),
        ("/embed?node=nobody", 404, "no node is named 'nobody'"),
        ("/related.csv?node=red&k=0", 422, "k is 0"),
    ],
)
def test_page_reports_invalid_requests(
    server: Server, path: str, status: int, message: str
) -> None:
    assert message in one(parsed(server.get(path), status), ".lead").text()


def test_page_first_view_is_small(server: Server) -> None:
    for path in ("/", address(node="red"), address(node="red", index="near")):
        size, paths = 0, [path]
        while paths:
            response = server.get(paths.pop(), Accept_Encoding="gzip")
            size += len(response.body)
            if response.headers["content-type"].startswith("text/html"):
                tree = LexborHTMLParser(gzip.decompress(response.body).decode())
                loaded = [node.attributes["src"] for node in tree.css("script, img")]
                loaded += [href(node) for node in tree.css("link")]
                paths += [each for each in loaded if each]
        assert size < 30_000


def test_page_etag_match_returns_304(server: Server) -> None:
    for path in (address(node="red"), "/", "/docs", "/draft", "/openapi.json"):
        first = server.get(path)
        again = server.get(path, If_None_Match=first.headers["etag"])
        assert (again.status, again.body) == (304, b""), path
        assert "Accept-Encoding" in again.headers["vary"] == first.headers["vary"]
    assert server.get(address(node="blue"), If_None_Match=first.headers["etag"]).status == 200


def test_assets_are_immutable_and_small(server: Server) -> None:
    first, weight = address(node="red"), 0
    tree = parsed(server.get(first))
    files = [
        node.attributes.get("href") or node.attributes["src"] for node in tree.css("link, script")
    ]
    fonts = re.findall(r"/assets/inter\S+?woff2", server.get(str(files[1])).body.decode())
    for path in [first, f"/map?{urlsplit(first).query}", *files, *fonts]:
        response = server.get(str(path), Accept_Encoding="gzip")
        assert response.status == 200
        assert ("immutable" in response.headers.get("cache-control", "")) == (
            "/assets/" in str(path)
        )
        weight += len(response.body)
    assert 40_000 < weight <= 60_000
    assert "onclick" not in (tree.html or "")
    assert not tree.css("style, [style], script:not([src])")


def test_embed_lists_hits(server: Server) -> None:
    tree = parsed(server.get("/embed?node=blue"))
    answer = server.ask("related", node="blue", k=10).json
    links = tree.css("main a")
    assert [link.text() for link in links] == [hit["node"] for hit in answer["hits"]]
    for link, hit in zip(links, answer["hits"], strict=True):
        if hit["node"].startswith("http"):
            assert href(link) == hit["node"]
            assert link.attributes["rel"] == "noopener noreferrer"
        else:
            assert urlsplit(href(link)).path == "/"
    script = server.get("/embed.js", Accept_Encoding="gzip")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    style = tree.css("link")[0]
    frame = [
        len(server.get(path, Accept_Encoding="gzip").body)
        for path in ("/embed?node=blue", href(style))
    ]
    assert max(len(script.body), sum(frame)) < 4096


def test_draft_page_shows_hits_and_unknown_names(server: Server) -> None:
    form = parsed(server.get("/draft?index=near"))
    assert one(form, "textarea").text() == ""
    assert one(form, "select option[selected]").attributes["value"] == "near"
    links = "red\n<- hub1\nnobody <x>"
    query = urlencode({"index": "near", "links": links})
    tree = parsed(server.get(f"/draft?{query}"))
    assert one(tree, "textarea").text() == links
    assert "1 of the links leads to an unknown page: nobody <x>" in one(tree, ".note").text()
    body = {"index": "near", "text": links, "skip_unknown": True}
    expected = server.post("/v1/related", body).json["hits"]
    assert [node.text() for node in tree.css(".hits th a")] == [hit["node"] for hit in expected]
    assert parsed(server.get(href(tree.css(".hits th a")[0]))).css("tr[data-rank]")
    failed = parsed(server.get("/draft?index=near&links=nobody"))
    assert "the draft has no link" in one(failed, ".note").text()
    long = server.get("/draft?links=" + "red%0A" * 2000, Accept="text/html")
    assert "POST /v1/related" in one(parsed(long, 414), ".lead").text()
    note = urlencode({"index": "near", "format": "note", "links": "See [[red]]."})
    assert parsed(server.get(f"/draft?{note}")).css(".hits th a")


def test_sharpen_refines_list(server: Server) -> None:
    """With 60 samples the intervals are wide."""
    tree = parsed(server.get(address(node="red")))
    refined = parsed(server.get(*labeled(tree, ".under a", "Narrow them")))
    scores = [float(each.text()) for each in refined.css("tbody .score")]
    answer = server.ask("related", node="red", refine="true").json
    assert answer["refined"]
    assert scores == pytest.approx([hit["score"] for hit in answer["hits"]], abs=5e-4)
    assert not labeled(refined, ".under a", "Narrow them")


def test_map_sizes_follow_pagerank(server: Server, folder: Path) -> None:
    tree = parsed(server.get("/map" + address(node="red")[1:]))
    assert "Larger: higher PageRank" in one(tree, "figcaption").text()
    dots = tree.css("svg.map a[data-rank]")
    sizes = [float(one(dot, "circle").attributes["r"] or 0) for dot in dots]
    index = cocite.open(folder / "web.index")
    ranks = np.array(index.pageranks([one(dot, "title").text() for dot in dots]))
    assert len(dots) > 5
    assert sizes == pytest.approx(8 + (max(sizes) - 8) * np.sqrt(ranks / ranks.max()), abs=0.06)
