"""The cache from the command line: shown and cleared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cocite.cli.main import main
from cocite.storage import user_cache
from tests.conftest import Shell


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache that holds what was made of a file of links."""
    monkeypatch.setenv("COCITE_CACHE", str(tmp_path / "copies"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    (tmp_path / "links.tsv").write_text("a\tc\nb\tc\n")
    user_cache.place.cache_clear()
    assert main(["-q", "related", str(tmp_path / "links.tsv"), "a"]) == 0
    yield tmp_path
    user_cache.place.cache_clear()


def test_info_cache_shows_places_and_sizes(
    cached: Path, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    shown = shell(["info", "--cache"]).out
    assert f"{cached / 'copies'}\n" in shown
    assert "graphs and indexes of 1 source, " in shown
    assert "0 of stores at URLs" in shown
    found = json.loads(shell(["info", "--cache", "--format", "json"]).out)
    assert (found["path"], found["because"]) == (str(cached / "copies"), "COCITE_CACHE")
    assert list(found["links"]) == [str(cached / "links.tsv")]


def test_info_without_path_or_cache_is_wrong_use(shell: Shell) -> None:
    assert main(["info"]) == 2
    reply = shell(["info", "somewhere", "--cache"], 2)
    assert "name a graph, an index or a file of links, or pass --cache" in reply.err


@pytest.mark.parametrize(("flags", "left"), [([], 0), (["--links"], 0), (["--remote"], 1)])
def test_cache_clear_removes_what_is_chosen(
    cached: Path, flags: list[str], left: int, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert ("0 copies" in (said := shell(["cache", "clear", *flags]).out)) is (flags != ["--links"])
    assert (f"{1 - left} cached graph, " in said) is (flags != ["--remote"])
    assert len(json.loads(shell(["info", "--cache", "--format", "json"]).out)["links"]) == left
