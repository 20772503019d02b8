"""The API over a real connection: the command line's documents, and error reports."""

import gzip
import http.client
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CliJson
from tests.server.conftest import Server

pytestmark = [pytest.mark.process, pytest.mark.chosen]

zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def test_api_answers_equal_command_line(server: Server, folder: Path, cli_json: CliJson) -> None:
    web, near, one = (str(folder / f"{each}.index") for each in ("web", "near", "one"))
    name = "été & <b>"
    for arguments, verb, query in (
        (["related", web, "red"], "related", {"node": "red"}),
        (["related", web, name, "-k", "3"], "related", {"node": name, "k": 3}),
        (["related", web, "red", "blue"], "related", {"node": ["red", "blue"]}),
        (["related", near, "red"], "related", {"node": "red", "index": "near"}),
        (["related", one, "red"], "related", {"node": "red", "index": "one"}),
        (["related", web, "red", "--refine"], "related", {"node": "red", "refine": "true"}),
        (
            ["related", web, "red", "--prefix", "b", "--decay", "0.8"],
            "related",
            {"node": "red", "prefix": "b", "decay": 0.8},
        ),
        (["similarity", web, "red", "blue"], "similarity", {"a": "red", "b": "blue"}),
        (["why", web, "red", "blue"], "why", {"a": "red", "b": "blue"}),
        (["why", near, "red", "blue"], "why", {"a": "red", "b": "blue", "index": "near"}),
        (["why", web, "red", "green", "blue"], "why", {"a": ["red", "green"], "b": "blue"}),
    ):
        response = server.ask(verb, **query)
        assert response.status == 200, response.body
        assert response.json == cli_json(*arguments)
        assert response.headers["content-type"] == "application/json"


def test_batch_answers_equal_single_queries(server: Server) -> None:
    body = {"nodes": ["red", "nobody", ["red", "blue"], *["green"] * 20], "k": 2}
    response = server.post("/v1/batch", body)
    assert response.status == 200
    first, second, third, *others = response.json["answers"]
    assert first == server.ask("related", node="red", k=2).json
    assert second["node"] == "nobody"
    assert "no node is named 'nobody'" in second["error"]["detail"]
    assert third == server.ask("related", node=["red", "blue"], k=2).json
    assert others == [server.ask("related", node="green", k=2).json] * 20
    lines = server.post("/v1/batch", body, Accept="application/x-ndjson")
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in lines.body.splitlines()] == response.json["answers"]


def test_draft_answers_equal_command_line(
    server: Server, folder: Path, tmp_path: Path, cli_json: CliJson
) -> None:
    draft = tmp_path / "draft"
    draft.write_text("red\n<- hub1\n<- hub2\n")
    for name in ("web", "near"):
        expected = cli_json("related", str(folder / f"{name}.index"), "--draft", str(draft))
        body = {"index": name, "out": ["red"], "into": ["hub1"], "text": "<- hub2"}
        response = server.post("/v1/related", body)
        assert response.status == 200, response.body
        assert response.json == expected | {"unknown": []}
    assert expected["hits"]


def test_draft_lists_or_refuses_unknown_names(server: Server) -> None:
    body = {"index": "near", "out": ["red", "nobody"], "k": 1}
    assert server.post("/v1/related", body).json["detail"].startswith("no node is named 'nobody'")
    document = server.post("/v1/related", body | {"skip_unknown": True}).json
    assert (document["unknown"], len(document["hits"])) == (["nobody"], 1)
    note = {"index": "near", "text": "See [[red]] and [[nobody]].", "format": "note"}
    document = server.post("/v1/related", note | {"skip_unknown": True, "k": 1}).json
    assert (document["unknown"], len(document["hits"])) == (["nobody"], 1)
    for wrong, detail in (
        ({"out": ["nobody"], "skip_unknown": True}, "the draft has no link"),
        ({"text": "red\t0"}, "is not a link of a draft"),
        ({"out": "red"}, "it must be a list of strings"),
        ({"out": ["red"], "name": "blue"}, "'blue' is the name of a node"),
    ):
        refused = server.post("/v1/related", {"index": "near", **wrong})
        assert (refused.status, detail in refused.json["detail"]) == (422, True), refused.body


def test_complete_matches_prefix_and_substring(server: Server) -> None:
    first = server.ask("complete", text="leaf1", k=2).json
    assert [each["node"] for each in first["nodes"]] == ["leaf1", "leaf10"]
    assert first["more"]
    part = server.ask("complete", text="ETE").json
    assert [each["node"] for each in part["nodes"]] == ["été & <b>"]
    assert server.ask("complete", text="ETE", matches="false").json["nodes"] == []


def test_indexes_hide_paths(server: Server, folder: Path) -> None:
    response = server.ask("indexes")
    web, near, _ = response.json["indexes"]
    assert (web["name"], web["samples"], near["name"], near["samples"]) == ("web", 60, "near", None)
    assert str(folder).encode() not in response.body


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        ("/v1/related?node=nobody", 404, "no node is named 'nobody'"),
        ("/v1/related?node=red&index=other", 404, "this server has web, near"),
        ("/v1/related", 422, "node is required"),
        ("/v1/related?node=red&k=0", 422, "k is 0; it must be a whole number from 1 to 1000"),
        ("/v1/related?node=red&k=two", 422, "k is 'two'; it must be a whole number from 1 to 1000"),
        ("/v1/related?node=red&k=1&k=2", 422, "k is given 2 times"),
        ("/v1/related?node=red&offset=10001", 422, "from 0 to 10000"),
        ("/v1/related?node=red&nodes=red", 422, "Did you mean node"),
        ("/v1/related?node=red&max_edges=1", 422, "psimrank has no setting 'max_edges'"),
        ("/v1/related?node=red&confidence=1", 422, "confidence is 1.0"),
        ("/v1/related?node=red&confidence=nan", 422, "confidence is nan"),
        ("/v1/related?node=%FF", 422, "not UTF-8"),
        ("/v1/related?" + "&".join(["node=red"] * 21), 413, "accepts 20 at once"),
        ("/v1/related?node=" + "x" * 9000, 414, "more than 8,192 bytes"),
        ("/v1/related?node=" + "x" * 5000, 422, "the maximum is 4,096"),
        ("/nowhere", 404, "/docs lists"),
        ("/v1/batch", 405, "accepts POST"),
    ],
)
def test_api_reports_invalid_requests(server: Server, path: str, status: int, detail: str) -> None:
    response = server.get(path)
    assert response.status == status, response.body
    assert response.headers["content-type"] == "application/problem+json"
    assert detail in response.json["detail"]
    assert response.json["status"] == status
    kind = response.json["type"].removeprefix("/docs#")
    assert f'id="{kind}"'.encode() in server.get("/docs").body


def test_batch_refuses_large_or_invalid_body(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.putrequest("POST", "/v1/batch")  # only the head: a refused body is not read
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str((1 << 20) + 1))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()
    for status, *bodies in (
        (413, {"nodes": ["red"] * 1001}, {"nodes": ["red"] * 101, "k": 1000}),
        (400, b"{", b"[" * 5000),
        (422, [1], {"nodes": []}, {"nodes": [1]}, {"nodes": ["red"], "k": True}),
        (422, {"nodes": ["nobody"], "max_edges": 1}),
    ):
        assert [server.post("/v1/batch", each).status for each in bodies] == [status] * len(bodies)
    assert server.post("/v1/batch", {"nodes": ["red"]}, Content_Type="text/plain").status == 415


def test_batch_returns_complete_large_answer(server: Server) -> None:
    response = server.post("/v1/batch", {"nodes": ["red", "blue"] * 100, "k": 50})
    assert int(response.headers["content-length"]) == len(response.body) > 1 << 17
    assert len(response.json["answers"]) == 200


def test_link_header_leads_through_all_hits(server: Server) -> None:
    whole = server.ask("related", node="red", k=1000)
    assert "link" not in whole.headers
    hits, path = list[Any](), "/v1/related?node=red&k=4&total=true"
    while path:
        response = server.get(path)
        assert response.json["total"] == len(whole.json["hits"])
        hits += response.json["hits"]
        link = response.headers.get("link", "")
        assert link == "" or link.endswith('>; rel="next"')
        path = link[1:].partition(">")[0]
    assert hits == whole.json["hits"]
    assert [hit["rank"] for hit in hits] == [*range(1, len(hits) + 1)]


def test_etag_match_returns_304(server: Server) -> None:
    first = server.ask("related", node="red")
    tag = first.headers["etag"]
    again = server.get("/v1/related?node=red", If_None_Match=tag)
    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == tag
    weaker = tag.replace("-60", "-30")  # an answer under load: there is a better one now
    assert server.get("/v1/related?node=red", If_None_Match=weaker).status == 200
    assert server.get("/v1/related?node=red&index=near", If_None_Match=tag).status == 200


def test_accept_encoding_selects_gzip_or_zstd(server: Server) -> None:
    path = "/v1/related?node=red"
    plain = server.get(path).body
    assert len(plain) > 1024
    for coding, decompress in (("gzip", gzip.decompress), ("zstd", zstd.decompress)):
        response = server.get(path, Accept_Encoding=f"br, {coding};q=0.8")
        assert response.headers["content-encoding"] == coding
        assert decompress(response.body) == plain
        assert len(response.body) < len(plain)
    assert "content-encoding" not in server.get(path, Accept_Encoding="gzip;q=0, zstd;q=0").headers


def test_front_sets_security_headers(server: Server) -> None:
    for path in ("/v1/related?node=red", "/v1/related", "/nowhere", "/docs", "/metrics"):
        headers = server.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers


def test_metrics_count_requests(server: Server) -> None:
    def count() -> float:
        text = server.get("/metrics").body.decode()
        row = 'cocite_requests_total{operation="similarity",status="200"}'
        return float(dict(line.rsplit(" ", 1) for line in text.splitlines()).get(row, 0))

    before = count()
    server.ask("similarity", a="red", b="blue")
    assert count() == before + 1


def test_answer_cache_returns_same_answer_in_every_coding(server: Server) -> None:
    plain = [server.ask("related", node="red", k=3) for _ in range(3)]
    assert len({response.body for response in plain}) == 1
    gzip = [server.get("/v1/related?node=red&k=3", **{"Accept-Encoding": "gzip"}) for _ in "ab"]
    assert [response.json for response in gzip] == [plain[0].json] * 2
    assert {response.headers["etag"] for response in (*plain, *gzip)} == {plain[0].headers["etag"]}
    assert server.ask("related", node="nobody").status == 404
    assert server.ask("related", node="nobody").status == 404
