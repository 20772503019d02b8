"""The benchmark beside embeddings: its peers find what made graphs plant."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

from benchmarks.embeddings import DECIDES, GRAPHS, LABELED, MADE, made, stored, variants

from cocite.evaluation import Judge


def test_every_peer_finds_the_groups_that_links_stay_in(tmp_path: Path) -> None:
    graph, labels = stored("blocks", tmp_path)
    assert labels is not None
    assert labels.labeled.size == graph.nodes == 600
    judge = Judge(labels.labeled[::30], relevance=labels.collapsed(), cutoffs=[10], longest=10)
    found = {}
    for name, variant, ranker in variants(graph, labels.labeled):
        found[name, variant] = judge(ranker).value(DECIDES)
    assert min(found.values()) > 0.4  # by chance a sixth
    assert [name for name, variant in found if not variant][:2] == ["spectral", "NetMF 1"]
    assert ("spectral", "64, power 0.5") in found


@pytest.mark.parametrize("name", MADE)
def test_made_graphs_are_the_same_again(name: str) -> None:
    (links, labels), (again, _) = made(name), made(name)
    assert np.array_equal(links, again)
    assert 400 <= len(labels) <= 1500
    assert 0 <= links.min() <= links.max() < len(labels)
    assert {*LABELED, *MADE} < set(GRAPHS)
