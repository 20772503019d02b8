"""An index of in-memory links accepts and returns the original names."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import pytest

import cocite
from cocite import Index
from cocite.errors import UnknownNode, UsageError

PAIRS = [(0, 2), (0, 3), (1, 2), (1, 3), (1, 4), (5, 4), (2, 5), (3, 5)]
LABELS: dict[str, Callable[[int], Any]] = {
    "text": lambda node: f"http://site{node % 2}.org/{node}",
    "integers": lambda node: 7 * node + 3,
    "tuples": lambda node: (node, f"page {node}"),
    "mixed": lambda node: node if node % 2 else (node, node),
}


labels = pytest.mark.parametrize("label", LABELS.values(), ids=LABELS)


def build_both(label: Callable[[int], Any], tmp_path: Path, **options: Any) -> tuple[Index, Index]:
    """Build an index of the labels, and one of a file with their texts."""
    links = [(label(a), label(b)) for a, b in PAIRS]
    file = tmp_path / "links.tsv"
    file.write_text("".join(f"{a}\t{b}\n" for a, b in links))
    text_graph = cocite.ingest(file, delimiter="tab", header="no")
    return cocite.build(cocite.ingest(links), **options), cocite.build(text_graph, **options)


@pytest.mark.parametrize(
    ("label", "measure"),
    [*((label, "psimrank") for label in LABELS.values()), (LABELS["mixed"], "neighborhood")],
)
def test_related_returns_original_names(
    label: Callable[[int], Any], measure: str, tmp_path: Path
) -> None:
    index, text_index = build_both(label, tmp_path, measure=measure)
    for node in range(6):
        hits, text_hits = index.related(label(node)), text_index.related(str(label(node)))
        labels_by_text = {str(label(other)): label(other) for other in range(6)}
        assert hits == [hit._replace(node=labels_by_text[hit.node]) for hit in text_hits]
        assert {type(hit.node) for hit in hits} <= {type(label(other)) for other in range(6)}
        assert index.related(str(label(node))) == hits
        assert hits.certain_ranks == text_hits.certain_ranks
        for hit in hits:
            assert index.similarity(label(node), hit.node).score == hit.score


@labels
def test_index_methods_accept_original_names(label: Callable[[int], Any], tmp_path: Path) -> None:
    index, _ = build_both(label, tmp_path, measure="psimrank", samples=50)
    a, b, c = label(2), label(3), label(4)
    hits = index.related([a, b])
    assert a not in [hit.node for hit in hits]
    assert index.related(a, only=[b])[0].node == b
    if isinstance(a, str):
        assert b in [hit.node for hit in index.related(a, exclude_same_site=True)]
    why = index.why(a, b)
    assert {reason.node for reason in why.reasons} <= {label(node) for node in range(6)}
    draft = index.with_draft(into=[str(label(0))])
    assert {hit.node for hit in draft.related("draft")} <= {label(node) for node in range(6)}
    assert b in {hit.node for hit in draft.related(a)}
    assert len(index.pageranks([a, b, c])) == 3
    assert list(index.nodes) == sorted((label(n) for n in range(6)), key=list(index.nodes).index)
    index.related_all(tmp_path / "all.tsv", k=2)
    assert str(b) in (tmp_path / "all.tsv").read_text()
    graph = cocite.ingest([(label(x), label(y)) for x, y in PAIRS])
    selected = cocite.build(graph, measure="psimrank", only_nodes=[a, b])
    assert [hit.node for hit in selected.related(a)] == [b]
    with pytest.raises(UnknownNode, match="contains only 2 of the 6 pages"):
        selected.related(c)
    with pytest.raises(UnknownNode, match="no node is named"):
        index.related(("no", "such"))


def test_related_tuple_queries_several_nodes(tmp_path: Path) -> None:
    index, _ = build_both(LABELS["tuples"], tmp_path)
    first, second = LABELS["tuples"](2), LABELS["tuples"](3)
    assert index.related((first, second)) == index.related([first, second])
    assert index.related(first) != index.related([first, second])


def test_in_memory_graph_results_keep_original_names() -> None:
    graph = cocite.ingest(networkx.Graph(networkx.karate_club_graph().edges()))
    index = cocite.build(graph, measure="psimrank", samples=20)
    assert all(type(hit.node) is int for hit in index.related(0))
    ranks = cocite.pagerank(graph)
    tops: list[Any] = [ranks.top(1)[0][0], cocite.exact_simrank(graph).top(0)[0][0]]
    assert list(map(type, tops)) == [int, int]


def test_stored_index_has_text_names(tmp_path: Path) -> None:
    links = [((a, "x"), (b, "x")) for a, b in PAIRS]
    graph = cocite.ingest(links, tmp_path / "g")
    index = cocite.build(graph, tmp_path / "i", measure="psimrank", samples=20)
    assert index.related((2, "x"))[0].node == (3, "x")
    assert cocite.open(tmp_path / "i").related("(2, 'x')")[0].node == "(3, 'x')"
    newer = cocite.ingest([*links, ((9, "x"), (2, "x"))])
    refreshed = cocite.refresh(tmp_path / "i", newer, fraction=0.5, force=True)
    assert refreshed.related((2, "x"))[0].node == (3, "x")
    with pytest.raises(UsageError):
        cocite.open(tmp_path / "i").related((2, "x"))
