"""Hubs and authorities against the eigenvectors of dense matrices, and NetworkX."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import cocite
from cocite.errors import ResourceError, UsageError
from cocite.options.rank import RankOptions
from cocite.ranking import hits
from tests.conftest import MakeGraph, Shell
from tests.oracles import hits as exact
from tests.oracles.graphs import Edges, graphs

TIGHT = RankOptions(tolerance=1e-14, max_sweeps=2000)


@settings(max_examples=25)
@given(graphs())
def test_hits_match_dense_eigenvectors(make_graph: MakeGraph, graph: tuple[int, Edges]) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    if not edges:
        with pytest.raises(UsageError, match="has no links"):
            hits(stored)
        return
    hubs, authorities, ratio = exact.hits(n, edges)
    found = hits(stored, options=TIGHT)
    assert abs(found.hubs.sum() - 1) < 1e-12
    assert abs(found.authorities.sum() - 1) < 1e-12
    if ratio < 0.97:
        assert found.converged
        # After one small change, the next shrink by this ratio.
        assert np.abs(found.authorities - authorities).sum() < 1e-10
        assert np.abs(found.hubs - hubs).sum() < 1e-10


@pytest.fixture(scope="module")
def web(module_graph: MakeGraph) -> cocite.Graph:
    rng = np.random.default_rng(5)
    return module_graph(
        [(f"n{a}", f"n{b}") for a, b in rng.zipf(1.6, (3000, 2)).tolist() if b < 400]
    )


@pytest.mark.parametrize("options", [{"threads": 1}, {"blocks": 1}, {"blocks": 7}])
def test_hits_are_independent_of_blocks_and_threads(
    web: cocite.Graph, options: dict[str, Any]
) -> None:
    files = sorted(web.path.iterdir())
    whole, found = hits(web), hits(web, **options)
    assert found.hubs.tobytes() == whole.hubs.tobytes()
    assert found.authorities.tobytes() == whole.authorities.tobytes()
    assert (found.sweeps, found.change) == (whole.sweeps, whole.change)
    assert sorted(web.path.iterdir()) == files


def test_hits_stop_at_max_sweeps(web: cocite.Graph) -> None:
    found = hits(web, tolerance=1e-300, max_sweeps=3)
    assert (found.sweeps, found.reason, found.converged) == (3, "3 sweeps", False)
    first = hits(web, tolerance=1e-300, max_sweeps=1)
    degrees = np.diff(web.in_offsets).astype(float)
    assert np.allclose(first.authorities, degrees / degrees.sum(), rtol=1e-14)
    assert first.change == pytest.approx(1)


def test_hits_split_between_equal_stars(make_graph: MakeGraph) -> None:
    """The eigenvalue is double: each star keeps its initial share."""
    edges = [("a", f"a{i}") for i in range(3)] + [("b", f"b{i}") for i in range(3)]
    scores = {name: (a, h) for name, a, h in hits(make_graph(edges)).top(99)}
    assert scores["a1"] == pytest.approx((1 / 6, 0))
    assert scores["b"] == pytest.approx((0, 1 / 2))


def test_hits_refuse_invalid_options(make_graph: MakeGraph, web: cocite.Graph) -> None:
    weighted = make_graph([("a", "b", 2), ("b", "c", 3)], weight_column=3)
    with pytest.raises(UsageError, match=r"ignores link weights.*pass --unweighted"):
        hits(weighted)
    assert hits(weighted, weighted=False).converged
    with pytest.raises(UsageError, match="by is 'rank'; it must be authorities or hubs"):
        hits(web).top(3, "rank")
    with pytest.raises(ResourceError, match="Raise the limit with --memory"):
        hits(web, memory=8000)


def test_rank_score_prints_and_writes_hubs_and_authorities(
    web: cocite.Graph, tmp_path: Path, shell: Shell
) -> None:
    found = hits(web)
    for by in ("authorities", "hubs"):
        out = tmp_path / f"{by}.csv"
        command = ["rank", str(web.path), "--score", by, "-k", "3", "-o", str(out)]
        printed = shell([*command, "--format", "json"])
        value = json.loads(printed.out)
        assert [tuple(hit.values()) for hit in value["top"]] == found.top(3, by)
        assert list(value["top"][0]) == ["node", "authority", "hub"]
        assert (value["by"], value["converged"]) == (by, True)
        assert "of memory on" in printed.err
        assert f"{found.sweeps} sweeps, residual <= 1e-08: L1 change" in printed.err
        rows = out.read_text().splitlines()
        assert rows[0] == "node,authority,hub"
        assert len(rows) == web.nodes + 1
    printed = shell(["rank", web.path, "--score", "hubs", "--max-sweeps", "2"])
    assert printed.out.split()[:4] == ["place", "authority", "hub", "node"]
    assert "not converged: increase --max-sweeps or --tolerance" in printed.err


@pytest.mark.parametrize(
    "options",
    [["--damping", "0.5"], ["--toward", "n1"], ["--precision", "single"]],
)
def test_rank_score_hubs_refuses_pagerank_options(
    web: cocite.Graph, shell: Shell, options: list[str]
) -> None:
    refused = shell(["rank", web.path, "--score", "hubs", *options], 2)
    assert f"{options[0]} does not apply to --score hubs" in refused.err
