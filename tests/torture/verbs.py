"""Steps for a harmed store: all commands that read one, and Python calls."""

import contextlib
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cocite
from cocite import Graph
from cocite.cli.main import main
from cocite.errors import CociteError, Damaged
from cocite.graph.name_files import IntegerNames
from cocite.storage import kind_of
from tests.torture.children import Step
from tests.torture.stores import NEWER, NEWER_WEIGHTED, PIECE, WEIGHTED, copied, harmed


def steps_of(store: Path, stores: Path, names: tuple[str, str]) -> list[Step]:
    """All steps for a store, a disposable copy; ``stores`` holds the sound ones."""
    a, b = names
    path, out = str(store), store.parent
    python: list[Step]
    if store.suffix == ".graph":
        verbs = _graph_verbs(store, stores, a, b)
        python = [("Graph", lambda: _graph(store))]
    else:
        verbs = _index_verbs(store, stores, a, b)
        python = [("Index", lambda: _index(store, a, b))]
    steps = list(python)
    for verb, *words in verbs:
        name = " ".join([verb, *words]).replace(path, store.name)
        name = name.replace(f"{out}/", "").replace(f"{stores}/", "")
        steps.append((name, _cli(verb, words)))
    return steps


def _graph_verbs(store: Path, stores: Path, a: str, b: str) -> list[list[str]]:
    path, out = str(store), store.parent
    plain = ["--unweighted"] if store.stem == "weighted" else []
    verbs = [
        ["verify", path],
        ["info", path],
        ["nodes", path, a[:3]],
        ["nodes", path, a, "--links"],
        ["rank", path, "-o", f"{out}/ranks.csv"],
        ["rank", path, "--score", "hubs", *plain],
        ["related", path, a, "--measure", "psimrank"],
        ["related", path, a],
        ["similarity", path, a, b, "--measure", "simrank"],
        ["why", path, a, b, "--measure", "cocitation", *plain],
        ["all-pairs", path, "-o", f"{out}/exact.csv", "--epsilon", "0.1"],
        ["index", path, "-o", f"{out}/new.index", "--samples", "2", "--measure", "psimrank"],
        ["index", path, "-o", f"{out}/other.index"],
    ]
    if store.stem in ("plain", "weighted"):
        index = "trees.index" if store.stem == "plain" else "weighted.index"
        verbs.append(["refresh", str(copied(stores / index, out / "more")), path])
    return verbs


def _index_verbs(store: Path, stores: Path, a: str, b: str) -> list[list[str]]:
    path, out = str(store), store.parent
    weighted = store.stem in WEIGHTED
    name = NEWER if store.stem == "refreshed" else f"{'weighted' if weighted else 'plain'}.graph"
    graph = ["--graph", str(stores / name)]
    verbs = [
        ["verify", path],
        ["info", path],
        ["nodes", path, a[:3], *graph],
        ["related", path, a],
        ["related", path, a, b, "--prefix", b[:2], "--confidence", "0.9", "-k", "3"],
        ["similarity", path, a, b],
        ["similarity", path, b, b],
        ["related-all", path, "-o", f"{out}/all.csv"],
        ["why", path, a, b, *graph],
        ["why", path, b, a, *graph],
        ["related", path, a, "--refine", *graph],
    ]
    if store.stem == "trees":
        verbs.append(["merge", path, str(stores / PIECE), "-o", f"{out}/merged.index"])
    newer = str(stores / (NEWER_WEIGHTED if weighted else NEWER))
    return [
        *verbs,
        ["refresh", path, newer, "--fraction", "0.5"],
        ["refresh", path, newer, "--fraction", "1"],
    ]


class _Refused(CociteError):
    """A refusal of the command line."""


def _cli(verb: str, words: list[str]) -> Callable[[], None]:
    """A verb as the command line runs it."""

    def run() -> None:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([verb, *words, "--format", "json"])
        if code == 0:
            json.loads(out.getvalue(), parse_constant=_no_number)
            return
        message = err.getvalue() + out.getvalue()[:200] * (verb == "verify")
        assert message.strip(), "it failed without a message"
        assert "Traceback" not in message, message
        _check_unknown(message, words[0])
        raise _Refused(message)

    return run


def _check_unknown(message: str, path: str | Path) -> None:
    """Check that no existing node is reported as unknown: every queried name is in the store.
    Integer names may change undetected in a harmed store, such as all plus one: only a name that is
    indeed missing may be reported.
    """
    unknown = re.findall(r"no node is named '([^']*)'", message)
    if "no node is named" not in message:
        return
    names = Graph.open(path).names if kind_of(path) == "graph" else cocite.open(path).nodes
    assert isinstance(names, IntegerNames), message
    assert unknown, message
    assert set(map(str, names)).isdisjoint(unknown), message


def _no_number(word: str) -> None:
    raise ValueError(f"an answer has {word}")


def _index(path: Path, a: str, b: str) -> None:
    """Query from Python; an error does not prevent later queries."""
    index = cocite.open(path)
    queries: list[Callable[[], Any]] = [
        lambda: [hit.score for hit in index.related(a)],
        lambda: index.related(b, 3, exclude_same_site=True),
        lambda: index.similarity(a, b),
        lambda: index.why(a, b).reasons,
        lambda: list(index.nodes),
        lambda: index.nodes.with_prefix(a[:2]).tolist(),
        lambda: index.nodes.suggest(b + "x"),
        lambda: index.nodes.containing("page"),
        lambda: [index.nodes.id(name) for name in (a, b)],
        lambda: index.nodes.titles() and index.nodes.titles().containing("title"),  # type: ignore
        lambda: [part.to_json() for part in index.stored.parts],
    ]
    _run_all(queries, path)


def _graph(path: Path) -> None:
    graph = Graph.open(path)
    queries: list[Callable[[], Any]] = [
        graph.info,
        graph.check,
        lambda: graph.in_neighbors(1),
        lambda: graph.out_neighbors(1),
        lambda: list(graph.names),
        lambda: graph.names.suggest("pagex"),
        lambda: graph.names.with_prefix("p").tolist(),
        lambda: graph.names.containing("page"),
        lambda: graph.titles and graph.titles.containing("title"),
        lambda: graph.hubs,
        graph.to_scipy,
        graph.to_networkx,
        lambda: repr(graph) + repr(graph.names),
    ]
    _run_all(queries, path)


def _run_all(queries: list[Callable[[], Any]], path: Path) -> None:
    """Run all queries; raise the first refusal at the end."""
    refused: Damaged | None = None
    for query in queries:
        try:
            query()
        except Damaged as error:
            refused = refused or error
        except CociteError as error:
            _check_unknown(str(error), path)
    if refused:
        raise refused


def warm(stores: Path, folder: Path, names: Callable[[Path], tuple[str, str]]) -> Iterator[str]:
    """Query all stores while sound, to compile everything; yield refusals."""
    for store in harmed(stores):
        copy = copied(store, folder / store.name)
        for name, step in steps_of(copy, stores, names(store)):
            try:
                step()
            except CociteError as error:
                yield f"{store.name}: {name}: {error}"
