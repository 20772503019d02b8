"""Marks of cases."""

from collections.abc import Iterable
from typing import Any

import pytest


def choose(cases: Iterable[str], *chosen: str) -> list[Any]:
    """Mark a few cases of a ``long`` test, so that ``make test`` runs these."""
    cases, few = list(cases), pytest.mark.chosen
    assert {*chosen} <= {*cases}, chosen
    return [pytest.param(case, marks=few) if case in chosen else case for case in cases]
