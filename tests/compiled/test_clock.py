"""What compiling took, and that other times leave it out."""

from __future__ import annotations

import logging

import pytest

from cocite.compiled.clock import MESSAGE, Compiling
from tests.clock import Clock


def test_the_clock_stands_still_while_kernels_are_compiled() -> None:
    time = Clock()
    compiling = Compiling(time)
    begin = compiling.clock()
    time.sleep(1)
    compiling.begin()
    time.sleep(20)
    assert compiling.clock() - begin == 1
    compiling.end()
    time.sleep(2)
    assert compiling.clock() - begin == 3
    assert (compiling.kernels, compiling.seconds) == (1, 20)


def test_what_takes_a_while_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("cocite.compiled.clock.SAY_AFTER", 0.5)
    time = Clock()
    compiling = Compiling(time)
    told: list[tuple[int, float, bool]] = []
    compiling.watchers.append(lambda *found: told.append(found))
    with caplog.at_level(logging.INFO, "cocite"):
        compiling.begin()
        time.sleep(0.3)
        compiling.tick()
        compiling.end()
        assert caplog.messages == []
        assert told == []
        for _ in range(3):
            compiling.begin()
            time.sleep(0.3)
            compiling.tick()
            compiling.end()
    assert caplog.messages == [MESSAGE]
    assert (told[0][0], told[0][2]) == (1, True)
    assert (told[-1][0], told[-1][2]) == (4, False)
    assert told[-1][1] == pytest.approx(1.2)
