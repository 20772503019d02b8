"""Outputs at a URL: published whole or not at all, with no other files lost."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite import Graph
from cocite.cli.main import main
from cocite.errors import NotAStore, OutputExists, StoreError, UsageError
from cocite.io import remote
from cocite.io.remote import Remote, copied
from cocite.storage import user_cache as places

fsspec = pytest.importorskip("fsspec", reason="needs fsspec (the extra cluster)")

BUCKET = "memory://bucket"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An in-memory bucket and a copy directory."""
    monkeypatch.setenv(remote.COPIES, str(tmp_path / "copies"))
    monkeypatch.setattr(remote, "_READ", {})
    monkeypatch.setattr(remote, "_ORIGINS", {})
    filesystem = fsspec.filesystem("memory")
    yield filesystem
    if filesystem.exists("/bucket"):
        filesystem.rm("/bucket", recursive=True)


@pytest.fixture
def links(tmp_path: Path) -> Path:
    file = tmp_path / "links.tsv"
    file.write_text("c\ta\nc\tb\nd\ta\nd\tb\n")
    return file


def remote_files(files: Any, name: str) -> dict[str, bytes]:
    return {path.rsplit("/", 1)[1]: files.cat(path) for path in files.ls(f"/bucket/{name}", False)}


def local_files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_remote_stores_match_local_directories(files: Any, links: Path, tmp_path: Path) -> None:
    graph = cocite.ingest(links, f"{BUCKET}/web.graph")
    assert remote_files(files, "web.graph") == local_files(
        cocite.ingest(links, tmp_path / "web.graph").path
    )
    options: dict[str, Any] = {"measure": "psimrank", "samples": 4}
    index = cocite.build(graph, f"{BUCKET}/web.index", **options)
    local = cocite.build(graph, tmp_path / "web.index", **options)
    found, expected = remote_files(files, "web.index"), local_files(tmp_path / "web.index")
    recorded = json.loads(found["manifest.json"])["facts"]["graph"]
    assert recorded["path"] == f"{BUCKET}/web.graph"
    assert found == expected
    assert index.related("a") == local.related("a")
    assert cocite.open(f"{BUCKET}/web.index").related("a") == local.related("a")
    assert Graph.open(f"{BUCKET}/web.graph").digest == graph.digest
    assert list((tmp_path / "copies").glob("*.out")) == []


def test_remote_sends_manifest_last(
    files: Any, links: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name in ("put", "write", "remove"):
        original = getattr(Remote, name)

        def recorded(self: Remote, *args: Any, original: Any = original, name: str = name) -> Any:
            calls.extend(f"{name} {arg}" for arg in args if isinstance(arg, str))
            return original(self, *args)

        monkeypatch.setattr(Remote, name, recorded)
    cocite.ingest(links, f"{BUCKET}/x")
    assert calls[0] == "write sending.json"
    assert calls[-2:] == ["write manifest.json", "remove sending.json"]
    del calls[:]
    with pytest.raises(OutputExists, match=r"exists.*--overwrite"):
        cocite.ingest(links, f"{BUCKET}/x")
    assert calls == []
    links.write_text("c\ta\n")
    cocite.ingest(links, f"{BUCKET}/x", overwrite=True)
    assert calls[:2] == ["write sending.json", "remove manifest.json"]
    assert calls[-2:] == ["write manifest.json", "remove sending.json"]
    assert Graph.open(f"{BUCKET}/x").edges == 1
    assert "sending.json" not in remote_files(files, "x")


def test_remote_recovers_from_interrupted_send(
    files: Any, links: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, sent = Remote.put, []

    def broken(self: Remote, path: Path, name: str) -> None:
        sent.append(name)
        if len(sent) == 3:
            raise StoreError("the network is gone")
        put(self, path, name)

    with monkeypatch.context() as patched:
        patched.setattr(Remote, "put", broken)
        with pytest.raises(StoreError, match="the network is gone") as caught:
            cocite.ingest(links, f"{BUCKET}/x")
    local_copy = Path(caught.value.__notes__[0].rpartition(" ")[2])
    assert Graph.open(local_copy).edges == 4
    with pytest.raises(NotAStore):
        copied(f"{BUCKET}/x", "graph")
    cocite.ingest(links, f"{BUCKET}/x")
    assert Graph.open(f"{BUCKET}/x").edges == 4
    assert "sending.json" not in remote_files(files, "x")


def test_overwrite_spares_foreign_files(files: Any, links: Path) -> None:
    files.pipe_file("/bucket/mine/notes.txt", b"mine")
    with pytest.raises(OutputExists, match=r"notes\.txt"):
        cocite.ingest(links, f"{BUCKET}/mine", overwrite=True)
    graph = cocite.ingest(links, f"{BUCKET}/x")
    with pytest.raises(NotAStore, match="not a stored index"):
        cocite.build(graph, f"{BUCKET}/x", measure="cocitation", overwrite=True)
    assert files.cat("/bucket/mine/notes.txt") == b"mine"


def test_cli_reads_and_writes_urls(
    files: Any, links: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ingest", str(links), "-o", f"{BUCKET}/g"]) == 0
    index_command = ["index", f"{BUCKET}/g", "-o", f"{BUCKET}/i", "--measure", "psimrank"]
    assert main([*index_command, "--samples", "4"]) == 0
    assert main(index_command) == 1
    assert "exists" in capsys.readouterr().err
    for command in (
        ["info", f"{BUCKET}/g"],
        ["info", f"{BUCKET}/i"],
        ["verify", f"{BUCKET}/i"],
        ["nodes", f"{BUCKET}/i"],
        ["related", f"{BUCKET}/i", "a"],
        ["similarity", f"{BUCKET}/i", "a", "b"],
        ["related", f"{BUCKET}/g", "a"],
        ["rank", f"{BUCKET}/g", "-o", f"{BUCKET}/ranks.csv"],
        ["rank", f"{BUCKET}/g", "-o", f"{BUCKET}/ranks.npy"],
    ):
        assert main(command) == 0, (command, capsys.readouterr().err)
    assert main(["rank", f"{BUCKET}/g", "-o", str(tmp_path / "ranks.csv")]) == 0
    assert files.cat("/bucket/ranks.csv") == (tmp_path / "ranks.csv").read_bytes()
    assert main(["rank", f"{BUCKET}/g", "-o", f"{BUCKET}/ranks.csv"]) == 1
    assert main(["refresh", f"{BUCKET}/i", f"{BUCKET}/g"]) == 2
    assert main(["related", f"{BUCKET}/nothing", "a"]) == 1


def test_merge_writes_to_url(files: Any, links: Path, tmp_path: Path) -> None:
    graph = cocite.ingest(links, tmp_path / "web.graph")
    parts = [tmp_path / "a.index", tmp_path / "b.index"]
    for path, numbers in zip(parts, (range(4), range(4, 8)), strict=True):
        cocite.build(graph, path, measure="psimrank", numbers=numbers)
    expected = cocite.merge(parts, tmp_path / "c.index").related("a")
    assert cocite.merge(parts, f"{BUCKET}/c.index").related("a") == expected
    recorded = json.loads(files.cat("/bucket/c.index/manifest.json"))["facts"]["graph"]
    assert recorded["path"] == "../web.graph"
    command = ["merge", *map(str, parts), "-o", f"{BUCKET}/d.index"]
    assert main(command) == 0
    assert cocite.open(f"{BUCKET}/d.index").related("a") == expected
    assert main(command) == 1


def test_ingest_and_rank_write_to_file_url(links: Path, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/out"
    assert cocite.ingest(links, f"{url}/g").edges == 4
    assert main(["rank", f"{url}/g", "-o", f"{url}/ranks.csv"]) == 0
    assert [path.name for path in (tmp_path / "out").iterdir() if path.is_file()] == ["ranks.csv"]


def test_generate_web_rejects_url(files: Any) -> None:
    with pytest.raises(UsageError, match="is a URL; this output must be a directory"):
        cocite.generate_web(f"{BUCKET}/web", nodes=50, links=200)
    assert not files.exists("/bucket/web")


def test_cache_lists_and_clears_remote_copies(
    files: Any, links: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    places.place.cache_clear()
    cocite.ingest(links, f"{BUCKET}/g")
    assert main(["info", "--cache", "--format", "json"]) == 0
    (copy,) = json.loads(capsys.readouterr().out)["copies"]
    assert (copy["url"], copy["name"], copy["read"]) == (f"{BUCKET}/g", "g", True)
    assert main(["info", "--cache"]) == 0
    assert f"{BUCKET}/g" in capsys.readouterr().out
    assert main(["cache", "clear", "--remote"]) == 0
    assert capsys.readouterr().out == "removed 0 copies, 0 B\n"
    for lock in remote._READ.values():
        os.close(lock)
    monkeypatch.setattr(remote, "_READ", {})
    assert main(["cache", "clear", "--remote", "--format", "json"]) == 0
    removed = json.loads(capsys.readouterr().out)
    assert [each["url"] for each in removed["copies"]] == [f"{BUCKET}/g"]
    assert removed["bytes"] == copy["bytes"] > 0
    assert Remote(f"{BUCKET}/g").has("manifest.json")
