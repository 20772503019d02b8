"""A part of ``make torture`` in every run of the tests, the same cases each time."""

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

SHARES = {"arrays": 0.003, "facts": 0.0004}
"""Of all cases of a kind: some forty."""
FEW = {
    "full": ("--overwrite", 0.15),
    "killed": ("refresh", 0.003),
    "planted": ("", 0.02),
    "readers": ("", 0.01),
}
"""Of what these words are in, a share."""
STRANGE = {"databases": 0.02, "names": 0.02}
"""Of all cases of a kind: some twenty, of which as many are told as come."""
ELSEWHERE = {
    "archives": "io/test_archives.py",
    "flips": "index/test_rot.py",
    "kills": "storage/test_left_behind.py",
    "power": "storage/test_power.py",
    "xml": "io/test_archives.py",
}
"""Where a part of the others is."""
TESTS = Path(__file__).parents[1]
DOCUMENT = TESTS.parent / "docs" / "reliability.md"


def test_every_kind_has_a_share() -> None:
    assert {*SHARES, *FEW, *STRANGE, *ELSEWHERE} == set(KINDS)
    for kind, file in ELSEWHERE.items():
        module = f"from tests.torture.{KINDS[kind].file.removesuffix('.py')} import"
        assert module in (TESTS / file).read_text("utf-8")


@pytest.mark.torture
@pytest.mark.long
def test_hostile_stores_do_no_harm() -> None:
    """Both kinds in one run: making the stores takes longer than their cases."""
    found = run(list(SHARES), share=SHARES, seed=11, seconds=600)
    for kind in SHARES:
        row = Row.sum([*found[kind].values()])
        assert row.lost == []
        assert 30 < row.injected < 100  # what is more is for "make torture"
        assert row.told > row.injected / 2
        assert row.seen["refused"] > row.injected


@pytest.mark.torture
@pytest.mark.long
@pytest.mark.parametrize("kind", FEW)
def test_nothing_is_lost(kind: str) -> None:
    only, share = FEW[kind]
    rows = run([kind], share=share, seed=5, seconds=600, only=only)[kind]
    assert len(rows) >= 1
    for row in rows.values():
        assert row.lost == []
        assert row.injected >= 1
        assert row.injected == (row.told if kind == "full" else row.survived)


@pytest.mark.long
@pytest.mark.parametrize("kind", STRANGE)
def test_files_of_strangers_do_no_harm(kind: str) -> None:
    row = Row.sum([*run([kind], share=STRANGE[kind], seed=5, seconds=600)[kind].values()])
    assert row.lost == []
    assert row.injected > 15
    assert row.seen["answer"] > 0


def test_what_is_lost_is_counted_and_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One fault of each sort, from the kind to the document and the exit code."""

    def two(given: Given) -> dict[str, Row]:
        row = Row()
        for told, wrong in ((False, ""), (True, ""), (False, "it is gone")):
            row.add("a fault", wrong, told)
        return {"a store": row} if given.only in "a store" else {}

    kinds = {"bad": Kind("All is kept", "by force", two)}
    for module in (command, report):
        monkeypatch.setattr(module, "KINDS", kinds)
    document = tmp_path / "x.md"
    document.write_text(f"# Head\n\n{report.BEGIN}\nstale\n{report.END}\ntail\n")
    words = ["torture", "bad", "--minutes", "1", "--seed", "7", "--report", str(document)]
    monkeypatch.setattr("sys.argv", words)
    assert command.main() == 1
    out, err = capsys.readouterr()
    found = json.loads(out)["kinds"]["bad"]
    counted = {"injected": 3, "survived": 1, "told": 1, "lost": 1}
    assert {key: found[key] for key in counted} == counted
    assert found["first"] == ["a fault: it is gone"]
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
    assert command.main() == 1  # nothing to do is no success


def test_the_document_has_all_promises_and_lost_nothing() -> None:
    """``docs/reliability.md`` is of a run of all kinds, as they are told today."""
    text = DOCUMENT.read_text("utf-8")
    table = text[text.index(report.BEGIN) : text.index(report.END)]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    told = [[kind.promise, f"{kind.how} (`{name}`)"] for name, kind in KINDS.items()]
    assert [row[:2] for row in rows[2:]] == told
    assert all(int(row[3].replace(",", "")) > 0 for row in rows[2:])
    assert [row[6] for row in rows[2:]] == ["0"] * len(KINDS)


@pytest.mark.torture
def test_every_operation_has_a_case_however_little_time_there_is() -> None:
    found = run(["power"], share=1, seed=3, seconds=0, only="rank")["power"]
    assert {name: row.injected for name, row in found.items()} == dict.fromkeys(
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
def test_what_ends_a_process_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table sees each kind of fault, and goes on behind it."""
    monkeypatch.setattr(children, "SECONDS", 1)
    assert [outcome for outcome, _ in run_case(STEPS)] == [outcome for outcome, _ in STEPS]
    assert {outcome for outcome, _ in STEPS} == set(COLUMNS) - {"wrong"}
