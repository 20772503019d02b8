"""Access: keys, origins and hosts; and responses that hide server paths."""

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
    moved = folder / "alone"
    moved.mkdir()
    shutil.copytree(folder / "web.index", moved / "web.index")  # away from its graph
    options = ("--api-keys", str(keys[0]), "--allow-origin", SITE, "--frame-ancestors", SITE)
    return start(str(moved / "web.index"), "--host", "0.0.0.0", *options, "--no-requests")


PATH = "/v1/related?node=red"


@pytest.mark.process
def test_api_keys_refuse_missing_or_wrong_key(server: Server, keys: tuple[Path, str]) -> None:
    key = keys[1]
    for path in (PATH, "/docs", "/openapi.json", "/metrics", "/v1/indexes", "/nowhere"):
        response = server.get(path)
        assert response.status == 401
        assert response.headers["www-authenticate"].startswith("Basic")
    for wrong in ("", "x", key[:-1], key + "x", "é", "x" * 5000):
        header = wrong.encode("utf-8").decode("latin-1")
        assert server.get(PATH, Authorization=f"Bearer {header}").status == 401
    assert server.get("/healthz").status == server.get("/readyz").status == 200


@pytest.mark.process
def test_api_keys_accept_bearer_basic_and_header(server: Server, keys: tuple[Path, str]) -> None:
    key = keys[1]
    pair = base64.b64encode(f"anybody:{key}".encode()).decode()
    for headers in (
        {"Authorization": f"Bearer {key}"},
        {"Authorization": f"Basic {pair}"},
        {"X_API_Key": key},
    ):
        response = server.get(PATH, **headers)
        assert response.status == 200
        assert response.headers["cache-control"].startswith("private")
    assert server.get(PATH, Authorization="Basic !").status == 401


@pytest.mark.process
def test_api_keys_reload_on_sighup(server: Server, keys: tuple[Path, str]) -> None:
    file, key = keys
    other, line = new_key("other")
    before = file.read_text()
    try:
        for content, message in (
            ("nonsense\n", "keeping the old keys"),
            (f"{line}\n", "keys reloaded"),
        ):
            file.write_text(content)
            logged = len(server.log)
            os.kill(server.process.pid, signal.SIGHUP)
            server.until(lambda s=logged, t=message: any(t in x for x in server.log[s:]))  # type: ignore[misc]
            assert server.get(PATH, X_API_Key=key).status == (401 if content[0] == "o" else 200)
        assert server.get(PATH, X_API_Key=other).status == 200
    finally:
        file.write_text(before)
        os.kill(server.process.pid, signal.SIGHUP)
        server.until(lambda: server.get(PATH, X_API_Key=key).status == 200)


@pytest.mark.process
def test_allow_origin_permits_only_listed_sites(server: Server, keys: tuple[Path, str]) -> None:
    key = keys[1]
    headers = {
        "Origin": SITE,
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "x-api-key",
    }
    preflight = server.request("OPTIONS", PATH, headers=headers)
    assert preflight.status == 200
    assert preflight.headers["access-control-allow-origin"] == SITE
    assert "X-API-Key" in preflight.headers["access-control-allow-headers"]
    own = server.get(PATH, Origin=SITE, X_API_Key=key)
    assert own.headers["access-control-allow-origin"] == SITE
    other = server.get(PATH, Origin="https://other.example", X_API_Key=key)
    assert "access-control-allow-origin" not in other.headers


@pytest.mark.process
def test_frame_ancestors_permits_listed_site(server: Server, keys: tuple[Path, str]) -> None:
    for path in (PATH, "/docs"):
        headers = server.get(path, X_API_Key=keys[1]).headers
        assert headers["content-security-policy"].endswith(f"frame-ancestors {SITE}")
        assert "x-frame-options" not in headers


@pytest.mark.process
def test_responses_hide_server_paths(server: Server, folder: Path, keys: tuple[Path, str]) -> None:
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
        response = server.get(path, X_API_Key=keys[1])
        assert response.status < 500, response.body
        assert str(folder).encode() not in response.body
        assert str(folder.parent).encode() not in response.body
    why = server.get("/v1/why?a=red&b=blue", X_API_Key=keys[1])
    assert (why.status, why.json["type"]) == (422, "/docs#graph-needed")


@pytest.mark.process
@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:80", "demo.localhost", "localhost.", "127.0.0.1:8080"),
        *("[::1]:80", "192.0.2.7", "my.site", "My.Site:443"),
    ],
)
def test_is_known_accepts_local_and_allowed_hosts(local_server: Server, host: str) -> None:
    assert is_known(host, frozenset({"my.site"}))
    assert local_server.get(PATH, Host=host).status == 200


@pytest.mark.process
@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8080", "127.0.0.1.evil.example"),
        *("localhost.evil.example", "my.site.evil.example", "a:b:c"),
    ],
)
def test_is_known_refuses_rebound_hosts(local_server: Server, host: str) -> None:
    """DNS rebinding: a site's name now resolves to 127.0.0.1."""
    assert not is_known(host, frozenset({"my.site"}))
    for path in (PATH, "/", "/metrics", "/openapi.json"):
        response = local_server.get(path, Host=host)
        assert response.status == 421
        assert response.json["type"] == "/docs#unknown-host"
        assert b"hits" not in response.body
    assert local_server.get("/healthz", Host=host).status == 200


@pytest.fixture(scope="module")
def local_server(folder: Path, start: Start) -> Server:
    return start(str(folder / "web.index"), "--allow-host", "my.site")


@pytest.mark.process
def test_scrub_does_not_confirm_guessed_paths(local_server: Server, folder: Path) -> None:
    """Paths that a client sent come back unchanged, whether they exist or not."""
    for path in (f"{folder}/", f"{folder}/web.index", f"{folder.parent}/nowhere", f"{folder}/" * 9):
        response = local_server.ask("related", node=path)
        assert f"no node is named {path!r}" in response.json["detail"]
        for name in ("k", path):
            detail = local_server.ask("related", node="red", **{name: path}).json["detail"]
            assert repr(path)[1:80] in detail
        (answer,) = local_server.post("/v1/batch", {"nodes": [path]}).json["answers"]
        assert repr(path) in answer["error"]["detail"]
        batch = local_server.post("/v1/batch", {"nodes": ["red"], "k": path}).json["detail"]
        assert repr(path)[:80] in batch
        why = local_server.get(f"/?node=red&why={path}")
        assert str(path).encode() in why.body


def test_serve_requires_keys_for_public_host(folder: Path, shell: Shell) -> None:
    index = str(folder / "web.index")
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        reply = shell(["serve", index, "--host", host], 2)
        assert "pass keys with --api-keys FILE, or pass --insecure" in reply.err


def test_serve_reports_port_in_use(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        assert main(["serve", str(folder / "web.index"), "--port", port]) == 1
    assert "cannot listen on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is no index to serve"),
        (["a.index", "b/a.index"], "would both be served as 'a'"),
        (["nowhere.index"], "does not exist"),
        (["x.index", "--frame-ancestors", "a; script-src *"], "it must be an origin"),
    ],
)
def test_serve_reports_invalid_arguments(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments]) in (1, 2)
    assert message in capsys.readouterr().err


def test_served_indexes_takes_name_from_path() -> None:
    names = {"web.index": "web", "a=b.index": "a"}
    for text, name in names.items():
        (served,) = served_indexes([text])
        assert served.name == name


def test_serve_suggests_index_command_for_links(tmp_path: Path, shell: Shell) -> None:
    links = tmp_path / "my links.tsv"
    links.write_text("a\tb\n")
    assert f"cocite index '{links}' -o web.index" in shell(["serve", str(links)], 2).err


def test_keys_file_holds_only_hashes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--new-key", "reader"]) == 0
    printed = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    file = tmp_path / "keys"
    file.write_text(printed["line"] + "\n")
    keys = Keys(str(file))
    assert keys.holder(printed["key"]) == "reader"
    assert keys.holder(printed["key"] + "x") is None
    assert hashlib.sha256(printed["key"].encode()).hexdigest() in printed["line"]
    for wrong in ("", "# nobody\n", f"reader {printed['key']}\n", "reader sha256:12\n"):
        file.write_text(wrong)
        with pytest.raises(InputError, match="--new-key"):
            keys.read()
        assert keys.holder(printed["key"]) == "reader"  # the old keys stay
    assert main(["serve", "--new-key", "two words"]) == 2


def test_front_drops_client_that_reads_nothing() -> None:
    logged: list[str] = []
    service: Any = SimpleNamespace(
        config=Config((), limits=replace(Limits(), send_time=0.05)),
        log=SimpleNamespace(say=lambda text, level: logged.append(text), requests=False),
        metrics=SimpleNamespace(requested=lambda *arguments: None),
    )

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1024

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()  # as for a connection that nobody reads

    async def receive() -> Message:
        await asyncio.Event().wait()
        return {}

    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}
    front = Front(StreamingResponse(endless()), service)
    asyncio.run(asyncio.wait_for(front(scope, receive, send), 10))
    assert logged == ["dropped a client that reads nothing"]


def test_one_line_escapes_control_characters() -> None:
    assert one_line("a\nb\r\x1b[31m\u202e\u2028é") == r"a\nb\r\x1b[31m\u202e\u2028é"


def test_scrub_replaces_paths_with_served_names(tmp_path: Path) -> None:
    scrub = Scrub([(str(tmp_path / "web.index"), "web")])
    text = f"{tmp_path}/web.index keeps 3 pages, and {tmp_path}/web.graph is not there"
    assert scrub(text) == "web keeps 3 pages, and web.graph is not there"
