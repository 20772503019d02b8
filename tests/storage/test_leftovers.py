"""What killed processes leave behind: the next run resumes it or removes it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import cocite
from cocite import Graph
from cocite.errors import ResourceError, UsageError
from cocite.index.verify import VerifyDocument
from cocite.storage import Manifest, check_file, disk, staged_file
from cocite.storage.staging import Staging
from tests.conftest import MakeGraph, Shell
from tests.storage.test_draft import names
from tests.storage.test_round_trip import make
from tests.torture.kills import kill_at_points
from tests.torture.operations import OPERATIONS, prepared
from tests.torture.shim import KILLED, run_apart, run_killed

EDGES = [("a", "b"), ("a", "c"), ("b", "c"), ("c", "a"), ("d", "a")]
KILLS = {name: index for index, name in enumerate(OPERATIONS)}


@pytest.mark.torture
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_survive_kill_at_any_point(tmp_path: Path, name: str) -> None:
    """Every 59th point, each from a different one; ``python -m tests.torture`` does all."""
    operation = prepared(OPERATIONS[name], tmp_path)
    row = kill_at_points(operation, tmp_path / "killed", 59, 1 + 3 * KILLS[name] % 11)
    assert row.injected >= 1
    assert row.lost == []


def kill_at_call(
    work: Callable[[], object], matches: Callable[[str], bool], call: str = "rename"
) -> None:
    """End a process before or after it renames a file, or after ``call`` gives it its name."""

    def run() -> int:
        real = getattr(disk, call)

        def rename(source: Path, target: Path) -> None:
            if call == "rename" and matches(target.name):
                os._exit(KILLED)
            real(source, target)
            if matches(target.name):
                os._exit(KILLED)

        setattr(disk, call, rename)
        work()
        return 0

    assert run_apart(run) == KILLED


@pytest.mark.process
def test_staged_file_removes_files_of_killed_run(tmp_path: Path) -> None:
    output = tmp_path / "r.csv"

    def write() -> None:
        with staged_file(output) as file:
            disk.write(file, b"new")

    for _ in range(3):
        kill_at_call(write, lambda name: name == "r.csv")
    assert len(names(tmp_path)) == 3
    with staged_file(output):
        own = {name for name in names(tmp_path) if name.endswith(".new")}
        check_file(output, False)
        assert len(names(tmp_path)) == 1  # a running writer keeps its file
        assert set(names(tmp_path)) < own
    assert names(tmp_path) == ["r.csv"]
    for name in (".r.csv.new", ".r.csv.0123.new", ".x.csv.0123456789abcdef.new"):
        (tmp_path / name).touch()
    (tmp_path / ".r.csv.0123456789abcdef.new").symlink_to("r.csv")
    before = names(tmp_path)
    check_file(output, True)
    assert names(tmp_path) == before  # foreign files stay


@pytest.mark.process
def test_build_discards_draft_without_samples(make_graph: MakeGraph, tmp_path: Path) -> None:
    """Killed after its plan, before its first sample."""
    graph = make_graph(EDGES)

    def build(samples: int) -> object:
        return cocite.build(graph, tmp_path / "x", measure="psimrank", samples=samples)

    kill_at_call(lambda: build(4), lambda name: "samples" in name)
    assert "plan.json" in names(tmp_path / "x.building")
    build(8)
    assert "x.building" not in names(tmp_path)


def test_index_without_space_leaves_nothing(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    graph = make_graph(EDGES)
    usage = type("usage", (), {"free": 10})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    shell(["index", graph.path, "-o", tmp_path / "x", "--measure", "psimrank"], 1)
    assert not [name for name in names(tmp_path) if name.startswith("x")]


@pytest.mark.process
def test_ingest_publishes_no_scratch(tmp_path: Path) -> None:
    """Even if it is killed right after the rename."""
    (tmp_path / "l.tsv").write_text("a\tb\nb\tc\n")
    cocite.ingest(tmp_path / "l.tsv", tmp_path / "h")  # import everything before the fork
    ingest = lambda: cocite.ingest(tmp_path / "l.tsv", tmp_path / "g")  # noqa: E731
    kill_at_call(ingest, lambda name: name == "g", "rename_new")
    assert set(names(tmp_path / "g")) - {".cocite-draft"} == {
        "manifest.json",
        *Graph.open(tmp_path / "g").store.manifest.files,
    }
    assert VerifyDocument.of(tmp_path / "g").surplus == []


def test_verify_names_foreign_files(make_graph: MakeGraph, shell: Shell) -> None:
    path = make_graph(EDGES).path
    assert "not part of the store" not in shell(["verify", path]).err
    for i in range(7):
        (path / f"left{i}").touch()
    (path / "work").mkdir()
    printed = shell(["verify", path, "--format", "json"])
    assert json.loads(printed.out)["surplus"] == [*(f"left{i}" for i in range(7)), "work"]
    files = "left0, left1, left2, left3, left4 and 3 more"
    message = f"{path} contains files that are not part of the store: {files}. "
    assert message + "They are not used and can be removed" in printed.err


def test_refresh_force_adds_snapshot(tmp_path: Path) -> None:
    (tmp_path / "l.tsv").write_text("a\tb\nb\tc\nc\ta\n")
    (tmp_path / "t.tsv").write_text("name\ttitle\na\tfirst\n")
    cocite.ingest(tmp_path / "l.tsv", tmp_path / "g")
    cocite.build(tmp_path / "g", tmp_path / "x", measure="psimrank", samples=4)
    same = cocite.refresh(tmp_path / "x", tmp_path / "g", fraction=0.5)
    assert len(same.stored.freshness.snapshots) == 1
    again = cocite.refresh(tmp_path / "x", tmp_path / "g", fraction=0.5, force=True)
    assert len(again.stored.freshness.snapshots) == 2
    cocite.ingest(tmp_path / "l.tsv", tmp_path / "h", titles=tmp_path / "t.tsv")
    found = cocite.refresh(tmp_path / "x", tmp_path / "h", fraction=0.5)
    assert found.stored.names.find("a") is not None
    assert len(found.stored.freshness.snapshots) == 2  # the oldest of four retired
    assert found.stored.freshness.numbers == range(4, 8)


@pytest.mark.process
def test_staging_removes_replaced_store_of_killed_run(tmp_path: Path) -> None:
    """Even a refused run removes it, however much of it is left."""
    make(tmp_path / "s", value=1)

    def replace() -> int:
        make(tmp_path / "s", value=2, overwrite=True)
        return 0

    seen = set()
    for point in range(1, 500):
        code = run_killed(replace, point)
        if (tmp_path / "s.building").exists():
            seen.add(len(names(tmp_path / "s.building")))
        with Staging(tmp_path / "s", "graph", overwrite=True):
            pass
        assert names(tmp_path) == ["s"]
        assert ".cocite-draft" not in names(tmp_path / "s")
        if code == 0:
            break
    assert seen >= {1, 2, 3}


def test_staging_refuses_draft_of_other_settings(tmp_path: Path) -> None:
    def fail_halfway() -> None:
        with Staging(tmp_path / "s", "index", resumable=True) as draft:
            draft.goes_on({"seed": 1}, "build", restart=False)
            (draft.path / "part").write_bytes(b"half")
            raise ResourceError("no room")

    with pytest.raises(ResourceError):
        fail_halfway()
    with Staging(tmp_path / "s", "index", resumable=True) as draft:
        with pytest.raises(UsageError, match="seed: 1, here 2"):
            draft.goes_on({"seed": 2}, "build", restart=False)
        (draft.path / "part").write_bytes(b"")
        assert not draft.goes_on({"seed": 2}, "build", restart=False)
        draft.publish(Manifest("index", {}))
    assert names(tmp_path) == ["s"]
