"""A bipartite index that is served: names of a side, in the API and on the page; and names that a
spreadsheet would take for formulas, in the list that the page offers.
"""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

import cocite
from tests.conftest import Told
from tests.server.conftest import Server, Start

pytestmark = pytest.mark.process

FORMULA = "=1+1"
LINKS = [
    *((str(user), str(item)) for user in range(1, 9) for item in range(1, 6) if (user + item) % 3),
    *(("1", item) for item in (FORMULA, "usury")),
    *(("2", item) for item in (FORMULA, "usury", "useful")),
]


@pytest.fixture(scope="module")
def shop(folder: Path) -> Path:
    graph = cocite.ingest(LINKS, folder / "shop.graph", bipartite=True)
    cocite.build(graph, folder / "shop.index", measure="neighborhood")
    return folder / "shop.index"


@pytest.fixture(scope="module")
def server(shop: Path, folder: Path, start: Start) -> Server:
    return start(str(shop), f"web={folder / 'web.index'}")


def test_names_are_those_of_the_side_as_on_the_command_line(
    server: Server, shop: Path, told: Told
) -> None:
    user, item = {"side": "user"}, {"side": "item"}
    for verb, words, query in (
        ("related", ["1", "--side", "user"], {"node": "1"} | user),
        ("related", ["user:1"], {"node": "user:1"} | user),
        ("related", ["1", "--side", "item"], {"node": "1"} | item),
        ("related", ["1"], {"node": "1"}),
        ("related", ["1", "2", "--side", "user"], {"node": ["1", "2"]} | user),
        ("similarity", ["1", "2", "--side", "user"], {"a": "1", "b": "2"} | user),
        ("why", ["1", "2", "--side", "user"], {"a": "1", "b": "2"} | user),
    ):
        found = server.ask(verb, **query)
        assert found.status == 200, found.body
        assert found.json == told(verb, str(shop), *words)
    answers = server.post("/v1/batch", {"nodes": ["1", "nobody"], "side": "user"}).json["answers"]
    assert answers[0] == told("related", str(shop), "1", "--side", "user")
    assert "side=user" in answers[1]["error"]["detail"]


def test_what_is_no_side_is_told(server: Server) -> None:
    for verb, query, says in (
        ("related", {"node": "1", "side": "seller"}, "side is 'seller'; it must be user or item"),
        ("complete", {"text": "1", "side": "seller"}, "side is 'seller'; it must be user or item"),
        ("related", {"node": "red", "side": "user", "index": "web"}, "is not bipartite"),
        ("complete", {"text": "r", "side": "user", "index": "web"}, "is not bipartite"),
    ):
        found = server.ask(verb, **query)
        assert (found.status, says in found.json["detail"]) == (422, True), found.body


def completed(server: Server, text: str, **query: Any) -> list[str]:
    return [each["node"] for each in server.ask("complete", text=text, **query).json["nodes"]]


def test_names_of_one_side_alone_are_completed(server: Server) -> None:
    """Also such as begin like the mark of the other one."""
    assert completed(server, "1", side="user") == ["user:1"]
    assert completed(server, "1", side="item") == ["1", FORMULA]
    assert completed(server, "1", side="item", matches=False) == ["1"]
    for text in ("u", "us", "use"):
        wanted = [name for name in ("usury", "useful") if name.startswith(text)]  # by in-links
        assert completed(server, text, side="item", matches=False) == wanted
    assert completed(server, "u", side="item", matches=False, k=1) == ["usury"]
    assert completed(server, "user:", side="item", matches=False) == []
    items = sorted({item for _, item in LINKS})
    assert sorted(completed(server, "", side="item", k=100)) == items
    assert completed(server, "", side="user", k=100) == [f"user:{i}" for i in range(1, 9)]


def test_what_is_served_says_its_sides(server: Server) -> None:
    sides = {each["name"]: each["sides"] for each in server.get("/v1/indexes").json["indexes"]}
    assert sides == {"shop": ["user", "item"], "web": None}


def page(server: Server, path: str, status: int = 200) -> LexborHTMLParser:
    found = server.get(path)
    assert found.status == status, found.body
    return LexborHTMLParser(found.body.decode())


def chosen(tree: LexborHTMLParser) -> str | None:
    marked = [each.text() for each in tree.css("#side option[selected]")]
    assert len(marked) <= 1
    return marked[0] if marked else None


def test_the_page_is_searched_on_a_side_and_goes_on_by_names_of_the_index(server: Server) -> None:
    assert chosen(page(server, "/")) == "item"
    assert chosen(page(server, "/?index=web")) is None
    tree = page(server, "/?node=1&side=user&k=3")
    assert chosen(tree) == "user"
    assert [name.text() for name in tree.css("h1 bdi")] == ["user:1"]
    links = [link.attributes["href"] or "" for link in tree.css("table.hits th a")]
    assert links
    assert all("side=" not in link and "user%3A" in link for link in links)
    walked = page(server, links[0])
    assert chosen(walked) == "user"
    kept = {each.attributes["name"] for each in tree.css("details input[type=hidden]")}
    assert kept == {"node"}
    why = [link.attributes["href"] or "" for link in tree.css("a.ask")]
    reasons = page(server, why[0]).css("#why .reason a")
    sides = []
    for reason in reasons:
        user = (reason.text() or "").startswith("user:")
        sides.append(chosen(page(server, reason.attributes["href"] or "")))
        assert sides[-1] == ("user" if user else "item")
    assert "item" in sides  # by which users are alike
    (listed,) = [a.attributes["href"] for a in tree.css(".files a") if a.text() == "JSON"]
    assert server.get(listed or "").json["node"] == "user:1"


def test_a_name_that_is_none_is_answered_with_those_of_its_side(server: Server) -> None:
    tree = page(server, "/?node=us&side=item", 404)
    assert [link.text() for link in tree.css("ul.like a")] == ["usury", "useful"]
    assert chosen(tree) == "item"
    (spelt,) = page(server, "/?node=usery&side=item", 404).css("ul.like a")
    assert spelt.text() == "usury"


def test_the_list_that_the_page_offers_holds_no_formula(server: Server) -> None:
    tree = page(server, "/?node=1")
    (link,) = [a.attributes["href"] or "" for a in tree.css(".files a") if a.text() == "CSV"]

    def names(path: str) -> list[str]:
        rows = list(csv.reader(io.StringIO(server.get(path).body.decode())))
        return [row[rows[0].index("node")] for row in rows[1:]]

    assert f"'{FORMULA}" in names(link)
    plain = link.replace("&safe=true", "")
    assert plain != link
    assert FORMULA in names(plain)
    assert server.get(plain + "&safe=perhaps").status == 422
