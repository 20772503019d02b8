"""``Staging``: after any fault, the old store or the new one is there, and complete."""

import ctypes
import errno
import io
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.errors import Busy, NotAStore, OutputExists, ResourceError, StoreError, UsageError
from cocite.storage import ArrayWriter, Manifest, Store, disk
from cocite.storage import manifest as manifest_module
from cocite.storage.arrays import Entry, map_array
from cocite.storage.staging import Staging
from tests.io.plain import links
from tests.storage.test_round_trip import make

CALLS = ["write", "sync_file", "sync_directory", "rename", "exchange"]


class Fault(Exception):
    """A fault that a test injects."""


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def fail_after(work: Callable[[Path], object], staging: Staging) -> None:
    """Run ``work`` in a draft, then end with a fault."""

    def run() -> None:
        with staging as draft:
            work(draft.path)
            raise Fault

    with pytest.raises(Fault):
        run()


def test_staging_writes_manifest_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []

    def recorded(call: str) -> Callable[..., Any]:
        real = getattr(disk, call)

        def record(*args: Any) -> Any:
            name = Path(getattr(args[-1], "name", args[-1])).name
            log.append(call + " " + re.sub(r"\.[0-9a-f]{16}\.new", ".*.new", name))
            return real(*args)

        return record

    for call in ("sync_file", "sync_directory", "rename", "rename_new", "exchange"):
        monkeypatch.setattr(disk, call, recorded(call))
    make(tmp_path / "s")
    assert log == [
        "sync_directory s.building",  # the mark comes first
        "sync_file bytes",
        "sync_file pairs",
        "sync_file none",
        "sync_file .manifest.json.*.new",
        "rename manifest.json",
        "sync_directory s.building",
        "rename_new s",
        f"sync_directory {tmp_path.name}",
    ]
    log.clear()
    make(tmp_path / "s", overwrite=True)
    expected = ["exchange s", f"sync_directory {tmp_path.name}", *2 * ["sync_directory s.building"]]
    assert log[-4:] == expected  # the old store goes before its manifest, and that before its mark
    assert names(tmp_path) == ["s"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("old", [False, True])
def test_ingest_fault_leaves_old_or_new_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, old: bool
) -> None:
    """A new graph of integers, or text names in place of an old graph: either way of storing."""
    before = [("a", "b")] if old else None
    after = [("http://a/", "d"), ("d", "e")] if old else [("9", "7"), ("7", "11")]
    (tmp_path / "old.tsv").write_text("a\tb\n")
    (tmp_path / "new.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in after))
    output = tmp_path / "g"
    real = getattr(disk, call)
    if old:
        cocite.ingest(tmp_path / "old.tsv", output)
    for fatal in range(100):
        count = 0

        def failing(*args: Any, fatal: int = fatal) -> Any:
            nonlocal count
            count += 1
            if count > fatal:
                raise Fault
            return real(*args)

        with monkeypatch.context() as patch:
            patch.setattr(disk, call, failing)
            try:
                cocite.ingest(tmp_path / "new.tsv", output, overwrite=True)
                done = True
            except Fault:
                done = False
        if call != "sync_directory":  # cleanup needs it, too
            assert not (tmp_path / "g.building").exists()
        found = sorted(links(Graph.open(output))) if output.exists() else None
        assert found in (before, sorted(after))
        if found is not None:
            store = Store.open(output, "graph")
            assert [store.verify(name) for name in store.manifest.files if store.verify(name)] == []
        if done:
            assert found == sorted(after)
            break
        if found == sorted(after):
            assert call == "sync_directory"  # after the rename
            break
    assert done or call == "sync_directory"


def test_staging_renames_without_exchange_syscall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "s", value=1)
    make(tmp_path / "s.old", value=7)
    monkeypatch.setattr(ctypes, "CDLL", lambda *args, **options: object())
    assert make(tmp_path / "s", value=2, overwrite=True).facts == {"é": 2}
    assert Store.open(tmp_path / "s.old", "graph").facts == {"é": 7}  # an unrelated store
    assert names(tmp_path) == ["s", "s.old"]


def test_store_outlives_replacement(tmp_path: Path) -> None:
    array = make(tmp_path / "s", value=1).array("bytes")
    make(tmp_path / "s", value=2, overwrite=True)
    assert array[0] == 1
    assert Store.open(tmp_path / "s", "graph").array("bytes")[0] == 2


def test_staging_keeps_old_store_until_publish(tmp_path: Path) -> None:
    make(tmp_path / "s", value=1)

    def write(draft: Path) -> None:
        (draft / "bytes").write_bytes(b"x")
        assert Store.open(tmp_path / "s", "graph").facts == {"é": 1}

    fail_after(write, Staging(tmp_path / "s", "graph", overwrite=True))
    assert Store.open(tmp_path / "s", "graph").facts == {"é": 1}
    assert names(tmp_path) == ["s"]


def test_staging_refuses_existing_output(tmp_path: Path) -> None:
    make(tmp_path / "s", value=1)
    with pytest.raises(OutputExists) as caught:
        make(tmp_path / "s", value=2)
    assert str(caught.value) == (
        f"{tmp_path / 's'} exists. Choose another output, or pass --overwrite (overwrite=True) "
        "to replace it when the new one is complete"
    )
    assert Store.open(tmp_path / "s", "graph").facts == {"é": 1}


def test_staging_overwrites_only_stores(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").touch()
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("home", "file", "dangling"):
        with pytest.raises(NotAStore) as caught:
            make(tmp_path / name, overwrite=True)
        assert str(caught.value) == (
            f"{tmp_path / name} exists and is not a stored graph: it will not be overwritten. "
            "Choose another output"
        )
    assert names(tmp_path) == ["dangling", "file", "home"]
    assert names(tmp_path / "home") == ["letter"]
    # An index built over its own graph would remove the graph.
    make(tmp_path / "s", value=1)
    with pytest.raises(NotAStore, match="is not a stored index"):
        Staging(tmp_path / "s", "index", overwrite=True)
    assert Store.open(tmp_path / "s", "graph").facts == {"é": 1}


def test_staging_overwrite_replaces_link_not_target(tmp_path: Path) -> None:
    make(tmp_path / "v1", value=1)
    (tmp_path / "now").symlink_to("v1")
    assert make(tmp_path / "now", value=2, overwrite=True).facts == {"é": 2}
    assert Store.open(tmp_path / "v1", "graph").facts == {"é": 1}
    assert names(tmp_path) == ["now", "v1"]


@pytest.mark.parametrize("output", ["", ".", "/"])
def test_staging_refuses_unnamed_output(output: str) -> None:
    with pytest.raises(UsageError, match=r"it must be the path of a new directory"):
        Staging(output, "graph")


def test_staging_reports_uncreatable_output(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "taken.building").touch()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").touch()
    (tmp_path / "linked.building").symlink_to("home")
    for output in ("file/s", "x" * 250, "taken", "linked"):
        with pytest.raises(StoreError, match=r"cannot be created: .*\. Choose another output"):
            make(tmp_path / output)
    assert names(tmp_path / "home") == ["letter"]


def test_staging_refuses_second_builder(tmp_path: Path) -> None:
    with Staging(tmp_path / "s", "graph") as first:
        (first.path / "half").touch()
        with pytest.raises(Busy) as caught:
            make(tmp_path / "s")
        assert str(caught.value) == (
            f"another process is building {tmp_path / 's'}; wait until it is finished"
        )
        assert (first.path / "half").exists()
    assert names(tmp_path) == []


@pytest.mark.parametrize("resumable", [False, True])
def test_staging_takes_over_killed_draft(tmp_path: Path, resumable: bool) -> None:
    path = tmp_path / "s.building"
    (path / "work").mkdir(parents=True)
    (path / "work" / "file").touch()
    (path / "link").symlink_to(tmp_path)
    (path / ".cocite-draft").touch()
    with Staging(tmp_path / "s", "graph", resumable=resumable) as draft:
        mark = [".cocite-draft"]
        assert names(draft.path) == ([*mark, "link", "work"] if resumable else mark)
        draft.publish(Manifest("graph", {}))
    assert names(tmp_path) == ["s"]
    assert names(tmp_path / "s") == ["manifest.json"]


def test_staging_keeps_nonempty_resumable_draft(tmp_path: Path) -> None:
    fail_after(lambda draft: None, Staging(tmp_path / "s", "graph", resumable=True))
    assert names(tmp_path) == []
    half = Staging(tmp_path / "s", "graph", resumable=True)
    fail_after(lambda draft: (draft / "half").touch(), half)
    assert names(tmp_path) == ["s.building"]


class FullFile(io.RawIOBase):
    """A file that takes a few bytes at a time, until it is full."""

    def __init__(self, path: Path, fit: int, fault: int) -> None:
        self.name, self.fit, self.fault = str(path), fit, fault
        self.data = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.fit == 0:
            raise OSError(self.fault, os.strerror(self.fault))
        taken = bytes(data[: min(3, self.fit)])
        self.data += taken
        self.fit -= len(taken)
        return len(taken)


def test_disk_write_completes_short_writes(tmp_path: Path) -> None:
    file: Any = FullFile(tmp_path / "x", 100, errno.ENOSPC)
    disk.write(file, b"0123456789")
    assert file.data == b"0123456789"


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_disk_write_reports_free_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: int
) -> None:
    usage = type("usage", (), {"free": 4_200_000})
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    file: Any = FullFile(tmp_path / "x", 5, fault)
    with pytest.raises(ResourceError) as caught:
        disk.write(file, bytes(2000))
    assert str(caught.value) == (
        f"could not write 2 kB more to {tmp_path / 'x'}: {os.strerror(fault)} (4.2 MB free there). "
        "Free some space or choose another output, and run the same command again"
    )


def test_disk_write_passes_other_errors(tmp_path: Path) -> None:
    file: Any = FullFile(tmp_path / "x", 0, errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        disk.write(file, b"x")


def test_array_writer_reports_full_device() -> None:
    def write() -> None:
        with Path("/dev/full").open("wb", buffering=0) as file, ArrayWriter(file, np.uint8) as out:
            out.write(np.zeros(10, np.uint8))

    with pytest.raises(ResourceError, match=r"could not write 10 B more to /dev/full: No space"):
        write()


def test_staging_keeps_foreign_draft(tmp_path: Path) -> None:
    (tmp_path / "s.building").mkdir()
    (tmp_path / "s.building" / "thesis").touch()
    with pytest.raises(StoreError, match=r"exists, but is not an unfinished build: .*thesis"):
        make(tmp_path / "s")
    assert names(tmp_path / "s.building") == ["thesis"]


def test_staging_keeps_output_created_during_build(tmp_path: Path) -> None:
    with Staging(tmp_path / "s", "graph", resumable=True) as draft:
        (tmp_path / "s").mkdir()
        (tmp_path / "s" / "thesis").touch()
        with pytest.raises(OutputExists, match="was created during the build"):
            draft.publish(Manifest("graph", {}))
    assert names(tmp_path / "s") == ["thesis"]


def test_staging_exit_keeps_next_draft(tmp_path: Path) -> None:
    """The second starts after the first has published, but before it exits."""
    for overwrite in (False, True):
        with Staging(tmp_path / "s", "graph", overwrite=overwrite) as first:
            first.publish(Manifest("graph", {"n": 1}))
            with Staging(tmp_path / "s", "graph", overwrite=True) as second:
                (second.path / "half").touch()
                first.__exit__(None, None, None)
                assert (second.path / "half").exists()
                second.publish(Manifest("graph", {"n": 2}))
            first._lock = os.open(tmp_path, os.O_RDONLY)  # already exited: needs a file to close
        assert Store.open(tmp_path / "s", "graph").facts == {"n": 2}


def test_store_open_reads_one_generation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is replaced after its manifest is read, before its files are."""
    make(tmp_path / "s", value=1)
    real = map_array
    replaced = False

    def late(path: Path, entry: Entry) -> Any:
        nonlocal replaced
        if not replaced:
            replaced = True
            make(tmp_path / "s", value=2, overwrite=True)
        return real(path, entry)

    monkeypatch.setattr(manifest_module, "map_array", late)
    store = Store.open(tmp_path / "s", "graph")
    assert store.facts == {"é": 2}
    assert store.array("bytes")[0] == 2
