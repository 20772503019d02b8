"""Who may ask, from where, and what nobody is told."""

import asyncio
import base64
import hashlib
import os
import shutil
import signal
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.responses import StreamingResponse
from starlette.types import Message

from cocite.cli.main import main
from cocite.errors import InputError
from cocite.server.app import Front, is_known
from cocite.server.keys import Keys, new_key
from cocite.server.metrics import one_line
from cocite.server.results import Config, Limits, served_indexes
from cocite.server.service import Scrub
from tests.conftest import Shell
from tests.server.conftest import Server, Start

SITE = "https://pages.example"


@pytest.fixture(scope="module")
def keys(folder: Path) -> tuple[Path, str]:
    key, line = new_key("reader")
    file = folder / "keys.txt"
    file.write_text(f"# who may ask\n\n{line}\n")
    return file, key


@pytest.fixture(scope="module")
def server(folder: Path, start: Start, keys: tuple[Path, str]) -> Server:
    alone = folder / "alone"
    alone.mkdir()
    shutil.copytree(folder / "web.index", alone / "web.index")  # its graph is not where it was
    options = ("--api-keys", str(keys[0]), "--allow-origin", SITE, "--frame-ancestors", SITE)
    return start(str(alone / "web.index"), "--host", "0.0.0.0", *options, "--no-requests")


PATH = "/v1/related?node=red"


@pytest.mark.process
def test_who_has_no_key_is_told_nothing(server: Server, keys: tuple[Path, str]) -> None:
    key = keys[1]
    for path in (PATH, "/docs", "/openapi.json", "/metrics", "/v1/indexes", "/nowhere"):
        found = server.get(path)
        assert found.status == 401
        assert found.headers["www-authenticate"].startswith("Basic")
    for wrong in ("", "x", key[:-1], key + "x", "é", "x" * 5000):
        sent = wrong.encode("utf-8").decode("latin-1")
        assert server.get(PATH, Authorization=f"Bearer {sent}").status == 401
    assert server.get("/healthz").status == server.get("/readyz").status == 200


@pytest.mark.process
def test_a_key_is_shown_in_one_of_three_ways(server: Server, keys: tuple[Path, str]) -> None:
    key = keys[1]
    pair = base64.b64encode(f"anybody:{key}".encode()).decode()
    for shown in (
        {"Authorization": f"Bearer {key}"},
        {"Authorization": f"Basic {pair}"},
        {"X_API_Key": key},
    ):
        found = server.get(PATH, **shown)
        assert found.status == 200
        assert found.headers["cache-control"].startswith("private")
    assert server.get(PATH, Authorization="Basic !").status == 401


@pytest.mark.process
def test_keys_are_read_again(server: Server, keys: tuple[Path, str]) -> None:
    file, key = keys
    other, line = new_key("other")
    before = file.read_text()
    try:
        for content, says in (
            ("nonsense\n", "keeping the old keys"),
            (f"{line}\n", "keys reloaded"),
        ):
            file.write_text(content)
            said = len(server.log)
            os.kill(server.process.pid, signal.SIGHUP)
            server.until(lambda s=said, t=says: any(t in x for x in server.log[s:]))  # type: ignore[misc]
            assert server.get(PATH, X_API_Key=key).status == (401 if content[0] == "o" else 200)
        assert server.get(PATH, X_API_Key=other).status == 200
    finally:
        file.write_text(before)
        os.kill(server.process.pid, signal.SIGHUP)
        server.until(lambda: server.get(PATH, X_API_Key=key).status == 200)


@pytest.mark.process
def test_scripts_of_a_site_that_is_named_may_ask(server: Server, keys: tuple[Path, str]) -> None:
    key = keys[1]
    asked = {"Access_Control_Request_Method": "GET", "Access_Control_Request_Headers": "x-api-key"}
    named = {name.replace("_", "-"): value for name, value in asked.items()}
    before = server.request("OPTIONS", PATH, headers={"Origin": SITE, **named})
    assert before.status == 200
    assert before.headers["access-control-allow-origin"] == SITE
    assert "X-API-Key" in before.headers["access-control-allow-headers"]
    assert (
        server.get(PATH, Origin=SITE, X_API_Key=key).headers["access-control-allow-origin"] == SITE
    )
    other = server.get(PATH, Origin="https://other.example", X_API_Key=key)
    assert "access-control-allow-origin" not in other.headers


@pytest.mark.process
def test_pages_of_a_site_that_is_named_may_embed(server: Server, keys: tuple[Path, str]) -> None:
    for path in (PATH, "/docs"):
        headers = server.get(path, X_API_Key=keys[1]).headers
        assert headers["content-security-policy"].endswith(f"frame-ancestors {SITE}")
        assert "x-frame-options" not in headers


@pytest.mark.process
def test_answers_name_no_place(server: Server, folder: Path, keys: tuple[Path, str]) -> None:
    for path in (
        "/v1/indexes",
        "/v1/why?a=red&b=blue",
        "/v1/related?node=red&refine=true",
        "/v1/related?node=red&order=pagerank",
        "/v1/related?node=nobody",
        "/v1/related?node=red&index=other",
        "/openapi.json",
        "/docs",
        "/metrics",
    ):
        found = server.get(path, X_API_Key=keys[1])
        assert found.status < 500, found.body
        assert str(folder).encode() not in found.body
        assert str(folder.parent).encode() not in found.body
    why = server.get("/v1/why?a=red&b=blue", X_API_Key=keys[1])
    assert (why.status, why.json["type"]) == (422, "/docs#graph-needed")


@pytest.mark.process
@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:80",
        "demo.localhost",
        "127.0.0.1:8080",
        "[::1]:80",
        "192.0.2.7",
        "my.site",
        "My.Site:443",
        "localhost.",
    ],
)
def test_lone_server_answers_to_its_own_names_only(alone: Server, host: str) -> None:
    assert is_known(host, frozenset({"my.site"}))
    assert alone.get(PATH, Host=host).status == 200


@pytest.mark.process
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "my.site.evil.example",
        "a:b:c",
    ],
)
def test_a_name_that_was_made_to_lead_there_is_refused(alone: Server, host: str) -> None:
    """DNS rebinding: a page of any site, whose name leads to 127.0.0.1 by now."""
    assert not is_known(host, frozenset({"my.site"}))
    for path in (PATH, "/", "/metrics", "/openapi.json"):
        found = alone.get(path, Host=host)
        assert found.status == 421
        assert found.json["type"] == "/docs#unknown-host"
        assert b"hits" not in found.body
    assert alone.get("/healthz", Host=host).status == 200


@pytest.fixture(scope="module")
def alone(folder: Path, start: Start) -> Server:
    return start(str(folder / "web.index"), "--allow-host", "my.site")


@pytest.mark.process
def test_guessed_server_path_is_not_confirmed(alone: Server, folder: Path) -> None:
    """What one said oneself is told as it was, were it a place or not."""
    for place in (
        f"{folder}/",
        f"{folder}/web.index",
        f"{folder.parent}/nowhere",
        f"{folder}/" * 9,
    ):
        found = alone.ask("related", node=place)
        assert f"no node is named {place!r}" in found.json["detail"]
        for name in ("k", place):
            told = alone.ask("related", node="red", **{name: place}).json["detail"]
            assert repr(place)[1:80] in told
        (line,) = alone.post("/v1/batch", {"nodes": [place]}).json["answers"]
        assert repr(place) in line["error"]["detail"]
        body = alone.post("/v1/batch", {"nodes": ["red"], "k": place}).json["detail"]
        assert repr(place)[:80] in body
        why = alone.get(f"/?node=red&why={place}")
        assert str(place).encode() in why.body


def test_an_address_that_others_reach_needs_keys(folder: Path, shell: Shell) -> None:
    index = str(folder / "web.index")
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        reply = shell(["serve", index, "--host", host], 2)
        assert "pass keys with --api-keys FILE, or pass --insecure" in reply.err


def test_a_port_that_is_taken_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", str(folder / "web.index"), "--port", port]) == 1
    assert "cannot listen on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "there is no index to serve"),
        (["a.index", "b/a.index"], "would both be served as 'a'"),
        (["nowhere.index"], "does not exist"),
        (["x.index", "--frame-ancestors", "a; script-src *"], "it must be an origin"),
    ],
)
def test_a_wrong_start_is_told(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments]) in (1, 2)
    assert says in capsys.readouterr().err


def test_an_index_is_served_by_its_name() -> None:
    named = {"web.index": "web", "a=b.index": "a"}
    for text, name in named.items():
        (served,) = served_indexes([text])
        assert served.name == name


def test_links_instead_of_an_index_have_advice(tmp_path: Path, shell: Shell) -> None:
    links = tmp_path / "my links.tsv"
    links.write_text("a\tb\n")
    assert f"cocite index '{links}' -o web.index" in shell(["serve", str(links)], 2).err


def test_key_file_has_only_hashes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--new-key", "reader"]) == 0
    told = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    file = tmp_path / "keys"
    file.write_text(told["line"] + "\n")
    found = Keys(str(file))
    assert found.holder(told["key"]) == "reader"
    assert found.holder(told["key"] + "x") is None
    assert hashlib.sha256(told["key"].encode()).hexdigest() in told["line"]
    for wrong in ("", "# nobody\n", f"reader {told['key']}\n", "reader sha256:12\n"):
        file.write_text(wrong)
        with pytest.raises(InputError, match="--new-key"):
            found.read()
        assert found.holder(told["key"]) == "reader"  # what was known stays
    assert main(["serve", "--new-key", "two words"]) == 2


def test_a_client_that_reads_nothing_is_given_up() -> None:
    said: list[str] = []
    service: Any = SimpleNamespace(
        config=Config((), limits=replace(Limits(), send_time=0.05)),
        log=SimpleNamespace(say=lambda text, level: said.append(text), requests=False),
        metrics=SimpleNamespace(requested=lambda *told: None),
    )

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1024

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()  # as of a connection that nobody reads

    async def receive() -> Message:
        await asyncio.Event().wait()
        return {}

    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}
    front = Front(StreamingResponse(endless()), service)
    asyncio.run(asyncio.wait_for(front(scope, receive, send), 10))
    assert said == ["dropped a client that reads nothing"]


def test_what_ends_a_line_or_turns_it_is_escaped() -> None:
    assert one_line("a\nb\r\x1b[31m\u202e\u2028é") == r"a\nb\r\x1b[31m\u202e\u2028é"


def test_places_are_called_by_the_name_of_what_is_served(tmp_path: Path) -> None:
    scrub = Scrub([(str(tmp_path / "web.index"), "web")])
    text = f"{tmp_path}/web.index keeps 3 pages, and {tmp_path}/web.graph is not there"
    assert scrub(text) == "web keeps 3 pages, and web.graph is not there"
