"""Indexes that keep some pages only: the scores of an index of all pages, to the bit."""

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import cocite
from cocite import Graph, Index, UnknownNode
from cocite.errors import Damaged, UsageError
from cocite.graph.exclude import write_some_names
from cocite.index.layouts.reader import LAYOUTS, is_sampled, sampled_format
from cocite.index.verify import VerifyDocument
from cocite.measures import MEASURES
from cocite.storage import Manifest, Store
from tests.builds import files
from tests.conftest import MakeGraph, Shell, by_walks
from tests.oracles.fusion import order
from tests.storage.enemy import change_facts, change_file

KINDS: dict[str, dict[str, Any]] = {
    "trees": {},
    "both": {"measure": "simrank", "direction": "both"},
    "compact": {"measure": "compact-simrank", "layout": "trees"},
    "packed": {"layout": "packed"},
    "hubs": {"hubs": "idf"},
    "minhash": {"measure": "xjaccard", "length": 3},
    "sketch": {"measure": "xjaccard", "bits": 3, "direction": "both"},
    "blend": {"measure": "blend:0.6*psimrank(direction=both)+0.4*xjaccard(length=3)"},
}
kinds = pytest.mark.parametrize("kind", KINDS)
SAMPLES = 24


def as_kept(kept: cocite.Index, hits: list[Any]) -> list[Any]:
    """Hits of the index of all pages, as that of some has them: equal scores are in the order of
    its own numbers' hashes.
    """
    return sorted(hits, key=lambda hit: (-hit.score, order(kept.nodes.id(hit.node))))


def site(number: int) -> str:
    return f"http://s{number // 10}.org/p{number}"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder = tmp_path_factory.mktemp("only_nodes")
    rng = np.random.default_rng(4)
    near = rng.integers(0, 700, (3000, 1)) // 20 * 20 + rng.integers(0, 24, (3000, 2))
    rows = [f"{site(a)}\t{site(b)}\n" for a, b in near.tolist()]
    (folder / "links.tsv").write_text("".join([*rows, "page one\tpage two\n", "x\tpage two\n"]))
    return cocite.ingest(folder / "links.tsv", folder / "g", delimiter="tab", header="no")


WANTED = sorted({site(n) for n in range(700) if n % 7 in (0, 1, 2) or n > 640} | {"page two"})


@pytest.fixture(scope="module")
def built(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """The index of all pages and that of those wanted, of each kind, built once."""
    folder, found = tmp_path_factory.mktemp("indexes"), dict[str, tuple[Index, Index]]()

    def get(kind: str) -> tuple[Index, Index]:
        if kind not in found:
            options = {"samples": SAMPLES, **KINDS[kind]}
            whole = cocite.build(graph, folder / kind, **by_walks(options))
            names = [name for name in WANTED if name in whole.nodes]
            found[kind] = (
                whole,
                cocite.build(graph, folder / f"{kind}-k", only_nodes=names, **by_walks(options)),
            )
        return found[kind]

    return get


Built = Callable[[str], tuple[Index, Index]]


def test_there_is_a_kind_of_every_layout_that_can(built: Built) -> None:
    layouts = {part.layout for kind in KINDS for part in built(kind)[1].stored.parts}
    can = {name for name in LAYOUTS if is_sampled(name) and sampled_format(name).selects}
    assert layouts == can


@kinds
def test_scores_are_those_of_the_index_of_all_pages(built: Built, kind: str) -> None:
    whole, kept = built(kind)
    names = list(kept.nodes)
    assert names == [name for name in whole.nodes if name in set(WANTED)]
    some = False
    for node in names[::17]:
        hits = kept.related(node, 10**6)
        assert hits == as_kept(kept, whole.related(node, 10**6, only=names))
        some |= len(hits) > 3
        for other in [node, *names[::29]]:
            assert kept.similarity(node, other) == whole.similarity(node, other)
        few = [name for name in names if name.startswith("http://s6")]
        expected = as_kept(kept, whole.related(node, 10**6, only=few))[:3]
        assert kept.related(node, 3, prefix="http://s6") == expected
    assert some


SELECTING = [
    pytest.param(name, layout, direction, id=f"{name}-{layout}-{direction}")
    for name, measure in MEASURES.items()
    for layout in measure.layouts
    for direction in ("in", "out", "both")
    if is_sampled(layout) and sampled_format(layout).selects
]


@pytest.mark.parametrize(("measure", "layout", "direction"), SELECTING)
def test_all_measures_that_can_keep_the_scores_and_are_joined(
    make_graph: MakeGraph, tmp_path: Path, measure: str, layout: str, direction: str
) -> None:
    """Of each layout and direction: questions, reasons, and a merge of two pieces."""
    rng = np.random.default_rng(7)
    graph = make_graph(rng.integers(0, 40, (160, 2)).tolist(), range(40))
    keep = [str(n) for n in range(40) if n % 3]
    options: dict[str, Any] = {"measure": measure, "layout": layout, "direction": direction}
    options |= {"bits": 2} if layout == "sketch" else {}
    whole = cocite.build(graph, tmp_path / "all", samples=9, **by_walks(options))
    kept = cocite.build(graph, tmp_path / "some", samples=9, only_nodes=keep, **by_walks(options))
    for node in keep[::5]:
        hits = kept.related(node, 40)
        assert hits == as_kept(kept, whole.related(node, 40, only=keep))
        for hit in hits[:2] if layout != "sketch" else ():
            why = kept.why(node, hit.node, 99)
            shares = sum(reason.contribution for reason in why.reasons)
            assert shares + why.unattributed == pytest.approx(hit.score, abs=1e-9)
    for name, numbers in (("a", range(4)), ("b", range(4, 9))):
        cocite.build(graph, tmp_path / name, numbers=numbers, only_nodes=keep, **by_walks(options))
    cocite.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "joined")
    assert files(tmp_path / "joined") == files(tmp_path / "some")


@kinds
def test_a_batch_is_of_the_pages_that_are_kept(built: Built, tmp_path: Path, kind: str) -> None:
    _, kept = built(kind)
    kept.related_all(tmp_path / "all.parquet", 4, threads=2)
    rows = duckdb.execute(f"SELECT * FROM '{tmp_path / 'all.parquet'}'").fetchall()
    expected = [
        (node, rank, hit.node, hit.score, hit.stderr)
        for node in kept.nodes
        for rank, hit in enumerate(kept.related(node, 4), 1)
    ]
    assert rows == expected
    assert len(rows) > 100


WAYS: dict[str, dict[str, Any]] = {
    "threads": {"threads": 3},
    "one": {"threads": 1, "shard": 5},
    "blocks": {"threads": 1, "blocks": 3},
    "many": {"threads": 2, "blocks": 7},
    "external": {"threads": 1, "blocks": 4, "external": True},
    "finely": {"threads": 1, "blocks": 60, "external": True},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["trees", "hubs", "minhash", "sketch"])
def test_same_bytes(graph: Graph, built: Built, tmp_path: Path, kind: str, way: str) -> None:
    if "external" in WAYS[way] and kind not in ("trees", "hubs"):
        pytest.skip("min-hashes have no external form")
    _, kept = built(kind)
    options = {"samples": SAMPLES, "only_nodes": list(kept.nodes), **KINDS[kind], **WAYS[way]}
    again = cocite.build(graph, tmp_path / "x", **by_walks(options))
    assert again.stored.digest == kept.stored.digest


@pytest.mark.parametrize("names", ["text", "urls", "integers", "dense"])
def test_selected_names_equal_graph(make_graph: MakeGraph, tmp_path: Path, names: str) -> None:
    kinds: dict[str, Callable[[int], str]] = {
        "text": lambda i: f"näme {i * 7 % 50}",
        "urls": lambda i: f"http://{'ba'[i % 2]}.org/{i}" if i % 3 else f"plain {i}",
        "integers": lambda i: str(3 * i + 5),
        "dense": str,
    }
    everybody = [kinds[names](i) for i in range(50)]
    graph = make_graph([], everybody)
    ids = np.array([0, 1, 2, *range(17, 45, 3)], np.uint32)
    some = make_graph([], graph.names.names(ids))
    kind, entries = write_some_names(tmp_path, graph.store, graph.names, ids)
    assert kind == some.store.facts["names"]
    facts = {"names": kind, "nodes": ids.size}
    Manifest("graph", facts, entries).write(tmp_path)
    made = Store.open(tmp_path, "graph")
    for name, entry in entries.items():
        assert (tmp_path / name).read_bytes() == (some.path / name).read_bytes(), name
        assert entry == some.store.manifest.files[name]
    assert {n for n in some.store.manifest.files if n.startswith("names.")} - {
        "names.by_name"
    } <= made.manifest.files.keys()


# -- what reads the graph again ----------------------------------------------------------


@pytest.mark.parametrize("kind", ["trees", "both", "minhash", "blend"])
def test_reasons_name_dropped_pages_or_say_unknown(built: Built, kind: str) -> None:
    whole, kept = built(kind)
    node = next(n for n in list(kept.nodes)[20:] if kept.related(n, 1))
    for hit in kept.related(node, 2):
        here, there = kept.why(node, hit.node, 1000), whole.why(node, hit.node, 1000)
        assert here.score == there.score
        total = sum(reason.contribution for reason in here.reasons) + here.unattributed
        assert total == pytest.approx(here.score, abs=1e-9)
        if kind in ("trees", "both"):
            assert {tuple(r) for r in here.reasons} == {tuple(r) for r in there.reasons}
        else:
            shares: dict[str, float] = {}
            for sign, reasons in ((1, there.reasons), (-1, here.reasons)):
                for reason in reasons:
                    shares[reason.node] = shares.get(reason.node, 0.0) + sign * reason.contribution
            assert min(shares.values()) > -1e-9


@pytest.mark.parametrize("kind", ["trees", "both", "minhash"])
def test_refined_answers_are_those_of_the_index_of_all_pages(built: Built, kind: str) -> None:
    whole, kept = built(kind)
    options: dict[str, Any] = {"refine": True, "target_error": 0.1}
    names = list(kept.nodes)
    node = next(n for n in names[20:] if len(kept.related(n)) > 2)
    for hit in kept.related(node, 3):
        found = kept.similarity(node, hit.node, **options)
        assert found == whole.similarity(node, hit.node, **options)
    if kind == "both":  # computed, and not chosen among candidates
        found_hits = kept.related(node, 9, **options)
        assert found_hits == whole.related(node, 9, only=names, **options)
        assert kept.related(node, 9, prefix="http://s6", **options) == whole.related(
            node, 9, only=[n for n in names if n.startswith("http://s6")], **options
        )
    else:
        assert {hit.node for hit in kept.related(node, 9, **options)} <= set(names)


def test_selections_are_merged_with_equal_ones(graph: Graph, tmp_path: Path) -> None:
    some: dict[str, Any] = {"only_nodes": WANTED[:9]}
    for numbers, chosen in ((range(9), some), (range(9, 12), {})):
        options = by_walks({"numbers": numbers, **chosen})
        cocite.build(graph, tmp_path / f"{numbers.start}", **options)
    with pytest.raises(UsageError, match="pages kept"):
        cocite.merge([tmp_path / "0", tmp_path / "9"], tmp_path / "x")


@pytest.mark.parametrize("kind", ["trees", "minhash", "sketch"])
def test_refresh_extends_selection_by_prefix(graph: Graph, tmp_path: Path, kind: str) -> None:
    rows = [
        (graph.names.name(u), graph.names.name(v))
        for v in range(graph.nodes)
        for u in graph.in_neighbors(v)
        if graph.names.name(v) != site(333)
    ]
    rows += [("page one", "http://s3.org/new"), (site(302), "http://s3.org/new")]
    rows = [row for row in rows if site(333) not in row]
    (tmp_path / "links").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    newer = cocite.ingest(tmp_path / "links", tmp_path / "h", delimiter="tab", header="no")
    options = {"samples": 20, "shard": 4, **KINDS[kind], "direction": "in"}
    share = 1 if kind == "sketch" else 0.25
    cocite.build(graph, tmp_path / "all", **by_walks(options))
    pages = {"only_nodes": ["page two"], "only_prefix": "http://s3"}
    cocite.build(graph, tmp_path / "some", **by_walks(options | pages))
    whole = cocite.refresh(tmp_path / "all", newer, fraction=share, force=True)
    kept = cocite.refresh(tmp_path / "some", newer, fraction=share, force=True)
    names = [n for n in whole.nodes if n.startswith("http://s3") or n == "page two"]
    assert list(kept.nodes) == names
    assert "http://s3.org/new" in names
    assert site(333) not in names
    for node in names[::5]:
        assert kept.related(node, 99) == as_kept(kept, whole.related(node, 99, only=names))
    assert VerifyDocument.of(tmp_path / "some").faults == []
    again = cocite.refresh(tmp_path / "some", newer, fraction=share, force=True)
    assert list(again.nodes) == names


# -- what is said of it ------------------------------------------------------------------


def test_dropped_page(graph: Graph, tmp_path: Path, shell: Shell) -> None:
    path = str(tmp_path / "x")
    cocite.build(graph, path, samples=4, only_prefix=["http://s3", "http://s4"], measure="psimrank")
    absent, there = site(111), next(iter(cocite.open(path).nodes))
    words = f"{path} contains only .* of the {graph.nodes:,} pages of its graph .prefix http://s3, http://s4"
    with pytest.raises(UnknownNode, match=words):
        cocite.open(path).related(absent)
    with pytest.raises(UnknownNode, match=words):
        cocite.open(path).similarity(there, absent)
    for verb in (["related", path, absent], ["similarity", path, there, absent]):
        assert "To query other pages, build" in shell(verb, 2).err


def test_command_keeps(graph: Graph, tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "names").write_text(f"{site(1)}\nnobody\n{site(2)}\n")
    path, json_too = str(tmp_path / "x"), ["--format", "json"]
    keep = ["--only-nodes", str(tmp_path / "names"), "--only-prefix", "http://s31"]
    made, chosen = ["index", str(graph.path), "-o"], ["--measure", "psimrank"]
    few = [*chosen, "--samples", "4"]
    printed = shell([*made, path, *few, *keep])
    assert "Warning: 1 of 3 selected names are not in" in printed.err
    assert "'nobody'" in printed.err
    told = f"{len(cocite.open(path).nodes)} of the {graph.nodes:,} pages of its graph"
    assert told in printed.out
    steps = re.compile(r"walked +([0-9.]+) steps per node")
    everything = shell([*made, path + "all", *few]).out
    assert steps.findall(everything) == steps.findall(printed.out) != []
    assert told in shell(["info", path]).out
    kept = json.loads(shell(["info", path, *json_too]).out)["kept"]
    assert kept == {"nodes": graph.nodes, "prefixes": ["http://s31"]}
    shell(["verify", path])
    plans = (shell(["plan", made[1], *chosen, *json_too, *more]).out for more in ([], keep))
    sizes = [json.loads(plan)["planned"]["bytes"] for plan in plans]
    assert sizes[1] < sizes[0] / 10
    pages: dict[str, Any] = {"only_prefix": "http://s31", "only_nodes": [site(1), site(2)]}
    index = cocite.build(graph, tmp_path / "y", measure="psimrank", **pages)
    assert sizes[1] == pytest.approx(index.stored.store.nbytes, rel=0.1)


def test_missing_names(graph: Graph, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        named = ["nobody", site(5), "no"]
        index = cocite.build(graph, tmp_path / "x", only_nodes=named, **by_walks({"samples": 2}))
    assert "2 of 3 selected names are not in" in caplog.text
    assert list(index.nodes) == [site(5)]
    assert index.related(site(5)) == []


def test_a_manifest_that_tells_of_pages_is_not_believed(graph: Graph, tmp_path: Path) -> None:
    def made(name: str) -> Path:
        cocite.build(graph, tmp_path / name, samples=2, only_prefix="http://s3", measure="psimrank")
        return tmp_path / name

    change_facts(made("a"), "wanted", "nodes", to=3)
    change_facts(made("b"), "wanted", "prefixes", to="http://s3")
    change_facts(made("c"), "wanted", to=None)
    change_file(made("d"), "wanted", np.zeros(7, np.uint32))
    for name in "abcd":
        with pytest.raises(Damaged):
            cocite.open(tmp_path / name)
    wanted = np.array(cocite.open(made("e")).stored.store.array("wanted"))
    wanted[3:] = 2**32 - 1
    change_file(tmp_path / "e", "wanted", wanted)
    index = cocite.open(tmp_path / "e")
    with pytest.raises(Damaged):
        index.similarity(index.nodes.name(3), index.nodes.name(4), refine=True)
