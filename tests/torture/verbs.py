"""What is asked of a store that was harmed: all commands that read one, and Python."""

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
    """All steps for a store, a copy that may be replaced; ``stores`` are the whole ones."""
    a, b = names
    path, out = str(store), store.parent
    python: list[Step]
    if store.suffix == ".graph":
        verbs = _of_graphs(store, stores, a, b)
        python = [("Graph", lambda: _graph(store))]
    else:
        verbs = _of_indexes(store, stores, a, b)
        python = [("Index", lambda: _index(store, a, b))]
    found = list(python)
    for verb, *words in verbs:
        told = " ".join([verb, *words]).replace(path, store.name)
        told = told.replace(f"{out}/", "").replace(f"{stores}/", "")
        found.append((told, _cli(verb, words)))
    return found


def _of_graphs(store: Path, stores: Path, a: str, b: str) -> list[list[str]]:
    path, out = str(store), store.parent
    plain = ["--unweighted"] if store.stem == "weighted" else []
    found = [
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
        found.append(["refresh", str(copied(stores / index, out / "more")), path])
    return found


def _of_indexes(store: Path, stores: Path, a: str, b: str) -> list[list[str]]:
    path, out = str(store), store.parent
    weighted = store.stem in WEIGHTED
    name = NEWER if store.stem == "refreshed" else f"{'weighted' if weighted else 'plain'}.graph"
    graph = ["--graph", str(stores / name)]
    found = [
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
        found.append(["merge", path, str(stores / PIECE), "-o", f"{out}/merged.index"])
    newer = str(stores / (NEWER_WEIGHTED if weighted else NEWER))
    return [
        *found,
        ["refresh", path, newer, "--fraction", "0.5"],
        ["refresh", path, newer, "--fraction", "1"],
    ]


class _Refused(CociteError):
    """What the command line refused."""


def _cli(verb: str, words: list[str]) -> Callable[[], None]:
    """A verb as the command line runs it."""

    def run() -> None:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([verb, *words, "--format", "json"])
        if code == 0:
            json.loads(out.getvalue(), parse_constant=_no_number)
            return
        told = err.getvalue() + out.getvalue()[:200] * (verb == "verify")
        assert told.strip(), "it failed and said nothing"
        assert "Traceback" not in told, told
        _check_unknown(told, words[0])
        raise _Refused(told)

    return run


def _check_unknown(told: str, path: str | Path) -> None:
    """That no node is said not to be there: of what is asked for, every name is in the store. Names
    that are integers may be others in a harmed one, such as all plus one, and nothing tells: of
    these alone, one that is indeed not there may be said not to be.
    """
    unknown = re.findall(r"no node is named '([^']*)'", told)
    if "no node is named" not in told:
        return
    names = Graph.open(path).names if kind_of(path) == "graph" else cocite.open(path).nodes
    assert isinstance(names, IntegerNames), told
    assert unknown, told
    assert set(map(str, names)).isdisjoint(unknown), told


def _no_number(word: str) -> None:
    raise ValueError(f"an answer has {word}")


def _index(path: Path, a: str, b: str) -> None:
    """From Python: one error does not keep the next question from being asked."""
    index = cocite.open(path)
    questions: list[Callable[[], Any]] = [
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
    _all_of(questions, path)


def _graph(path: Path) -> None:
    graph = Graph.open(path)
    questions: list[Callable[[], Any]] = [
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
    _all_of(questions, path)


def _all_of(questions: list[Callable[[], Any]], path: Path) -> None:
    """Ask all, however many are refused; the first one that is refused is raised at the end."""
    refused: Damaged | None = None
    for question in questions:
        try:
            question()
        except Damaged as error:
            refused = refused or error
        except CociteError as error:
            _check_unknown(str(error), path)
    if refused:
        raise refused


def warm(stores: Path, folder: Path, names: Callable[[Path], tuple[str, str]]) -> Iterator[str]:
    """Ask all stores while they are whole, so that all is compiled; yields what is refused."""
    for store in harmed(stores):
        copy = copied(store, folder / store.name)
        for name, step in steps_of(copy, stores, names(store)):
            try:
                step()
            except CociteError as error:
                yield f"{store.name}: {name}: {error}"
