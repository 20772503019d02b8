"""RDF: a link from subject to object for each triple, with one predicate or with any.

    <http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/direct/P31> <...Q2> .

pyoxigraph (``rdf``) parses N-Triples, N-Quads, Turtle, TriG and RDF/XML as a stream, in 5 µs per
triple. Literals are not nodes; the values of ``rdfs:label`` are titles, preferably in English or
without a language. Triples with blank nodes are counted and skipped, because names of blank nodes
are not persistent. ``--predicate`` is an IRI, or the part of an IRI after the last / or #.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cocite.errors import InputError, MalformedRow
from cocite.extras import need
from cocite.io.readers.contract import FormatReader, Job, Read
from cocite.io.readers.rows import LinkWriter
from cocite.io.readers.signs import ntriples, rooted

_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_EVERY = 1 << 12
_SHOWN, _MOST = 8, 1000
"""Maximum number of predicates to list if the requested one is missing, and to store."""


def _read_rdf(job: Job) -> Read:
    rdf = need("pyoxigraph", "RDF", "rdf")
    node, chosen = rdf.NamedNode, job.options.predicate or ""
    taken: dict[str, bool] = {}
    number = blank = 0
    titled = ""
    with LinkWriter(job, ("triple", "triple")) as out:
        for number, triple in enumerate(_triples(job, rdf, out), 1):
            subject, object_ = triple.subject, triple.object
            predicate = triple.predicate.value
            if predicate == _LABEL and type(object_) is rdf.Literal and type(subject) is node:
                language = object_.language
                other = language is not None and language.partition("-")[0] != "en"
                if not (other and titled == subject.value):
                    titled = subject.value if other else titled
                    job.titles.add(subject.value, object_.value, late=other)
                continue
            wanted = taken.get(predicate)
            if wanted is None:
                wanted = chosen in ("", predicate, predicate.replace("#", "/").rpartition("/")[2])
                if len(taken) < _MOST or wanted:
                    taken[predicate] = wanted
            if not wanted or type(object_) is rdf.Literal:
                continue
            if type(subject) is not node or type(object_) is not node:
                blank += 1
            elif job.wanted == 2:
                out.links.add((subject.value, object_.value), number)
            else:
                out.nodes.add((subject.value,), number)
                out.nodes.add((object_.value,), number)
        if chosen and number and not any(taken.values()):
            some = ", ".join(sorted(taken)[:_SHOWN])
            raise InputError(
                f"{job.source.label} has no triple with the predicate {chosen!r}; it has "
                f"{some or 'labels only'}. Choose one with --predicate (predicate=...)"
            )
        note = "subjects link to objects" + (f" by {chosen}" if chosen else "")
        note += f", {blank:,} triples with blank nodes are skipped" if blank else ""
        return out.finish(READER.title, note)


READER = FormatReader(
    "RDF",
    "RDF of Wikidata, DBpedia and others, N-Triples, Turtle or XML: a link from subject to object, "
    "of one --predicate or of all; rdfs:label gives titles",
    _read_rdf,
    takes=("predicate",),
    weights=False,
    columns=False,
)


def _triples(job: Job, rdf: Any, out: LinkWriter) -> Iterator[Any]:
    """Yield triples; refuse invalid ones, or skip and count them."""
    beginning, label = job.source.beginning(), job.source.label
    form = rdf.RdfFormat.N_QUADS if ntriples(beginning) else rdf.RdfFormat.TRIG
    form = rdf.RdfFormat.RDF_XML if rooted("RDF")(beginning) else form
    with job.source.reading() as (stream, raw):
        found = rdf.parse(input=stream, format=form, lenient=True)
        number = 0
        while True:
            try:
                triple = next(found, None)
            except SyntaxError as error:
                what = str(error.msg).rpartition(": ")[2]
                if job.options.bad_rows == "stop":
                    raise MalformedRow(label, error.lineno or 1, "not a triple", what) from None
                out.links.leave_out("triple", number + 1, "not a triple", what)
                continue
            if triple is None:
                return
            yield triple
            number += 1
            if number % _EVERY == 0:
                job.progress("reading " + job.source.short, raw.tell(), job.source.nbytes)
