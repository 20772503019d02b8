"""What takes long from Python says so, where somebody looks, and nowhere else."""

import io
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import cocite
from cocite import progress
from cocite.cli.main import main
from cocite.progress import showing, shows, turn
from tests.clock import wait_for


class Drawn(io.StringIO):
    """Standard error."""

    def lines(self) -> list[str]:
        """What was drawn, without seconds."""
        drawn = [line.strip() for line in self.getvalue().split("\r")]
        return [line.rpartition(" (")[0] for line in drawn if line]


class Terminal(Drawn):
    """Standard error of a person."""

    def isatty(self) -> bool:
        return True


class Notebook(Drawn):
    """Standard error of a notebook, which is known by its module."""

    __module__ = "ipykernel.iostream"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST", "_EVERY", "_IN_NOTEBOOKS"):
        monkeypatch.setattr(progress, name, 0.001)


@pytest.fixture
def terminal(at_once: None, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    found = Terminal()  # in the module: pytest sets that of sys between fixtures and tests
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=found))
    return found


def drawn(on: Drawn, text: str) -> None:
    """Waits until a line says so."""
    wait_for(lambda: text in on.lines())


@pytest.fixture
def work(terminal: Terminal) -> Iterator[Callable[..., None]]:
    @shows("working")
    def inner(progress: Any = None) -> None:
        progress("reading", 5, 10, "b")
        drawn(terminal, "working: reading, 50%, b")

    yield inner
    assert progress._Shown.line is None


def test_line_is_drawn_and_goes(work: Callable[..., None], terminal: Terminal) -> None:
    work()
    assert terminal.getvalue().endswith(" \r")
    assert "\n" not in terminal.getvalue()


def test_line_stays_in_a_notebook(at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=notebook))
    with showing("working") as report:
        report(3, 4)
        drawn(notebook, "working: 75%")
    assert notebook.lines()[-1] == "working"
    assert notebook.getvalue().endswith("\n")


def test_calls_within_share_the_line(work: Callable[..., None], terminal: Terminal) -> None:
    @shows("all of it")
    def outer() -> None:
        drawn(terminal, "all of it")
        work()
        before = len(terminal.lines())
        wait_for(lambda: "all of it" in terminal.lines()[before:])

    outer()


def test_other_threads_do_not_draw_on_the_line(terminal: Terminal) -> None:
    with showing("mine"):
        other = threading.Thread(target=lambda: showing("theirs").__enter__()("x"))
        other.start()
        other.join()
        drawn(terminal, "mine")
    assert {*terminal.lines()} == {"mine"}


def test_line_goes_with_an_error(terminal: Terminal) -> None:
    @shows("working")
    def work() -> float:
        drawn(terminal, "working")
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        work()
    assert terminal.getvalue().endswith(" \r")
    assert progress._Shown.line is None


@pytest.mark.parametrize(
    ("form", "said", "text"),
    [
        ("", ("reading", 1, 0), "working: reading"),
        ("", (10, 10), "working: 100%"),
        ("", ("round 1", 1, 3, "a\nb\x1b"), "working: round 1, 33%, a?b?"),
        ("sweep {:,}, residual {:.1e}", (12, 0.00123), "working: sweep 12, residual 1.2e-03"),
    ],
)
def test_reports_are_in_words(terminal: Terminal, form: str, said: Any, text: str) -> None:
    with showing("working", form) as report:
        report(*said)
        drawn(terminal, text)


def test_silent_unseen(at_once: None, monkeypatch: pytest.MonkeyPatch, terminal: Terminal) -> None:
    """Into a file, of a command, of a caller with a progress of their own; before two seconds."""

    @shows("working")
    def work(progress: Any = None) -> Any:
        return progress

    assert work(progress=7) == 7
    before = turn(False)
    try:
        with showing("working"):
            assert progress._Shown.line is None
    finally:
        turn(before)
    monkeypatch.setattr(progress, "_FIRST", 1e6)
    work()
    assert terminal.getvalue() == ""
    for nobody in (io.StringIO(), None):
        monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=nobody))
        with showing("working"):
            assert progress._Shown.line is None


def test_commands_show_their_own(
    tmp_path: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "links.tsv").write_text("a\tb\n")
    monkeypatch.setattr(progress, "_Line", pytest.fail)
    assert main(["ingest", str(tmp_path / "links.tsv"), "-o", str(tmp_path / "g"), "-q"]) == 0


_SLOW = (
    "build evaluate exact_simrank generate_web ingest merge pagerank plan_index refresh related "
    "similarity tune verify why search.cache.find_or_make search.pairs.related_many "
    "search.pairs.scores_of_pairs search.batch.run.related_all ranking.hits.hits"
)


@pytest.mark.parametrize(
    "name",
    [*_SLOW.split()],
)
def test_whatever_may_take_long_shows_it(name: str) -> None:
    *place, name = name.split(".")
    function = getattr(import_module(".".join(["cocite", *place])), name)
    assert function.__code__.co_filename == progress.__file__, f"{name} has no line"


def test_work_is_drawn_in_python(terminal: Terminal) -> None:
    """A graph from pairs, an index and ranks: each by its name, and with how far it is."""
    index = cocite.build([(a, (a * 7 + b) % 2000) for a in range(2000) for b in range(5)])
    assert len(index.nodes) == 2000
    assert any(line.startswith("building an index: ") for line in terminal.lines())
