"""A part of ``make torture`` in every run of the tests, the same cases each time: zeros in all
columns that no store may come to.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cocite.errors import Damaged
from tests.torture import children
from tests.torture.__main__ import KINDS, run
from tests.torture.children import COLUMNS, FAULTS, Table, run_case

SHARES = {"arrays": 0.003, "facts": 0.003}
"""Of all cases of a kind: some forty."""


def test_every_kind_has_a_share() -> None:
    assert set(SHARES) == set(KINDS)


def test_hostile_stores_do_no_harm() -> None:
    for kind, share in SHARES.items():
        table = run([kind], share=share, seed=11, seconds=600)[kind]
        assert not table.failures, table.failures[:3]
        assert table.cases > 30, table
        assert table.counts["refused"] > table.cases, table


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


def test_what_ends_a_process_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table sees each kind of fault, and goes on behind it."""
    monkeypatch.setattr(children, "SECONDS", 1)
    table = Table()
    run_case("all of them", STEPS, table)
    assert table.to_json() == {"cases": 1, **dict.fromkeys(COLUMNS, 1), "wrong": 0, "answer": 2}
    assert {failure.outcome for failure in table.failures} == set(FAULTS) - {"wrong"}


def test_nothing_is_written_elsewhere(tmp_path: Path) -> None:
    """What is harmed is a copy: stores that it was made of are what they were."""
    from tests.torture.stores import copied

    (tmp_path / "x.graph").mkdir()
    for name in ("manifest.json", "in_offsets"):
        (tmp_path / "x.graph" / name).write_text("{}")
    copy = copied(tmp_path / "x.graph", tmp_path / "y")
    (copy / "manifest.json").write_text("other")
    (copy / "in_offsets").unlink()
    assert [(tmp_path / "x.graph" / n).read_text() for n in ("manifest.json", "in_offsets")] == [
        "{}"
    ] * 2
