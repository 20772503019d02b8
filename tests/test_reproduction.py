"""``docs/reproduction.md`` is what ``python -m benchmarks.reproduction`` makes of the results."""

import ast
import json
import re
import runpy
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from benchmarks.block import ROOT
from benchmarks.reproduction.__main__ import MEASUREMENTS, chosen, main, rows_of
from benchmarks.reproduction.document import DOCUMENT, PAPERS, RESULTS_FILE, document
from benchmarks.reproduction.gamma import SEEDS
from benchmarks.reproduction.rows import apart, between, decided, over_seeds

PRINTED = {
    "000": {"figure": 1, "table": 0},
    "001": {"figure": 5, "table": 0},
    "002": {"figure": 4, "table": 0},
    "003": {"figure": 8, "table": 7},
    "004": {"figure": 11, "table": 0},
}
"""The numbers of figures and tables of each paper."""
ROWS = [row for paper in PAPERS for row in paper.rows]


def test_reproduction_doc_matches_results() -> None:
    results = json.loads(RESULTS_FILE.read_text("utf-8"))
    assert set(results) == set(MEASUREMENTS)
    assert DOCUMENT.read_text("utf-8") == document(results)


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.number)
def test_paper_rows_cover_every_figure_and_table(paper) -> None:  # type: ignore[no-untyped-def]
    covered: dict[str, set[int]] = {"figure": set(), "table": set()}
    for row in paper.rows:
        for kind, numbers in re.findall(
            r"(figure|table)s? ([0-9]+[a-d]?(?:(?:, | and )[0-9]+[a-d]?)*)", row.figure.lower()
        ):
            covered[kind] |= {int(n) for n in re.findall(r"[0-9]+", numbers)}
    assert covered == {
        kind: set(range(1, count + 1)) for kind, count in PRINTED[paper.number].items()
    }


def test_row_keys_lead_to_measurements() -> None:
    assert len({row.key for row in ROWS}) == len(ROWS)
    for paper in PAPERS:
        for row in paper.rows:
            assert row.key.startswith(paper.number + ".")
            assert set(chosen(row.key)) == set(row.needs)
            assert rows_of(row.key) == [row]
    assert chosen(None) == list(MEASUREMENTS)
    assert [row.key for row in rows_of("trees")] == ["001.figure5"]
    with pytest.raises(SystemExit, match="no row, paper or measurement"):
        chosen("005")


def test_rows_without_measurement_give_reason() -> None:
    for row in ROWS:
        if not row.needs and not row.command:
            why, holds = row.tell({})
            assert holds in ("nothing to reproduce", "**not reproduced**")
            assert len(why) > 10 or "the same" in why


# -- commands -----------------------------------------------------------------------------------


def test_reproduction_doc_names_existing_commands() -> None:
    text = DOCUMENT.read_text("utf-8")
    keys = re.findall(r"`(?:python -m benchmarks\.reproduction )?--only ([^`]+)`", text)
    assert len(keys) > 30
    assert all(rows_of(key) for key in keys)
    for module in set(re.findall(r"`python -m (benchmarks[.\w]*)", text)):
        spec = find_spec(module)
        assert spec is not None, module
        assert spec.submodule_search_locations is None or find_spec(f"{module}.__main__"), module


@pytest.fixture
def unchanged_files() -> Iterator[None]:
    """Check that no tracked file that a benchmark may edit is written."""

    def state() -> dict[Path, tuple[int, bytes]]:
        files = [ROOT / "README.md", *(ROOT / "docs").rglob("*"), *(ROOT / "benchmarks").rglob("*")]
        return {
            file: (file.stat().st_mtime_ns, file.read_bytes())
            for file in files
            if file.is_file() and file.suffix in (".md", ".json", ".svg", ".png", ".toml", ".py")
        }

    before = state()
    yield
    assert state() == before


@pytest.mark.usefixtures("unchanged_files")
@pytest.mark.parametrize(
    "key", ["001.time", "003.table2", "003.figure6c-beforehand", "004.figure5"]
)
def test_reproduction_prints_row_without_writing(
    key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if key == "003.figure6c-beforehand":
        main(["--only", "sweeps-beforehand", "--document"])
        key = "003.figure6c"
    else:
        main(["--only", key, *(["--document"] if key == "004.figure5" else [])])
    (row,) = rows_of(key)
    stdout = capsys.readouterr().out
    assert stdout.startswith(f"{key}  {row.figure}\n")
    assert row.printed in stdout


@pytest.mark.usefixtures("unchanged_files")
@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("benchmarks --document", "| cnr-2000 |"),
        ("benchmarks.performance", "## A web of the papers' size"),
        ("benchmarks.reproduction --document", "## Haveliwala 1999"),
        ("benchmarks.simulator reproduce", "The constants were measured on "),
    ],
)
def test_benchmarks_write_nothing_without_write_option(
    command: str, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, *arguments = command.split()
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    runpy.run_module(module, run_name="__main__", alter_sys=False)
    assert expected in capsys.readouterr().out


EDITORS = {"edit", "keep", "keep_quiet"}
"""The functions that edit tracked files."""
OPTIONS = {"add_write", "add_keep", "parser"}
"""The functions that add ``--write``."""


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Each call, with the name of the function or method."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                yield node.func.attr, node
            elif isinstance(node.func, ast.Name):
                yield node.func.id, node


@pytest.mark.parametrize(
    "file", sorted((ROOT / "benchmarks").rglob("*.py")), ids=lambda file: file.stem
)
def test_benchmarks_edit_files_only_with_write_option(file: Path) -> None:
    tree = ast.parse(file.read_text("utf-8"))
    called = {name for name, _ in calls(tree)}
    options = {
        node.args[0].value
        for name, node in calls(tree)
        if name == "add_argument" and isinstance(node.args[0], ast.Constant)
    }
    assert not options & {"--save", "--readme"}
    assert "--write" not in options or file.name == "block.py"
    if "ArgumentParser" in called and called & EDITORS:
        assert called & OPTIONS, "it edits tracked files, and has no --write"
    if file.name not in ("block.py", "kept.py"):
        tracked = constants(tree)
        for name, node in calls(tree):
            if name in ("write_text", "write_bytes"):
                assert isinstance(node.func, ast.Attribute)
                used = {n.id for n in ast.walk(node.func.value) if isinstance(n, ast.Name)}
                assert not used & tracked, f"line {node.lineno}: edit() writes tracked files"


def constants(tree: ast.Module) -> set[str]:
    """The module's names for paths in the repository."""
    names = {"ROOT", "RESULTS", "DOCUMENT", "DOCS", "RESULTS_FILE", "__file__"}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            used = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
            if used & names:
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


# -- figures ------------------------------------------------------------------------------------


def test_sampled_figures_average_six_seeds() -> None:
    assert len(SEEDS) == 6
    results = json.loads(RESULTS_FILE.read_text("utf-8"))
    for name, each in results.items():
        if name.startswith("gamma"):
            for method in each["found"]["methods"].values():
                assert len(method["gamma"]) == len(method["pairs"]) == 6
        elif name.startswith("lengths"):
            assert all(len(values) == 6 for values in each["found"]["with a pair"].values())
    assert over_seeds([1.0, 2.0, 3.0], 2) == "2.00 ± 2.48"
    assert between([-1.0, -2.0, -3.0], 2) == "−2.00 [−4.48, +0.48]"
    assert apart([3.0, 5.0], [1.0, 1.0]) == [2.0, 4.0]


def test_decided_uses_interval_of_difference() -> None:
    above, below, neither = [1.0, 1.1, 0.9], [-1.0, -1.1, -0.9], [-1.0, 1.1, 0.0]
    assert decided({"a": above}) == "**yes**: yes on a"
    assert decided({"a": above, "b": below, "c": neither}) == (
        "**in part**: yes on a; reversed on b; undecided on c"
    )
    assert decided({"b": below, "c": neither}).startswith("**no**")
    assert decided({"c": neither}) == "**undecided**: undecided on c"
