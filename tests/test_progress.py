"""Slow functions show progress on terminals and in notebooks, and nowhere else."""

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


class Stream(io.StringIO):
    """A standard error that is neither a terminal nor a notebook."""

    def lines(self) -> list[str]:
        """The drawn lines, without seconds."""
        wait_until_drawn = [line.strip() for line in self.getvalue().split("\r")]
        return [line.rpartition(" (")[0] for line in wait_until_drawn if line]


class Terminal(Stream):
    """The standard error of a terminal."""

    def isatty(self) -> bool:
        return True


class Notebook(Stream):
    """The standard error of a notebook, recognized by its module."""

    __module__ = "ipykernel.iostream"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST", "_EVERY", "_IN_NOTEBOOKS"):
        monkeypatch.setattr(progress, name, 0.001)


@pytest.fixture
def terminal(at_once: None, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()  # not sys.stderr itself: pytest replaces it between fixtures and tests
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    return stream


def wait_until_drawn(stream: Stream, text: str) -> None:
    """Wait until this line is drawn."""
    wait_for(lambda: text in stream.lines())


@pytest.fixture
def work(terminal: Terminal) -> Iterator[Callable[..., None]]:
    @shows("working")
    def inner(progress: Any = None) -> None:
        progress("reading", 5, 10, "b")
        wait_until_drawn(terminal, "working: reading, 50%, b")

    yield inner
    assert progress._Shown.line is None


def test_shows_draws_and_clears_line(work: Callable[..., None], terminal: Terminal) -> None:
    work()
    assert terminal.getvalue().endswith(" \r")
    assert "\n" not in terminal.getvalue()


def test_showing_keeps_line_in_notebook(at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=notebook))
    with showing("working") as report:
        report(3, 4)
        wait_until_drawn(notebook, "working: 75%")
    assert notebook.lines()[-1] == "working"
    assert notebook.getvalue().endswith("\n")


def test_shows_shares_line_with_nested_calls(work: Callable[..., None], terminal: Terminal) -> None:
    @shows("all of it")
    def outer() -> None:
        wait_until_drawn(terminal, "all of it")
        work()
        before = len(terminal.lines())
        wait_for(lambda: "all of it" in terminal.lines()[before:])

    outer()


def test_showing_ignores_other_threads(terminal: Terminal) -> None:
    with showing("own"):
        other = threading.Thread(target=lambda: showing("other").__enter__()("x"))
        other.start()
        other.join()
        wait_until_drawn(terminal, "own")
    assert {*terminal.lines()} == {"own"}


def test_shows_clears_line_after_error(terminal: Terminal) -> None:
    @shows("working")
    def work() -> float:
        wait_until_drawn(terminal, "working")
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        work()
    assert terminal.getvalue().endswith(" \r")
    assert progress._Shown.line is None


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        ("", ("reading", 1, 0), "working: reading"),
        ("", (10, 10), "working: 100%"),
        ("", ("round 1", 1, 3, "a\nb\x1b"), "working: round 1, 33%, a?b?"),
        ("sweep {:,}, residual {:.1e}", (12, 0.00123), "working: sweep 12, residual 1.2e-03"),
    ],
)
def test_showing_formats_reports(terminal: Terminal, template: str, values: Any, text: str) -> None:
    with showing("working", template) as report:
        report(*values)
        wait_until_drawn(terminal, text)


def test_progress_stays_silent_when_off_or_unseen(
    at_once: None, monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    """With a caller's own progress, in a command, before two seconds, and in a file."""

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
    for stream in (io.StringIO(), None):
        monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
        with showing("working"):
            assert progress._Shown.line is None


def test_command_uses_own_progress(
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


@pytest.mark.parametrize("name", [*_SLOW.split()])
def test_slow_functions_show_progress(name: str) -> None:
    *place, name = name.split(".")
    function = getattr(import_module(".".join(["cocite", *place])), name)
    assert function.__code__.co_filename == progress.__file__, f"{name} has no line"


def test_build_draws_progress_in_python(terminal: Terminal) -> None:
    """The line names the work, and how far it is."""
    index = cocite.build([(a, (a * 7 + b) % 500) for a in range(500) for b in range(5)])
    assert len(index.nodes) == 500
    assert any(line.startswith("building an index: ") for line in terminal.lines())
