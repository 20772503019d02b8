"""Blends: their scores are the weighted means of their components' scores."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.errors import UsageError
from cocite.index.layouts.trees.reader import TreeReader
from cocite.index.plan import BuildOptions
from cocite.measures import PartSettings, find_measure
from tests.conftest import MakeGraph, with_psimrank
from tests.search.exact import scores

GRAIN = 1e-12


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(6)
    return make_graph(rng.integers(0, 25, (110, 2)).tolist(), range(25))


def test_blend_score_is_weighted_mean(graph: Graph, tmp_path: Path) -> None:
    blend = "blend:3*cocitation(idf=true)+1*coupling(form=jaccard)+1*ppr"
    index = cocite.build(graph, tmp_path / "b", measure=blend)
    assert index.direction == "mixed"
    expected = np.zeros((25, 25))
    for name, weight, query in (
        ("cocitation", 0.6, {"idf": True}),
        ("coupling", 0.2, {"form": "jaccard"}),
        ("ppr", 0.2, {}),
    ):
        alone = cocite.build(graph, tmp_path / name, measure=name)
        expected += weight * scores(alone, **query)
    assert np.abs(scores(index) - expected).max() <= GRAIN


def test_blend_components_draw_independent_samples(make_graph: MakeGraph, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    graph = make_graph(rng.integers(0, 25, (90, 2)).tolist(), undirected=True)
    measure = "blend:psimrank+psimrank+simrank"
    options: dict[str, Any] = {"samples": 400, "shard": 100, "threads": 1}
    index = cocite.build(graph, tmp_path / "b", measure=measure, direction="both", **options)
    alone = cocite.build(graph, tmp_path / "a", direction="both", **with_psimrank(options))
    values, nodes = [], np.array([2], np.uint32)
    for reader in index.scorer.readers:
        assert isinstance(reader, TreeReader)
        values.append(reader.values(1, nodes, PartSettings({"decay": 0.6}))[0][:, 0])
    for value, reader in zip(values, alone.scorer.readers, strict=False):
        assert isinstance(reader, TreeReader)
        assert (value == reader.values(1, nodes, PartSettings({"decay": 0.6}))[0][:, 0]).all()
    correlations = np.corrcoef(values)
    assert correlations.shape == (6, 6)
    assert np.abs(correlations - np.eye(6)).max() < 6 / np.sqrt(400)
    files = {name.partition(".")[0] for name in index.stored.store.manifest.files}
    ways = ("in", "out")
    expected = {f"{m}-{way}" for m in ("psimrank", "psimrank-2", "simrank") for way in ways}
    assert expected <= files


def test_blend_settings_reach_unfixed_components(graph: Graph, tmp_path: Path) -> None:
    measure = "blend:psimrank(hubs=rare,length=3)+simrank+cocitation(idf=true)+pagesim"
    index = cocite.build(graph, tmp_path / "b", measure=measure, samples=7, length=4)
    assert index.measure == measure
    parts = {part.measure.name: part for part in index.stored.parts}
    expected = {"samples": 7, "length": 3, "seed": 0, "hubs": "rare"}
    assert parts["psimrank"].settings.to_json() == expected
    expected |= {"length": 4, "hubs": "plain"}
    assert parts["simrank"].settings.to_json() == expected
    assert index.settings["samples"] == 7
    assert index.settings["length"] == 4
    query = index.stored.measure.ask_settings({"form": "jaccard", "decay": 0.3})
    own = {name: part.ask_settings(query).to_json() for name, part in parts.items()}
    assert own["cocitation"] == {"form": "jaccard", "idf": True}
    assert own["simrank"] == {"decay": 0.3, "meeting_weight": "decay ** t"}
    assert own["pagesim"] == {}
    with pytest.raises(UsageError, match="has no setting 'idf' when asking; it takes "):
        index.related("3", idf=False)
    with pytest.raises(UsageError, match="takes length when building its index, not here"):
        index.related("3", length=3)


def test_blend_uses_samples_fixed_by_all_components(graph: Graph, tmp_path: Path) -> None:
    measure = "blend:psimrank(samples=9)+simrank(samples=9)"
    index = cocite.build(graph, tmp_path / "b", measure=measure)
    assert index.samples == 9
    assert "samples" not in index.settings
    fewer = index.with_samples(4)
    assert fewer.samples == 4
    alone = cocite.build(graph, tmp_path / "a", measure="blend:psimrank+simrank", samples=4)
    assert fewer.related("3") == alone.related("3")
    with pytest.raises(UsageError, match="samples is 10; the index has 9: choose 1 to 9"):
        index.with_samples(10)


def test_blend_component_keeps_direction_and_layout(graph: Graph, tmp_path: Path) -> None:
    measure = "blend:psimrank(direction=both,layout=paths)+simrank+ppr(direction=in)"
    index = cocite.build(graph, tmp_path / "b", measure=measure, direction="out", samples=5)
    parts = [(p.measure.name, p.direction, p.layout, p.weight) for p in index.stored.parts]
    assert parts == [
        ("psimrank", "in", "paths", 1 / 6),
        ("psimrank", "out", "paths", 1 / 6),
        ("simrank", "out", "trees", 1 / 3),
        ("ppr", "in", "links", 1 / 3),
    ]
    assert index.direction == "mixed"
    by_paths = cocite.build(
        graph, tmp_path / "c", measure="blend:psimrank+cocitation", layout="paths", samples=5
    )
    assert [part.layout for part in by_paths.stored.parts] == ["paths", "links"]


def test_find_measure_normalizes_blend_names() -> None:
    for text, expected in (
        ("blend: psimrank + cocitation", "blend:psimrank+cocitation"),
        ("blend:.5*ppr+2.*simrank", "blend:0.5*ppr+2.0*simrank"),
        (
            "blend:cocitation(idf=true)+ppr(damping=.5)",
            "blend:cocitation(idf=true)+ppr(damping=0.5)",
        ),
    ):
        blend = find_measure(text)
        assert blend.name == expected
        assert find_measure(blend.name) == blend
    shares = [part.weight for part in find_measure("blend:1*ppr+2*simrank+5*psimrank").components]
    assert shares == [0.125, 0.25, 0.625]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("blend:", "is not a blend; write two or more components, such as blend:psimrank"),
        ("blend:psimrank", "write two or more components"),
        ("blend:psimrank+", "is not a blend"),
        ("blend:psimrank+-1*ppr", "is not a blend"),
        ("blend:psimrank+ppr(damping=0.5", "is not a blend"),
        ("blend:psimrank+blend:ppr", "is not a blend"),
        (
            "blend:0.5*psimrank+ppr",
            "weights for some components; give every component a weight, or none",
        ),
        ("blend:0*psimrank+1*ppr", "a weight that is 0 or too large"),
        ("blend:psimrank+hits", "no measure is called 'hits'; the measures are"),
        (
            "blend:psimrank+ppr(color=red)",
            "ppr has no setting 'color'; its settings in a blend are dam",
        ),
        ("blend:psimrank+ppr(damping=high)", "damping is 'high'; it must be a number from"),
        ("blend:psimrank+ppr(damping)", "a setting is written name=value"),
        ("blend:psimrank+cocitation(idf=1)", "idf is '1'; it must be true or false"),
        (
            "blend:psimrank+cocitation(layout=trees)",
            "layout of cocitation is 'trees'; it must be links",
        ),
        (
            "blend:psimrank(direction=up)+ppr",
            "direction of psimrank is 'up'; it must be in or out or",
        ),
        ("blend:psimrank(samples=9)+simrank", "have 9 and 100 samples; all must have the same"),
    ],
)
def test_blend_refuses_invalid_text(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        BuildOptions.checked(text)
    assert message in str(raised.value)


def test_blend_properties_follow_from_components() -> None:
    for text, symmetric, unit, monotone, weighted in (
        ("blend:psimrank+cocitation", True, True, True, False),
        ("blend:psimrank+simrank", True, True, True, True),
        ("blend:psimrank+ppr", False, True, True, True),
        ("blend:psimrank+pagesim", True, False, False, False),
    ):
        blend = find_measure(text)
        assert (blend.symmetric, blend.unit, blend.monotone) == (symmetric, unit, monotone)
        assert blend.weighted == weighted


def test_blend_certain_ranks_depend_on_exact_parts(graph: Graph, tmp_path: Path) -> None:
    """A dominant exact part makes more ranks certain, within its tolerance."""
    heavy = cocite.build(
        graph, tmp_path / "h", measure="blend:0.001*psimrank+0.999*cocitation", samples=50
    )
    alone = cocite.build(graph, tmp_path / "a", samples=50, measure="psimrank")
    lists = {node: heavy.related(node, 20) for node in heavy.nodes}
    node, hits = next((n, h) for n, h in lists.items() if h and h[0].score > h[1].score + 0.01)
    assert hits.certain_ranks > 0
    gaps = [a.score - b.score for a, b in itertools.pairwise(hits[: hits.certain_ranks + 1])]
    assert min(gaps) > 0
    assert alone.related(node, 20).certain_ranks == 0
    pushed = cocite.build(graph, tmp_path / "p", measure="blend:0.001*psimrank+0.999*ppr")
    fine, rough = ({"tolerance": t} for t in (1e-9, 1.0))
    assert pushed.related(node, 8, **fine).certain_ranks > 0
    assert pushed.related(node, 8, **rough).certain_ranks == 0


def test_blend_of_exact_measures_refuses_shard(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no samples, so its build cannot be split"):
        cocite.build(graph, tmp_path / "x", measure="blend:cocitation+coupling", shard=5)


def test_blend_canceled_scores_give_one_hit(make_graph: MakeGraph, tmp_path: Path) -> None:
    """Sketches may score below 0: with one sample, two of them often cancel to exactly 0, and the
    third component finds the same node again.
    """
    rng = np.random.default_rng(1)
    edges = {(a, b) for a, b in rng.integers(0, 60, (200, 2)).tolist() if a != b}
    name = "blend:xjaccard(bits=1)+xjaccard(bits=1)+psimrank"
    index = cocite.build(
        make_graph(sorted(edges)), tmp_path / "x", measure=name, samples=1, length=2
    )
    for node in index.nodes:
        hits = [hit.node for hit in index.related(node, 60)]
        assert len(hits) == len(set(hits))


@pytest.mark.long
def test_blend_supports_hundreds_of_parts(graph: Graph, tmp_path: Path) -> None:
    """A process may open 1,024 files, and each part has four."""
    many = "blend:" + "+".join(["0.5*cocitation(direction=out)", "0.5*cocitation"] * 130)
    index = cocite.build(graph, tmp_path / "many", measure=many)
    assert len(index.stored.parts) == 260
    two = "blend:0.5*cocitation(direction=out)+0.5*cocitation"
    few = cocite.build(graph, tmp_path / "two", measure=two)
    hits, expected = index.related("3", 5), few.related("3", 5)
    assert [hit.node for hit in hits] == [hit.node for hit in expected]
    assert all(abs(a.score - b.score) <= 260 * GRAIN for a, b in zip(hits, expected, strict=True))
