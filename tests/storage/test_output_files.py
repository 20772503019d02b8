"""Output files: written through no link, into no other file, and completely or not at all."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.cli.main import main
from cocite.errors import OutputExists, StoreError
from cocite.storage import ArrayWriter, Journal, check_file, disk, staged_file
from cocite.storage.atomic import is_private
from cocite.storage.staging import Staging
from tests.conftest import MakeGraph
from tests.storage.test_draft import Fault, names
from tests.storage.test_round_trip import make

EDGES = [("a", "b"), ("a", "c"), ("b", "c"), ("c", "a"), ("d", "a")]


def write(path: Path, content: bytes = b"new") -> None:
    with staged_file(path) as file:
        disk.write(file, content)


def test_staged_file_gets_name_when_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = []
    for call in ("sync_file", "rename", "sync_directory"):
        real = getattr(disk, call)

        def recorded(*args: Any, call: str = call, real: Any = real) -> Any:
            log.append(call)
            return real(*args)

        monkeypatch.setattr(disk, call, recorded)
    path = tmp_path / "new folder" / "x.csv"
    with staged_file(path) as file:
        assert not path.exists()
        assert is_private(Path(file.name).name)
        disk.write(file, b"new")
    assert log == ["sync_file", "rename", "sync_directory"]
    assert (path.read_bytes(), names(path.parent)) == (b"new", ["x.csv"])
    (tmp_path / "plain").write_text("")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_staged_file_error_keeps_old_file(tmp_path: Path) -> None:
    write(tmp_path / "x", b"old")

    def fail() -> None:
        with staged_file(tmp_path / "x") as file:
            disk.write(file, b"half")
            raise Fault

    with pytest.raises(Fault):
        fail()
    assert ((tmp_path / "x").read_bytes(), names(tmp_path)) == (b"old", ["x"])


def test_staged_file_never_writes_taken_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is unpredictable; if it were known, writing would fail."""
    monkeypatch.setattr("os.urandom", bytes)
    (tmp_path / "victim").write_text("mine")
    for name in ("link", "hard", "file"):
        taken = tmp_path / f".{name}.{'0' * 16}.new"
        if name == "link":
            taken.symlink_to("victim")
        elif name == "hard":
            os.link(tmp_path / "victim", taken)
        else:
            taken.write_text("mine")
        with pytest.raises(StoreError, match=r"cannot be created: File exists\. Choose another"):
            write(tmp_path / name)
        assert (taken.read_text(), (tmp_path / "victim").read_text()) == ("mine", "mine")


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "\udcff.csv"])
def test_staged_file_accepts_long_or_undecodable_name(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    assert names(tmp_path) == [name]


def test_check_file_refuses_nonregular_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "link").symlink_to("victim")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    for overwrite in (False, True):
        for name, message in (
            ("folder", "is a directory"),
            ("link", "is a symbolic link to victim"),
            ("dangling", "is a symbolic link to nowhere"),
            ("pipe", "is not a regular file"),
        ):
            with pytest.raises(OutputExists, match=message):
                check_file(tmp_path / name, overwrite)
    with pytest.raises(OutputExists, match="pass --overwrite"):
        check_file(tmp_path / "victim", False)
    assert check_file(tmp_path / "victim", True) == tmp_path / "victim"
    assert check_file(tmp_path / "victim" / "x", False).name == "x"


# -- drafts ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_staging_follows_no_planted_link(tmp_path: Path, kind: str) -> None:
    (tmp_path / "victim").write_text("mine")
    plant: Callable[[Path], None] = {
        "symbolic": lambda path: path.symlink_to(tmp_path / "victim"),
        "hard": lambda path: os.link(tmp_path / "victim", path),
    }[kind]
    with Staging(tmp_path / "s", "graph", resumable=True) as draft:
        plant(draft.path / "array")
        with ArrayWriter(draft.path / "array", np.uint8) as writer:
            writer.write(np.ones(3, np.uint8))
        plant(draft.path / "plan.json")
        draft.goes_on({"a": 1}, "build", restart=True)
    assert (tmp_path / "victim").read_text() == "mine"


def test_staging_refuses_symlinked_mark(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "s.building").mkdir()
    (tmp_path / "s.building" / ".cocite-draft").symlink_to(tmp_path / "victim")
    with pytest.raises(StoreError, match="is not an unfinished build"):
        make(tmp_path / "s")
    make(tmp_path / "t")
    (tmp_path / "t" / ".cocite-draft").symlink_to(tmp_path / "victim")
    with pytest.raises(OutputExists, match=r"would be lost: \.cocite-draft"):
        make(tmp_path / "t", overwrite=True)
    assert (tmp_path / "victim").read_text() == "mine"


@pytest.mark.parametrize("name", ["pieces", "pieces.log"])
def test_journal_refuses_symlink(tmp_path: Path, name: str) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / name).symlink_to("victim")
    with pytest.raises(StoreError, match="cannot be written"):
        Journal(tmp_path / "pieces").__enter__()
    assert (tmp_path / "victim").read_text() == "mine"


def test_staging_resume_removes_partial_files(tmp_path: Path) -> None:
    draft = tmp_path / "s.building"
    draft.mkdir()
    for name in (".cocite-draft", ".in.samples-000000.0123456789abcdef.new", "in.samples-000000"):
        (draft / name).touch()
    with Staging(tmp_path / "s", "graph", resumable=True):
        assert names(draft) == [".cocite-draft", "in.samples-000000"]


# -- all outputs -----------------------------------------------------------------------


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    return make_graph(EDGES)


OUTPUTS = {
    "r.csv": "rank {g} -o {o}",
    "r.parquet": "rank {g} -o {o}",
    "r.npy": "rank {g} -o {o}",
    "e.tsv": "all-pairs {g} -o {o}",
    "e.npy": "all-pairs {g} -o {o}",
    "all.csv": "related-all {x} -o {o}",
    "topics.tsv": "generate web --pages 40 --links 60 -o {w} --labels {o}",
    "report.html": "evaluate {x} --labels {l} --queries 4 -o {o}",
}


def run(verb: str, graph: Graph, folder: Path, output: Path, *options: str) -> int:
    index, labels = folder / "x", folder / "labels.tsv"
    if not index.exists():
        cocite.build(graph, index, samples=4, measure="psimrank")
        labels.write_text("".join(f"{node}\ttopic\n" for node in "abcd"))
    paths = {"g": graph.path, "x": index, "l": labels, "w": folder / "w", "o": output}
    return main([*verb.format(**paths).split(), *options])


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_follow_no_adjacent_link(
    graph: Graph, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    output = tmp_path / "out" / name
    output.parent.mkdir()
    stem = output.with_suffix("").name
    companions = [name] if name != "report.html" else [name, f"{stem}.csv", f"{stem}.md"]
    for companion in companions:
        (output.parent / f"{companion}.new").symlink_to(victim)
    if name == "topics.tsv":
        (output.parent / f"{name}.building").write_text("mine")
    assert run(OUTPUTS[name], graph, tmp_path, output) == 0, capsys.readouterr().err
    assert victim.read_text() == "mine"
    assert output.stat().st_size > 0
    planted = {f"{companion}.new" for companion in companions}
    planted |= {f"{name}.building"} if name == "topics.tsv" else set()
    assert set(names(output.parent)) == {*companions, *planted}
    assert all(stat.S_ISLNK((output.parent / f"{c}.new").lstat().st_mode) for c in companions)


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_refuse_symlink(
    graph: Graph, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    victim, output = tmp_path / f"victim{Path(name).suffix}", tmp_path / name
    victim.write_text("mine")
    output.symlink_to(victim)
    for options in ((), ("--overwrite",)):
        assert run(OUTPUTS[name], graph, tmp_path, output, *options) == 1
        assert "is a symbolic link to" in capsys.readouterr().err
    assert (victim.read_text(), output.is_symlink()) == ("mine", True)
