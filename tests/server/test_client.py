"""The OpenAPI document is true: a client generated from it has all operations, and they work; and
no request that it allows, or does not, has an answer that it does not describe.
"""

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import Server

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def document(server: Server) -> Any:
    return server.get("/openapi.json").json


@pytest.fixture(scope="module")
def client(
    document: Any, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """The package, and a client of the server; what was generated says if anything was left out."""
    pytest.importorskip("openapi_python_client", reason="the extra dev is not installed")
    place = tmp_path_factory.mktemp("client")
    (place / "openapi.json").write_text(json.dumps(document))
    (place / "config.yml").write_text("package_name_override: cocite_client\npost_hooks: []\n")
    program = "from openapi_python_client.cli import app; app()"
    files = ["--path", "openapi.json", "--config", "config.yml", "--output-path", "made"]
    command = [sys.executable, "-c", program, "generate", *files, "--fail-on-warning"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(place / "made"))
    made = importlib.import_module("cocite_client")
    with made.Client(base_url=f"http://127.0.0.1:{server.port}") as found:
        yield found
    sys.path.remove(str(place / "made"))


def named(text: str) -> str:
    """What generators make of a name: without signs, in lower case."""
    return "".join(filter(str.isalnum, text)).lower()


def test_no_schema_is_called_like_what_is_generated_for_a_parameter(document: Any) -> None:
    """Classes of an operation are called by it and a parameter, or a property of its body."""
    made: dict[str, str] = {}
    for path, ways in document["paths"].items():
        for operation in ways.values():
            begin = operation["operationId"]
            names = [each["name"] for each in operation.get("parameters", ())]
            body = operation.get("requestBody", {"content": {}})["content"]
            for content in body.values():
                names += content["schema"]["properties"]
            ends = ["", *names, *(f"{name} item" for name in names), "body"]
            ends += [f"response {status}" for status in operation["responses"]]
            made |= {named(begin + end): f"{path} {end}" for end in ends}
    schemas = document["components"]["schemas"]
    inner = [f"{s}{p}" for s, each in schemas.items() for p in each.get("properties", ())]
    assert {schema: made[named(schema)] for schema in schemas if named(schema) in made} == {}
    assert {named(schema) for schema in schemas}.isdisjoint(map(named, inner))
    assert len({named(schema) for schema in schemas}) == len(schemas)


def test_all_client_operations_answer(client: Any, document: Any, server: Server) -> None:
    arguments: dict[str, dict[str, Any]] = {
        "related": {"node": ["red"], "k": 3},
        "similarity": {"a": "red", "b": "blue"},
        "why": {"a": ["red"], "b": "blue"},
        "complete": {"text": "leaf1"},
        "indexes": {},
        "healthz": {},
        "readyz": {},
    }
    operations = {
        each["operationId"] for ways in document["paths"].values() for each in ways.values()
    }
    assert operations == {*arguments, "batch", "draft"}
    models = importlib.import_module("cocite_client.models")
    for name, given in arguments.items():
        call = importlib.import_module(f"cocite_client.api.default.{name}")
        answer = call.sync(client=client, **given)
        expected = server.get(f"/{name}") if name.endswith("z") else server.ask(name, **given)
        assert answer.to_dict() == expected.json
    why = importlib.import_module("cocite_client.api.default.why").sync
    several = why(client=client, a=["red", "green"], b="blue")
    assert isinstance(why(client=client, a=["red"], b="blue"), models.WhyResult)
    assert isinstance(several, models.WhyAggregateResult)
    batch = importlib.import_module("cocite_client.api.default.batch").sync
    body = {"nodes": ["red", "nobody"], "k": 2}
    answers = batch(client=client, body=models.BatchBody.from_dict(body))
    assert answers.to_dict() == server.post("/v1/batch", body).json
    draft = importlib.import_module("cocite_client.api.default.draft").sync
    links = {"out": ["red"], "into": ["hub1"], "k": 3}
    answer = draft(client=client, body=models.DraftBody.from_dict(links))
    assert answer.to_dict() == server.post("/v1/related", links).json
    unknown = importlib.import_module("cocite_client.api.default.related").sync(
        client=client, node=["rad"]
    )
    assert isinstance(unknown, models.Problem)
    assert "red" in unknown.suggestions


def test_the_reference_is_true(server: Server, tmp_path: Path) -> None:
    """Schemathesis asks what the OpenAPI document allows, and what it does not: no fault, and no
    answer that the document does not describe.
    """
    program = shutil.which("schemathesis", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("schemathesis is not installed")
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,"
    checks += "response_headers_conformance,response_schema_conformance"
    command = [program, "run", f"http://127.0.0.1:{server.port}/openapi.json", "--checks", checks]
    command += ["--max-examples", "6", "--seed", "1", "--generation-database", "none"]
    command += ["--phases", "examples,coverage,fuzzing", "--no-color"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, "\n".join(line[:300] for line in done.stdout.splitlines()[-80:])
    assert "Tested: 9" in done.stdout
