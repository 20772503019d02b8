"""Files that a process may not open or map for lack of room: errors that say what to do."""

from __future__ import annotations

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
from tests.conftest import MakeGraph

CHILD = """
import resource, sys
from cocite.cli.main import main

resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]),) * 2)
sys.exit(main(["related", sys.argv[1], "a"]))
"""


def asked(index: Path, files: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CHILD, str(index), str(files)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("files", [20, 21, 40])
def test_more_files_than_may_be_open(make_graph: MakeGraph, tmp_path: Path, files: int) -> None:
    """Opened or mapped, whichever is one too many."""
    graph = make_graph([("a", "b"), ("c", "b"), ("b", "a")])
    cocite.build(graph, tmp_path / "x", samples=60, shard=1)
    found = asked(tmp_path / "x", files)
    assert found.returncode == 1
    assert f"is one file too many: this process may have {files} open. Allow more" in found.stderr
    assert asked(tmp_path / "x", 200).returncode == 0


def test_no_room_to_map_a_file(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = make_graph([("a", "b"), ("c", "b"), ("b", "a")])
    cocite.build(graph, tmp_path / "x", samples=1)

    def full(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(mmap, "mmap", full)
    with pytest.raises(ResourceError, match=r"cannot be mapped: Cannot allocate memory\. Allow"):
        cocite.open(tmp_path / "x")
