"""A folder of source code: files link to the files that they import."""

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite.errors import CociteError, InputError
from tests.conftest import Shell
from tests.io.plain import links, nothing_left, titles_of, write_files

SOURCE = Path(__file__).parents[2] / "src"
FILES = {
    "pyproject.toml": "[project]\n",
    "src/app/__init__.py": "from .main import run\n",
    "src/app/main.py": "import json\nimport os.path\nfrom .db import connect\nfrom . import web\n",
    "src/app/db.py": "from typing import cast\nif cast:\n    from app import web\n",
    "src/app/web/__init__.py": "def f():\n    from ..db import connect, close\n",
    "src/app/web/page.py": "import numpy.linalg\nfrom app.web.nil import x\nfrom ... import y\n",
    "tests/test_app.py": "import app.main as m, helpers, random\nfrom app.web import page\n",
    "tests/helpers.py": "from app import *\n",
    "tools/random.py": "",
    "docs/index.html": "<a href='x'>x</a>",
    ".venv/pyvenv.cfg": "",
    "env/pyvenv.cfg": "",
    "env/lib.py": "import app\n",
    "node_modules/a.py": "import app\n",
}
EXPECTED = [
    "src/app/__init__.py>src/app/main.py",
    "src/app/main.py>src/app/db.py",
    "src/app/main.py>src/app/web/__init__.py",
    "src/app/db.py>src/app/web/__init__.py",
    "src/app/web/__init__.py>src/app/db.py",
    "src/app/web/page.py>src/app/web/__init__.py",
    "tests/test_app.py>src/app/main.py",
    "tests/test_app.py>src/app/web/page.py",
    "tests/test_app.py>tests/helpers.py",
    "tests/helpers.py>src/app/__init__.py",
]


ENDS = (".py", "/__init__.py")


def link_lines(graph: cocite.Graph) -> list[str]:
    return sorted(f"{a}>{b}" for a, b in links(graph))


def test_code_links_files_to_imports(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "p", FILES)
    (folder / "away.py").symlink_to(SOURCE / "cocite" / "errors.py")
    graph = cocite.ingest(folder, tmp_path / "g")
    assert link_lines(graph) == sorted(EXPECTED)
    assert "tools/random.py" in graph.names
    assert "away.py" not in graph.names
    titles = dict(zip(graph.names, titles_of(graph), strict=True))
    assert titles["src/app/web/page.py"] == "app.web.page"
    assert titles["src/app/__init__.py"] == "app"
    external = cocite.ingest(folder, tmp_path / "h", keep_external=True)
    added = {"src/app/main.py>json", "src/app/main.py>os", "src/app/db.py>typing"}
    added |= {"src/app/web/page.py>numpy", "tests/test_app.py>random"}
    assert link_lines(external) == sorted({*EXPECTED} | added)


def test_related_accepts_source_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.chdir(write_files(tmp_path / "p", FILES))
    assert "src/app/" in shell("related . src/app/main.py -k 2 --no-cache").out


@pytest.mark.long
def test_code_matches_regex_on_cocite_source(tmp_path: Path) -> None:
    files = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")}
    expected = set()
    for file in files:
        text = re.sub("#.*", "", (SOURCE / file).read_text())
        modules = re.findall(r"^ *import (cocite[\w.]*)$", text, re.M)
        expected |= {(file, f"{name.replace('.', '/')}/__init__.py") for name in modules}
        for base, names in re.findall(
            r"^\s*from (cocite[\w.]*) import (\([^)]*\)|[^\n]*)", text, re.M
        ):
            for name in re.findall(r"(\w+|\*)(?: as \w+)?", names):
                folder = base.replace(".", "/")
                candidates = [f"{p}{end}" for p in (f"{folder}/{name}", folder) for end in ENDS]
                target = next((path for path in candidates if path in files), file)
                expected |= {(file, target)} if target != file else set()
    assert set(links(cocite.ingest(SOURCE, tmp_path / "g"))) == expected


def test_code_links_npm_workspaces(tmp_path: Path) -> None:
    files = {
        "package.json": json.dumps({"workspaces": {"packages": ["packages/*", "../x", "!no"]}}),
        "packages/a/package.json": json.dumps({"name": "@me/a", "dependencies": {"@me/b": "*"}}),
        "packages/b/package.json": json.dumps({"name": "@me/b", "devDependencies": {"jest": "1"}}),
        "packages/c/package.json": json.dumps({"peerDependencies": {"@me/a": "1"}}),
    }
    graph = cocite.ingest(write_files(tmp_path / "p", files), tmp_path / "g")
    assert link_lines(graph) == ["@me/a>@me/b", "c>@me/a"]
    write_files(tmp_path / "p", {"packages/c/package.json": "{"})
    with pytest.raises(InputError, match=r"packages/c/package\.json cannot be read: "):
        cocite.ingest(tmp_path / "p", tmp_path / "out.graph")
    assert nothing_left(tmp_path)


def test_code_links_pnpm_workspaces(tmp_path: Path) -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    files = {
        "package.json": "{}",
        "pnpm-workspace.yaml": "packages:\n  - 'packages/*'\n  - '!**/test/**'\n",
        "packages/a/package.json": json.dumps({"name": "a", "dependencies": {"b": "workspace:*"}}),
        "packages/b/package.json": json.dumps({"name": "b"}),
    }
    graph = cocite.ingest(write_files(tmp_path / "p", files), tmp_path / "g")
    assert link_lines(graph) == ["a>b"]
    write_files(tmp_path / "p", {"pnpm-workspace.yaml": "packages: ["})
    with pytest.raises(InputError, match=r"pnpm-workspace\.yaml cannot be read: "):
        cocite.ingest(tmp_path / "p", tmp_path / "out.graph", input_format="code")


def test_code_reports_or_skips_invalid_python(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "p", FILES | {"src/app/old.py": "x = 1\nprint 'x'\n"})
    with pytest.raises(InputError, match=r"p:4: src/app/old\.py:2 cannot be parsed as Python: "):
        cocite.ingest(folder, tmp_path / "out.graph")
    assert nothing_left(tmp_path)
    graph = cocite.ingest(folder, tmp_path / "g", bad_rows="few")
    assert link_lines(graph) == sorted(EXPECTED)
    assert graph.info().bad_rows == 1
    write_files(folder, {"src/app/old.py": "x\n" * 200_000})
    with pytest.raises(InputError, match=r"old\.py:1 cannot be parsed as Python: 'more than 390,"):
        cocite.ingest(folder, tmp_path / "out.graph", memory="400MB")


PIECES = st.sampled_from([*("import ", "from ", " as ", "a", "b", "..", "é", "\\"), *".,*\n() \0"])


@pytest.mark.long
@settings(max_examples=10)
@given(st.lists(PIECES, max_size=20).map("".join) | st.binary(max_size=30).map(os.fsdecode))
def test_code_survives_random_text(tmp_path: Path, text: str) -> None:
    folder = write_files(tmp_path / "p", {"a.py": "import b\n", "b.py": "", "c/d.py": "import a\n"})
    (folder / "e.py").write_bytes(os.fsencode(text))
    try:
        graph = cocite.ingest(folder, tmp_path / "g", bad_rows="few", overwrite=True)
    except CociteError:
        return
    assert {("a.py", "b.py"), ("c/d.py", "a.py")} <= set(links(graph))
    assert set(graph.names) == {"a.py", "b.py", "c/d.py", "e.py"}
