"""Options are written once: every front takes what a field declares, and says the same of it."""

import importlib
import inspect
import pickle
import pkgutil
import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import cocite
from cocite import options as package
from cocite.cli.flags import flag_of, takes
from cocite.cli.main import cli
from cocite.errors import UsageError
from cocite.options import Option, Options, accepts, option
from cocite.options.all_pairs import AllPairsRun
from cocite.options.build import IndexOptions
from cocite.options.ingest import IngestOptions
from cocite.options.query import QueryOptions
from cocite.options.rank import RankOptions
from cocite.server.requests import SETTINGS, operations_of
from cocite.server.results import Limits


def classes() -> list[type[Options]]:
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"cocite.options.{module.name}")
    found, todo = [], [Options]
    while todo:
        todo += (below := todo.pop().__subclasses__())
        found += [each for each in below if each.__module__.startswith("cocite.")]
    found.remove(AllPairsRun)  # nobody chooses it: it is what options come to
    return found


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
class TestEveryClass:
    def test_each_field_is_declared_with_a_sentence(self, kind: type[Options]) -> None:
        names = [each.name for each in fields(kind) if each.name != "settings"]
        assert list(kind.declared()) == names
        for each in kind.declared().values():
            assert each.text[0].isupper(), each.name
            assert each.text.endswith("."), each.name

    def test_the_defaults_are_allowed_and_nothing_is_changed(self, kind: type[Options]) -> None:
        made = kind()
        assert made.changed() == {}
        assert kind.of(made, {}) is made
        assert pickle.loads(pickle.dumps(made)) == made

    def test_a_bound_holds_on_both_sides(self, kind: type[Options]) -> None:
        for each in kind.declared().values():
            if each.type not in (int, float) or each.low == float("-inf"):
                continue
            step = 1 if each.type is int else 1e-9
            with pytest.raises(UsageError, match=f"{each.name} is .*; it must be a"):
                kind(**{each.name: each.type(each.low - step)})

    def test_a_choice_is_one_of_its_words(self, kind: type[Options]) -> None:
        for each in kind.declared().values():
            for word in each.choices:
                assert getattr(kind(**{each.name: word}), each.name) == word
            if each.choices:
                with pytest.raises(UsageError, match=f"{each.name} is 'no such'; it must be"):
                    kind(**{each.name: "no such"})


def flags(*command: str) -> set[str]:
    found: Any = cli
    for name in command:
        found = found.get_command(click.Context(cli), name)
    return {flag for each in found.params for flag in each.opts}


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (("related",), QueryOptions),
        (("rank",), RankOptions),
        (("index",), IndexOptions),
    ],
)
def test_a_command_has_a_flag_a_field(command: tuple[str, ...], kind: type[Options]) -> None:
    for name, each in kind.declared().items():
        if "cli" in each.fronts:
            assert flag_of(name, kind) in flags(*command)


def test_a_request_has_a_parameter_a_field() -> None:
    for verb in ("related", "batch"):
        taken = {each.name: each for each in operations_of(Limits(), ["x"])[verb].takes}
        for name, each in QueryOptions.declared().items():
            assert (name in taken) == ("http" in each.fronts)
        assert taken["k"].option.high == Limits().k
        assert set(SETTINGS) < taken.keys()


def test_a_function_takes_its_options_by_name_or_as_one_value() -> None:
    signature = inspect.signature(cocite.pagerank)
    assert signature.parameters["damping"].default == RankOptions().damping
    assert "k" not in signature.parameters  # how many are printed is of the command line
    assert "The probability that a step follows a link" in str(cocite.pagerank.__doc__)
    assert "--memory" not in str(cocite.pagerank.__doc__)
    assert "{options}" not in str(cocite.build.__doc__)


def test_what_is_no_option_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no option dampin; .* Did you mean damping\?"):
        RankOptions.of(None, {"dampin": 0.5})
    with pytest.raises(UsageError, match=r"options is dict \{\}; it must be a RankOptions"):
        RankOptions.of({}, {})  # type: ignore[arg-type]


def test_names_beside_the_fields_are_settings_of_a_measure() -> None:
    found = IndexOptions.of(None, {"samples": 5, "unweighted": True})
    assert (dict(found.settings), found.unweighted) == ({"samples": 5}, True)
    assert IndexOptions.of(found, {"refine": True}).settings == {"samples": 5}


def test_a_number_is_kept_as_the_kind_that_it_is() -> None:
    found = RankOptions(tolerance=1e-3)
    assert type(replace(found, damping=0.5).damping) is float
    assert Option("x", 1.0, "A number.", 0, 2).checked(1) == 1.0
    assert type(Option("x", 1.0, "A number.", 0, 2).checked(1)) is float
    with pytest.raises(UsageError):
        Option("x", 1, "A number.", 0, 2).checked(True)


def test_numbers_of_numpy_are_numbers() -> None:
    given = {"offset": np.int64(3), "min_score": np.float32(0.5), "target_error": np.float64(0.1)}
    found = QueryOptions.of(None, given)
    assert (found.offset, found.min_score, found.target_error) == (3, 0.5, 0.1)
    assert [type(found.offset), type(found.min_score)] == [int, float]
    for bad in (np.float64(2.5), True, "3"):
        with pytest.raises(UsageError, match=r"offset is .*; it must be a whole number, 0 or more"):
            QueryOptions.of(None, {"offset": bad})


def test_options_of_links_and_of_questions_share_no_name() -> None:
    """One call may take both: :func:`cocite.related` tells them apart by name."""
    both = IngestOptions.declared().keys() & QueryOptions.declared().keys()
    assert both == set()


def test_no_message_names_a_flag_that_is_gone() -> None:
    gone = re.compile(r"--(kind|from|sweeps|skip-(all-)?bad-rows|copies|samples-floor)\b(?!-)")
    for path in Path(cocite.__path__[0]).rglob("*.py"):
        assert not gone.search(path.read_text("utf-8")), path


def test_one_declaration_makes_a_flag_a_keyword_and_a_sentence() -> None:
    @dataclass(frozen=True)
    class Mine(Options):
        depth: int = option(3, "How deep to go.", low=1, metavar="N")
        plain: bool = option(True, "Be plain.", flag="--fancy", negated="Be fancy.")

    @click.command()
    @takes(Mine, "mine", depth={"text": "How deep here."})
    def command(mine: Mine) -> None:
        click.echo(f"{mine.depth} {mine.plain}")

    from click.testing import CliRunner

    run = CliRunner().invoke
    assert run(command, []).output == "3 True\n"
    assert run(command, ["--depth", "5", "--fancy"]).output == "5 False\n"
    shown = run(command, ["--help"]).output
    assert "How deep here.  [default: 3" in shown
    assert "Be fancy." in shown
    assert run(command, ["--depth", "0"]).exit_code == 2

    @accepts(Mine)
    def function(x: int, *, options: Mine | None = None, **given: Any) -> int:
        """Do it.

        {options}
        """
        return x * Mine.of(options, given).depth

    assert function(2, depth=4) == 8
    assert function(2, options=Mine(depth=5)) == 10
    assert "depth\n    How deep to go. By default 3." in str(function.__doc__)
