"""What all tests of stored graphs share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def every_graph_is_ingested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of graphs that other tests made would tell nothing of how graphs are made."""
    monkeypatch.setattr("tests.conftest.GRAPHS", {})
