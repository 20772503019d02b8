"""Temporary directories: removed with their objects or at exit, but not by a child."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import cocite
from cocite.errors import ResourceError
from cocite.storage import spool
from cocite.storage.spool import Temporary

MAKE = """
import os, sys, cocite
graph = cocite.ingest([("a", "b"), ("c", "b")])
index = cocite.build(graph)
print(graph.path.parent, index.stored.store.path.parent, flush=True)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield tmp_path
    gc.collect()


def test_temporary_removes_directory_with_object(folder: Path) -> None:
    temporary = Temporary(None, 0)
    assert temporary.path.parent == folder
    (temporary.path / "file").touch()
    path = temporary.path
    del temporary
    gc.collect()
    assert not path.exists()
    closed = Temporary(None, 0)
    closed.close()
    closed.close()
    assert list(folder.iterdir()) == []


def test_temporary_graph_is_kept_for_index(folder: Path) -> None:
    graph = cocite.ingest([("a", "b"), ("c", "b")])
    assert graph.path.parent.parent == folder
    index = cocite.build(graph, folder / "kept.index", measure="simrank", samples=2)
    path = graph.path
    del graph
    gc.collect()
    assert path.exists()  # refined answers read the graph again
    assert index.related("a", refine=True) == []
    del index
    gc.collect()
    assert [entry.name for entry in folder.iterdir()] == ["kept.index"]


def test_ingest_without_output_is_temporary(folder: Path) -> None:
    links = folder / "links.tsv"
    links.write_text("a\tb\n")
    graph = cocite.ingest(links)
    assert graph.edges == 1
    links.unlink()
    with pytest.raises(cocite.CociteError):
        cocite.ingest(links)
    del graph
    gc.collect()
    assert list(folder.iterdir()) == []


def test_temporary_leaves_nothing_after_errors(folder: Path) -> None:
    with pytest.raises(cocite.CociteError):
        cocite.ingest([("a", None)])
    with pytest.raises(cocite.CociteError):
        cocite.build(cocite.ingest([("a", "b")]), measure="none")
    gc.collect()
    assert list(folder.iterdir()) == []


def run(code: str) -> list[Path]:
    quiet = "ignore:This process:DeprecationWarning"  # Python 3.12 and later
    command = [sys.executable, "-W", quiet, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    return [Path(word) for word in result.stdout.split()]


@pytest.mark.process
@pytest.mark.chosen
def test_temporary_is_removed_at_exit(folder: Path) -> None:
    paths = run(MAKE)
    assert len(paths) == 2
    assert {path.parent for path in paths} == {folder}
    assert not any(path.exists() for path in paths)


@pytest.mark.process
@pytest.mark.chosen
def test_temporary_survives_forked_child(folder: Path) -> None:
    code = """
child = os.fork()
if not child:
    assert "c" in {hit.node for hit in index.related("a")}
    del index, graph
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
assert os.path.exists(index.stored.store.path) and os.path.exists(graph.path)
assert "a" in {hit.node for hit in index.related("c")}
"""
    paths = run(MAKE + code)
    assert not any(path.exists() for path in paths)


@pytest.mark.process
@pytest.mark.chosen
def test_temporary_removes_directories_of_killed_process(folder: Path) -> None:
    code = MAKE + "\nimport signal; signal.pause()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        paths = [Path(word) for word in process.stdout.readline().split()]
        assert all(path.exists() for path in paths)
        own = Temporary(None, 0)  # those of a running process stay
        assert all(path.exists() for path in paths)
        process.send_signal(signal.SIGKILL)
    assert all(path.exists() for path in paths)
    foreign = folder / "cocite-held-of-others"
    foreign.mkdir()
    (folder / "cocite-held-link").symlink_to(foreign)
    other = Temporary(None, 0)
    assert not any(path.exists() for path in paths)
    assert foreign.exists()
    assert own.path.exists()
    assert other.path.exists()


def test_temporary_uses_memory_only_if_it_fits(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = folder / "memory"
    memory.mkdir()
    monkeypatch.setattr(spool, "_IN_MEMORY", memory)
    assert Temporary(100, 1000).path.parent == folder  # as TMPDIR says
    monkeypatch.delenv("TMPDIR")
    assert Temporary(250, 1000).path.parent == memory
    assert Temporary(251, 1000).path.parent == folder
    assert Temporary(None, 1000).path.parent == folder
    assert Temporary(10**18, 10**19).path.parent == folder
    monkeypatch.setattr(spool, "_IN_MEMORY", folder / "none")
    assert Temporary(250, 1000).path.parent == folder


def test_temporary_names_missing_tmpdir(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(folder / "none"))
    with pytest.raises(ResourceError, match="TMPDIR"):
        Temporary(None, 0)
    assert os.listdir(folder) == []
