"""Limits on open files, mappings and manifests: errors that say what to do."""

import errno
import mmap
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite.errors import ResourceError
from cocite.storage import Manifest
from cocite.storage.staging import Staging
from tests.conftest import MakeGraph

CHILD = """
import resource, sys
from cocite.cli.main import main

resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[3])))
sys.exit(main(["related", sys.argv[1], "a"]))
"""


def query(
    index: Path, files: int, hard_limit: int | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CHILD, str(index), str(files), str(hard_limit or files)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.process
@pytest.mark.parametrize("files", [20, 21, 40])
def test_related_reports_open_file_limit(make_graph: MakeGraph, tmp_path: Path, files: int) -> None:
    """Whether opening or mapping reaches it."""
    graph = make_graph([("b", "a"), ("b", "c"), ("a", "b")])
    cocite.build(graph, tmp_path / "x", samples=60, shard=1, measure="psimrank")
    found = query(tmp_path / "x", files)
    assert found.returncode == 1
    assert f"cannot be opened: the limit is {files} open files. Raise it" in found.stderr
    assert query(tmp_path / "x", 200).returncode == 0


@pytest.mark.process
@pytest.mark.parametrize("files", [20, 21])
def test_related_raises_soft_file_limit(make_graph: MakeGraph, tmp_path: Path, files: int) -> None:
    graph = make_graph([("a", "b"), ("c", "b"), ("b", "a")])
    cocite.build(graph, tmp_path / "x", samples=60, shard=1, measure="psimrank")
    found = query(tmp_path / "x", files, 4096)
    assert (found.returncode, found.stdout) == (0, query(tmp_path / "x", 200).stdout)


def test_open_reports_failed_mmap(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = make_graph([("a", "b"), ("c", "b"), ("b", "a")])
    cocite.build(graph, tmp_path / "x", samples=1, measure="psimrank")

    def full(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(mmap, "mmap", full)
    with pytest.raises(ResourceError, match=r"cannot be mapped: Cannot allocate memory\. Allow"):
        cocite.open(tmp_path / "x")


def test_staging_refuses_oversized_manifest(tmp_path: Path) -> None:
    facts = {"sources": ["x" * 1000] * 17_000}
    with (
        Staging(tmp_path / "g", "graph") as draft,
        pytest.raises(ResourceError, match=r"would take 1\d\.\d MB, for 0 files; the limit is 16"),
    ):
        draft.publish(Manifest("graph", facts))
    assert not (tmp_path / "g").exists()
    assert not (tmp_path / "g.building").exists()
    with Staging(tmp_path / "g", "graph") as draft:
        draft.publish(Manifest("graph", {"sources": ["x" * 1000] * 16_000}))
    assert Manifest.read(tmp_path / "g", "graph").facts["sources"][0] == "x" * 1000
