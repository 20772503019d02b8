"""Help is true: what it says of settings is what measures say and do."""

import json
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import cocite
from cocite.cli.help import Sectioned
from cocite.cli.main import _COMMANDS, cli, main
from cocite.errors import UsageError
from cocite.measures import DEFAULT, MEASURES, Setting, Value
from tests.conftest import Shell

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


def test_help_of_links_has_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "l.tsv").write_text("h\ta\nh\tb\n")
    printed = CliRunner().invoke(cli, ["related", "--help-all"]).output
    (page,) = (page for page in printed.split("\n\n") if page.startswith("For a GRAPH or LINKS"))
    flags = re.findall(r"^  --([a-z-]+)", page, re.M)
    names = set(flags) - {"measure", "direction", "unweighted"}
    assert {"samples", "length", "seed", "hubs", "in-share", "neighbors", "bits"} <= names
    for flag in names:
        name = flag.replace("-", "_")
        m = next(m for m in MEASURES.values() if any(s.name == name for s in m.build))
        value = str(next(s.default for s in m.build if s.name == name))
        asked = ["related", str(tmp_path / "l.tsv"), "a", "--measure", m.name]
        assert main([*asked, f"--{flag}", value]) == 0, capsys.readouterr().err


def test_min_confidence_is_the_same_everywhere() -> None:
    said = "List only hits whose exact scores are above {} with this probability, such as 0.95."
    assert options("related")["min_confidence"] == said.format("--min-score")
    assert said.format("``min_score``") in " ".join(str(cocite.Index.related.__doc__).split())


def test_nodes_are_a_file_of_names_everywhere() -> None:
    found = {}

    def see(name: str, verb: click.Command) -> None:
        for parameter in verb.params:
            if "--nodes" in parameter.opts:
                found[name] = parameter.metavar
        if isinstance(verb, click.Group):
            for inner, each in verb.commands.items():
                see(f"{name} {inner}", each)

    for verb in _COMMANDS:
        see(verb, command(verb))
    assert found == {"ingest": "FILE", "related-all": "FILE"}


def test_what_is_replaced_is_called_what_it_is() -> None:
    for verb, kind in (("ingest", "graph"), ("index", "index")):
        said = f"Replace an existing {kind} once the new one is complete. Its directory must hold "
        assert options(verb)["overwrite"] == said + "nothing else."
    said = "Replace the report and the files next to it, or the table. Symbolic links are refused."
    assert options("evaluate")["overwrite"] == said


@pytest.mark.parametrize("verb", sorted(_COMMANDS))
def test_help_fits_a_screen(verb: str, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = shell([verb, "--help"]).out.splitlines()
    assert len(lines) <= 47
    assert max(map(len, lines)) <= 80
    shown = {word.strip(",") for line in lines for word in line.split() if word.startswith("--")}
    own = [
        parameter
        for parameter in command(verb).params
        if isinstance(parameter, click.Option) and not parameter.hidden
    ]
    for option in own:
        if option.name == "safe_csv" and "--help-all" in shown:  # told there
            assert "--safe-csv " in shell([verb, "--help-all"]).out
            continue
        if isinstance(option, Sectioned) and not option.brief:
            assert option.section == "For LINKS only, as for cocite ingest"
            continue
        assert (
            option.opts[-1] in shown
            or str(option.name).startswith("setting_")
            or (option.opts[-1].startswith("-k"))
        ), option.opts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("help")
    (folder / "l.tsv").write_text("h\ta\nh\tb\nk\ta\n")
    cocite.ingest(folder / "l.tsv", folder / "g")
    for measure in ("xjaccard", "cocitation", "psimrank"):
        cocite.build(folder / "g", folder / measure, measure=measure)
    cocite.build(folder / "g", folder / "default")
    return folder


@pytest.mark.parametrize("named", ["xjaccard", "cocitation", "psimrank", "default", "l.tsv", "g"])
@pytest.mark.parametrize("verb", ["related", "similarity", "related-all"])
def test_help_of_index_has_settings(folder: Path, shell: Shell, named: str, verb: str) -> None:
    """Of what has no index those of the measure that answers, of its questions and its index."""
    shown = shell([verb, folder / named, "--help"]).out
    measure = MEASURES[{"default": DEFAULT, "l.tsv": DEFAULT, "g": DEFAULT}.get(named, named)]
    takes = {s.name for s in measure.ask}
    if named in ("l.tsv", "g"):
        takes |= {s.name for s in measure.build}
    pages = [p for p in shown.split("\n\n") if p.startswith(f"Settings of {measure.name}:")]
    assert len(pages) == bool(takes)
    page = "".join(pages)
    assert {flag.replace("-", "_") for flag in re.findall(r"^  --([a-z-]+)", page, re.M)} == takes
    assert ("For a GRAPH" in shown) == (named in ("l.tsv", "g"))
    assert f"cocite {verb} --help-all" in shown


@pytest.mark.parametrize("verb", ["index", "plan"])
def test_help_goes_by_the_measure_that_is_chosen(shell: Shell, verb: str) -> None:
    for given in (["--measure", "xjaccard"], ["--measure=XJaccard"]):
        shown = shell([verb, *given, "--help"]).out
        assert "Settings of xjaccard:" in shown
        assert re.search(r"^  --bits VALUE .*\[0\]$", shown, re.M)
    assert "Settings of fusion:" in shell([verb, "--help"]).out


@pytest.mark.parametrize("name", list(MEASURES))
def test_help_shows_defaults(shell: Shell, capsys: pytest.CaptureFixture[str], name: str) -> None:
    shown = shell(["measures", name]).out
    measure = MEASURES[name]
    for setting in (*measure.build, *measure.ask):
        flag, default = f"--{setting.name.replace('_', '-')}", str(setting.default)
        assert re.search(rf"^ *{flag}\b +{re.escape(default)}\b", shown, re.M | re.I), flag
        assert setting.allowed.split()[0] in shown
    assert main(["measures", name, "--format", "json"]) == 0
    assert [m["measure"] for m in json.loads(capsys.readouterr().out)["measures"]] == [name]


@pytest.mark.parametrize("verb", sorted(_COMMANDS))
def test_help_is_whole_sentences(verb: str) -> None:
    """A default may follow the last one."""
    for name, text in options(verb).items():
        sentences = text.split("  [default")[0].split(" [default")[0]
        assert re.match(r"[A-Z]|in: |-", sentences), (name, text)
        assert sentences.endswith((".", ")")), (name, text)
