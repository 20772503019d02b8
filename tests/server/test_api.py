"""The API over a real connection: the documents of the command line, and what is wrong, told."""

import gzip
import http.client
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Told
from tests.server.conftest import Server

pytestmark = [pytest.mark.process, pytest.mark.chosen]

zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def test_answers_are_those_of_the_command_line(server: Server, folder: Path, told: Told) -> None:
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
        found = server.ask(verb, **query)
        assert found.status == 200, found.body
        assert found.json == told(*arguments)
        assert found.headers["content-type"] == "application/json"


def test_a_batch_is_its_questions(server: Server) -> None:
    body = {"nodes": ["red", "nobody", ["red", "blue"], *["green"] * 20], "k": 2}
    found = server.post("/v1/batch", body)
    assert found.status == 200
    first, second, third, *others = found.json["answers"]
    assert first == server.ask("related", node="red", k=2).json
    assert second["node"] == "nobody"
    assert "no node is named 'nobody'" in second["error"]["detail"]
    assert third == server.ask("related", node=["red", "blue"], k=2).json
    assert others == [server.ask("related", node="green", k=2).json] * 20
    lines = server.post("/v1/batch", body, Accept="application/x-ndjson")
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in lines.body.splitlines()] == found.json["answers"]


def test_draft_answers_as_the_command_line_does(
    server: Server, folder: Path, tmp_path: Path, told: Told
) -> None:
    draft = tmp_path / "draft"
    draft.write_text("red\n<- hub1\n<- hub2\n")
    for name in ("web", "near"):
        expected = told("related", str(folder / f"{name}.index"), "--draft", str(draft))
        body = {"index": name, "out": ["red"], "into": ["hub1"], "text": "<- hub2"}
        found = server.post("/v1/related", body)
        assert found.status == 200, found.body
        assert found.json == expected | {"unknown": []}
    assert expected["hits"]


def test_draft_lists_unknown_names_or_refuses_them(server: Server) -> None:
    body = {"index": "near", "out": ["red", "nobody"], "k": 1}
    assert server.post("/v1/related", body).json["detail"].startswith("no node is named 'nobody'")
    found = server.post("/v1/related", body | {"skip_unknown": True}).json
    assert (found["unknown"], len(found["hits"])) == (["nobody"], 1)
    note = {"index": "near", "text": "See [[red]] and [[nobody]].", "format": "note"}
    found = server.post("/v1/related", note | {"skip_unknown": True, "k": 1}).json
    assert (found["unknown"], len(found["hits"])) == (["nobody"], 1)
    for wrong, says in (
        ({"out": ["nobody"], "skip_unknown": True}, "the draft has no link"),
        ({"text": "red\t0"}, "is not a link of a draft"),
        ({"out": "red"}, "it must be a list of strings"),
        ({"out": ["red"], "name": "blue"}, "'blue' is the name of a node"),
    ):
        refused = server.post("/v1/related", {"index": "near", **wrong})
        assert (refused.status, says in refused.json["detail"]) == (422, True), refused.body


def test_names_are_completed_by_beginning_and_by_part(server: Server) -> None:
    first = server.ask("complete", text="leaf1", k=2).json
    assert [each["node"] for each in first["nodes"]] == ["leaf1", "leaf10"]
    assert first["more"]
    part = server.ask("complete", text="ETE").json
    assert [each["node"] for each in part["nodes"]] == ["été & <b>"]
    assert server.ask("complete", text="ETE", matches="false").json["nodes"] == []


def test_indexes_say_what_they_are_and_not_where(server: Server, folder: Path) -> None:
    found = server.ask("indexes")
    web, near, _ = found.json["indexes"]
    assert (web["name"], web["samples"], near["name"], near["samples"]) == ("web", 60, "near", None)
    assert str(folder).encode() not in found.body


@pytest.mark.parametrize(
    ("path", "status", "says"),
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
def test_what_is_wrong_is_told(server: Server, path: str, status: int, says: str) -> None:
    found = server.get(path)
    assert found.status == status, found.body
    assert found.headers["content-type"] == "application/problem+json"
    assert says in found.json["detail"]
    assert found.json["status"] == status
    kind = found.json["type"].removeprefix("/docs#")
    assert f'id="{kind}"'.encode() in server.get("/docs").body


def test_a_body_is_bounded_and_read_as_json(server: Server) -> None:
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    link.putrequest("POST", "/v1/batch")  # its head alone: what is refused is not read
    link.putheader("Content-Type", "application/json")
    link.putheader("Content-Length", str((1 << 20) + 1))
    link.endheaders()
    assert link.getresponse().status == 413
    link.close()
    for status, *bodies in (
        (413, {"nodes": ["red"] * 1001}, {"nodes": ["red"] * 101, "k": 1000}),
        (400, b"{", b"[" * 5000),
        (422, [1], {"nodes": []}, {"nodes": [1]}, {"nodes": ["red"], "k": True}),
        (422, {"nodes": ["nobody"], "max_edges": 1}),
    ):
        assert [server.post("/v1/batch", each).status for each in bodies] == [status] * len(bodies)
    assert server.post("/v1/batch", {"nodes": ["red"]}, Content_Type="text/plain").status == 415


def test_a_large_answer_is_whole(server: Server) -> None:
    found = server.post("/v1/batch", {"nodes": ["red", "blue"] * 100, "k": 50})
    assert int(found.headers["content-length"]) == len(found.body) > 1 << 17
    assert len(found.json["answers"]) == 200


def test_link_leads_through_all_hits(server: Server) -> None:
    whole = server.ask("related", node="red", k=1000)
    assert "link" not in whole.headers
    pages, path = list[Any](), "/v1/related?node=red&k=4&total=true"
    while path:
        found = server.get(path)
        assert found.json["total"] == len(whole.json["hits"])
        pages += found.json["hits"]
        link = found.headers.get("link", "")
        assert link == "" or link.endswith('>; rel="next"')
        path = link[1:].partition(">")[0]
    assert pages == whole.json["hits"]
    assert [hit["rank"] for hit in pages] == [*range(1, len(pages) + 1)]


def test_a_client_that_has_the_answer_is_told_so(server: Server) -> None:
    first = server.ask("related", node="red")
    tag = first.headers["etag"]
    again = server.get("/v1/related?node=red", If_None_Match=tag)
    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == tag
    fewer = tag.replace("-60", "-30")  # made under load: there is a better one now
    assert server.get("/v1/related?node=red", If_None_Match=fewer).status == 200
    assert server.get("/v1/related?node=red&index=near", If_None_Match=tag).status == 200


def test_answers_are_packed_for_who_can_unpack(server: Server) -> None:
    path = "/v1/related?node=red"
    plain = server.get(path).body
    assert len(plain) > 1024
    for coding, unpacked in (("gzip", gzip.decompress), ("zstd", zstd.decompress)):
        found = server.get(path, Accept_Encoding=f"br, {coding};q=0.8")
        assert found.headers["content-encoding"] == coding
        assert unpacked(found.body) == plain
        assert len(found.body) < len(plain)
    assert "content-encoding" not in server.get(path, Accept_Encoding="gzip;q=0, zstd;q=0").headers


def test_every_answer_is_guarded(server: Server) -> None:
    for path in ("/v1/related?node=red", "/v1/related", "/nowhere", "/docs", "/metrics"):
        headers = server.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers


def test_metrics_count_what_was_asked(server: Server) -> None:
    def count() -> float:
        text = server.get("/metrics").body.decode()
        row = 'cocite_requests_total{operation="similarity",status="200"}'
        return float(dict(line.rsplit(" ", 1) for line in text.splitlines()).get(row, 0))

    before = count()
    server.ask("similarity", a="red", b="blue")
    assert count() == before + 1


def test_repeated_question_has_same_answer_in_every_coding(server: Server) -> None:
    plain = [server.ask("related", node="red", k=3) for _ in range(3)]
    assert len({found.body for found in plain}) == 1
    gzip = [server.get("/v1/related?node=red&k=3", **{"Accept-Encoding": "gzip"}) for _ in "ab"]
    assert [found.json for found in gzip] == [plain[0].json] * 2
    assert {found.headers["etag"] for found in (*plain, *gzip)} == {plain[0].headers["etag"]}
    assert server.ask("related", node="nobody").status == 404
    assert server.ask("related", node="nobody").status == 404
