"""Copies of stores that lie elsewhere: whole, once, bounded, and never outside of their folder."""

import fcntl
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite import Graph
from cocite.errors import Damaged, NotAStore, ResourceError, StoreError, UsageError
from cocite.extras import MissingLibrary
from cocite.io import remote
from cocite.io.remote import Remote, copied

fsspec = pytest.importorskip("fsspec", reason="needs fsspec (the extra cluster)")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(remote.COPIES, str(tmp_path / "copies"))
    monkeypatch.setattr(remote, "_READ", {})
    return tmp_path / "copies"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    links = tmp_path / "links.tsv"
    links.write_text("c\ta\nc\tb\nd\ta\nd\tb\n")
    return cocite.ingest(links, tmp_path / "web.graph")


@pytest.fixture
def memory(graph: Graph) -> Any:
    """A bucket in memory that holds the graph."""
    files = fsspec.filesystem("memory")
    files.put(str(graph.path), "/bucket/web.graph", recursive=True)
    yield files
    files.rm("/bucket", recursive=True)


URL = "memory://bucket/web.graph"


def test_a_copy_is_the_graph_and_is_made_once(
    graph: Graph, memory: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copied(URL, "graph")
    assert path.name == "web.graph"
    found = Graph.open(path)
    found.check()
    assert found.digest == graph.digest
    assert place in path.parents
    assert path.stat().st_mode & 0o077 == 0
    fetched: list[str] = []
    monkeypatch.setattr(Remote, "fetch", lambda self, name, *_: fetched.append(name))
    assert copied(URL, "graph", graph.store.manifest.digest()) == path
    assert fetched == []
    with pytest.raises(Damaged, match="not the expected graph"):
        copied(URL, "graph", "0" * 32)


def test_what_is_not_whole_leaves_no_copy(memory: Any, place: Path) -> None:
    name = "/bucket/web.graph/in-sources"
    name = next(path for path in memory.ls("/bucket/web.graph", detail=False) if "sources" in path)
    data = memory.cat(name)
    for wrong in (data[:-1], data + b"x", bytes([data[0] ^ 1]) + data[1:]):
        memory.pipe_file(name, wrong)
        with pytest.raises(Damaged, match=r"have the recorded size|does not match its checksum"):
            copied(URL, "graph")
        assert [path for path in place.iterdir() if path.is_dir()] == []
    memory.rm(name)
    with pytest.raises(Damaged, match="has no"):
        copied(URL, "graph")
    memory.pipe_file(name, data)
    assert copied(URL, "graph").is_dir()


def test_a_manifest_leads_nowhere_else(memory: Any, graph: Graph) -> None:
    from cocite.storage.manifest import _body_checksum

    value = json.loads((graph.path / "manifest.json").read_text())
    del value["checksum"]
    value["files"]["../../escaped"] = next(iter(value["files"].values()))
    value["checksum"] = _body_checksum(json.dumps(value, indent=1, ensure_ascii=False))
    memory.pipe_file("/bucket/web.graph/manifest.json", json.dumps(value).encode())
    with pytest.raises(Damaged, match="which is not a valid file name"):
        copied(URL, "graph")
    for name in ("../x", "a/b", ".hidden", "", "/x"):
        with pytest.raises(Damaged, match="not a valid name for a file of a store"):
            Remote("memory://bucket").read(name, 10)


def test_oldest_copy_goes(memory: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.cp("/bucket/web.graph", "/bucket/other.graph", recursive=True)
    first = copied(URL, "graph")
    size = sum(file.stat().st_size for file in first.iterdir())
    usage = shutil.disk_usage(place)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=size))
    with pytest.raises(ResourceError, match="together with the copies in use"):
        copied("memory://bucket/other.graph", "graph")
    lock = remote._READ.pop(first)
    fcntl.flock(lock, fcntl.LOCK_UN)
    second = copied("memory://bucket/other.graph", "graph")
    assert second.is_dir()
    assert not first.exists()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=0))
    monkeypatch.setattr(remote, "_READ", {})
    with pytest.raises(ResourceError, match="half of the free space"):
        remote._make_room(place, 10 * size, URL)


@pytest.mark.process
@pytest.mark.chosen
def test_processes_that_want_one_copy_make_it_once(graph: Graph) -> None:
    code = (
        "import sys; from cocite.io import remote as urls; from cocite.io.remote import copied\n"
        "fetch = urls.Remote.fetch\n"
        "def told(self, *a): print('fetched', flush=True); return fetch(self, *a)\n"
        "urls.Remote.fetch = told\n"
        "print(copied(sys.argv[1], 'graph'))\n"
    )
    run = [sys.executable, "-c", code, f"file://{graph.path}"]
    started = [subprocess.Popen(run, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    told = [process.communicate()[0].split() for process in started]
    assert len({lines[-1] for lines in told}) == 1
    assert sum("fetched" in lines for lines in told) == 1


def test_what_is_no_store_is_told(memory: Any) -> None:
    with pytest.raises(NotAStore, match="has no manifest"):
        copied("memory://bucket/nothing", "graph")
    with pytest.raises(UsageError, match="is not a URL"):
        copied("bucket", "graph")
    with pytest.raises(UsageError, match="cannot be reached"):
        copied("nowhere://bucket/x", "graph")


def test_open_place_refused(memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv(remote.COPIES, str(shared))
    with pytest.raises(StoreError, match="others can write to"):
        copied(URL, "graph")


def test_a_graph_by_its_url_is_built_from(memory: Any, graph: Graph, tmp_path: Path) -> None:
    found = cocite.build(URL, tmp_path / "a.index", measure="psimrank", samples=4)
    here = cocite.build(graph, tmp_path / "b.index", measure="psimrank", samples=4)
    assert found.related("a") == here.related("a")


def test_without_fsspec_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingLibrary, match=r"needs fsspec.*\[cluster\]"):
        Remote("memory://bucket")
