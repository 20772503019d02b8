"""An index of links in memory is asked, and answers, with the names as they were given."""

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


def both(label: Callable[[int], Any], tmp_path: Path, **options: Any) -> tuple[Index, Index]:
    """The index of the labels, and that of a file with their texts."""
    links = [(label(a), label(b)) for a, b in PAIRS]
    file = tmp_path / "links.tsv"
    file.write_text("".join(f"{a}\t{b}\n" for a, b in links))
    plain = cocite.ingest(file, delimiter="tab", header="no")
    return cocite.build(cocite.ingest(links), **options), cocite.build(plain, **options)


@labels
@pytest.mark.parametrize("measure", ["neighborhood", "psimrank"])
def test_names_answer_str(label: Callable[[int], Any], measure: str, tmp_path: Path) -> None:
    index, plain = both(label, tmp_path, measure=measure)
    for node in range(6):
        ours, theirs = index.related(label(node)), plain.related(str(label(node)))
        named = {str(label(other)): label(other) for other in range(6)}
        assert ours == [hit._replace(node=named[hit.node]) for hit in theirs]
        assert {type(hit.node) for hit in ours} <= {type(label(other)) for other in range(6)}
        assert index.related(str(label(node))) == ours
        assert ours.certain_ranks == theirs.certain_ranks
        for hit in ours:
            assert index.similarity(label(node), hit.node).score == hit.score


@labels
def test_all_questions_take_the_names_given(label: Callable[[int], Any], tmp_path: Path) -> None:
    index, _ = both(label, tmp_path, measure="psimrank", samples=50)
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
    kept = cocite.build(graph, measure="psimrank", only_nodes=[a, b])
    assert [hit.node for hit in kept.related(a)] == [b]
    with pytest.raises(UnknownNode, match="contains only 2 of the 6 pages"):
        kept.related(c)
    with pytest.raises(UnknownNode, match="no node is named"):
        index.related(("no", "such"))


def test_a_tuple_that_is_no_name_asks_several(tmp_path: Path) -> None:
    index, _ = both(LABELS["tuples"], tmp_path)
    one, other = LABELS["tuples"](2), LABELS["tuples"](3)
    assert index.related((one, other)) == index.related([one, other])
    assert index.related(one) != index.related([one, other])


def test_what_is_made_of_a_graph_in_memory_answers_with_the_names_given() -> None:
    graph = cocite.ingest(networkx.Graph(networkx.karate_club_graph().edges()))
    index = cocite.build(graph, measure="psimrank", samples=20)
    assert all(type(hit.node) is int for hit in index.related(0))
    ranks = cocite.pagerank(graph)
    tops: list[Any] = [ranks.top(1)[0][0], cocite.exact_simrank(graph).top(0)[0][0]]
    assert list(map(type, tops)) == [int, int]


def test_an_index_on_the_disk_has_the_text(tmp_path: Path) -> None:
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
