"""The OpenAPI document is accurate: a client generated from it has all operations, which work; and
every request, valid or not, gets a response that it describes.
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
    """A client of the server, from a generated package; warnings of the generator are errors."""
    pytest.importorskip("openapi_python_client", reason="the extra dev is not installed")
    folder = tmp_path_factory.mktemp("client")
    (folder / "openapi.json").write_text(json.dumps(document))
    (folder / "config.yml").write_text("package_name_override: cocite_client\npost_hooks: []\n")
    program = "from openapi_python_client.cli import app; app()"
    files = ["--path", "openapi.json", "--config", "config.yml", "--output-path", "made"]
    command = [sys.executable, "-c", program, "generate", *files, "--fail-on-warning"]
    completed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    sys.path.insert(0, str(folder / "made"))
    package = importlib.import_module("cocite_client")
    with package.Client(base_url=f"http://127.0.0.1:{server.port}") as session:
        yield session
    sys.path.remove(str(folder / "made"))


def generated_name(text: str) -> str:
    """A name as generators normalize it: lowercase, without punctuation."""
    return "".join(filter(str.isalnum, text)).lower()


def test_openapi_schema_names_avoid_generated_names(document: Any) -> None:
    """Generated classes are named after an operation and a parameter or body property."""
    generated: dict[str, str] = {}
    for path, methods in document["paths"].items():
        for operation in methods.values():
            operation_id = operation["operationId"]
            names = [each["name"] for each in operation.get("parameters", ())]
            body = operation.get("requestBody", {"content": {}})["content"]
            for content in body.values():
                names += content["schema"]["properties"]
            suffixes = ["", *names, *(f"{name} item" for name in names), "body"]
            suffixes += [f"response {status}" for status in operation["responses"]]
            generated |= {
                generated_name(operation_id + suffix): f"{path} {suffix}" for suffix in suffixes
            }
    schemas = document["components"]["schemas"]
    nested = [f"{s}{p}" for s, each in schemas.items() for p in each.get("properties", ())]
    assert {
        schema: generated[generated_name(schema)]
        for schema in schemas
        if generated_name(schema) in generated
    } == {}
    assert {generated_name(schema) for schema in schemas}.isdisjoint(map(generated_name, nested))
    assert len({generated_name(schema) for schema in schemas}) == len(schemas)


def test_openapi_client_operations_answer(client: Any, document: Any, server: Server) -> None:
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
        each["operationId"] for methods in document["paths"].values() for each in methods.values()
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


def test_openapi_passes_schemathesis(server: Server, tmp_path: Path) -> None:
    """Valid and invalid requests cause no server error and no undescribed response."""
    program = shutil.which("schemathesis", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("schemathesis is not installed")
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,"
    checks += "response_headers_conformance,response_schema_conformance"
    command = [program, "run", f"http://127.0.0.1:{server.port}/openapi.json", "--checks", checks]
    command += ["--max-examples", "6", "--seed", "1", "--generation-database", "none"]
    command += ["--phases", "examples,coverage,fuzzing", "--no-color"]
    completed = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    last = [line[:300] for line in completed.stdout.splitlines()[-80:]]
    assert completed.returncode == 0, "\n".join(last)
    assert "Tested: 9" in completed.stdout
