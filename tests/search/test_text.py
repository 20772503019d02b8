"""Texts: against TF-IDF in plain Python, closed forms, builds and refreshes."""

import logging
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph, Index
from cocite.errors import InputError, ResourceError, UsageError
from cocite.graph import links as graph_links
from cocite.index.build import IndexBuild
from cocite.index.layouts import batch_maker
from cocite.index.layouts.rows import words
from cocite.index.plan import BuildOptions
from cocite.io.readers.tables import texts_of
from cocite.measures import DEFAULT, find_measure
from cocite.measures.tfidf import SHARE
from cocite.resources import Resources
from tests.conftest import MakeGraph
from tests.oracles import text as exact
from tests.search.exact import (
    assert_related_is_similarity_sorted,
    contents,
    scores,
    scratch_folders,
)

GRAIN = 2e-12
"""Scores and their weights are multiples of 1e-12."""
WORDS = ["deer", "elk", "moose", "elk.", "ÉLAN", "élan", "x", "42", "a_b", "_", "tree"]


def rounding(score: float) -> float:
    """The rounding error that ``measures/tfidf.py`` allows."""
    return 2.4e-7 * score + GRAIN


def ring(make_graph: MakeGraph, n: int) -> Graph:
    return make_graph([(f"p{v}", f"p{(v + 1) % n}") for v in range(n)])


def texts_at(path: Path, texts: dict[str, str]) -> Path:
    path.write_text(exact.table(list(texts.items())), "utf-8")
    return path


def build(graph: Graph, output: Path, texts: dict[str, str] | Path, **settings: Any) -> Index:
    if isinstance(texts, dict):
        texts = texts_at(graph.path.with_suffix(".tsv"), texts)
    options: dict[str, Any] = {"measure": "tfidf", "min_df": 1, "max_df": 1.0, **settings}
    return cocite.build(graph, output, texts=texts, overwrite=True, **options)


@pytest.fixture
def texts() -> dict[str, str]:
    rng = np.random.default_rng(5)
    words = [f"word{i}" for i in range(60)]
    return {
        f"p{v}": " ".join(rng.choice(words, rng.integers(1, 60), p=np.arange(1, 61) / 1830))
        for v in range(30)
    }


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    return ring(make_graph, 32)


# -- scores --------------------------------------------------------------------------------


@settings(max_examples=20)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), min_size=2, max_size=7),
    st.sampled_from([1, 2, 3, 500]),
    st.sampled_from([1, 2]),
    st.sampled_from([0.4, 0.7, 1.0]),
)
def test_tfidf_scores_and_reasons_match_definition(
    make_graph: MakeGraph, drawn: list[str], words: int, min_df: int, max_df: float
) -> None:
    graph = ring(make_graph, 8)
    texts = {f"p{v}": text for v, text in enumerate(drawn)}
    vectors, vocabulary = exact.vectors(dict(enumerate(drawn)), words, min_df, max_df)
    options = {"words": words, "min_df": min_df, "max_df": max_df}
    output = graph.path.with_suffix(".index")
    if not vocabulary:
        with pytest.raises(InputError, match="no word of two or more letters satisfies"):
            build(graph, output, texts, **options)
        return
    index = build(graph, output, texts, **options)
    assert index.stored.texts == {
        "pages": sum(1 for vector in vectors.values() if vector),
        "words": len(vocabulary),
    }
    for a in range(8):
        for b in range(8):
            first, second = vectors.get(a, {}), vectors.get(b, {})
            expected = exact.cosine(first, second) if a != b else 1.0
            found = index.similarity(f"p{a}", f"p{b}")
            assert abs(found.score - expected) <= rounding(expected)
            assert found.low - GRAIN <= expected <= found.high + GRAIN
            assert found.score <= 1
            why = index.why(f"p{a}", f"p{b}", 100)
            if a != b:
                shares = exact.shares(first, second)
                assert {reason.node for reason in why.reasons} == set(shares)
                for reason in why.reasons:
                    assert abs(reason.contribution - shares[reason.node]) <= rounding(expected)
                    assert (reason.links, reason.path_a, reason.path_b) == ("none", (), ())
                assert abs(sum(r.contribution for r in why.reasons) - found.score) <= 1e-9
    assert_related_is_similarity_sorted(index, scores(index))


def test_tfidf_matches_closed_forms(graph: Graph, tmp_path: Path) -> None:
    """Equal texts, one of two words shared, none shared, no text, and only short words."""
    texts = {"p0": "elk deer", "p1": "DEER, elk!", "p2": "elk moose", "p3": "tree", "p4": "a b c"}
    index = build(graph, tmp_path / "i", texts)
    assert abs(index.similarity("p0", "p1").score - 1) <= rounding(1)
    elk, deer = (1 + np.log(6 / (1 + d)) for d in (3, 2))
    moose = 1 + np.log(6 / 2)
    expected = elk**2 / np.sqrt((elk**2 + deer**2) * (elk**2 + moose**2))
    assert abs(index.similarity("p0", "p2").score - expected) <= rounding(expected)
    for other in ("p3", "p4", "p5", "p31"):
        assert index.similarity("p0", other)[:2] == (0, 0)
        assert index.similarity(other, other).score == 1
    assert index.related("p4") == index.related("p31") == []
    assert [hit.node for hit in index.related("p0")] == ["p1", "p2"]
    assert index.why("p0", "p5").reasons == []


def test_tfidf_vectors_equal_sklearn(graph: Graph, tmp_path: Path, texts: dict[str, str]) -> None:
    """scikit-learn has the same formula if no words are cut."""
    text = pytest.importorskip("sklearn.feature_extraction.text")
    rows = text.TfidfVectorizer(sublinear_tf=True).fit_transform(texts.values()).toarray()
    index = build(graph, tmp_path / "i", texts)
    found = scores(index)
    ids = [index.nodes.id(name) for name in texts]
    expected = rows @ rows.T
    np.fill_diagonal(expected, 1)
    assert np.abs(found[np.ix_(ids, ids)] - expected).max() <= rounding(1)


def test_texts_weigh_half_by_default(graph: Graph, tmp_path: Path, texts: dict[str, str]) -> None:
    links = scores(cocite.build(graph))
    words = scores(build(graph, tmp_path / "words", texts))
    for options, share in (({}, SHARE), ({"text_fraction": 0.3}, 0.3)):
        index = build(graph, tmp_path / "both", texts, measure=DEFAULT, **options)
        assert index.measure == f"blend:{1 - share}*{DEFAULT}+{share}*tfidf"
        found = scores(index)
        assert np.abs(found - (1 - share) * links - share * words).max() <= GRAIN
        assert_related_is_similarity_sorted(index, found)
    assert sum(part.weight for part in index.stored.parts) == pytest.approx(1)
    cocitation = build(graph, tmp_path / "other", texts, measure="cocitation", direction="both")
    assert cocitation.measure == "blend:0.5*cocitation+0.5*tfidf"
    assert cocitation.direction == "both"
    assert [part.direction for part in cocitation.stored.parts] == ["in", "out", "none"]


def test_texts_ignore_link_weights(make_graph: MakeGraph, tmp_path: Path) -> None:
    weighted = make_graph([("a", "b", 2.0), ("b", "c", 3.0)], weight_column="3")
    texts = {"a": "deer elk", "b": "elk", "c": "deer elk"}
    assert not build(weighted, tmp_path / "t", texts).stored.weighted
    index = build(weighted, tmp_path / "d", texts, measure=DEFAULT)
    assert [part.weighted for part in index.stored.parts] == [True, False]
    assert build(weighted, tmp_path / "w", texts, measure="ppr").stored.weighted
    with pytest.raises(UsageError, match="weights, which cocitation cannot use"):
        build(weighted, tmp_path / "x", texts, measure="cocitation")
    reopened = cocite.open(tmp_path / "d")
    assert reopened.related("a") == index.related("a")


# -- build input -----------------------------------------------------------------------------


def test_texts_of_file_folder_and_archive_are_equal(
    graph: Graph, tmp_path: Path, texts: dict[str, str]
) -> None:
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    for number, (name, text) in enumerate(texts.items()):
        (folder / ("deep" if number % 2 else "") / f"{name}.txt").write_text(text)
    with tarfile.open(tmp_path / "t.tar.gz", "w:gz") as archive:
        archive.add(folder, "texts")
    sources = texts_at(tmp_path / "t.tsv", texts), folder, tmp_path / "t.tar.gz"
    for number, path in enumerate(sources):
        build(graph, tmp_path / str(number), path)
    built = [contents(tmp_path / str(number)) for number in range(3)]
    assert built[0] == built[1] == built[2]


def test_settings_file_combines_with_texts(
    graph: Graph, tmp_path: Path, texts: dict[str, str]
) -> None:
    """For a measure of links, which texts extend, and for a measure of texts."""
    source = texts_at(tmp_path / "t.tsv", texts)
    (tmp_path / "l.toml").write_text('measure = "ppr"\n[settings]\ntolerance = 0.01\n')
    (tmp_path / "t.toml").write_text('measure = "tfidf"\n[settings]\nmin_df = 1\nwords = 3\n')
    blend = cocite.build(graph, settings=tmp_path / "l.toml", texts=source)
    assert blend.measure == "blend:0.5*ppr+0.5*tfidf"
    text_only = cocite.build(graph, settings=tmp_path / "t.toml", texts=source)
    assert text_only.settings == {"words": 3, "min_df": 1, "max_df": 0.5}
    with pytest.raises(UsageError, match="pass them with --texts"):
        cocite.build(graph, settings=tmp_path / "t.toml")


def test_texts_of_unknown_pages_are_logged(
    graph: Graph, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    texts = {"p0": "elk", "nobody": "elk", "p1": "elk", "no one": "deer"}
    with caplog.at_level(logging.WARNING, "cocite"):
        build(graph, tmp_path / "i", texts)
    assert "2 texts in " in caplog.text
    assert (
        "are ignored, because the graph has no page of that name, for example 'nobody'"
        in caplog.text
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text_fraction": 1}, "text_fraction is 1.0; it must be a number above 0 and below 1"),
        ({"measure": "tfidf", "text_fraction": 0.5}, "tfidf already sets the weight of texts"),
        ({"measure": "blend:ppr+cocitation"}, r"has no weight for texts: add a component"),
        ({"measure": "tfidf", "direction": "in"}, "'in'; tfidf uses no links: omit direction"),
        ({"words": 0}, "words is 0; it must be a whole number from 1 to"),
        ({"only_nodes": ["p0"]}, "to select pages, choose a measure with samples"),
    ],
)
def test_texts_reject_incompatible_options(
    graph: Graph, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    source = texts_at(tmp_path / "t.tsv", {"p0": "elk"})
    with pytest.raises(UsageError, match=f"(?i){message}"):
        cocite.build(graph, tmp_path / "i", texts=source, **options)
    assert not (tmp_path / "i").exists()


def test_texts_reject_missing_and_duplicate_pages(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"tfidf compares the texts of pages: .* --texts"):
        cocite.build(graph, tmp_path / "i", measure="tfidf")
    with pytest.raises(UsageError, match=r"but no texts are given: pass them with --texts"):
        cocite.build(graph, tmp_path / "i", text_fraction=0.5)
    with pytest.raises(
        InputError, match="does not exist; texts must be a folder, a tar archive or"
    ):
        cocite.build(graph, tmp_path / "i", texts=tmp_path / "none")
    with pytest.raises(InputError, match="contains no text with the name of a node"):
        build(graph, tmp_path / "i", {"nobody": "elk"})
    duplicates = tmp_path / "t.tsv"
    duplicates.write_text("p0\telk\np1\tdeer\np0\tdeer\n")
    with pytest.raises(InputError, match=r"has two texts for 'p0'; a page can have only one"):
        build(graph, tmp_path / "i", duplicates)
    assert not (tmp_path / "i").exists()


def test_tfidf_reports_missing_sklearn(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn.feature_extraction.text", None)
    with pytest.raises(UsageError, match=r"pip install .*\[texts\]'"):
        build(graph, tmp_path / "i", {"p0": "elk"})


# -- builds ----------------------------------------------------------------------------------


def test_tfidf_build_ignores_memory_and_piece_size(
    graph: Graph, tmp_path: Path, texts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = texts_at(tmp_path / "t.tsv", texts)
    build(graph, tmp_path / "a", source, words=7, threads=1)
    for module, name, size in (
        (words, "BATCH", 20),
        (batch_maker, "_READ", 40),
        (words, "_BATCHES", 500),
        (words, "_LEAST_TURNED", 1024),
        (graph_links, "_LEAST_BLOCK", 512),
        (graph_links, "_PIECE", 512),
    ):
        monkeypatch.setattr(module, name, size)
    folders = scratch_folders(monkeypatch)
    distinct = len(set(" ".join(texts.values()).split()))
    required = 40 * graph.nodes + 200 * distinct + 1524
    monkeypatch.setattr(words, "_ROW", 10**6)  # rows do not fit
    build(graph, tmp_path / "b", source, words=7, memory=required)
    assert len(folders) > 2
    with pytest.raises(ResourceError, match=r"texts have \d+ different words, which take"):
        build(graph, tmp_path / "c", source, words=7, memory=required - 1)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_tfidf_build_estimates_size_and_reads_texts_once(
    graph: Graph, tmp_path: Path, texts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def spy(path: Path, *args: Any, **kwargs: Any) -> Any:
        read.append(path)
        return texts_of(path, *args, **kwargs)

    monkeypatch.setattr(words, "texts_of", spy)
    source, progress = texts_at(tmp_path / "t.tsv", texts), list[tuple[int, int]]()
    options = BuildOptions.checked(
        "blend:tfidf+tfidf(words=2)", settings={"min_df": 1, "max_df": 1.0}, texts=source
    )
    with IndexBuild(graph, tmp_path / "x", options, Resources.checked()) as index_build:
        estimate = index_build.estimate()
        report = index_build.run(lambda done, total: progress.append((done, total)))
    assert estimate.bytes == report.bytes
    assert read == [source]
    assert progress == sorted(progress)
    assert progress[-1] == (index_build.units, index_build.units)


def test_tfidf_build_resume_requires_same_texts(
    graph: Graph, tmp_path: Path, texts: dict[str, str]
) -> None:
    source = texts_at(tmp_path / "t.tsv", texts)

    def stop(done: int, total: int) -> None:
        if done >= total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(graph, tmp_path / "i", source, progress=stop)
    os.utime(source, (1, 1))
    with pytest.raises(UsageError, match="--no-resume"):
        build(graph, tmp_path / "i", source)
    assert build(graph, tmp_path / "i", source, restart=True).related("p1")


# -- refreshes -------------------------------------------------------------------------------


def test_refresh_keeps_or_replaces_texts(
    make_graph: MakeGraph, tmp_path: Path, texts: dict[str, str]
) -> None:
    """Texts are kept; new pages have none unless texts are given."""
    old = ring(make_graph, 30)
    newer = make_graph([(f"p{v}", f"p{v + 1}") for v in range(4, 35)])
    for measure in ("tfidf", DEFAULT):
        index = build(old, tmp_path / "i", texts, measure=measure)
        words = index if measure == "tfidf" else build(old, tmp_path / "w", texts)
        before = {(a, b): words.similarity(a, b) for a in texts for b in texts}
        refreshed = cocite.refresh(tmp_path / "i", newer, force=True)
        assert refreshed.measure == find_measure(index.measure).name
        assert refreshed.stored.texts is not None
        assert refreshed.stored.texts["pages"] == 26
        if measure == "tfidf":
            for a in (name for name in texts if name in refreshed.nodes):
                assert refreshed.similarity(a, "p35").score == 0
                for b in (name for name in texts if name in refreshed.nodes):
                    assert refreshed.similarity(a, b) == before[a, b]
            assert_related_is_similarity_sorted(refreshed, scores(refreshed))
        repeated = cocite.refresh(tmp_path / "i", newer, force=True)
        assert repeated.stored.digest == refreshed.stored.digest
        more_texts = texts | {f"p{v}": "word59 word58" for v in range(30, 36)}
        source = texts_at(tmp_path / "t.tsv", more_texts)
        renewed = cocite.refresh(tmp_path / "i", newer, texts=source, force=True)
        rebuilt = build(newer, tmp_path / "anew", source, measure=measure)
        assert contents(tmp_path / "i") == contents(tmp_path / "anew")
        assert renewed.related("p35") == rebuilt.related("p35") != []


def test_refresh_rejects_texts_for_index_without_texts(
    make_graph: MakeGraph, tmp_path: Path
) -> None:
    graph = ring(make_graph, 5)
    cocite.build(graph, tmp_path / "i")
    source = texts_at(tmp_path / "t.tsv", {"p0": "elk"})
    with pytest.raises(
        UsageError,
        match=r"does not compare texts: omit --texts \(texts=\.\.\.\), or build an index",
    ):
        cocite.refresh(tmp_path / "i", graph, texts=source, force=True)


# -- untrusted texts -------------------------------------------------------------------------


def test_texts_of_ignores_or_rejects_links(tmp_path: Path) -> None:
    """Links in an archive are skipped; a link out of the folder is rejected."""
    (tmp_path / "links.tsv").write_text("a\tb\nb\tc\n")
    names = cocite.ingest(tmp_path / "links.tsv", tmp_path / "g").names
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("text")
    (folder / "c.txt").symlink_to("a.txt")
    (folder / "b.txt").symlink_to(tmp_path / "secret")
    with tarfile.open(tmp_path / "t.tar", "w") as archive:
        archive.add(folder, "texts")
    assert list(texts_of(tmp_path / "t.tar", names)) == [(0, "text")]
    with pytest.raises(InputError, match=r"b\.txt is a symbolic link to a file outside"):
        list(texts_of(folder, names))
    (folder / "b.txt").unlink()
    assert list(texts_of(folder, names)) == [(0, "text"), (2, "text")]
