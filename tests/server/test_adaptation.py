"""Adaptation by a simulated clock: a queue with servers whose time grows with the samples."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from cocite.server.load import Adaptation

TARGET, LOWEST, THREADS, QUEUE = 0.05, 0.1, 2, 256
BASE, EACH = 0.0005, 0.0015
"""Seconds that an answer takes without samples, and with all of them: 1,000 a second at most."""


class Simulated:
    """Questions come at random, ``rate(now)`` a second, and are refused as the pool does."""

    def __init__(self, rate: Callable[[float], float], seconds: float) -> None:
        self.adaptation = Adaptation(TARGET, LOWEST, 0.0)
        self.answers: list[tuple[float, float, float]] = []  # when, how long, of which share
        self.refused: list[float] = []
        rng, now = random.Random(7), 0.0
        free = [0.0] * THREADS
        told: list[tuple[float, float]] = []
        while now < seconds:
            now += rng.expovariate(rate(now))
            while told and told[0][0] <= now:
                done, took = heapq.heappop(told)
                self.adaptation.answered(took, done)
            share = self.adaptation.share_now(now)
            begin = max(now, heapq.heappop(free))
            full = len(told) >= QUEUE + THREADS
            if full or (self.adaptation.at_floor and begin - now > TARGET):
                heapq.heappush(free, begin)
                self.refused.append(now)
                self.adaptation.refused(now)
                continue
            done = begin + BASE + EACH * share
            heapq.heappush(free, done)
            heapq.heappush(told, (done, done - now))
            self.answers.append((now, done - now, share))

    def late(self, begin: float, end: float) -> float:
        """The share of answers that took longer than the target."""
        there = [took > TARGET for now, took, _ in self.answers if begin <= now < end]
        return sum(there) / len(there)

    def shares(self, begin: float, end: float) -> list[float]:
        return [share for now, _, share in self.answers if begin <= now < end]


def test_all_samples_answer_while_there_is_time() -> None:
    found = Simulated(lambda now: 500, 20)
    assert set(found.shares(0, 20)) == {1.0}
    assert not found.refused


def test_samples_fall_so_that_answers_are_in_time_and_come_back() -> None:
    found = Simulated(lambda now: 1400 if 5 <= now < 35 else 100, 60)
    assert found.late(8, 35) < 0.15
    assert len(found.refused) < 0.001 * len(found.answers)
    busy = found.shares(8, 35)
    assert max(busy) < 1
    assert min(busy) >= LOWEST
    # 1,400 a second take 1.43 ms each on two threads: 0.62 of the samples.
    assert 0.3 < sum(busy) / len(busy) < 0.65
    assert set(found.shares(50, 60)) == {1.0}


def test_past_the_floor_what_is_answered_is_in_time_and_the_rest_is_refused() -> None:
    found = Simulated(lambda now: 12_000 if now >= 5 else 100, 15)
    assert set(found.shares(8, 15)) == {LOWEST}
    assert found.refused
    assert max(took for now, took, _ in found.answers if now >= 8) <= TARGET + BASE + EACH
    answered = len(found.shares(8, 15)) / 7
    assert answered == pytest.approx(THREADS / (BASE + EACH * LOWEST), rel=0.05)


def test_it_does_not_swing() -> None:
    """At an even load beyond what all samples allow, a step up that fails is tried ever less."""
    found = Simulated(lambda now: 1100, 120)
    busy = found.shares(60, 120)
    ups = sum(b > a for a, b in pairwise(busy))
    assert ups <= 30
    assert found.late(60, 120) < 0.15


def test_one_slow_answer_is_no_load() -> None:
    adaptation = Adaptation(TARGET, LOWEST, 0.0)
    adaptation.answered(5.0, 5.0)
    assert adaptation.share_now(7.0) == 1.0
    for now in (10.1, 10.2, 10.3):
        adaptation.answered(1.0, now)
    assert adaptation.share_now(11.15) == 0.75
    assert adaptation.share_now(60.0) == 1.0


def test_idle_time_gives_samples_back_at_once_when_somebody_asks() -> None:
    adaptation = Adaptation(TARGET, LOWEST, 0.0)
    for tenth in range(1, 400):
        for _ in range(6):
            adaptation.answered(1.0, tenth / 10)
    assert adaptation.at_floor
    assert adaptation.share_now(40.0) < 0.15
    assert adaptation.share_now(400.0) == 1.0
