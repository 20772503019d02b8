"""Imports go down: read from the source, compared with the table in docs/architecture.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cocite"
FACADE = {"__init__", "__main__"}  # stand above all rooms

BESIDE = {
    ("graph", "kernels"): "cleaning text and coding names are kernels",
    ("store", "memory"): "a full disk is reported in readable sizes",
    ("store", "errors"): "everything reports through one tree",
    ("memory", "errors"): "everything reports through one tree",
    ("means", "memory"): "what is not given is read of the machine there",
    ("means", "errors"): "everything reports through one tree",
}
"""The pairs on one level that may import, first from second, and why."""


def levels() -> dict[str, int]:
    """Room -> level, as the architecture's table has it."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d) \| `(\w+)` \|", text, re.M)
    return {room: int(level) for level, room in rows}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, room) of every import of a room, those inside functions and for types included."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
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
    ("here", "there"), [("graph", "query"), ("store", "graph"), ("kernels", "graph")]
)
def test_an_import_that_goes_up_or_aside_is_found(here: str, there: str) -> None:
    assert len(faults([("x.py:1", here, there)], levels())) == 1


def test_what_may_stand_beside_is_used() -> None:
    used = {(here, there) for _, here, there in all_imports()}
    assert set(BESIDE) <= used


def test_numba_and_duckdb_are_imported_in_one_place_each() -> None:
    places: dict[str, set[str]] = {"numba": set(), "duckdb": set()}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            modules = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            for module in modules:
                if module.split(".")[0] in places:
                    places[module.split(".")[0]].add(room_of(path))
    assert places == {"numba": {"kernels"}, "duckdb": {"graph"}}


def test_kernels_take_at_most_eight_arguments() -> None:
    wrong = [
        f"{path.name}:{node.lineno} {node.name}"
        for path in (SOURCE / "kernels").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and len(node.args.args) > 8
    ]
    assert wrong == []


def test_every_module_says_what_it_is() -> None:
    bare = [
        str(path.relative_to(ROOT))
        for path in SOURCE.rglob("*.py")
        if not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]
    assert bare == []
