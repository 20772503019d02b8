"""What all tests of stored graphs share."""

import pytest


@pytest.fixture(autouse=True)
def every_graph_is_ingested(monkeypatch: pytest.MonkeyPatch) -> None:
    """How graphs are made is what is tested."""
    monkeypatch.setattr("tests.conftest.INGESTED", True)
