"""Fixtures of all command-line tests."""

from pathlib import Path

import pytest

import cocite

LINKS = "a\tx\nb\tx\nc\tx\na\ty\nb\ty\nz\ty\n"


@pytest.fixture(autouse=True)
def no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without progress lines, which depend on the speed of the machine."""
    monkeypatch.setattr("cocite.cli.console._FIRST_LINE", float("inf"))


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with links.tsv; the user's cache is next to it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    (tmp_path / "work" / "links.tsv").write_text(LINKS)
    return tmp_path / "work"


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph ``g`` and its psimrank index ``i``, for queries only."""
    folder = tmp_path_factory.mktemp("hub")
    links = [("hub", leaf) for leaf in ("one", "two", "[red]three[/]")]
    graph = cocite.ingest([*links, ("other", "one"), ("other", "two")], folder / "g")
    cocite.build(graph, folder / "i", samples=40, seed=1, measure="psimrank")
    return folder
