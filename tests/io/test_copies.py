"""Local copies of remote stores: complete, fetched once, bounded, and only in their folder."""

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
def copies_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(remote.COPIES, str(tmp_path / "copies"))
    monkeypatch.setattr(remote, "_READ", {})
    return tmp_path / "copies"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    links = tmp_path / "links.tsv"
    links.write_text("c\ta\nc\tb\nd\ta\nd\tb\n")
    return cocite.ingest(links, tmp_path / "web.graph")


@pytest.fixture
def bucket(graph: Graph) -> Any:
    """An in-memory bucket that holds the graph."""
    files = fsspec.filesystem("memory")
    files.put(str(graph.path), "/bucket/web.graph", recursive=True)
    yield files
    files.rm("/bucket", recursive=True)


URL = "memory://bucket/web.graph"


def test_copied_fetches_graph_once(
    graph: Graph, bucket: Any, copies_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copied(URL, "graph")
    assert path.name == "web.graph"
    copy = Graph.open(path)
    copy.check()
    assert copy.digest == graph.digest
    assert copies_folder in path.parents
    assert path.stat().st_mode & 0o077 == 0
    fetched: list[str] = []
    monkeypatch.setattr(Remote, "fetch", lambda self, name, *_: fetched.append(name))
    assert copied(URL, "graph", graph.store.manifest.digest()) == path
    assert fetched == []
    with pytest.raises(Damaged, match="not the expected graph"):
        copied(URL, "graph", "0" * 32)


def test_copied_discards_damaged_files(bucket: Any, copies_folder: Path) -> None:
    name = next(path for path in bucket.ls("/bucket/web.graph", detail=False) if "sources" in path)
    data = bucket.cat(name)
    for damaged in (data[:-1], data + b"x", bytes([data[0] ^ 1]) + data[1:]):
        bucket.pipe_file(name, damaged)
        with pytest.raises(Damaged, match=r"have the recorded size|does not match its checksum"):
            copied(URL, "graph")
        assert [path for path in copies_folder.iterdir() if path.is_dir()] == []
    bucket.rm(name)
    with pytest.raises(Damaged, match="has no"):
        copied(URL, "graph")
    bucket.pipe_file(name, data)
    assert copied(URL, "graph").is_dir()


def test_copied_refuses_path_traversal(bucket: Any, graph: Graph) -> None:
    from cocite.storage.manifest import _body_checksum

    manifest = json.loads((graph.path / "manifest.json").read_text())
    del manifest["checksum"]
    manifest["files"]["../../escaped"] = next(iter(manifest["files"].values()))
    manifest["checksum"] = _body_checksum(json.dumps(manifest, indent=1, ensure_ascii=False))
    bucket.pipe_file("/bucket/web.graph/manifest.json", json.dumps(manifest).encode())
    with pytest.raises(Damaged, match="which is not a valid file name"):
        copied(URL, "graph")
    for name in ("../x", "a/b", ".hidden", "", "/x"):
        with pytest.raises(Damaged, match="not a valid name for a file of a store"):
            Remote("memory://bucket").read(name, 10)


def test_copied_evicts_oldest_copy(
    bucket: Any, copies_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.cp("/bucket/web.graph", "/bucket/other.graph", recursive=True)
    first = copied(URL, "graph")
    size = sum(file.stat().st_size for file in first.iterdir())
    usage = shutil.disk_usage(copies_folder)
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
        remote._make_room(copies_folder, 10 * size, URL)


@pytest.mark.process
@pytest.mark.chosen
def test_copied_fetches_once_across_processes(graph: Graph) -> None:
    code = (
        "import sys; from cocite.io import remote as urls; from cocite.io.remote import copied\n"
        "fetch = urls.Remote.fetch\n"
        "def fetch_and_print(self, *a): print('fetched', flush=True); return fetch(self, *a)\n"
        "urls.Remote.fetch = fetch_and_print\n"
        "print(copied(sys.argv[1], 'graph'))\n"
    )
    command = [sys.executable, "-c", code, f"file://{graph.path}"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [process.communicate()[0].split() for process in processes]
    assert len({lines[-1] for lines in outputs}) == 1
    assert sum("fetched" in lines for lines in outputs) == 1


def test_copied_reports_bad_url(bucket: Any) -> None:
    with pytest.raises(NotAStore, match="has no manifest"):
        copied("memory://bucket/nothing", "graph")
    with pytest.raises(UsageError, match="is not a URL"):
        copied("bucket", "graph")
    with pytest.raises(UsageError, match="cannot be reached"):
        copied("nowhere://bucket/x", "graph")


def test_copied_refuses_world_writable_cache(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv(remote.COPIES, str(shared))
    with pytest.raises(StoreError, match="others can write to"):
        copied(URL, "graph")


def test_build_accepts_graph_url(bucket: Any, graph: Graph, tmp_path: Path) -> None:
    remote_index = cocite.build(URL, tmp_path / "a.index", measure="psimrank", samples=4)
    local_index = cocite.build(graph, tmp_path / "b.index", measure="psimrank", samples=4)
    assert remote_index.related("a") == local_index.related("a")


def test_remote_names_extra_if_fsspec_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingLibrary, match=r"needs fsspec.*\[cluster\]"):
        Remote("memory://bucket")
