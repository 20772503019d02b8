"""Forged manifests, with valid checksums and wrong facts: every one is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite import Graph
from cocite.cli.main import main
from cocite.errors import Damaged, UsageError
from cocite.index.layouts.contract import PartPlan
from cocite.measures import PartSettings, find_measure
from tests.conftest import MakeGraph
from tests.storage.enemy import change_facts, rewrite

Build = Callable[..., Path]
EDGES = [("a", "b"), ("a", "c"), ("b", "c"), ("c", "a"), ("d", "a"), ("d", "b"), ("e", "d")]
BLEND = "blend:psimrank+cocitation(idf=true)"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder = tmp_path_factory.mktemp("facts")
    (folder / "links.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in EDGES))
    return cocite.ingest(folder / "links.tsv", folder / "g", delimiter="tab", header="no")


@pytest.fixture(scope="module")
def build(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Copy a small index, which is built once for each kind."""
    built: dict[str, Path] = {}

    def copy(path: Path, kind: str = "psimrank") -> Path:
        if kind not in built:
            built[kind] = tmp_path_factory.mktemp("index") / "x"
            measure = {"refined": "simrank", "refreshed": "psimrank"}.get(kind, kind)
            refine = kind == "refined"
            cocite.build(graph, built[kind], measure=measure, samples=4, length=3, refine=refine)
            if kind == "refreshed":
                cocite.refresh(built[kind], graph, fraction=0.5, force=True)
        shutil.copytree(built[kind], path)
        return path

    return copy


def contents(path: Path) -> dict[str, bytes]:
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


@pytest.mark.parametrize("share", [0.5, 1])
@pytest.mark.parametrize("fact", ["direction", "label"])
def test_refresh_refuses_path_traversal_in_facts(
    build: Build,
    graph: Graph,
    tmp_path: Path,
    fact: str,
    share: float,
    capsys: pytest.CaptureFixture[str],
) -> None:
    victim = build(tmp_path / "victim")
    index = build(tmp_path / "x", BLEND if fact == "label" else "psimrank")
    change_facts(index, "parts", 0, fact, to="../victim/in")
    before = contents(victim)
    with pytest.raises(Damaged, match=rf"parts\[0\], says that {fact} is '\.\./victim/in'"):
        cocite.refresh(index, graph, fraction=share, force=True)
    assert contents(victim) == before
    assert main(["verify", str(index)]) == 1
    assert f"says that {fact} is '../victim/in'" in capsys.readouterr().err


FACTS: list[tuple[tuple[str | int, ...], list[Any]]] = [
    (("nodes",), [0, -1, 2**32, 2**64, 5.0, True, "5", None, []]),
    (("names",), ["names", None, ["text"], 0]),
    (("measure",), ["simrank", "none", "blend:psimrank", "blend:1e999*psimrank+ppr", 5, None]),
    (("direction",), ["out", "both", "mixed", "../in", None, {}]),
    (("settings",), [None, [], {"samples": 4.0}, {"samples": 5, "length": 3}, {"sample": 4}]),
    (("settings", "samples"), [0, -4, 3, True, 10**9, "4", None, float("nan")]),
    (("graph",), [None, {}, "g"]),
    (("graph", "name"), [None, 5]),
    (("graph", "digest"), ["", "x" * 32, "../x", None, 5]),
    (("graph", "edges"), [-1, "7", None, 2**63]),
    (("graph", "weighted"), [0, None, "no"]),
    (("graph", "path"), ["", "/etc", "a\0b", "x" * 300, "é" * 128, "x/" * 3000, None, 5, ["x"]]),
    (("parts",), [[], None, {}, [None], "x", [[]]]),
    (("parts", 0, "measure"), ["simrank", "blend:psimrank+ppr", None, "nothing"]),
    (("parts", 0, "direction"), ["out", "both", "", "in.", "../in", None, ["in"]]),
    (("parts", 0, "layout"), ["compact", "drawn", "links", "", "../trees", None, {}]),
    (("parts", 0, "settings"), [{}, None, {"samples": 5, "length": 3, "seed": 0, "hubs": "plain"}]),
    (("parts", 0, "settings", "samples"), [10**6, -1, 4.5, "4", None]),
    (("parts", 0, "settings", "length"), [0, 16, 2, True, 10**30]),
    (("parts", 0, "settings", "seed"), [-1, 2**64, 1.5]),
    (("parts", 0, "settings", "hubs"), ["all", 0, None]),
    (("parts", 0, "settings", "more"), [1]),
    (("parts", 0, "weight"), [0, -1, 2, 0.5, float("inf"), float("nan"), "1", None]),
    (("parts", 0, "weighted"), [True, 1, None, "no"]),
    (("parts", 0, "label"), ["", "x", "../x", None]),
    (("parts", 0, "number"), [0, 1, -1]),
    (("parts", 0, "fixed"), [{}, {"decay": 0.5}]),
    (("refined",), [{"in.diagonal": {"decay": 0.6, "low": 0, "high": 0}}, {"../x": {}}, None, []]),
    (("generations",), [[], [{}], None, "x"]),
]
"""Facts of an index, and invalid values for each."""
BLENDS: list[tuple[tuple[str | int, ...], list[Any]]] = [
    (("parts", 0, "label"), ["psimrank-2", "../x"]),
    (("parts", 1, "number"), [0, 2**40]),
    (("parts", 1, "fixed"), [{"idf": False}, {}]),
    (("parts", 0, "weight"), [0.4]),
    (("parts", 0, "measure"), ["simrank"]),
    (("parts", 1, "direction"), ["out"]),
    (("parts", 0, "direction"), ["both"]),
    (("measure",), ["blend:psimrank+cocitation", f"{BLEND}+ppr", "psimrank"]),
    (("measure",), ["blend: psimrank+cocitation(idf=true)"]),
]
REFINED: dict[str, list[Any]] = {
    "decay": [0, 1, "0.6"],
    "low": [-1, 0.5, float("nan")],
    "high": [-0.5, float("inf"), 10**400, None],
}
SNAPSHOTS: dict[str, list[Any]] = {
    "refresh": [-1, 2**70],
    "first": [2**32],
    "samples": [0],
    "graph": [None],
    "digest": ["0" * 32, "x"],
    "date": [None, "2026-13-01"],
    "path": ["/etc", None, "a\0"],
}
CASES = [
    *(("psimrank", *each) for each in FACTS),
    *((BLEND, *each) for each in BLENDS),
    *(("refined", ("refined", "in.diagonal", key), values) for key, values in REFINED.items()),
    *(("refreshed", ("generations", -1, key), values) for key, values in SNAPSHOTS.items()),
]


def check_refused(
    path: Path, open_store: Callable[[Path], object], fact: tuple[Any, ...], values: list[Any]
) -> None:
    """Check that a store with any of the values neither opens nor passes ``verify``."""
    manifest = (path / "manifest.json").read_bytes()
    for value in values:
        (path / "manifest.json").write_bytes(manifest)
        change_facts(path, *fact, to=value)
        with pytest.raises(Damaged) as caught:
            open_store(path)
        assert str(path) in str(caught.value), value
        assert main(["verify", str(path)]) == 1, value


@pytest.mark.parametrize(("kind", "fact", "values"), CASES, ids=lambda at: str(at) if at else "")
def test_index_manifest_refuses_invalid_fact(
    build: Build, tmp_path: Path, kind: str, fact: tuple[Any, ...], values: list[Any]
) -> None:
    check_refused(build(tmp_path / "x", kind), cocite.open, fact, values)


@pytest.mark.parametrize("fact", [fact for fact, _ in FACTS if fact[-1] not in ("more",)])
def test_index_manifest_refuses_missing_fact(
    build: Build, tmp_path: Path, fact: tuple[str | int, ...]
) -> None:
    index = build(tmp_path / "x")

    def remove(value: dict[str, Any]) -> None:
        parent: Any = value["facts"]
        for key in fact[:-1]:
            parent = parent[key]
        parent.pop(fact[-1], None)

    manifest = json.loads((index / "manifest.json").read_bytes())
    rewrite(index, remove)
    if json.loads((index / "manifest.json").read_bytes())["facts"] == manifest["facts"]:
        cocite.open(index)  # it was absent
    else:
        with pytest.raises(Damaged):
            cocite.open(index)


@pytest.mark.parametrize(
    ("measure", "options"),
    [
        ("psimrank", {"direction": "both"}),
        ("snn", {"direction": "both"}),
        ("blend:psimrank(direction=both)+cocitation(direction=out)", {"direction": "in"}),
        ("blend:psimrank+psimrank(hubs=idf,decay=0.3)+ppr", {"direction": "both"}),
        ("blend:xjaccard+simrank", {"layout": "sketch"}),
        ("blend:xjaccard(bits=3)+xjaccard", {}),
        ("blend:0.00001*simrank(samples=4)+100000*psimrank(samples=4)", {}),
        ("blend:xjaccard+xjaccard(length=2)", {"layout": "sketch", "bits": 3, "length": 5}),
        ("xjaccard", {"layout": "sketch", "samples": 3}),
        ("simrank", {"direction": "both", "refine": True}),
    ],
)
def test_index_manifest_accepts_built_and_refreshed(
    build: Build, graph: Graph, tmp_path: Path, measure: str, options: dict[str, Any]
) -> None:
    built = cocite.build(graph, tmp_path / "x", measure=measure, **options)
    refreshed = cocite.refresh(tmp_path / "x", graph, fraction=1, force=True)
    plans = [part.plan for part in built.stored.parts]
    assert [part.plan for part in refreshed.stored.parts] == plans


GRAPH: list[tuple[tuple[str, ...], list[Any]]] = [
    (("nodes",), [-1, 4, 2**32, 2.0, True, None, "5"]),
    (("edges",), [-1, 6, 2**63, None, 7.0]),
    (("names",), ["none", None, {}]),
    (("rows",), [-1, None, "7"]),
    (("undirected",), [0, None]),
    (("self_loops_kept",), [1, None]),
    (("dropped",), [None, [], {}]),
    (("dropped", "duplicates"), [-1, None, 0.5]),
    (("sources",), [None, {}, ["x"]]),
    (("weights", "sum"), [-1, None, float("nan"), 10**400]),
    (("weights", "largest"), ["1", float("inf")]),
]


@pytest.mark.parametrize(("fact", "values"), GRAPH, ids=lambda at: str(at) if at else "")
def test_graph_manifest_refuses_invalid_fact(
    make_graph: MakeGraph, fact: tuple[str, ...], values: list[Any]
) -> None:
    path = make_graph([(*edge, 2) for edge in EDGES], weight_column="3").path
    check_refused(path, Graph.open, fact, values)


def test_verify_reports_damaged_manifest(
    build: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = build(tmp_path / "x")
    change_facts(index, "parts", 0, "weight", to=0.5)
    assert main(["verify", str(index)]) == 1
    assert "the manifest is damaged:\n" in capsys.readouterr().err
    (index / "in.digests").write_bytes(b"\1" * 32)
    assert main(["verify", str(index), "--format", "json"]) == 1
    out, err = capsys.readouterr()
    assert len(json.loads(out)["faults"]) == 2
    assert "the manifest and 1 of " in err


@pytest.mark.parametrize(
    ("label", "direction", "message"),
    [
        ("../x", "in", r"part label is '\.\./x'; it must contain only a-z, 0-9 and hyphens"),
        ("a/b", "in", "part label is 'a/b'"),
        ("A", "in", "part label is 'A'"),
        ("", "../in", r"direction is '\.\./in'; it must be one of in, out"),
        ("", "", "direction is ''"),
    ],
)
def test_part_plan_prefix_refuses_path_traversal(label: str, direction: str, message: str) -> None:
    """The prefix of file names is checked even if earlier checks were skipped."""
    plan = PartPlan(find_measure("psimrank"), direction, "trees", PartSettings(), 1.0, label)
    with pytest.raises(UsageError, match=message):
        _ = plan.prefix
