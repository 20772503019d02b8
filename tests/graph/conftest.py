"""A fixture that all tests of stored graphs share."""

import pytest


@pytest.fixture(autouse=True)
def every_graph_is_ingested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every graph by ``ingest``, which is what these tests test."""
    monkeypatch.setattr("tests.conftest.INGESTED", True)
