"""RDF triples: predicates make links, and labels make titles."""

import gzip
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite.errors import InputError, MalformedRow, UsageError
from tests.io.plain import links, read, refused, source_of, titles_of

ENTITY, DIRECT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"


def wikidata() -> str:
    """As in Wikidata's truthy dump: labels in several languages, dates, links."""
    rng, rows = random.Random(5), ["# truthy"]
    for i in range(40):
        subject = f"<{ENTITY}Q{i}>"
        rows += [f'{subject} {LABEL} "{word} {i}"@{word} .' for word in ("de", "en", "fr") if i % 4]
        rows += [f'{subject} {LABEL} "nur {i}"@de .'] * (i % 4 == 0)
        rows += [
            f'{subject} <{DIRECT}P577> "2001-01-01"^^<http://www.w3.org/2001/XMLSchema#date> .'
        ]
        rows += [
            f"{subject} <{DIRECT}P{rng.choice((31, 279))}> <{ENTITY}Q{rng.randrange(50)}> ."
            for _ in range(i % 6)
        ]
    return "\n".join(rows) + "\n"


TRIPLES = wikidata()
TURTLE = """@prefix ex: <http://ex.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:a a ex:Thing ; ex:to ex:b, ex:c ; rdfs:label "A"@en ; ex:size 3 .
ex:b ex:to ex:c ; ex:has [ ex:to ex:a ] .
"""
XML = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="http://ex.org/">
<rdf:Description rdf:about="http://ex.org/a"><ex:to rdf:resource="http://ex.org/b"/>
</rdf:Description></rdf:RDF>
"""


def links_in(text: str, predicate: str = r"P\d+") -> list[tuple[str, str]]:
    """The links in N-Triples, by a pattern."""
    found = re.findall(rf"^<(\S+)> <{DIRECT}{predicate}> <(\S+)> \.$", text, re.M)
    return sorted({(a, b) for a, b in found if a != b})


@pytest.mark.parametrize(
    ("options", "predicate"),
    [
        ({}, r"P\d+"),
        ({"predicate": "P31"}, "P31"),
        ({"predicate": f"{DIRECT}P279"}, "P279"),
        ({"predicate": f"<{DIRECT}P279>"}, "P279"),
    ],
)
def test_rdf_reader_reads_wikidata_with_titles(
    tmp_path: Path, options: dict[str, Any], predicate: str
) -> None:
    graph = read(tmp_path, gzip.compress(TRIPLES.encode()), "truthy.nt.gz", **options)
    assert sorted(links(graph)) == links_in(TRIPLES, predicate)
    for name, title in zip(graph.names, titles_of(graph), strict=True):
        number = int(name.rpartition("Q")[2])
        expected = None if number >= 40 else f"en {number}" if number % 4 else f"nur {number}"
        assert title == expected


def test_rdf_reader_reads_turtle_xml_and_quads(tmp_path: Path) -> None:
    graph = read(tmp_path, TURTLE, "x.ttl", predicate="to")
    assert sorted((a[-1], b[-1]) for a, b in links(graph)) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert source_of(graph)["read_as"] == (
        "x.ttl: RDF, subjects link to objects by to, 1 triples with blank nodes are skipped"
    )
    graph = read(tmp_path, TURTLE)
    assert ("http://ex.org/a", "http://ex.org/Thing") in links(graph)
    assert links(read(tmp_path, XML, "x.rdf")) == [("http://ex.org/a", "http://ex.org/b")]
    quad = "<http://a> <http://p> <http://b> <http://g> .\n"
    assert links(read(tmp_path, quad, "x.nq")) == [("http://a", "http://b")]


def test_rdf_reader_reports_or_skips_bad_triple(tmp_path: Path) -> None:
    good = "<http://a> <http://p> <http://b> .\n"
    content = good * 3 + "# c\n<http://a> <p> oops .\n" + good
    error = refused(tmp_path, MalformedRow, content, "l.nt", match=r"l\.nt:5: not a triple: ")
    assert error.line == 5
    refused(tmp_path, MalformedRow, good + good[:20], "l.nt", match=r"l\.nt:2: not a triple: ")
    control = "<http://a\\u0001> <http://p> <http://b> .\n"
    refused(tmp_path, MalformedRow, control, "l.nt", match=r":1: a control character in a name")
    graph = read(tmp_path, content, "l.nt", bad_rows="few")
    assert (graph.edges, graph.info().rows, graph.info().bad_rows) == (1, 4, 1)


def test_predicate_option_rejects_unknown_predicate(tmp_path: Path) -> None:
    for content, error, message in (
        (TRIPLES, InputError, rf"predicate 'P1'; it has {DIRECT}P279, .*P31"),
        ("a\tb\n", UsageError, r"\) applies only to RDF: omit --predicate"),
    ):
        refused(tmp_path, error, content, predicate="P1", match=message)


PIECES = st.sampled_from(
    [
        *("<http://a>", "<b>", "_:c", '"x"', '"', "@en", "^^", ".", ";", ",", "[", "]", "<<", "a"),
        *("", "@prefix", "ex:", "ex:a", "<http://a\\u0000>", "\n", " ", "#", "\\", "é"),
        *"(){}",
    ]
)


@settings(max_examples=12)
@given(st.lists(PIECES, max_size=25).map(" ".join), st.sampled_from(["nt", "ttl"]))
def test_rdf_reader_handles_any_triples(tmp_path: Path, text: str, kind: str) -> None:
    content = "<http://a> <http://p> <http://b> .\n" * 3 + text
    try:
        graph = read(tmp_path, content, f"l.{kind}", bad_rows="few")
    except InputError:
        return
    assert ("http://a", "http://b") in links(graph)
