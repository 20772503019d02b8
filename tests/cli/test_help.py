"""Help is true: what it says of settings is what measures say and do."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import cocite
from cocite.cli.main import _VERBS, cli, main
from cocite.errors import UsageError
from cocite.measures import MEASURES, Setting, Value

ASKING = ("related", "similarity", "why", "related-all")


def command(verb: str) -> click.Command:
    found = cli.get_command(click.Context(cli), verb)
    assert found is not None
    return found


def options(verb: str) -> dict[str, str]:
    """Name of each option -> its help, in one line."""
    return {
        str(parameter.name): " ".join(str(parameter.help).split())
        for parameter in command(verb).params
        if isinstance(parameter, click.Option)
    }


def settings(verb: str) -> dict[str, str]:
    """Those of measures, by name."""
    found = options(verb).items()
    return {n.removeprefix("setting_"): text for n, text in found if n.startswith("setting_")}


def accept(name: str, setting: Setting[Value], when: str) -> bool:
    """Whether the measure takes the setting when it is asked, or built."""
    measure = MEASURES[name]
    try:
        given = {setting.name: setting.default}
        _ = measure.ask_settings(given) if when == "ask" else measure.build_settings(given)
    except UsageError:
        return False
    return True


@pytest.mark.parametrize("verb", [*ASKING, "index", "plan"])
def test_a_setting_is_explained_in_the_words_of_those_that_take_it(verb: str) -> None:
    kinds = {"index": ["build"], "plan": ["build", "ask"], "related-all": ["ask"]}
    explained = settings(verb)
    assert explained
    for name, text in explained.items():
        for kind in kinds.get(verb, ["ask"]):
            for measure in MEASURES.values():
                for setting in getattr(measure, kind):
                    if setting.name == name:
                        assert setting.text.lower() in text.lower(), (verb, name, measure.name)


@pytest.mark.parametrize("verb", ASKING)
def test_the_measures_that_are_named_take_the_setting_when_asked(verb: str) -> None:
    """And no other: pagesim has a decay, but of its index."""
    asked = {s.name: s for measure in MEASURES.values() for s in measure.ask}
    explained = settings(verb)
    assert set(asked) <= set(explained)
    for name, setting in asked.items():
        named = {
            m for part in re.findall(r"For ([^:.]*)[:.]", explained[name]) for m in part.split(", ")
        }
        assert named == {m for m in MEASURES if accept(m, setting, "ask")}, name


def test_links_are_offered_what_they_can_be_asked_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "l.tsv").write_text("h\ta\nh\tb\n")
    printed = CliRunner().invoke(cli, ["related", "--help"]).output
    (page,) = (page for page in printed.split("\n\n") if page.startswith("For a GRAPH or LINKS"))
    flags = re.findall(r"^  --([a-z-]+)", page, re.M)
    names = set(flags) - {"measure", "direction", "unweighted"}
    assert {"samples", "length", "seed", "hubs", "in-share", "nearest", "bits"} <= names
    for flag in names:
        name = flag.replace("-", "_")
        m = next(m for m in MEASURES.values() if any(s.name == name for s in m.build))
        value = str(next(s.default for s in m.build if s.name == name))
        asked = ["related", str(tmp_path / "l.tsv"), "a", "--measure", m.name]
        assert main([*asked, f"--{flag}", value]) == 0, capsys.readouterr().err


def test_min_confidence_is_the_same_everywhere() -> None:
    said = "Leave out hits unless their score is above {} with this probability, such as 0.95."
    assert options("related")["min_confidence"] == said.format("--min-score")
    assert said.format("``min_score``") in " ".join(str(cocite.Index.related.__doc__).split())


def test_what_is_replaced_is_called_what_it_is() -> None:
    for verb, kind in (("ingest", "graph"), ("index", "index")):
        said = f"Replace the {kind} that is there, if nothing else is in it. It stays until "
        assert options(verb)["overwrite"] == said + "the new one is complete."
    said = "Replace the report and the files beside it. A symbolic link is refused."
    assert options("evaluate")["overwrite"] == said


@pytest.mark.parametrize("verb", sorted(_VERBS))
def test_help_is_whole_sentences(verb: str) -> None:
    """A default may follow the last one."""
    for name, text in options(verb).items():
        sentences = text.split("  [default")[0].split(" [default")[0]
        assert re.match(r"[A-Z]|in: |-", sentences), (name, text)
        assert sentences.endswith((".", ")")), (name, text)
