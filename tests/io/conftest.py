"""Graphs of these tests are ingested, as those of ``tests/graph`` are; folders of files."""

from functools import partial
from pathlib import Path

import pytest

from tests.graph.conftest import every_graph_is_ingested
from tests.io.plain import MakeFolder, written
from tests.io.served import served

__all__ = ["every_graph_is_ingested", "served"]


@pytest.fixture
def site(tmp_path: Path) -> MakeFolder:
    """Makes the folder ``site`` with files, or adds more to it."""
    return partial(written, tmp_path / "site")
