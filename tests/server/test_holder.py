"""What takes the place of an index that is served, and what does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import cocite
from cocite.server.load import Holder


def test_an_index_that_is_copied_into_its_place_is_taken_when_it_is_whole(
    folder: Path, tmp_path: Path
) -> None:
    """Not by a rename, as cocite does, but file by file: at first the last one is not whole."""
    served, new = tmp_path / "served", tmp_path / "new"
    shutil.copytree(folder / "web.index", served)
    graph = cocite.Graph.open(folder / "web.graph")
    cocite.build(graph, new, measure="psimrank", samples=40, seed=1)
    holder = Holder("web", str(served), (), {})
    assert holder.look() is None
    before = holder.now
    shutil.rmtree(served)
    assert holder.look() is None  # it is gone: the old one stays
    shutil.copytree(new, served)
    (last,) = served.glob("in.samples-000000")
    whole = last.read_bytes()
    last.chmod(0o644)
    with last.open("r+b") as file:  # the directory itself stays as it is
        file.truncate(len(whole) // 2)
    refused = holder.look()
    assert refused not in (None, "taken")
    assert holder.look() is None  # nothing has changed
    with last.open("r+b") as file:
        file.write(whole)
    assert holder.look() == "taken"
    assert holder.now is not before
    assert holder.look() is None
