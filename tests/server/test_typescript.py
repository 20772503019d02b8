"""A TypeScript client with types generated from the OpenAPI document compiles, and gets the
server's answers.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.server.conftest import Server

pytestmark = pytest.mark.process

PACKAGES = "openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3"
CLIENT = """
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

declare const process: { argv: string[] };

async function main(baseUrl: string) {
  const client = createClient<paths>({ baseUrl });
  const { data, error } = await client.GET("/v1/related", {
    params: { query: { node: ["red"], k: 3 } },
  });
  if (error || !data) throw new Error(error?.detail);
  const first: string = data.hits[0].node, score: number = data.hits[0].score;
  const pair = await client.GET("/v1/similarity", { params: { query: { a: "red", b: first } } });
  const wrong = await client.GET("/v1/related", { params: { query: { node: ["rad"] } } });
  const batch = await client.POST("/v1/batch", { body: { nodes: ["red"], k: 3 } });
  const answers = typeof batch.data === "object" ? batch.data.answers.length : undefined;
  console.log(JSON.stringify({
    ranks: data.hits.map((hit) => hit.rank), first, score,
    similarity: pair.data?.score, title: wrong.error?.title, answers,
  }));
}
main(process.argv[2]);
"""
COMPILE = "npx tsc --strict --target es2022 --lib es2022,dom --module nodenext"


def run(folder: Path, *command: str) -> str:
    """What a program prints; its errors fail the test."""
    completed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


@pytest.fixture(scope="module")
def project(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the compiler and the types of the server's responses."""
    if not (npm := shutil.which("npm")):
        pytest.skip("npm is not installed")
    project = tmp_path_factory.mktemp("typescript")
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", *PACKAGES]
    if subprocess.run(command, cwd=project, capture_output=True, check=False).returncode:
        pytest.skip("npm cannot install from its registry")
    (project / "openapi.json").write_bytes(server.get("/openapi.json").body)
    run(project, "npx", "openapi-typescript", "openapi.json", "--output", "schema.d.ts")
    return project


def test_typescript_client_is_typed_and_answers(project: Path, server: Server) -> None:
    (project / "ask.ts").write_text(CLIENT)
    (project / "package.json").write_text(json.dumps({"type": "module"}))
    run(project, *COMPILE.split(), "ask.ts")
    printed = json.loads(run(project, "node", "ask.js", f"http://127.0.0.1:{server.port}"))
    related = server.ask("related", node="red", k=3).json
    first = related["hits"][0]
    assert printed["ranks"] == [1, 2, 3]
    assert (printed["first"], printed["score"]) == (first["node"], first["score"])
    assert printed["similarity"] == server.ask("similarity", a="red", b=first["node"]).json["score"]
    assert (printed["title"], printed["answers"]) == ("No node has this name", 1)


def test_typescript_compiler_refuses_wrong_parameters(project: Path) -> None:
    wrong = CLIENT.replace("k: 3 }", 'k: "three" }', 1)
    (project / "wrong.ts").write_text(wrong)
    command = [*COMPILE.split(), "wrong.ts"]
    completed = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert completed.returncode != 0
    assert "Type 'string' is not assignable to type 'number'" in completed.stdout
