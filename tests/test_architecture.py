"""Imports go down: those of the source, compared with the table in docs/architecture.md."""

import ast
import gc
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import cocite

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cocite"
FACADE = {"__init__", "__main__"}  # above all packages

BESIDE = {
    ("deadline", "errors"): "everything reports through one tree",
    ("extras", "errors"): "everything reports through one tree",
    ("graph", "io"): "a graph is made from objects and files, and opened by URL",
    ("graph", "kernels"): "links are transposed and names looked up by kernels",
    ("graph", "results"): "what a graph holds is a result",
    ("io", "cluster"): "texts are read, and links sorted, on several threads",
    ("io", "graph"): "readers make the parts of graphs",
    ("io", "kernels"): "cleaning text and coding names are kernels",
    ("options", "errors"): "everything reports through one tree",
    ("resources", "errors"): "everything reports through one tree",
    ("results", "io"): "results are written to files and databases",
    ("storage", "errors"): "everything reports through one tree",
    ("storage", "resources"): "messages about disks state sizes as all others do",
}
"""The pairs of one level whose first may import the second, and why."""


def levels() -> dict[str, int]:
    """Package -> level, from the table of the architecture."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d) \| `(\w+)` \|", text, re.M)
    return {package: int(level) for level, package in rows}


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def ast_nodes(path: Path) -> list[ast.AST]:
    """All nodes of a file."""
    return list(ast.walk(parsed(path)))


@pytest.fixture(autouse=True, scope="module")
def cleared_caches() -> Iterator[None]:
    """Free the parsed files, which are large, after this module. Until then the collector would
    search them in vain.
    """
    gc.disable()
    yield
    gc.enable()
    parsed.cache_clear()
    ast_nodes.cache_clear()


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, package) of every import of a file, including those in functions and for types."""
    for node in ast_nodes(path):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names = names if node.module == "cocite" else [str(node.module)]
        for name in names:
            parts = name.split(".")
            if parts[0] == "cocite" and len(parts) > 1:
                yield getattr(node, "lineno", 0), parts[1]


def faults(edges: list[tuple[str, str, str]], known: dict[str, int]) -> list[str]:
    """The forbidden imports among (location, importer, imported)."""
    messages = []
    for location, importer, imported in edges:
        if importer == imported or importer in FACADE or imported == "__version__":
            continue
        if known[imported] > known[importer]:
            messages.append(f"{location}: {importer} imports {imported}, which stands above it")
        elif known[imported] == known[importer] and (importer, imported) not in BESIDE:
            messages.append(f"{location}: {importer} imports {imported}, which stands beside it")
    return messages


def all_imports() -> list[tuple[str, str, str]]:
    return [
        (f"{path.relative_to(ROOT)}:{line}", package_of(path), imported)
        for path in sorted(SOURCE.rglob("*.py"))
        for line, imported in imports(path)
    ]


def test_levels_cover_every_package() -> None:
    packages = {package_of(path) for path in SOURCE.rglob("*.py")} - FACADE
    assert packages == set(levels())


def test_imports_go_down_only() -> None:
    found = all_imports()
    assert len(found) > 50
    assert faults(found, levels()) == []


@pytest.mark.parametrize(
    ("importer", "imported"), [("graph", "search"), ("storage", "graph"), ("storage", "kernels")]
)
def test_faults_finds_import_up_or_sideways(importer: str, imported: str) -> None:
    assert len(faults([("x.py:1", importer, imported)], levels())) == 1


def test_beside_lists_used_imports_only() -> None:
    used = {(importer, imported) for _, importer, imported in all_imports()}
    assert set(BESIDE) <= used


def libraries(path: Path) -> Iterator[str]:
    """What a file imports, by ``import`` or by name as in :func:`cocite.extras.need`."""
    for node in ast_nodes(path):
        names: list[object] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module]
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            names = [getattr(argument, "value", "") for argument in node.args[:1]]
            names = names if called in ("need", "import_module", "__import__") else []
        yield from (name.split(".")[0] for name in names if isinstance(name, str))


def test_numba_duckdb_and_ray_are_imported_in_one_package() -> None:
    importers = {"numba": set[str](), "duckdb": set[str](), "ray": set[str]()}
    for path in SOURCE.rglob("*.py"):
        for library in importers.keys() & libraries(path):
            folder = path.relative_to(SOURCE).parent.as_posix()
            importers[library].add(folder if library == "ray" else package_of(path))
    assert importers == {"numba": {"kernels"}, "duckdb": {"io"}, "ray": {"cluster/ray"}}


def test_kernels_take_at_most_eight_arguments() -> None:
    wrong = [
        f"{path.name}:{node.lineno} {node.name}"
        for path in (SOURCE / "kernels").glob("*.py")
        for node in ast_nodes(path)
        if isinstance(node, ast.FunctionDef) and len(node.args.args) > 8
    ]
    assert wrong == []


def test_modules_have_docstrings() -> None:
    undocumented = [
        str(path.relative_to(ROOT))
        for path in SOURCE.rglob("*.py")
        if not ast.get_docstring(parsed(path))
    ]
    assert undocumented == []


# -- cycles of files ---------------------------------------------------------------------


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def files_imported() -> dict[str, set[str]]:
    """Module -> the modules that it imports anywhere in its file, including those for types."""
    paths = {module_of(path): path for path in SOURCE.rglob("*.py")}
    found: dict[str, set[str]] = {}
    for module, path in paths.items():
        found[module] = set()
        for node in ast_nodes(path):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("cocite"):
                continue
            for alias in node.names:
                if alias.name == "__version__":
                    continue
                target = f"{node.module}.{alias.name}"
                found[module].add(target if target in paths else str(node.module))
    return found


def cycle(imported: Mapping[str, set[str]]) -> list[str]:
    """Files that import each other in a cycle, the first again at the end; empty without one."""
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_imports_have_no_cycle() -> None:
    imported = files_imported()
    assert len(imported) > 100
    assert sum(map(len, imported.values())) > 500
    assert cycle(imported) == []


def test_cycle_finds_import_cycle() -> None:
    assert set(cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


# -- what a query loads ------------------------------------------------------------------

QUERY = """
import sys
import cocite
index = cocite.open(sys.argv[1])
assert index.related("a")
print(*(name for name in sys.modules if name.startswith(("cocite", "numba", "scipy"))))
"""


@pytest.mark.process
@pytest.mark.chosen
def test_related_loads_no_build_module(tmp_path: Path) -> None:
    graph = cocite.ingest([(a, b) for a in "cd" for b in "ab"], tmp_path / "graph")
    cocite.build(graph, tmp_path / "index", samples=20, measure="psimrank")
    command = [sys.executable, "-c", QUERY, str(tmp_path / "index")]
    env = {name: text for name, text in os.environ.items() if name != "COCITE_JIT"}
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    loaded = done.stdout.split()
    assert not [name for name in loaded if not name.startswith("cocite")]
    assert "cocite.index.layouts.trees.reader" in loaded
    builders = [
        name
        for name in loaded
        if name.endswith((".build", ".assemble", "rows.words", "rows.pagesim", "rows.neighbors"))
        and not name.startswith("cocite.options.")
    ]
    assert builders == []
    unused = ("engine.walk", "index.layouts.memory_plan", "io.tables", "search.intervals")
    assert not {f"cocite.{name}" for name in (*unused, "storage.disk")} & {*loaded}
    assert len(loaded) <= 47


# -- names of files ----------------------------------------------------------------------


def test_docs_and_docstrings_name_existing_files() -> None:
    files = [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.md"), *(ROOT / "docs").glob("*.md")]
    files += [*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    files += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    files.append(ROOT / "tests" / "golden" / "README.md")
    wrong, count = [], 0
    for file in files:
        for name in re.findall(r"`([\w/]+\.(?:py|md))`", file.read_text("utf-8")):
            count += 1
            bases = (file.parent, SOURCE, SOURCE.parent, ROOT, ROOT / "tests")
            places = [base / name for base in bases]
            if "NAME" not in name and not any(place.exists() for place in places):
                wrong.append(f"{file.relative_to(ROOT)}: {name}")
    assert count > 100
    assert wrong == []


def test_contributing_names_existing_files_and_targets() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    names = re.findall(r"`((?:src|tests|docs|examples|\.ci|benchmarks)/[^`]*)`", text)
    names += re.findall(r"\]\((\w[^)]*)\)", text)
    assert len(names) > 20
    assert [n for n in names if "NAME" not in n and not (ROOT / n).exists()] == []
    targets = re.findall(r"^make ([\w-]+)", text, re.M)
    rules = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert set(targets) <= set(rules)
