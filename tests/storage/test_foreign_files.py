"""Foreign files: replacing a store never loses them."""

from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite.errors import OutputExists, StoreError
from cocite.storage import Manifest, Store, disk
from cocite.storage.staging import Staging
from tests.conftest import MakeGraph
from tests.storage.enemy import rewrite
from tests.storage.test_draft import names
from tests.storage.test_round_trip import make


def test_staging_overwrite_refuses_foreign_files(tmp_path: Path) -> None:
    make(tmp_path / "s", value=1)
    (tmp_path / "s" / "thesis").write_text("mine")
    make(tmp_path / "s" / "inner", value=3)
    with pytest.raises(OutputExists) as caught:
        make(tmp_path / "s", value=2, overwrite=True)
    assert str(caught.value) == (
        f"{tmp_path / 's'} contains files outside the stored graph, which would be lost: inner, "
        "thesis. Move them, or choose another output"
    )
    for i in range(6):
        (tmp_path / "s" / f"a{i}").touch()
    with pytest.raises(OutputExists, match="a0, a1, a2, a3, a4 and 3 more"):
        make(tmp_path / "s", value=2, overwrite=True)
    assert Store.open(tmp_path / "s", "graph").facts == {"é": 1}
    assert Store.open(tmp_path / "s" / "inner", "graph").facts == {"é": 3}
    assert names(tmp_path) == ["s"]


def test_staging_keeps_files_added_during_build(tmp_path: Path) -> None:
    make(tmp_path / "s", value=1)
    with Staging(tmp_path / "s", "graph", overwrite=True, resumable=True) as draft:
        (draft.path / "half").touch()
        (tmp_path / "s" / "thesis").touch()
        with pytest.raises(OutputExists, match="would be lost: thesis"):
            draft.publish(Manifest("graph", {}))
    assert names(tmp_path) == ["s", "s.building"]
    assert Store.open(tmp_path / "s", "graph").facts == {"é": 1}


def test_staging_keeps_file_added_during_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "s", value=1)
    real = disk.exchange

    def late(first: Path, second: Path) -> None:
        (second / "thesis").touch()
        real(first, second)

    monkeypatch.setattr(disk, "exchange", late)
    with pytest.raises(
        StoreError, match=r"files that were added to the old directory meanwhile are in"
    ):
        make(tmp_path / "s", value=2, overwrite=True)
    monkeypatch.undo()
    assert names(tmp_path / "s.building") == ["thesis"]
    assert Store.open(tmp_path / "s", "graph").facts == {"é": 2}
    with pytest.raises(StoreError, match=r"is not an unfinished build: it contains .*thesis"):
        make(tmp_path / "s", value=3, overwrite=True)
    assert names(tmp_path / "s.building") == ["thesis"]


def test_staging_keeps_store_named_like_draft(tmp_path: Path) -> None:
    make(tmp_path / "s.building", value=1)
    with pytest.raises(StoreError, match="is not an unfinished build"):
        make(tmp_path / "s", value=2)
    assert Store.open(tmp_path / "s.building", "graph").facts == {"é": 1}


def test_staging_removes_no_file_outside_store(tmp_path: Path) -> None:
    """A replaced store is removed by the names in its manifest, which may be hostile."""
    make(tmp_path / "s", value=1)
    (tmp_path / "thesis").touch()
    (tmp_path / "s" / "folder").mkdir()

    def add(value: dict[str, Any]) -> None:
        for name in ("../thesis", "..", ".", "", "folder", str(tmp_path / "thesis")):
            value["files"][name] = {}

    rewrite(tmp_path / "s", add)
    with pytest.raises(OutputExists, match="would be lost: folder"):
        make(tmp_path / "s", value=2, overwrite=True)
    (tmp_path / "s" / "folder").rmdir()
    make(tmp_path / "s", value=2, overwrite=True)
    assert names(tmp_path) == ["s", "thesis"]


@pytest.mark.parametrize("old", [False, True])
def test_staging_cleans_up_after_killed_publish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    """Killed after publishing, before other files of the draft are removed."""
    if old:
        make(tmp_path / "s", value=1)

    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    with Staging(tmp_path / "s", "graph", overwrite=True, resumable=True) as draft:
        (draft.path / "work").mkdir()
        (draft.path / "work" / "file").touch()
        (draft.path / "plan.json").touch()
        with monkeypatch.context() as patch:
            real = disk.remove
            draft_path = tmp_path / "s.building"

            def remove(path: Path) -> None:
                (real if path.parent == draft_path or path.suffix == ".new" else interrupt)(path)

            patch.setattr(disk, "remove", remove)
            with pytest.raises(KeyboardInterrupt):
                draft.publish(Manifest("graph", {}))
    assert names(tmp_path / "s") == [".cocite-draft", "manifest.json", "plan.json", "work"]
    (tmp_path / "s" / "thesis").touch()
    with pytest.raises(OutputExists, match=r"would be lost: thesis\. Move"):
        make(tmp_path / "s", value=2, overwrite=True)
    (tmp_path / "s" / "thesis").unlink()
    make(tmp_path / "s", value=2, overwrite=True)
    assert names(tmp_path) == ["s"]
    assert ".cocite-draft" not in names(tmp_path / "s")


def test_refresh_keeps_foreign_files(tmp_path: Path, make_graph: MakeGraph) -> None:
    graph = make_graph([("a", "b"), ("b", "c"), ("a", "c")])
    index = cocite.build(graph, tmp_path / "x", samples=4, measure="psimrank")
    before = index.stored.digest
    (tmp_path / "x" / "thesis").touch()
    with pytest.raises(OutputExists, match="outside the stored index, which would be lost: thesis"):
        cocite.refresh(tmp_path / "x", graph, fraction=0.5, force=True)
    assert cocite.open(tmp_path / "x").stored.digest == before
    cocite.build(graph, graph.path / "x", samples=4, measure="psimrank")
    assert not (tmp_path / "x.building").exists()
    (tmp_path / "l.tsv").write_text("a\tb\n")
    with pytest.raises(OutputExists, match="outside the stored graph, which would be lost: x"):
        cocite.ingest(tmp_path / "l.tsv", graph.path, overwrite=True)
    assert cocite.open(graph.path / "x").samples == 4
