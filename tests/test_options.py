"""Options are declared once: every interface takes and documents them alike."""

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
        todo += (subclasses := todo.pop().__subclasses__())
        found += [subclass for subclass in subclasses if subclass.__module__.startswith("cocite.")]
    found.remove(AllPairsRun)  # internal: the result of checked options
    return found


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
class TestOptionsClasses:
    def test_options_declare_every_field_with_sentence(self, kind: type[Options]) -> None:
        names = [field.name for field in fields(kind) if field.name != "settings"]
        assert list(kind.declared()) == names
        for field in kind.declared().values():
            assert field.text[0].isupper(), field.name
            assert field.text.endswith("."), field.name

    def test_options_defaults_are_valid_and_unchanged(self, kind: type[Options]) -> None:
        options = kind()
        assert options.changed() == {}
        assert kind.of(options, {}) is options
        assert pickle.loads(pickle.dumps(options)) == options

    def test_options_refuse_value_below_low_bound(self, kind: type[Options]) -> None:
        for field in kind.declared().values():
            if field.type not in (int, float) or field.low == float("-inf"):
                continue
            step = 1 if field.type is int else 1e-9
            with pytest.raises(UsageError, match=f"{field.name} is .*; it must be a"):
                kind(**{field.name: field.type(field.low - step)})

    def test_options_accept_declared_choices_only(self, kind: type[Options]) -> None:
        for field in kind.declared().values():
            for choice in field.choices:
                assert getattr(kind(**{field.name: choice}), field.name) == choice
            if field.choices:
                with pytest.raises(UsageError, match=f"{field.name} is 'no such'; it must be"):
                    kind(**{field.name: "no such"})


def flags(*command: str) -> set[str]:
    found: Any = cli
    for name in command:
        found = found.get_command(click.Context(cli), name)
    return {flag for parameter in found.params for flag in parameter.opts}


@pytest.mark.parametrize(
    ("command", "kind"),
    [(("related",), QueryOptions), (("rank",), RankOptions), (("index",), IndexOptions)],
)
def test_command_has_flag_for_every_field(command: tuple[str, ...], kind: type[Options]) -> None:
    for name, field in kind.declared().items():
        if "cli" in field.fronts:
            assert flag_of(name, kind) in flags(*command)


def test_http_request_has_parameter_for_every_field() -> None:
    for verb in ("related", "batch"):
        parameters = {each.name: each for each in operations_of(Limits(), ["x"])[verb].takes}
        for name, each in QueryOptions.declared().items():
            assert (name in parameters) == ("http" in each.fronts)
        assert parameters["k"].option.high == Limits().k
        assert set(SETTINGS) < parameters.keys()


def test_pagerank_signature_and_docstring_list_options() -> None:
    signature = inspect.signature(cocite.pagerank)
    assert signature.parameters["damping"].default == RankOptions().damping
    assert "k" not in signature.parameters  # only the command line limits its output
    assert "The probability that a step follows a link" in str(cocite.pagerank.__doc__)
    assert "--memory" not in str(cocite.pagerank.__doc__)
    assert "{options}" not in str(cocite.build.__doc__)


def test_options_of_refuses_unknown_name_with_nearest() -> None:
    with pytest.raises(UsageError, match=r"no option dampin; .* Did you mean damping\?"):
        RankOptions.of(None, {"dampin": 0.5})
    with pytest.raises(UsageError, match=r"options is dict \{\}; it must be a RankOptions"):
        RankOptions.of({}, {})  # type: ignore[arg-type]


def test_index_options_take_other_names_as_settings() -> None:
    found = IndexOptions.of(None, {"samples": 5, "unweighted": True})
    assert (dict(found.settings), found.unweighted) == ({"samples": 5}, True)
    assert IndexOptions.of(found, {"refine": True}).settings == {"samples": 5}


def test_option_checked_keeps_number_type() -> None:
    found = RankOptions(tolerance=1e-3)
    assert type(replace(found, damping=0.5).damping) is float
    assert Option("x", 1.0, "A number.", 0, 2).checked(1) == 1.0
    assert type(Option("x", 1.0, "A number.", 0, 2).checked(1)) is float
    with pytest.raises(UsageError):
        Option("x", 1, "A number.", 0, 2).checked(True)


def test_options_accept_numpy_numbers() -> None:
    numbers = {"offset": np.int64(3), "min_score": np.float32(0.5), "target_error": np.float64(0.1)}
    found = QueryOptions.of(None, numbers)
    assert (found.offset, found.min_score, found.target_error) == (3, 0.5, 0.1)
    assert [type(found.offset), type(found.min_score)] == [int, float]
    for invalid in (np.float64(2.5), True, "3"):
        with pytest.raises(UsageError, match=r"offset is .*; it must be a whole number, 0 or more"):
            QueryOptions.of(None, {"offset": invalid})


def test_ingest_and_query_options_share_no_name() -> None:
    """One call may take both: :func:`cocite.related` distinguishes them by name."""
    shared = IngestOptions.declared().keys() & QueryOptions.declared().keys()
    assert shared == set()


def test_source_names_no_removed_flag() -> None:
    removed = re.compile(r"--(kind|from|sweeps|skip-(all-)?bad-rows|copies|samples-floor)\b(?!-)")
    for path in Path(cocite.__path__[0]).rglob("*.py"):
        assert not removed.search(path.read_text("utf-8")), path


def test_option_makes_flag_keyword_and_docstring() -> None:
    @dataclass(frozen=True)
    class Depths(Options):
        depth: int = option(3, "How deep to go.", low=1, metavar="N")
        plain: bool = option(True, "Be plain.", flag="--fancy", negated="Be fancy.")

    @click.command()
    @takes(Depths, "depths", depth={"text": "How deep here."})
    def command(depths: Depths) -> None:
        click.echo(f"{depths.depth} {depths.plain}")

    from click.testing import CliRunner

    run = CliRunner().invoke
    assert run(command, []).output == "3 True\n"
    assert run(command, ["--depth", "5", "--fancy"]).output == "5 False\n"
    help_text = run(command, ["--help"]).output
    assert "How deep here.  [default: 3" in help_text
    assert "Be fancy." in help_text
    assert run(command, ["--depth", "0"]).exit_code == 2

    @accepts(Depths)
    def function(x: int, *, options: Depths | None = None, **given: Any) -> int:
        """Do it.

        {options}
        """
        return x * Depths.of(options, given).depth

    assert function(2, depth=4) == 8
    assert function(2, options=Depths(depth=5)) == 10
    assert "depth\n    How deep to go. By default 3." in str(function.__doc__)
