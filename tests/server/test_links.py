"""Posted links: stored, used at once in answers, and added to the graph by a refresh."""

import json
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import cocite
from cocite.cli.main import main
from cocite.errors import CociteError, UsageError
from cocite.graph.journal import PostedLink, encoded_links, journal_of
from cocite.search.results import RelatedDocument, SimilarityDocument, WhyDocument
from cocite.server.fresh import FreshLinks
from cocite.server.keys import Keys, new_key
from cocite.server.results import Limits
from cocite.storage import disk
from cocite.storage.records import RecordLog
from tests.server.conftest import Serving, Start
from tests.storage.enemy import Killed, KilledAt

DRAW = random.Random(3)
ENDS = [(f"p{a}", f"p{b}") for a in range(60) for b in DRAW.sample(range(60), 4)]
LINKS = sorted({(a, b) for a, b in ENDS if a != b})
NEW = [("p1", "p40"), ("p41", "p1"), ("zebra", "p2"), ("p3", "zebra"), ("p4", "zebra")]
TITLES = {"p1": "One", "p2": "Two"}


def body(links: Any) -> dict[str, Any]:
    return {
        "links": [dict(zip(("source", "target", "weight"), each, strict=False)) for each in links]
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph and its index."""
    folder = tmp_path_factory.mktemp("built")
    graph = cocite.ingest(LINKS, folder / "web.graph", titles=TITLES)
    cocite.build(graph, folder / "web.index", measure="fusion")
    return folder


@pytest.fixture
def web_folder(built: Path, tmp_path: Path) -> Path:
    """A copy of that folder."""
    return shutil.copytree(built, tmp_path / "web")


Ask = Callable[..., SimpleNamespace]
StartClient = Callable[..., Any]


@pytest.fixture
def start_client(web_folder: Path, serving: Serving) -> Callable[..., Ask]:
    """Start a server with ``limits`` in this process; return a client that sends a key."""

    def start(**limits: Any) -> Ask:
        keys = {name: new_key(name) for name in ("reader", "writer")}
        (web_folder / "keys").write_text(f"{keys['reader'][1]}\n{keys['writer'][1]}  write\n")
        bounds, options = Limits(question_time=600.0, **limits), {"api_keys": web_folder / "keys"}
        server = serving(web_folder / "web.index", bounds, accept_links=True, **options)

        def ask(path: str, sent: Any = None, name: str = "writer", **more: str) -> Any:
            return server(path, sent, **{"authorization": f"Bearer {keys[name][0]}"} | more)

        ask.service = server.service  # type: ignore[attr-defined]
        return ask

    return start


def neighbors(name: str, links: Any) -> dict[str, Any]:
    """The links of a node with nodes of the index."""
    known = {end for link in LINKS for end in link}
    out = [b for a, b, *_ in links if a == name and b in known]
    return {"out": out, "into": [a for a, b, *_ in links if b == name and a in known]}


@pytest.mark.parametrize("measure", ["fusion", "psimrank", "snn", "ppr-symmetric", "cocitation"])
def test_fresh_links_answers_equal_draft(
    start_client: StartClient, web_folder: Path, measure: str
) -> None:
    graph, path = web_folder / "web.graph", web_folder / "web.index"
    options = {"samples": 30} if measure == "psimrank" else {}
    cocite.build(graph, path, measure=measure, overwrite=True, **options)
    ask = start_client()
    before = {n: ask(f"/v1/related?node={n}&k=20").json for n in ("p1", "p7")}
    taken = ask("/v1/links", body(NEW)).json
    assert taken == {"index": "web", "links": 5, "ignored": 0, "new_nodes": 1} | {
        "position": (web_folder / "web.index.links").stat().st_size
    }
    index, draft_name = cocite.open(path), "the draft"
    for name in ("p1", "zebra"):
        draft = index.with_draft(**neighbors(name, [*LINKS, *NEW]), name=draft_name)
        answer = ask(f"/v1/related?node={name}&k=20").json
        assert answer.pop("fresh") == name
        hits = RelatedDocument.of(draft, draft_name, 30).to_json()["hits"]
        other_hits = [hit for hit in hits if hit["node"] != name][:20]
        assert answer["hits"] == [hit | {"rank": rank} for rank, hit in enumerate(other_hits, 1)]
        assert (answer["node"], answer["title"]) == (name, TITLES.get(name))
        pair = ask(f"/v1/similarity?a=p9&b={name}").json
        assert pair.pop("fresh") == name
        assert (
            pair | {"b": draft_name, "b_title": None}
            == SimilarityDocument.of(draft, "p9", draft_name).to_json()
        )
        why = ask(f"/v1/why?a={name}&b=p9").json
        assert why.pop("fresh") == name
        expected = WhyDocument.of(draft, draft_name, "p9").to_json()
        assert why["score"] == expected["score"]
        assert len(why["reasons"]) == len(expected["reasons"])
    assert ask("/v1/related?node=p7&k=20").json == before["p7"]  # has no new link
    several = ask("/v1/batch", {"nodes": ["p1", "p7", "zebra"], "k": 20}).json["answers"]
    assert several == [ask(f"/v1/related?node={n}&k=20").json for n in ("p1", "p7", "zebra")]
    assert ask("/v1/related?node=p1&k=20&order=pagerank").json.get("fresh") is None


def test_links_require_write_access_and_ignore_duplicates(
    start_client: StartClient, web_folder: Path
) -> None:
    ask = start_client()
    tag = ask("/v1/related?node=p1").headers["etag"]
    refused = ask("/v1/links", body(NEW), "reader")
    assert (refused.status, refused.json["type"]) == (403, "/docs#read-only")
    assert not journal_of(web_folder / "web.index").exists()
    first, second = LINKS[0], LINKS[1]
    assert ask("/v1/links", body([first, second, ("p5", "p5")])).json["ignored"] == 3
    assert not journal_of(web_folder / "web.index").exists()
    assert ask("/v1/links", body([NEW[0], first, NEW[0]])).json["links"] == 1
    size = journal_of(web_folder / "web.index").stat().st_size
    again = ask("/v1/links", body([NEW[0]])).json
    assert (again["links"], again["ignored"], again["position"]) == (0, 1, size)
    changed = ask("/v1/related?node=p1", if_none_match=tag)
    assert (changed.status, changed.headers["cache-control"]) == (200, "private, no-cache")
    assert ask("/v1/related?node=p1", if_none_match=changed.headers["etag"]).status == 304
    lines = b'{"source": "p1", "target": "p44"}\n{"source": 7, "target": " p1 "}\n'
    taken = ask("/v1/links?index=web", lines, content_type="application/x-ndjson").json
    assert (taken["links"], taken["new_nodes"]) == (2, 1)
    names = ask("/v1/complete?text=7").json["nodes"]
    assert {"node": "7", "title": None} in names
    metrics = ask("/metrics").body.decode()
    assert 'cocite_links_total{index="web"} 3.0' in metrics
    assert 'cocite_links_waiting{index="web"} 3.0' in metrics


@pytest.mark.parametrize(
    ("sent", "status", "detail"),
    [
        (b"{", 400, "not JSON"),
        ({"links": []}, 422, "the request has no links"),
        ({"links": [{"source": "p1"}]}, 422, "missing required field `target` - at `$.links[0]`"),
        ({"links": [{"source": "p1", "target": None}]}, 422, "$.links[0].target"),
        ({"links": [], "to": "web"}, 422, "unknown field `to`"),
        (body([("p1", "p2", 0.0)]), 422, "links[0].weight is 0; it must be a number from 1e-30"),
        (body([("p1", "p2", 2.5)]), 422, "the index ignores weights"),
        (body([("p1", "p3"), (" ", "p2")]), 422, "links[1].source is empty"),
        (body([("p1", "a\u202eb")]), 422, "links[0].target has U+202E"),
        (body([("p1", "a\nb")]), 422, "links[0].target has a control character"),
        (body([("é" * 40_000, "p1")]), 422, "links[0].source is longer than 65,535 bytes"),
        (body([("p1", f"x{i}") for i in range(8)]), 413, "accepts 7 at once"),
        (body([("p1", f"x{i}") for i in range(6)]), 413, "stores at most 5: refresh the index"),
        (body(NEW) | {"index": "other"}, 404, "this server has web"),
    ],
)
def test_links_reports_invalid_request_and_stores_nothing(
    start_client: StartClient, web_folder: Path, sent: Any, status: int, detail: str
) -> None:
    ask = start_client(links=7, pending=5)
    response = ask("/v1/links", sent)
    assert (response.status, response.headers["content-type"]) == (
        status,
        "application/problem+json",
    )
    assert detail in response.json["detail"]
    assert not journal_of(web_folder / "web.index").exists()


def test_fresh_links_reports_unsupported_queries(start_client: StartClient) -> None:
    ask = start_client()
    ask("/v1/links", body([("new", "newer"), ("zebra", "p1"), ("okapi", "p1")]))
    unlinked = ask("/v1/related?node=new")
    assert (unlinked.status, "linked only with new nodes" in unlinked.json["detail"]) == (404, True)
    pair = ask("/v1/similarity?a=zebra&b=okapi")
    assert (pair.status, "query them one at a time" in pair.json["detail"]) == (404, True)
    assert ask("/v1/similarity?a=p1&b=okapi").json["fresh"] == "okapi"
    assert ask("/v1/related?node=Zebra").status == 404
    for page in ("/?node=zebra", "/?node=p1", "/?node=p1&why=p9", "/?node=new"):
        assert ask(page).status in (200, 404), page


def test_fresh_links_use_weights_of_weighted_index(
    web_folder: Path, start_client: StartClient
) -> None:
    links = [(a, b, 1.0 + i % 3) for i, (a, b) in enumerate(LINKS)]
    graph = cocite.ingest(links, web_folder / "web.graph", undirected=True, overwrite=True)
    cocite.build(graph, web_folder / "web.index", measure="ppr-symmetric", overwrite=True)
    new = [("p1", "zebra", 7.5), ("zebra", "p9", 2.0)]
    ask = start_client()
    assert ask("/v1/links", body(new)).json["links"] == 2
    assert ask("/v1/links", body([("p9", "zebra", 3.0)])).json["links"] == 0  # undirected
    weights = {"p1": 7.5, "p9": 2.0}
    draft = cocite.open(web_folder / "web.index").with_draft(weights, weights)
    hits = ask("/v1/related?node=zebra&k=10").json["hits"]
    assert hits == RelatedDocument.of(draft, "draft", 10).to_json()["hits"]


# -- refresh -----------------------------------------------------------------------------


def digest(index: Path) -> str:
    return str(cocite.open(index).stored.store.manifest.digest())


@pytest.mark.parametrize("rename", [str, lambda name: name.strip("p")])
def test_refresh_add_links_equals_full_build(
    tmp_path: Path, rename: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    links, new = ([(rename(a), rename(b)) for a, b in each] for each in (LINKS, NEW))
    graph, index = tmp_path / "web.graph", tmp_path / "web.index"
    for output, rows in ((graph, links), (tmp_path / "whole.graph", [*links, *new])):
        (tmp_path / "links.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
        cocite.ingest(tmp_path / "links.tsv", output, header="no")
    cocite.build(graph, index)
    log = RecordLog(journal_of(index))
    log.append(encoded_links([PostedLink(*new[0]), PostedLink(*links[0])]))
    log.append(encoded_links(PostedLink(*link) for link in new))
    assert main(["refresh", str(index), str(graph)]) == 0  # the graph does not have them
    assert "5 links that a server accepted" in capsys.readouterr().err
    assert log.records() == [encoded_links([PostedLink(*link)]) for link in new[:1]] + [
        encoded_links(PostedLink(*link) for link in new)
    ]
    assert main(["refresh", str(index), str(graph), "--add-links"]) == 0
    assert cocite.Graph.open(graph).digest == cocite.Graph.open(tmp_path / "whole.graph").digest
    cocite.build(tmp_path / "whole.graph", tmp_path / "whole.index")
    assert digest(index) == digest(tmp_path / "whole.index")
    assert log.records() == []


def test_refresh_add_links_loses_no_link_while_serving(
    start_client: StartClient, web_folder: Path
) -> None:
    ask = start_client()
    ask("/v1/links", body(NEW))
    before = ask("/v1/related?node=zebra").json
    cocite.refresh(web_folder / "web.index", web_folder / "web.graph", add_links=True)
    assert RecordLog(journal_of(web_folder / "web.index")).records() == []
    assert ask("/v1/related?node=zebra").json == before  # from the old index, until reload
    assert ask("/v1/links", body([("okapi", "zebra"), NEW[0]])).json["links"] == 1
    ask.service.look(ask.service.holders["web"])
    plain = cocite.open(web_folder / "web.index")
    assert ask("/v1/related?node=p1&k=9").json == RelatedDocument.of(plain, "p1", 9).to_json()
    okapi = ask("/v1/related?node=okapi").json
    assert (okapi["fresh"], okapi["hits"][0]["node"] != "okapi") == ("okapi", True)


@pytest.mark.parametrize(
    ("call", "step"),
    [pytest.param("sync_file", 7, marks=pytest.mark.long), ("rename", 3), ("exchange", 1)],
)
def test_refresh_add_links_survives_kill_at_any_call(
    web_folder: Path, monkeypatch: pytest.MonkeyPatch, call: str, step: int
) -> None:
    """After a kill each link is in the log or in the index's graph; a repeated refresh adds all
    links and writes the same bytes.
    """
    copy, whole = (web_folder.with_name(f"{web_folder.name}.{name}") for name in ("copy", "whole"))
    shutil.copytree(web_folder, whole)
    links = [PostedLink(*link) for link in NEW]
    for each in (web_folder, whole):
        RecordLog(journal_of(each / "web.index")).append(encoded_links(links))
    cocite.refresh(whole / "web.index", whole / "web.graph", add_links=True)
    expected, changed = digest(whole / "web.index"), cocite.Graph.open(whole / "web.graph").digest
    real, point = getattr(disk, call), 1 - step
    finished = False
    while not finished:
        point += step
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(web_folder, copy)
        failing = KilledAt(real, point)
        with monkeypatch.context() as patch:
            patch.setattr(disk, call, failing)
            try:
                cocite.refresh(copy / "web.index", copy / "web.graph", add_links=True)
                finished = True
            except Killed:
                pass
        index = cocite.open(copy / "web.index")
        left = {
            tuple(each)
            for record in RecordLog(journal_of(copy / "web.index")).records()
            for each in json.loads(record)
        }
        if index.stored.graph["digest"] != changed:
            assert left == set(NEW)
        cocite.refresh(copy / "web.index", copy / "web.graph", add_links=True)
        assert digest(copy / "web.index") == expected
        assert RecordLog(journal_of(copy / "web.index")).records() == []
    assert point > step


# -- requirements -----------------------------------------------------------------------


def test_accept_links_refuses_unsupported_setups(
    tmp_path: Path, web_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index, keys = str(web_folder / "web.index"), web_folder / "keys"
    serve = ["serve", index, "--port", "0", "--accept-links"]
    assert main(serve) == 2
    assert "a key with write access" in capsys.readouterr().err
    _, line = new_key("reader")
    keys.write_text(line + "\n")
    assert main([*serve, "--api-keys", str(keys)]) == 2
    assert "append the word write" in capsys.readouterr().err
    keys.write_text(line + " write\n")
    assert Keys(keys).writers == {"reader"}
    assert main([*serve, "--api-keys", str(keys), "--cluster", "local:2"]) == 2
    shutil.rmtree(web_folder / "web.graph")
    assert main([*serve, "--api-keys", str(keys)]) == 1
    assert "is not at" in capsys.readouterr().err
    sides = cocite.ingest([("a", "x"), ("b", "x")], bipartite=True)
    table = cocite.build(sides, tmp_path / "sides.index", measure="snn")
    with pytest.raises(UsageError, match="bipartite"):
        FreshLinks(table, index)
    journal_of(index).write_text("something else\n")
    graph = cocite.ingest(LINKS)
    with pytest.raises(CociteError, match="not a log of records"):
        FreshLinks(cocite.build(graph), index)


@pytest.mark.process
def test_accept_links_reach_all_workers_and_survive_kill(web_folder: Path, start: Start) -> None:
    key, line = new_key("writer")
    (web_folder / "keys").write_text(line + " write\n")
    options = ("--api-keys", str(web_folder / "keys"), "--accept-links", "--workers", "2")
    server = start(str(web_folder / "web.index"), *options, "--no-requests")
    headers = {"Authorization": f"Bearer {key}"}
    response = server.post("/v1/links", body(NEW), **headers)
    assert response.json["links"] == 5, response.body
    for _ in range(12):
        assert server.get("/v1/related?node=zebra", **headers).json["fresh"] == "zebra"
    workers = subprocess.run(
        ["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True, check=True
    )
    for pid in workers.stdout.split():
        os.kill(int(pid), signal.SIGKILL)
    server.until(lambda: server.get("/v1/related?node=zebra", **headers).json["fresh"] == "zebra")
    assert server.post("/v1/links", body(NEW), **headers).json["links"] == 0
