"""Fixtures for input and output tests: ingested graphs, sites and a local web server."""

from functools import partial
from pathlib import Path

import pytest

from tests.graph.conftest import every_graph_is_ingested
from tests.io.plain import MakeFolder, write_files
from tests.io.served import served

__all__ = ["every_graph_is_ingested", "served"]


@pytest.fixture
def site(tmp_path: Path) -> MakeFolder:
    """A function that writes files to the folder ``site``."""
    return partial(write_files, tmp_path / "site")
