"""Indexes of selected pages: their scores equal those of a full index, to the bit."""

import json
import logging
import re
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

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
from tests.batches import all_rows
from tests.builds import files
from tests.conftest import MakeGraph, Shell, with_psimrank
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


def in_kept_order(kept: cocite.Index, hits: list[Any]) -> list[Any]:
    """Sort hits of the full index as the selection does: by the hashes of its own ids where
    scores are equal.
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


SELECTED = sorted({site(n) for n in range(700) if n % 7 in (0, 1, 2) or n > 640} | {"page two"})


@pytest.fixture(scope="module")
def built(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """Return the full index and that of the selected pages, built once for each kind."""
    folder, cached = tmp_path_factory.mktemp("indexes"), dict[str, tuple[Index, Index]]()

    def get(kind: str) -> tuple[Index, Index]:
        if kind not in cached:
            options = {"samples": SAMPLES, **KINDS[kind]}
            whole = cocite.build(graph, folder / kind, **with_psimrank(options))
            names = [name for name in SELECTED if name in whole.nodes]
            cached[kind] = (
                whole,
                cocite.build(
                    graph, folder / f"{kind}-k", only_nodes=names, **with_psimrank(options)
                ),
            )
        return cached[kind]

    return get


Built = Callable[[str], tuple[Index, Index]]


def test_only_nodes_kinds_cover_selecting_layouts(built: Built) -> None:
    layouts = {part.layout for kind in KINDS for part in built(kind)[1].stored.parts}
    can = {name for name in LAYOUTS if is_sampled(name) and sampled_format(name).selects}
    assert layouts == can


@kinds
def test_only_nodes_scores_equal_full_index(built: Built, kind: str) -> None:
    whole, kept = built(kind)
    names = list(kept.nodes)
    assert names == [name for name in whole.nodes if name in set(SELECTED)]
    has_hits = False
    for node in names[::37]:
        hits = kept.related(node, 10**6)
        assert hits == in_kept_order(kept, whole.related(node, 10**6, only=names))
        has_hits |= len(hits) > 3
        for other in [node, *names[::29]]:
            assert kept.similarity(node, other) == whole.similarity(node, other)
        prefixed = [name for name in names if name.startswith("http://s6")]
        expected = in_kept_order(kept, whole.related(node, 10**6, only=prefixed))[:3]
        assert kept.related(node, 3, prefix="http://s6") == expected
    assert has_hits


SELECTING = [
    (name, layout)
    for name, measure in MEASURES.items()
    for layout in measure.layouts
    if is_sampled(layout) and sampled_format(layout).selects
]


@pytest.mark.parametrize(
    ("measure", "layout", "direction"),
    [(*each, direction) for each, direction in zip(SELECTING, cycle(("out", "both", "in")))],
)
def test_only_nodes_measures_keep_scores_and_merge(
    make_graph: MakeGraph, tmp_path: Path, measure: str, layout: str, direction: str
) -> None:
    """Check queries, reasons, and a merge of two pieces."""
    rng = np.random.default_rng(7)
    graph = make_graph(rng.integers(0, 40, (160, 2)).tolist(), range(40))
    selected = [str(n) for n in range(40) if n % 3]
    options: dict[str, Any] = {"measure": measure, "layout": layout, "direction": direction}
    options |= {"bits": 2} if layout == "sketch" else {}
    whole = cocite.build(graph, tmp_path / "all", samples=9, **with_psimrank(options))
    kept = cocite.build(
        graph, tmp_path / "selected", samples=9, only_nodes=selected, **with_psimrank(options)
    )
    for node in selected[::5]:
        hits = kept.related(node, 40)
        assert hits == in_kept_order(kept, whole.related(node, 40, only=selected))
        for hit in hits[:2] if layout != "sketch" else ():
            why = kept.why(node, hit.node, 99)
            shares = sum(reason.contribution for reason in why.reasons)
            assert shares + why.unattributed == pytest.approx(hit.score, abs=1e-9)
    for name, numbers in (("a", range(4)), ("b", range(4, 9))):
        cocite.build(
            graph, tmp_path / name, numbers=numbers, only_nodes=selected, **with_psimrank(options)
        )
    cocite.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "joined")
    assert files(tmp_path / "joined") == files(tmp_path / "selected")


@kinds
def test_related_all_covers_only_selected_pages(built: Built, tmp_path: Path, kind: str) -> None:
    _, kept = built(kind)
    rows = all_rows(kept, tmp_path / "all", 4, threads=2)
    assert rows == [
        (node, rank, *hit[:3])
        for node in kept.nodes
        for rank, hit in enumerate(kept.related(node, 4), 1)
    ]
    assert len(rows) > 100


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        *((kind, {"threads": 3, "shard": 5}) for kind in ("trees", "sketch")),
        *((kind, {"threads": 1, "blocks": 3}) for kind in ("hubs", "minhash")),
        *((kind, {"threads": 2, "blocks": 7}) for kind in ("trees", "sketch")),
        ("trees", {"threads": 1, "blocks": 8, "external": True}),
        ("hubs", {"threads": 1, "blocks": 4, "external": True}),
    ],
)
def test_only_nodes_build_resources_keep_bytes(
    graph: Graph, built: Built, tmp_path: Path, kind: str, way: dict[str, Any]
) -> None:
    _, kept = built(kind)
    options = {"samples": SAMPLES, "only_nodes": list(kept.nodes), **KINDS[kind], **way}
    again = cocite.build(graph, tmp_path / "x", **with_psimrank(options))
    assert again.stored.digest == kept.stored.digest


@pytest.mark.parametrize("names", ["text", "urls", "integers", "dense"])
def test_write_some_names_equals_ingested_names(
    make_graph: MakeGraph, tmp_path: Path, names: str
) -> None:
    kinds: dict[str, Callable[[int], str]] = {
        "text": lambda i: f"näme {i * 7 % 50}",
        "urls": lambda i: f"http://{'ba'[i % 2]}.org/{i}" if i % 3 else f"plain {i}",
        "integers": lambda i: str(3 * i + 5),
        "dense": str,
    }
    all_names = [kinds[names](i) for i in range(50)]
    graph = make_graph([], all_names)
    ids = np.array([0, 1, 2, *range(17, 45, 3)], np.uint32)
    ingested = make_graph([], graph.names.names(ids))
    kind, entries = write_some_names(tmp_path, graph.store, graph.names, ids)
    assert kind == ingested.store.facts["names"]
    facts = {"names": kind, "nodes": ids.size}
    Manifest("graph", facts, entries).write(tmp_path)
    written = Store.open(tmp_path, "graph")
    for name, entry in entries.items():
        assert (tmp_path / name).read_bytes() == (ingested.path / name).read_bytes(), name
        assert entry == ingested.store.manifest.files[name]
    assert {n for n in ingested.store.manifest.files if n.startswith("names.")} - {
        "names.by_name"
    } <= written.manifest.files.keys()


# -- reasons, refined scores, merges and refreshes ---------------------------------------


@pytest.mark.parametrize("kind", ["trees", "both", "minhash", "blend"])
def test_why_names_dropped_pages_or_unattributed_share(built: Built, kind: str) -> None:
    whole, kept = built(kind)
    node = next(n for n in list(kept.nodes)[20:] if kept.related(n, 1))
    for hit in kept.related(node, 2):
        kept_why, whole_why = kept.why(node, hit.node, 1000), whole.why(node, hit.node, 1000)
        assert kept_why.score == whole_why.score
        total = sum(reason.contribution for reason in kept_why.reasons) + kept_why.unattributed
        assert total == pytest.approx(kept_why.score, abs=1e-9)
        if kind in ("trees", "both"):
            assert {tuple(r) for r in kept_why.reasons} == {tuple(r) for r in whole_why.reasons}
        else:
            shares: dict[str, float] = {}
            for sign, reasons in ((1, whole_why.reasons), (-1, kept_why.reasons)):
                for reason in reasons:
                    shares[reason.node] = shares.get(reason.node, 0.0) + sign * reason.contribution
            assert min(shares.values()) > -1e-9


@pytest.mark.parametrize("kind", ["trees", "both", "minhash"])
def test_refine_with_only_nodes_equals_full_index(built: Built, kind: str) -> None:
    whole, kept = built(kind)
    options: dict[str, Any] = {"refine": True, "target_error": 0.1}
    names = list(kept.nodes)
    node = next(n for n in names[20:] if len(kept.related(n)) > 2)
    for hit in kept.related(node, 3):
        score = kept.similarity(node, hit.node, **options)
        assert score == whole.similarity(node, hit.node, **options)
    if kind == "both":  # computed rather than chosen from candidates
        hits = kept.related(node, 9, **options)
        assert hits == whole.related(node, 9, only=names, **options)
        assert kept.related(node, 9, prefix="http://s6", **options) == whole.related(
            node, 9, only=[n for n in names if n.startswith("http://s6")], **options
        )
    else:
        assert {hit.node for hit in kept.related(node, 9, **options)} <= set(names)


def test_merge_refuses_different_selections(graph: Graph, tmp_path: Path) -> None:
    selection: dict[str, Any] = {"only_nodes": SELECTED[:9]}
    for numbers, extra in ((range(9), selection), (range(9, 12), {})):
        options = with_psimrank({"numbers": numbers, **extra})
        cocite.build(graph, tmp_path / f"{numbers.start}", **options)
    with pytest.raises(UsageError, match="pages kept"):
        cocite.merge([tmp_path / "0", tmp_path / "9"], tmp_path / "x")


@pytest.mark.parametrize("kind", ["trees", "minhash", "sketch"])
def test_refresh_extends_only_prefix_selection(graph: Graph, tmp_path: Path, kind: str) -> None:
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
    cocite.build(graph, tmp_path / "all", **with_psimrank(options))
    pages = {"only_nodes": ["page two"], "only_prefix": "http://s3"}
    cocite.build(graph, tmp_path / "kept", **with_psimrank(options | pages))
    whole = cocite.refresh(tmp_path / "all", newer, fraction=share, force=True)
    kept = cocite.refresh(tmp_path / "kept", newer, fraction=share, force=True)
    names = [n for n in whole.nodes if n.startswith("http://s3") or n == "page two"]
    assert list(kept.nodes) == names
    assert "http://s3.org/new" in names
    assert site(333) not in names
    for node in names[::5]:
        assert kept.related(node, 99) == in_kept_order(kept, whole.related(node, 99, only=names))
    assert VerifyDocument.of(tmp_path / "kept").faults == []
    again = cocite.refresh(tmp_path / "kept", newer, fraction=share, force=True)
    assert list(again.nodes) == names


# -- messages and the command line -------------------------------------------------------


def test_unknown_node_explains_dropped_page(graph: Graph, tmp_path: Path, shell: Shell) -> None:
    path = str(tmp_path / "x")
    cocite.build(graph, path, samples=4, only_prefix=["http://s3", "http://s4"], measure="psimrank")
    dropped, kept = site(111), next(iter(cocite.open(path).nodes))
    message = (
        f"{path} contains only .* of the {graph.nodes:,} pages of its graph "
        ".prefix http://s3, http://s4"
    )
    with pytest.raises(UnknownNode, match=message):
        cocite.open(path).related(dropped)
    with pytest.raises(UnknownNode, match=message):
        cocite.open(path).similarity(kept, dropped)
    for verb in (["related", path, dropped], ["similarity", path, kept, dropped]):
        assert "To query other pages, build" in shell(verb, 2).err


def test_index_command_applies_only_nodes_and_prefix(
    graph: Graph, tmp_path: Path, shell: Shell
) -> None:
    (tmp_path / "names").write_text(f"{site(1)}\nnobody\n{site(2)}\n")
    path, as_json = str(tmp_path / "x"), ["--format", "json"]
    selection = ["--only-nodes", str(tmp_path / "names"), "--only-prefix", "http://s31"]
    index_command, measure = ["index", str(graph.path), "-o"], ["--measure", "psimrank"]
    options = [*measure, "--samples", "4"]
    result = shell([*index_command, path, *options, *selection])
    assert "Warning: 1 of 3 selected names are not in" in result.err
    assert "'nobody'" in result.err
    message = f"{len(cocite.open(path).nodes)} of the {graph.nodes:,} pages of its graph"
    assert message in result.out
    steps = re.compile(r"walked +([0-9.]+) steps per node")
    full_output = shell([*index_command, path + "all", *options]).out
    assert steps.findall(full_output) == steps.findall(result.out) != []
    assert message in shell(["info", path]).out
    kept = json.loads(shell(["info", path, *as_json]).out)["kept"]
    assert kept == {"nodes": graph.nodes, "prefixes": ["http://s31"]}
    shell(["verify", path])
    plans = (
        shell(["plan", index_command[1], *measure, *as_json, *more]).out for more in ([], selection)
    )
    sizes = [json.loads(plan)["planned"]["bytes"] for plan in plans]
    assert sizes[1] < sizes[0] / 10
    pages: dict[str, Any] = {"only_prefix": "http://s31", "only_nodes": [site(1), site(2)]}
    index = cocite.build(graph, tmp_path / "y", measure="psimrank", **pages)
    assert sizes[1] == pytest.approx(index.stored.store.nbytes, rel=0.1)


def test_only_nodes_warns_about_missing_names(
    graph: Graph, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        names = ["nobody", site(5), "no"]
        index = cocite.build(
            graph, tmp_path / "x", only_nodes=names, **with_psimrank({"samples": 2})
        )
    assert "2 of 3 selected names are not in" in caplog.text
    assert list(index.nodes) == [site(5)]
    assert index.related(site(5)) == []


def test_open_refuses_forged_selection(graph: Graph, tmp_path: Path) -> None:
    def build(name: str) -> Path:
        cocite.build(graph, tmp_path / name, samples=2, only_prefix="http://s3", measure="psimrank")
        return tmp_path / name

    change_facts(build("a"), "wanted", "nodes", to=3)
    change_facts(build("b"), "wanted", "prefixes", to="http://s3")
    change_facts(build("c"), "wanted", to=None)
    change_file(build("d"), "wanted", np.zeros(7, np.uint32))
    for name in "abcd":
        with pytest.raises(Damaged):
            cocite.open(tmp_path / name)
    ids = np.array(cocite.open(build("e")).stored.store.array("wanted"))
    ids[3:] = 2**32 - 1
    change_file(tmp_path / "e", "wanted", ids)
    index = cocite.open(tmp_path / "e")
    with pytest.raises(Damaged):
        index.similarity(index.nodes.name(3), index.nodes.name(4), refine=True)
