"""The pages as a browser without scripts gets them, over a real connection, read by a parser."""

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


def parsed(found: Answer, status: int = 200) -> LexborHTMLParser:
    assert found.status == status, found.body
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    policy = found.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    return LexborHTMLParser(found.body.decode())


def one(tree: LexborHTMLParser | LexborNode, css: str) -> LexborNode:
    (found,) = tree.css(css)
    return found


def href(node: LexborNode) -> str:
    found = node.attributes["href"]
    assert found is not None
    return found


def hits(tree: LexborHTMLParser) -> list[str]:
    """The names of the list on a page."""
    return [name.text() for name in tree.css("tr[data-rank] th bdi")]


def labeled(tree: LexborHTMLParser, css: str, text: str) -> list[str]:
    """Where links with a text lead."""
    return [href(link) for link in tree.css(css) if link.text() == text]


def starts(server: Server, path: str) -> LexborHTMLParser:
    """The front, once its starts are there."""
    while (tree := parsed(server.get(path))).css("ul.starts[data-later]"):
        assert tree.css("noscript a")
    return tree


def test_front_has_a_search_and_a_tab_for_each_index(server: Server) -> None:
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
def test_starts_have_their_hits_and_small_maps(server: Server, index: str) -> None:
    cards = starts(server, f"/?index={index}").css("ul.starts a")
    assert len({href(card) for card in cards}) == len(cards) > 3
    for card in cards:
        there = parsed(server.get(href(card)))
        assert one(there, "h1 bdi").text() == one(card, "b").text()
        assert one(card, "span").text() == ", ".join(readable(hit, 40) for hit in hits(there)[:3])
        drawing = one(card, "svg")
        assert len(drawing.css("circle:not(.own)")) == min(len(hits(there)), 20)
        sent = (drawing.html or "").replace("></circle>", "/>").replace("></path>", "/>")
        assert len(sent) <= 1536
        assert "style=" not in (card.html or "")


def test_surprise_leads_to_a_page_with_related_ones(server: Server) -> None:
    found = server.get(href(one(parsed(server.get("/")), "a.surprise")))
    assert found.status == 303
    assert found.headers["cache-control"] == "no-store"
    assert parsed(server.get(found.headers["location"])).css("tr[data-rank]")


def test_what_is_not_there_is_a_page_in_a_browser_and_a_problem_elsewhere(server: Server) -> None:
    tree = parsed(server.get("/nowhere", Accept="text/html,*/*"), 404)
    assert "/nowhere" in one(tree, ".lead").text()
    assert href(one(tree, "main a")) == "/"
    assert server.get("/nowhere").json["type"] == "/docs#not-found"


def test_names_are_shown_percent_decoded_unless_that_hides_something() -> None:
    from cocite.server.pages.view import decoded

    assert decoded("/wiki/%C3%89t%C3%A9%20100%25") == "/wiki/Été 100%"
    for name in ("/a%0Ab", "/%E2%80%AEtxt", "/%FF", "100%"):
        assert decoded(name) == name


@pytest.mark.parametrize("index", ["web", "near"])
@pytest.mark.parametrize("node", ["red", NAME, "https://example.org/?a=1&b=2"])
def test_a_page_shows_what_the_api_says(server: Server, index: str, node: str) -> None:
    told = server.ask("related", node=node, index=index, k=7).json
    tree = parsed(server.get(address(node=node, index=index, k=7)))
    assert one(tree, "h1 bdi").text() == node
    rows = tree.css("tr[data-rank]")
    assert hits(tree) == [hit["node"] for hit in told["hits"]]
    ranks = [row.attributes["data-rank"] for row in rows]
    assert ranks == [str(rank) for rank in range(1, len(rows) + 1)]
    best = max(hit["high"] for hit in told["hits"])
    for row, hit in zip(rows, told["hits"], strict=True):
        assert float(one(row, ".score").text()) == pytest.approx(hit["score"], abs=5.1e-4)
        width = one(row, "rect.bar").attributes["width"]
        assert float(width or "") == pytest.approx(100 * hit["score"] / best, abs=0.051)
        assert len(row.css("path.whisker")) == (hit["low"] < hit["high"])
        walk = dict(parse_qsl(urlsplit(href(row.css("th a")[0])).query))
        assert walk == {"node": hit["node"], "index": index, "k": "7", "from": node}
        outward = [href(link) for link in row.css("a.out")]
        assert outward == [hit["node"]] * hit["node"].startswith("https://")
        assert all("noopener noreferrer" in link.html for link in row.css("a.out") if link.html)
    cut = tree.css("tr.cut")
    assert len(cut) == (0 < told["certain_ranks"] < len(rows))
    if cut:
        before = cut[0].prev
        while before is not None and before.tag != "tr":
            before = before.prev
        assert before is not None
        assert before.attributes["data-rank"] == str(told["certain_ranks"])
    around = one(tree, ".around").attributes["data-map"]
    assert around is not None
    assert href(one(LexborHTMLParser(one(tree, ".around noscript").html or ""), "a")) == around
    spots = parsed(server.get(around)).css("svg.map a")
    assert [spot.attributes["data-rank"] for spot in spots] == ranks
    files = {link.text(): href(link) for link in tree.css(".files a")}
    assert server.get(files["JSON"]).json == told


def test_csv_equals_the_command_line(server: Server, folder: Path, shell: Shell) -> None:
    tree = parsed(server.get(address(node="red", k=5, prefix="l", why="blue")))
    found = server.get(*labeled(tree, ".files a", "CSV"))
    asked = ["related", str(folder / "web.index"), "red", "-k", "5", "--prefix", "l"]
    assert found.body.decode() == shell([*asked, "--format", "csv", "--safe-csv"]).out
    assert found.headers["content-type"].startswith("text/csv")
    assert "attachment" in found.headers["content-disposition"]


def test_reasons_are_those_of_the_api(server: Server) -> None:
    told = server.ask("why", a="red", b="blue").json
    tree = parsed(server.get(address(node="red", why="blue")))
    shown = one(tree, "#why")
    assert [link.text() for link in shown.css(".reason a bdi")] == [
        reason["node"] for reason in told["reasons"]
    ]
    for item, reason in zip(shown.css("li[data-node]"), told["reasons"], strict=True):
        links = reason["steps"]
        said = "links to both" if links == 1 else f"leads to both in {links} links"
        assert one(item, ".said").text() == said
        paths = item.css(".path")
        assert len(paths) == (links > 1)
        for path in paths:
            names = [link.text() for link in path.css("a")]
            assert names == [*reason["path_a"], *reversed(reason["path_b"][:-1])]
            assert one(path, "b").text() == reason["node"]
    assert one(tree, "tr.seen th bdi").text() == "blue"
    closed = parsed(server.get(href(one(shown, "a.less"))))
    assert not closed.css("#why")
    wrong = one(parsed(server.get(address(node="red", why="nobody"))), "#why")
    assert "no node is named 'nobody'" in wrong.text()


def test_several_pages_are_asked_together_and_taken_away(server: Server) -> None:
    tree = parsed(server.get(address(node="red", k=3)))
    both = server.get(href(tree.css("a.add")[0]))
    there = parsed(both)
    assert len(there.css("h1 bdi")) == 2
    told = server.ask("related", node=[link.text() for link in there.css("h1 bdi")], k=3).json
    assert hits(there) == [hit["node"] for hit in told["hits"]]
    back = parsed(server.get(href(there.css("h1 a.less")[1])))
    assert [node.text() for node in back.css("h1 bdi")] == ["red"]
    parts = parsed(server.get(address(node=["red", "blue"], why="green"))).css("#why h3 bdi")
    assert {part.text() for part in parts} == {"red", "blue"}


def test_empty_fields_of_a_form_mean_nothing(server: Server) -> None:
    found = server.get("/?node=red&prefix=&decay=&k=5&why=")
    assert (found.status, found.headers["location"]) == (303, "/?node=red&k=5")
    assert server.get("/?node=&index=near").headers["location"] == "/?index=near"


def test_the_form_has_what_was_asked_and_what_the_index_takes(server: Server) -> None:
    tree = parsed(server.get(address(node="red", decay="0.8", aggregate="min", refine="true")))
    form = one(tree, ".controls form")
    given = {
        node.attributes["name"]: node.attributes.get("value")
        for node in form.css("input")
        if "checkbox" not in (node.html or "") or "checked" in node.attributes
    }
    chosen = {"node": "red", "decay": "0.8", "aggregate": "min", "refine": "true"}
    assert {name: given[name] for name in chosen} == chosen
    assert one(form, "select#f-index").css("option[selected]")[0].attributes["value"] == "web"
    other = parsed(server.get(address(node="red", index="near", decay="0.8")))
    assert "decay was ignored" in one(other, ".note").text()
    assert not other.css("#f-decay")
    assert "decay" not in href(other.css(".files a")[0])


def test_every_setting_has_a_sentence_and_presets_are_links(server: Server) -> None:
    tree = parsed(server.get(address(node="red", index="near", prefix="b")))
    for field in tree.css(
        ".controls form select:not(#f-index), .controls form input:not([type=hidden])"
    ):
        described = field.attributes["aria-describedby"]
        assert one(tree, f"#{described}").text().strip()
    first, *others = tree.css(".presets a")
    assert dict(parse_qsl(urlsplit(href(first)).query)) == {"node": "red", "index": "near"}
    for link in (first, *others):
        there = parsed(server.get(href(link)))
        (now,) = there.css(".presets [aria-current]")
        assert href(now) == href(link)


def test_two_answers_stand_side_by_side(server: Server) -> None:
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


def test_a_list_goes_on(server: Server) -> None:
    tree = parsed(server.get(address(node="red", index="near", k=4)))
    assert one(tree, ".under").text().split()[:4] == ["1", "to", "4", "of"]
    further = parsed(server.get(href(one(tree, 'a[rel="next"]'))))
    assert further.css("tr[data-rank]")[0].attributes["data-rank"] == "5"
    back = parsed(server.get(href(one(further, 'a[rel="prev"]'))))
    assert back.css("tr[data-rank]")[0].attributes["data-rank"] == "1"
    none = parsed(server.get(address(node="red", prefix="zzz")))
    assert "pass the filters" in one(none, ".none").text()


def test_a_name_that_no_page_has_is_answered_with_those_like_it(server: Server) -> None:
    tree = parsed(server.get(address(node="LEA", k=3)), 404)
    links = tree.css("ul.like a")
    assert "leaf1" in [link.text() for link in links]
    assert parsed(server.get(href(links[0]))).css("tr[data-rank]")
    words = parsed(server.get("/?node=af+LE+f1"), 404).css("ul.like a")
    assert {link.text() for link in words} == {"leaf1", "leaf10", "leaf11"}
    spelt = parsed(server.get("/?node=gren"), 404).css("ul.like a")
    assert spelt[0].text() == "green"
    assert "No page is named" in one(parsed(server.get("/?node=zzzz"), 404), "h1").text()
    two = parsed(server.get(address(node=["red", "LEA"])), 404)
    names = [node.text() for node in parsed(server.get(href(two.css(".like a")[0]))).css("h1 bdi")]
    assert names[0] == "red"


def test_one_spelling_of_a_name_opens_its_page(server: Server) -> None:
    found = server.get(address(node="LEAF1", k=3))
    assert found.status == 303
    assert found.headers["location"] == address(node="leaf1", k=3)
    assert server.ask("related", node="LEAF1").json == server.ask("related", node="leaf1").json
    problem = server.ask("related", node="graen")
    assert problem.status == 404
    assert problem.json["suggestions"][0] == "green"


@pytest.mark.parametrize(
    ("path", "status", "says"),
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
def test_what_is_wrong_is_told_on_a_page(server: Server, path: str, status: int, says: str) -> None:
    assert says in one(parsed(server.get(path), status), ".lead").text()


def test_a_first_view_is_small(server: Server) -> None:
    for path in ("/", address(node="red"), address(node="red", index="near")):
        size, paths = 0, [path]
        while paths:
            found = server.get(paths.pop(), Accept_Encoding="gzip")
            size += len(found.body)
            if found.headers["content-type"].startswith("text/html"):
                tree = LexborHTMLParser(gzip.decompress(found.body).decode())
                loaded = [node.attributes["src"] for node in tree.css("script, img")]
                loaded += [href(node) for node in tree.css("link")]
                paths += [each for each in loaded if each]
        assert size < 30_000


def test_page_that_the_browser_has_is_not_sent_again(server: Server) -> None:
    for path in (address(node="red"), "/", "/docs", "/draft", "/openapi.json"):
        first = server.get(path)
        again = server.get(path, If_None_Match=first.headers["etag"])
        assert (again.status, again.body) == (304, b""), path
        assert "Accept-Encoding" in again.headers["vary"] == first.headers["vary"]
    assert server.get(address(node="blue"), If_None_Match=first.headers["etag"]).status == 200


def test_files_of_pages_may_be_kept_for_ever_and_are_light(server: Server) -> None:
    first, weight = address(node="red"), 0
    tree = parsed(server.get(first))
    files = [
        node.attributes.get("href") or node.attributes["src"] for node in tree.css("link, script")
    ]
    fonts = re.findall(r"/assets/inter\S+?woff2", server.get(str(files[1])).body.decode())
    for path in [first, f"/map?{urlsplit(first).query}", *files, *fonts]:
        found = server.get(str(path), Accept_Encoding="gzip")
        assert found.status == 200
        assert ("immutable" in found.headers.get("cache-control", "")) == ("/assets/" in str(path))
        weight += len(found.body)
    assert 40_000 < weight <= 60_000
    assert "onclick" not in (tree.html or "")
    assert not tree.css("style, [style], script:not([src])")


def test_a_list_for_frames(server: Server) -> None:
    tree = parsed(server.get("/embed?node=blue"))
    told = server.ask("related", node="blue", k=10).json
    links = tree.css("main a")
    assert [link.text() for link in links] == [hit["node"] for hit in told["hits"]]
    for link, hit in zip(links, told["hits"], strict=True):
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


def test_page_of_ones_own_shows_where_it_would_stand(server: Server) -> None:
    form = parsed(server.get("/draft?index=near"))
    assert one(form, "textarea").text() == ""
    assert one(form, "select option[selected]").attributes["value"] == "near"
    links = "red\n<- hub1\nnobody <x>"
    query = urlencode({"index": "near", "links": links})
    tree = parsed(server.get(f"/draft?{query}"))
    assert one(tree, "textarea").text() == links
    assert "1 of the links leads to an unknown page: nobody <x>" in one(tree, ".note").text()
    body = {"index": "near", "text": links, "skip_unknown": True}
    told = server.post("/v1/related", body).json["hits"]
    assert [node.text() for node in tree.css(".hits th a")] == [hit["node"] for hit in told]
    assert parsed(server.get(href(tree.css(".hits th a")[0]))).css("tr[data-rank]")
    wrong = parsed(server.get("/draft?index=near&links=nobody"))
    assert "the draft has no link" in one(wrong, ".note").text()
    long = server.get("/draft?links=" + "red%0A" * 2000, Accept="text/html")
    assert "POST /v1/related" in one(parsed(long, 414), ".lead").text()
    note = urlencode({"index": "near", "format": "note", "links": "See [[red]]."})
    assert parsed(server.get(f"/draft?{note}")).css(".hits th a")


def test_sharpen_refines_the_list(server: Server) -> None:
    """Sixty samples leave wide intervals."""
    tree = parsed(server.get(address(node="red")))
    refined = parsed(server.get(*labeled(tree, ".under a", "Narrow them")))
    scores = [float(each.text()) for each in refined.css("tbody .score")]
    told = server.ask("related", node="red", refine="true").json
    assert told["refined"]
    assert scores == pytest.approx([hit["score"] for hit in told["hits"]], abs=5e-4)
    assert not labeled(refined, ".under a", "Narrow them")


def test_sizes_on_the_map_are_pageranks(server: Server, folder: Path) -> None:
    tree = parsed(server.get("/map" + address(node="red")[1:]))
    assert "Larger: higher PageRank" in one(tree, "figcaption").text()
    spots = tree.css("svg.map a[data-rank]")
    sizes = [float(one(spot, "circle").attributes["r"] or 0) for spot in spots]
    index = cocite.open(folder / "web.index")
    ranks = np.array(index.pageranks([one(spot, "title").text() for spot in spots]))
    assert len(spots) > 5
    assert sizes == pytest.approx(8 + (max(sizes) - 8) * np.sqrt(ranks / ranks.max()), abs=0.06)
