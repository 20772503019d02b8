"""A fixed part of ``make torture`` in every test run."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cocite.errors import Damaged
from tests.torture import __main__ as command
from tests.torture import children, report
from tests.torture.__main__ import run
from tests.torture.children import COLUMNS, run_case
from tests.torture.kinds import KINDS, Kind
from tests.torture.results import Given, Row

HOSTILE_SHARES = {"arrays": 0.003, "facts": 0.0004}
"""Share of all cases of a kind: about 40."""
SELECTED = {
    "full": ("--overwrite", 0.15),
    "killed": ("refresh", 0.003),
    "planted": ("", 0.02),
    "readers": ("", 0.01),
}
"""Targets with these words, and a share of their cases."""
UNTRUSTED_SHARES = {"databases": 0.02, "names": 0.02}
"""Share of all cases of a kind: about 20."""
OTHER_TESTS = {
    "archives": "io/test_archives.py",
    "flips": "index/test_bit_rot.py",
    "kills": "storage/test_leftovers.py",
    "power": "storage/test_power_loss.py",
    "xml": "io/test_archives.py",
}
"""Test files with a part of the other kinds."""
TESTS = Path(__file__).parents[1]
DOCUMENT = TESTS.parent / "docs" / "reliability.md"


def test_kinds_have_share_or_test_elsewhere() -> None:
    assert {*HOSTILE_SHARES, *SELECTED, *UNTRUSTED_SHARES, *OTHER_TESTS} == set(KINDS)
    for kind, file in OTHER_TESTS.items():
        module = f"from tests.torture.{KINDS[kind].file.removesuffix('.py')} import"
        assert module in (TESTS / file).read_text("utf-8")


@pytest.mark.torture
@pytest.mark.long
def test_harm_stores_loses_nothing() -> None:
    """Both kinds share one run: making the stores takes longer than the cases."""
    rows = run(list(HOSTILE_SHARES), share=HOSTILE_SHARES, seed=11, seconds=600)
    for kind in HOSTILE_SHARES:
        row = Row.sum([*rows[kind].values()])
        assert row.lost == []
        assert 30 < row.injected < 100  # "make torture" runs more
        assert row.reported > row.injected / 2
        assert row.seen["refused"] > row.injected


@pytest.mark.torture
@pytest.mark.long
@pytest.mark.parametrize("kind", SELECTED)
def test_run_loses_nothing(kind: str) -> None:
    only, share = SELECTED[kind]
    rows = run([kind], share=share, seed=5, seconds=600, only=only)[kind]
    assert len(rows) >= 1
    for row in rows.values():
        assert row.lost == []
        assert row.injected >= 1
        assert row.injected == (row.reported if kind == "full" else row.survived)


@pytest.mark.long
@pytest.mark.parametrize("kind", UNTRUSTED_SHARES)
def test_strangers_files_do_no_harm(kind: str) -> None:
    row = Row.sum([*run([kind], share=UNTRUSTED_SHARES[kind], seed=5, seconds=600)[kind].values()])
    assert row.lost == []
    assert row.injected > 15
    assert row.seen["answer"] > 0


def test_main_counts_losses_and_exits_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One fault with each outcome, from the kind to the document and the exit code."""

    def inject(given: Given) -> dict[str, Row]:
        row = Row()
        for reported, wrong in ((False, ""), (True, ""), (False, "it is gone")):
            row.add("a fault", wrong, reported)
        return {"a store": row} if given.only in "a store" else {}

    kinds = {"bad": Kind("All is kept", "by force", inject)}
    for module in (command, report):
        monkeypatch.setattr(module, "KINDS", kinds)
    document = tmp_path / "x.md"
    document.write_text(f"# Head\n\n{report.BEGIN}\nstale\n{report.END}\ntail\n")
    words = ["torture", "bad", "--minutes", "1", "--seed", "7", "--report", str(document)]
    monkeypatch.setattr("sys.argv", words)
    assert command.main() == 1
    out, err = capsys.readouterr()
    printed = json.loads(out)["kinds"]["bad"]
    expected = {"injected": 3, "survived": 1, "reported": 1, "lost": 1}
    assert {key: printed[key] for key in expected} == expected
    assert printed["first"] == ["a fault: it is gone"]
    assert "seed 7" in err
    assert "1 x bad: a fault: it is gone" in err
    text = document.read_text()
    assert (
        "| All is kept | by force (`bad`) | `tests/torture/test_torture.py` | 3 | 1 | 1 | 1 |"
        in text
    )
    assert "stale" not in text
    assert text.endswith("tail\n")
    monkeypatch.setattr("sys.argv", [*words, "--only", "none such"])
    assert command.main() == 1  # a run without cases fails


def test_report_document_has_all_kinds_and_no_losses() -> None:
    """``docs/reliability.md`` comes from a run of all current kinds."""
    text = DOCUMENT.read_text("utf-8")
    table = text[text.index(report.BEGIN) : text.index(report.END)]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    expected = [[kind.promise, f"{kind.how} (`{name}`)"] for name, kind in KINDS.items()]
    assert [row[:2] for row in rows[2:]] == expected
    assert all(int(row[3].replace(",", "")) > 0 for row in rows[2:])
    assert [row[6] for row in rows[2:]] == ["0"] * len(KINDS)


@pytest.mark.torture
def test_run_gives_every_operation_one_case() -> None:
    rows = run(["power"], share=1, seed=3, seconds=0, only="rank")["power"]
    assert {name: row.injected for name, row in rows.items()} == dict.fromkeys(
        ("rank, a table", "rank --overwrite, an array"), 1
    )


def crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hang() -> None:
    while True:
        time.process_time()


def eat() -> None:
    np.ones(1 << 32)


def refuse() -> None:
    raise Damaged("it is")


def fail() -> None:
    raise KeyError("no")


STEPS: list[tuple[str, Callable[[], Any]]] = [
    ("answer", lambda: None),
    ("crash", crash),
    ("refused", refuse),
    ("hang", hang),
    ("traceback", fail),
    ("memory", eat),
    ("answer", lambda: None),
]


@pytest.mark.torture
def test_run_case_counts_each_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each outcome is detected, and later steps still run."""
    monkeypatch.setattr(children, "SECONDS", 1)
    assert [outcome for outcome, _ in run_case(STEPS)] == [outcome for outcome, _ in STEPS]
    assert {outcome for outcome, _ in STEPS} == set(COLUMNS) - {"wrong"}
