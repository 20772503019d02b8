"""Imports go down: read from the source, compared with the table in docs/architecture.md."""

import ast
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
FACADE = {"__init__", "__main__"}  # stand above all rooms

BESIDE = {
    ("deadline", "errors"): "everything reports through one tree",
    ("extras", "errors"): "everything reports through one tree",
    ("graph", "io"): "a graph is made from objects and files, and opened by URL",
    ("graph", "kernels"): "links are turned round and names looked up by kernels",
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
"""The pairs on one level that may import, first from second, and why."""


def levels() -> dict[str, int]:
    """Room -> level, as the architecture's table has it."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d) \| `(\w+)` \|", text, re.M)
    return {fit: int(level) for level, fit in rows}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All of a file: to parse those of the package takes two seconds, and many tests read them."""
    return list(ast.walk(tree_of(path)))


@pytest.fixture(autouse=True, scope="module")
def forgotten() -> Iterator[None]:
    """What was parsed does not stay for other tests: it is a lot."""
    yield
    tree_of.cache_clear()
    nodes_of.cache_clear()


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, room) of every import of a room, those inside functions and for types included."""
    for node in nodes_of(path):
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
    """What is wrong with (place, from room, to room) imports."""
    found = []
    for place, here, there in edges:
        if here == there or here in FACADE or there == "__version__":
            continue
        if known[there] > known[here]:
            found.append(f"{place}: {here} imports {there}, which stands above it")
        elif known[there] == known[here] and (here, there) not in BESIDE:
            found.append(f"{place}: {here} imports {there}, which stands beside it")
    return found


def all_imports() -> list[tuple[str, str, str]]:
    return [
        (f"{path.relative_to(ROOT)}:{line}", room_of(path), there)
        for path in sorted(SOURCE.rglob("*.py"))
        for line, there in imports(path)
    ]


def test_every_room_has_a_level() -> None:
    rooms = {room_of(path) for path in SOURCE.rglob("*.py")} - FACADE
    assert rooms == set(levels())


def test_imports_go_down_only() -> None:
    found = all_imports()
    assert len(found) > 50
    assert faults(found, levels()) == []


@pytest.mark.parametrize(
    ("here", "there"), [("graph", "search"), ("storage", "graph"), ("storage", "kernels")]
)
def test_an_import_that_goes_up_or_aside_is_found(here: str, there: str) -> None:
    assert len(faults([("x.py:1", here, there)], levels())) == 1


def test_what_may_stand_beside_is_used() -> None:
    used = {(here, there) for _, here, there in all_imports()}
    assert set(BESIDE) <= used


def libraries(path: Path) -> Iterator[str]:
    """What a file imports, by ``import`` or by :func:`cocite.extras.need` and the like, which take
    a name.
    """
    for node in nodes_of(path):
        names: list[object] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module]
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            names = [getattr(each, "value", "") for each in node.args[:1]]
            names = names if called in ("need", "import_module", "__import__") else []
        yield from (name.split(".")[0] for name in names if isinstance(name, str))


def test_some_libraries_are_imported_in_one_place_each() -> None:
    places = {"numba": set[str](), "duckdb": set[str](), "ray": set[str]()}
    for path in SOURCE.rglob("*.py"):
        for library in places.keys() & libraries(path):
            folder = path.relative_to(SOURCE).parent.as_posix()
            places[library].add(folder if library == "ray" else room_of(path))
    assert places == {"numba": {"kernels"}, "duckdb": {"io"}, "ray": {"cluster/ray"}}


def test_kernels_take_at_most_eight_arguments() -> None:
    wrong = [
        f"{path.name}:{node.lineno} {node.name}"
        for path in (SOURCE / "kernels").glob("*.py")
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef) and len(node.args.args) > 8
    ]
    assert wrong == []


def test_every_module_says_what_it_is() -> None:
    bare = [
        str(path.relative_to(ROOT))
        for path in SOURCE.rglob("*.py")
        if not ast.get_docstring(tree_of(path))
    ]
    assert bare == []


# -- circles of files --------------------------------------------------------------------


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def files_imported() -> dict[str, set[str]]:
    """Module -> the modules it imports, anywhere in its file, those for types included."""
    paths = {module_of(path): path for path in SOURCE.rglob("*.py")}
    found: dict[str, set[str]] = {}
    for module, path in paths.items():
        found[module] = set()
        for node in nodes_of(path):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("cocite"):
                continue
            for alias in node.names:
                if alias.name == "__version__":
                    continue
                named = f"{node.module}.{alias.name}"
                found[module].add(named if named in paths else str(node.module))
    return found


def circle(imported: Mapping[str, set[str]]) -> list[str]:
    """Files that import each other in a circle, the first one last again; none if there is none."""
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_files_import_each_other_in_a_circle() -> None:
    imported = files_imported()
    assert len(imported) > 100
    assert sum(map(len, imported.values())) > 500
    assert circle(imported) == []


def test_a_circle_of_files_is_found() -> None:
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


# -- what a question loads ---------------------------------------------------------------

ASK = """
import sys
import cocite
index = cocite.open(sys.argv[1])
assert index.related("a")
print(*(name for name in sys.modules if name.startswith(("cocite", "numba", "scipy"))))
"""


@pytest.mark.process
@pytest.mark.chosen
def test_a_question_to_trees_loads_no_builder(tmp_path: Path) -> None:
    graph = cocite.ingest([(a, b) for a in "cd" for b in "ab"], tmp_path / "graph")
    cocite.build(graph, tmp_path / "index", samples=20, measure="psimrank")
    asked = [sys.executable, "-c", ASK, str(tmp_path / "index")]
    env = {name: text for name, text in os.environ.items() if name != "COCITE_JIT"}
    done = subprocess.run(asked, env=env, check=True, capture_output=True, text=True)
    found = done.stdout.split()
    assert not [name for name in found if not name.startswith("cocite")]
    assert "cocite.index.layouts.trees.reader" in found
    made = [
        name
        for name in found
        if name.endswith((".build", ".assemble", "rows.words", "rows.pagesim", "rows.neighbors"))
        and not name.startswith("cocite.options.")
    ]
    assert made == []
    unused = ("engine.walk", "index.layouts.memory_plan", "io.tables", "search.intervals")
    assert not {f"cocite.{name}" for name in (*unused, "storage.disk")} & {*found}
    assert len(found) <= 47


# -- files that are named ----------------------------------------------------------------


def test_files_that_are_named_in_docstrings_and_documents_exist() -> None:
    texts = [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.md"), *(ROOT / "docs").glob("*.md")]
    texts += [*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    texts += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    texts.append(ROOT / "tests" / "golden" / "README.md")
    wrong, seen = [], 0
    for text in texts:
        for name in re.findall(r"`([\w/]+\.(?:py|md))`", text.read_text("utf-8")):
            seen += 1
            bases = (text.parent, SOURCE, SOURCE.parent, ROOT, ROOT / "tests")
            places = [base / name for base in bases]
            if "NAME" not in name and not any(place.exists() for place in places):
                wrong.append(f"{text.relative_to(ROOT)}: {name}")
    assert seen > 100
    assert wrong == []


def test_what_the_guide_for_contributors_names_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = re.findall(r"`((?:src|tests|docs|examples|\.ci|benchmarks)/[^`]*)`", text)
    named += re.findall(r"\]\((\w[^)]*)\)", text)
    assert len(named) > 20
    assert [n for n in named if "NAME" not in n and not (ROOT / n).exists()] == []
    goals = re.findall(r"^make ([\w-]+)", text, re.M)
    rules = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert set(goals) <= set(rules)
