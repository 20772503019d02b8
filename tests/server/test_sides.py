"""A served bipartite index: names of a side, in the API and on the page; and names that look like
spreadsheet formulas, in the page's CSV.
"""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

import cocite
from tests.conftest import CliJson
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


def test_side_answers_equal_command_line(server: Server, shop: Path, cli_json: CliJson) -> None:
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
        response = server.ask(verb, **query)
        assert response.status == 200, response.body
        assert response.json == cli_json(verb, str(shop), *words)
    answers = server.post("/v1/batch", {"nodes": ["1", "nobody"], "side": "user"}).json["answers"]
    assert answers[0] == cli_json("related", str(shop), "1", "--side", "user")
    assert "side=user" in answers[1]["error"]["detail"]


def test_side_reports_invalid_value(server: Server) -> None:
    for verb, query, message in (
        ("related", {"node": "1", "side": "seller"}, "side is 'seller'; it must be user or item"),
        ("complete", {"text": "1", "side": "seller"}, "side is 'seller'; it must be user or item"),
        ("related", {"node": "red", "side": "user", "index": "web"}, "is not bipartite"),
        ("complete", {"text": "r", "side": "user", "index": "web"}, "is not bipartite"),
    ):
        response = server.ask(verb, **query)
        assert (response.status, message in response.json["detail"]) == (422, True), response.body


def completions(server: Server, text: str, **query: Any) -> list[str]:
    return [each["node"] for each in server.ask("complete", text=text, **query).json["nodes"]]


def test_complete_filters_names_by_side(server: Server) -> None:
    """Names may begin like the other side's prefix."""
    assert completions(server, "1", side="user") == ["user:1"]
    assert completions(server, "1", side="item") == ["1", FORMULA]
    assert completions(server, "1", side="item", matches=False) == ["1"]
    for text in ("u", "us", "use"):
        expected = [name for name in ("usury", "useful") if name.startswith(text)]  # by in-degree
        assert completions(server, text, side="item", matches=False) == expected
    assert completions(server, "u", side="item", matches=False, k=1) == ["usury"]
    assert completions(server, "user:", side="item", matches=False) == []
    items = sorted({item for _, item in LINKS})
    assert sorted(completions(server, "", side="item", k=100)) == items
    assert completions(server, "", side="user", k=100) == [f"user:{i}" for i in range(1, 9)]


def test_indexes_list_sides(server: Server) -> None:
    sides = {each["name"]: each["sides"] for each in server.get("/v1/indexes").json["indexes"]}
    assert sides == {"shop": ["user", "item"], "web": None}


def page(server: Server, path: str, status: int = 200) -> LexborHTMLParser:
    response = server.get(path)
    assert response.status == status, response.body
    return LexborHTMLParser(response.body.decode())


def selected_side(tree: LexborHTMLParser) -> str | None:
    options = [each.text() for each in tree.css("#side option[selected]")]
    assert len(options) <= 1
    return options[0] if options else None


def test_page_side_follows_query_and_links(server: Server) -> None:
    assert selected_side(page(server, "/")) == "item"
    assert selected_side(page(server, "/?index=web")) is None
    tree = page(server, "/?node=1&side=user&k=3")
    assert selected_side(tree) == "user"
    assert [name.text() for name in tree.css("h1 bdi")] == ["user:1"]
    links = [link.attributes["href"] or "" for link in tree.css("table.hits th a")]
    assert links
    assert all("side=" not in link and "user%3A" in link for link in links)
    linked = page(server, links[0])
    assert selected_side(linked) == "user"
    hidden = {each.attributes["name"] for each in tree.css("details input[type=hidden]")}
    assert hidden == {"node"}
    reason_links = [link.attributes["href"] or "" for link in tree.css("a.ask")]
    reasons = page(server, reason_links[0]).css("#why .reason a")
    sides = []
    for reason in reasons:
        user = (reason.text() or "").startswith("user:")
        sides.append(selected_side(page(server, reason.attributes["href"] or "")))
        assert sides[-1] == ("user" if user else "item")
    assert "item" in sides  # users are similar through items
    (json_link,) = [a.attributes["href"] for a in tree.css(".files a") if a.text() == "JSON"]
    assert server.get(json_link or "").json["node"] == "user:1"


def test_page_suggests_names_of_same_side(server: Server) -> None:
    tree = page(server, "/?node=us&side=item", 404)
    assert [link.text() for link in tree.css("ul.like a")] == ["usury", "useful"]
    assert selected_side(tree) == "item"
    (corrected,) = page(server, "/?node=usery&side=item", 404).css("ul.like a")
    assert corrected.text() == "usury"


def test_csv_escapes_formulas(server: Server) -> None:
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
