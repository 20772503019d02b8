"""Directories that go with their objects: then, at the end of the interpreter, not in a child."""

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
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield tmp_path
    gc.collect()


def test_a_directory_goes_with_its_object(place: Path) -> None:
    held = Temporary(None, 0)
    assert held.path.parent == place
    (held.path / "file").touch()
    path = held.path
    del held
    gc.collect()
    assert not path.exists()
    closed = Temporary(None, 0)
    closed.close()
    closed.close()
    assert list(place.iterdir()) == []


def test_a_graph_keeps_its_directory_as_long_as_something_is_made_of_it(place: Path) -> None:
    graph = cocite.ingest([("a", "b"), ("c", "b")])
    assert graph.path.parent.parent == place
    index = cocite.build(graph, place / "kept.index", measure="simrank", samples=2)
    path = graph.path
    del graph
    gc.collect()
    assert path.exists()  # refined answers read the graph again
    assert index.related("a", refine=True) == []
    del index
    gc.collect()
    assert [entry.name for entry in place.iterdir()] == ["kept.index"]


def test_files_are_ingested_without_an_output(place: Path) -> None:
    links = place / "links.tsv"
    links.write_text("a\tb\n")
    graph = cocite.ingest(links)
    assert graph.edges == 1
    links.unlink()
    with pytest.raises(cocite.CociteError):
        cocite.ingest(links)
    del graph
    gc.collect()
    assert list(place.iterdir()) == []


def test_nothing_is_left_of_what_fails(place: Path) -> None:
    with pytest.raises(cocite.CociteError):
        cocite.ingest([("a", None)])
    with pytest.raises(cocite.CociteError):
        cocite.build(cocite.ingest([("a", "b")]), measure="none")
    gc.collect()
    assert list(place.iterdir()) == []


def run(code: str) -> list[Path]:
    quiet = "ignore:This process:DeprecationWarning"  # Python 3.12 and later
    command = [sys.executable, "-W", quiet, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [Path(word) for word in done.stdout.split()]


@pytest.mark.process
@pytest.mark.chosen
def test_it_goes_at_the_end_of_the_interpreter(place: Path) -> None:
    paths = run(MAKE)
    assert len(paths) == 2
    assert {path.parent for path in paths} == {place}
    assert not any(path.exists() for path in paths)


@pytest.mark.process
@pytest.mark.chosen
def test_a_child_that_was_forked_leaves_it_to_its_parent(place: Path) -> None:
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
def test_what_a_killed_process_left_goes_when_the_next_is_made(place: Path) -> None:
    stop = MAKE + "\nimport signal; signal.pause()"
    command = [sys.executable, "-c", stop]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        paths = [Path(word) for word in process.stdout.readline().split()]
        assert all(path.exists() for path in paths)
        held = Temporary(None, 0)  # of a process that is there nothing goes
        assert all(path.exists() for path in paths)
        process.send_signal(signal.SIGKILL)
    assert all(path.exists() for path in paths)
    strange = place / "cocite-held-of-others"
    strange.mkdir()
    (place / "cocite-held-link").symlink_to(strange)
    other = Temporary(None, 0)
    assert not any(path.exists() for path in paths)
    assert strange.exists()
    assert held.path.exists()
    assert other.path.exists()


def test_it_lies_in_memory_only_where_it_fits(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = place / "memory"
    memory.mkdir()
    monkeypatch.setattr(spool, "_IN_MEMORY", memory)
    assert Temporary(100, 1000).path.parent == place  # TMPDIR says so
    monkeypatch.delenv("TMPDIR")
    assert Temporary(250, 1000).path.parent == memory
    assert Temporary(251, 1000).path.parent == place
    assert Temporary(None, 1000).path.parent == place
    assert Temporary(10**18, 10**19).path.parent == place
    monkeypatch.setattr(spool, "_IN_MEMORY", place / "none")
    assert Temporary(250, 1000).path.parent == place


def test_a_place_that_is_none_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(place / "none"))
    with pytest.raises(ResourceError, match="TMPDIR"):
        Temporary(None, 0)
    assert os.listdir(place) == []
