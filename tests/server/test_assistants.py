"""Assistants: the MCP SDK's client gets the command line's answers."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

import cocite
from cocite import Index
from tests.conftest import Ask, Shell
from tests.server.conftest import LINKS

pytest.importorskip("mcp", reason="the extra mcp is not installed")
import httpx
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from cocite.server.assistants import Assistants
from cocite.server.results import Limits

T = TypeVar("T")
HOSTILE = "été & <b>"


@pytest.fixture(scope="module")
def index_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with titles."""
    folder = tmp_path_factory.mktemp("assistants")
    graph = cocite.ingest(LINKS, folder / "g.graph", titles={"red": "The color red"})
    cocite.build(graph, folder / "colors.index")
    return folder / "colors.index"


@pytest.fixture(scope="module")
def index(index_path: Path) -> Index:
    return cocite.open(index_path)


def client_result(
    target: Any, work: Callable[[Client], Awaitable[T]], mode: Any = "auto", **limits: Any
) -> T:
    """The result of ``work`` with a client of ``target``."""

    async def run() -> T:
        server = target
        if isinstance(target, Index):
            server = Assistants(target, "colors", **limits).server()
        error = None
        async with Client(server, mode=mode) as client:
            try:
                return await work(client)
            except MCPError as raised:  # else it would leave in an exception group
                error = raised
        raise error

    return asyncio.run(run())


def call(target: Any, tool: str, **arguments: Any) -> types.CallToolResult:
    return client_result(target, lambda client: client.call_tool(tool, arguments))


def text_of(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_mcp_tools_are_read_only_and_typed(index: Index, mode: str) -> None:
    listing = client_result(index, lambda client: client.list_tools(), mode)
    assert [tool.name for tool in listing.tools] == ["related", "similarity", "why", "find"]
    for tool in listing.tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert tool.output_schema is not None
        assert tool.output_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
    k = listing.tools[0].input_schema["properties"]["k"]
    assert (k["minimum"], k["maximum"], k["default"]) == (1, 1000, 20)


@pytest.mark.parametrize(
    ("tool", "arguments", "command"),
    [
        ("related", {"node": "red", "k": 3}, ["related", "red", "-k", "3"]),
        ("related", {"node": ["red"], "prefix": "leaf"}, ["related", "red", "--prefix", "leaf"]),
        (
            "related",
            {"node": ["red", "blue"], "aggregate": "min"},
            ["related", "red", "blue", "--aggregate", "min"],
        ),
        ("similarity", {"a": "red", "b": HOSTILE}, ["similarity", "red", HOSTILE]),
        ("why", {"a": "red", "b": "green", "k": 2}, ["why", "red", "green", "-k", "2"]),
    ],
)
def test_mcp_tool_answers_equal_command_line(
    index_path: Path, index: Index, shell: Shell, tool: str, arguments: Any, command: list[str]
) -> None:
    name, *words = command
    printed = json.loads(shell([name, str(index_path), *words, "--format", "json"]).out)
    result = call(index, tool, **arguments)
    assert not result.is_error
    assert result.structured_content == printed
    assert len(text_of(result)) < len(json.dumps(printed))


def test_mcp_tool_texts_include_titles(index: Index) -> None:
    assert "- red (The color red): 0." in text_of(call(index, "related", node="blue"))
    assert text_of(call(index, "similarity", a="red", b="blue")).startswith(
        "red (The color red) and blue: 0."
    )
    assert "Contributions:" in text_of(call(index, "why", a="red", b="blue"))
    assert text_of(call(index, "find", text="COLOR")) == "- red (The color red)"
    assert "There are more" in text_of(call(index, "find", text="hub", k=2))
    assert "No name or title" in text_of(call(index, "find", text="zzz"))
    nothing = call(index, "related", node="blue", prefix="zzz")
    assert text_of(nothing).startswith("No node that passes the filters")


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("related", {"node": "grean"}, "no node is named 'grean'; the nearest name is"),
        (
            "related",
            {"node": "red", "k": 1001},
            "k is 1001; it must be a whole number from 1 to 1000",
        ),
        ("related", {"node": "red", "kk": 1}, "related has no parameter 'kk'"),
        ("related", {}, "node is required"),
        ("related", {"node": 7}, "node is 7; it must be a list of strings"),
        ("related", {"node": "red", "min_score": -1}, "min_score is -1"),
        ("why", {"a": ["red", "blue"], "b": "green"}, "a is ['red', 'blue']; it must be a string"),
        ("similarity", {"a": "red", "b": "rad"}, "no node is named 'rad'"),
        ("find", {"text": None}, "text is null"),
        ("related", {"node": "red", "side": "user"}, "not bipartite"),
    ],
)
def test_mcp_tool_reports_invalid_arguments(
    index: Index, tool: str, arguments: Any, message: str
) -> None:
    result = call(index, tool, **arguments)
    assert result.is_error
    assert message in text_of(result)


def test_mcp_refuses_unknown_tool(index: Index) -> None:
    with pytest.raises(MCPError, match="choose one of: related, similarity, why, find"):
        call(index, "build")


def test_assistants_apply_server_limits(index: Index) -> None:
    few = {"limits": Limits(k=2)}
    result = client_result(
        index, lambda client: client.call_tool("related", {"node": "red", "k": 3}), **few
    )
    assert text_of(result) == "k is 3; it must be a whole number from 1 to 2"
    late = {"limits": Limits(question_time=-1.0)}
    result = client_result(
        index, lambda client: client.call_tool("related", {"node": "red"}), **late
    )
    assert result.is_error
    assert "exceeded its time limit" in text_of(result)


def test_mcp_resources_describe_index_and_nodes(index: Index) -> None:
    async def read(client: Client) -> list[Any]:
        (listed,) = (await client.list_resources()).resources
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "cocite://node/{name}"
        uris = [
            listed.uri,
            "cocite://node/red",
            "cocite://node/https%3A%2F%2Fexample.org%2F%3Fa%3D1%26b%3D2",
        ]
        contents = [(await client.read_resource(uri)).contents[0] for uri in uris]
        reference = types.ResourceTemplateReference(uri=template.uri_template)
        completions = await client.complete(reference, {"name": "name", "value": "hu"})
        return [
            *(json.loads(each.model_dump()["text"]) for each in contents),
            completions.completion.values,
        ]

    described, red, url, names = client_result(index, read)
    assert (described["name"], described["nodes"]) == ("colors", len(index.nodes))
    assert red == call(index, "related", node="red").structured_content
    assert url["node"] == "https://example.org/?a=1&b=2"
    assert sorted(names) == sorted(f"hub{i}" for i in range(12))


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("cocite://node/rad", "no node is named 'rad'"),
        ("cocite://other", "unknown resource"),
        ("file:///etc/passwd", "unknown resource"),
    ],
)
def test_mcp_refuses_unknown_resource(index: Index, uri: str, message: str) -> None:
    with pytest.raises(MCPError, match=message):
        client_result(index, lambda client: client.read_resource(uri))


# -- processes ---------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.chosen
def test_mcp_answers_over_stdio(tmp_path: Path, index: Index) -> None:
    """Messages about links go to stderr; stdout carries only the protocol."""
    links = tmp_path / "links.tsv"
    links.write_text("".join(f"{a}\t{b}\n" for a, b in LINKS))
    command = ["-m", "cocite", "mcp", str(links), "--threads", "1"]
    process = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    with (tmp_path / "log").open("w") as log:
        result = call(stdio_client(process, errlog=log), "related", node="red", k=3)
    assert result.structured_content is not None
    listed = [hit["node"] for hit in result.structured_content["hits"]]
    assert listed == [str(hit.node) for hit in index.related("red", 3)]
    assert "cached" in (tmp_path / "log").read_text()


@pytest.fixture
def http_address(index_path: Path) -> Iterator[str]:
    """The address of a process that serves MCP over HTTP."""
    command = [sys.executable, "-m", "cocite", "mcp", str(index_path), "--http", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r"http://\S+", line)
        assert address, line
        yield address[0]
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 130


@pytest.mark.process
def test_mcp_answers_over_http(http_address: str, index: Index) -> None:
    assert http_address.startswith("http://127.0.0.1:")
    result = call(http_address, "why", a="red", b="blue")
    assert result.structured_content == call(index, "why", a="red", b="blue").structured_content
    for headers, status in (({"host": "evil.org"}, 421), ({"origin": "http://evil.org"}, 403)):
        assert httpx.post(http_address, json={}, headers=headers).status_code == status
    assert httpx.post(http_address, json={"x": "y" * (2 << 20)}).status_code == 413


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--http", "0.0.0.0:0"], "other machines can reach 0.0.0.0"),
        (["--http", "example"], "--http is 'example'; it must be HOST:PORT"),
        (["--http", "127.0.0.1:99999"], "it must be HOST:PORT"),
        (["--allow-host", "example.org"], "--allow-host requires --http"),
        (["--insecure"], "--insecure requires --http"),
        (["--side", "user"], "in MCP, side is a parameter of each query"),
        (["--measure", "simrank"], "is fixed when an index is built"),
    ],
)
def test_mcp_refuses_invalid_options(
    index_path: Path, ask: Ask, words: list[str], message: str
) -> None:
    code, out, err = ask("mcp", index_path, *words)
    assert (code, out) == (2, "")
    assert message in err


def test_mcp_refuses_standard_input_for_links(ask: Ask) -> None:
    code, _, err = ask("mcp", "-")
    assert code == 2
    assert "pass an edge list as a file" in err
