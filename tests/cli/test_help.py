"""Help agrees with the settings of the measures."""

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

QUERY_COMMANDS = ("related", "similarity", "why", "related-all")


def command(verb: str) -> click.Command:
    found = cli.get_command(click.Context(cli), verb)
    assert found is not None
    return found


def options(verb: str) -> dict[str, str]:
    """Option name -> its help, in one line."""
    return {
        str(parameter.name): " ".join(str(parameter.help).split())
        for parameter in command(verb).params
        if isinstance(parameter, click.Option)
    }


def settings(verb: str) -> dict[str, str]:
    """Measure setting -> its help."""
    found = options(verb).items()
    return {n.removeprefix("setting_"): text for n, text in found if n.startswith("setting_")}


def accept(name: str, setting: Setting[Value], when: str) -> bool:
    """Whether the measure takes the setting at query or build time."""
    measure = MEASURES[name]
    try:
        values = {setting.name: setting.default}
        _ = measure.ask_settings(values) if when == "ask" else measure.build_settings(values)
    except UsageError:
        return False
    return True


@pytest.mark.parametrize("verb", [*QUERY_COMMANDS, "index", "plan"])
def test_help_quotes_setting_texts_of_measures(verb: str) -> None:
    kinds = {"index": ["build"], "plan": ["build", "ask"], "related-all": ["ask"]}
    explained = settings(verb)
    assert explained
    for name, text in explained.items():
        for kind in kinds.get(verb, ["ask"]):
            for measure in MEASURES.values():
                for setting in getattr(measure, kind):
                    if setting.name == name:
                        assert setting.text.lower() in text.lower(), (verb, name, measure.name)


@pytest.mark.parametrize("verb", QUERY_COMMANDS)
def test_help_names_exactly_measures_with_setting(verb: str) -> None:
    """No others: pagesim, for one, has a decay, but as a build setting."""
    query_settings = {s.name: s for measure in MEASURES.values() for s in measure.ask}
    explained = settings(verb)
    assert set(query_settings) <= set(explained)
    for name, setting in query_settings.items():
        named = {
            m for part in re.findall(r"For ([^:.]*)[:.]", explained[name]) for m in part.split(", ")
        }
        assert named == {m for m in MEASURES if accept(m, setting, "ask")}, name


def test_help_all_lists_build_settings_for_links(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "l.tsv").write_text("h\ta\nh\tb\n")
    printed = CliRunner().invoke(cli, ["related", "--help-all"]).output
    (section,) = (
        section for section in printed.split("\n\n") if section.startswith("For a GRAPH or LINKS")
    )
    flags = re.findall(r"^  --([a-z-]+)", section, re.M)
    names = set(flags) - {"measure", "direction", "unweighted"}
    assert {"samples", "length", "seed", "hubs", "in-share", "neighbors", "bits"} <= names
    for flag in names:
        name = flag.replace("-", "_")
        m = next(m for m in MEASURES.values() if any(s.name == name for s in m.build))
        value = str(next(s.default for s in m.build if s.name == name))
        arguments = ["related", str(tmp_path / "l.tsv"), "a", "--measure", m.name]
        assert main([*arguments, f"--{flag}", value]) == 0, capsys.readouterr().err


def test_help_min_confidence_matches_docstring() -> None:
    text = "List only hits whose exact scores are above {} with this probability, such as 0.95."
    assert options("related")["min_confidence"] == text.format("--min-score")
    assert text.format("``min_score``") in " ".join(str(cocite.Index.related.__doc__).split())


def test_nodes_option_always_takes_file() -> None:
    found = {}

    def visit(name: str, verb: click.Command) -> None:
        for parameter in verb.params:
            if "--nodes" in parameter.opts:
                found[name] = parameter.metavar
        if isinstance(verb, click.Group):
            for inner, subcommand in verb.commands.items():
                visit(f"{name} {inner}", subcommand)

    for verb in _COMMANDS:
        visit(verb, command(verb))
    assert found == {"ingest": "FILE", "related-all": "FILE"}


def test_help_overwrite_names_replaced_output() -> None:
    for verb, kind in (("ingest", "graph"), ("index", "index")):
        text = f"Replace an existing {kind} once the new one is complete. Its directory must hold "
        assert options(verb)["overwrite"] == text + "nothing else."
    text = "Replace the report and the files next to it, or the table. Symbolic links are refused."
    assert options("evaluate")["overwrite"] == text


@pytest.mark.parametrize("verb", sorted(_COMMANDS))
def test_help_fits_screen(verb: str, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
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
        if option.name == "safe_csv" and "--help-all" in shown:  # listed there
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


@pytest.mark.parametrize("source", ["xjaccard", "cocitation", "psimrank", "default", "l.tsv", "g"])
@pytest.mark.parametrize("verb", ["related", "similarity", "related-all"])
def test_help_lists_settings_of_given_source(
    folder: Path, shell: Shell, source: str, verb: str
) -> None:
    """Without an index, these are the query and build settings of the default measure."""
    shown = shell([verb, folder / source, "--help"]).out
    measure = MEASURES[{"default": DEFAULT, "l.tsv": DEFAULT, "g": DEFAULT}.get(source, source)]
    names = {s.name for s in measure.ask}
    if source in ("l.tsv", "g"):
        names |= {s.name for s in measure.build}
    pages = [p for p in shown.split("\n\n") if p.startswith(f"Settings of {measure.name}:")]
    assert len(pages) == bool(names)
    page = "".join(pages)
    assert {flag.replace("-", "_") for flag in re.findall(r"^  --([a-z-]+)", page, re.M)} == names
    assert ("For a GRAPH" in shown) == (source in ("l.tsv", "g"))
    assert f"cocite {verb} --help-all" in shown


@pytest.mark.parametrize("verb", ["index", "plan"])
def test_help_lists_settings_of_given_measure(shell: Shell, verb: str) -> None:
    for arguments in (["--measure", "xjaccard"], ["--measure=XJaccard"]):
        shown = shell([verb, *arguments, "--help"]).out
        assert "Settings of xjaccard:" in shown
        assert re.search(r"^  --bits VALUE .*\[0\]$", shown, re.M)
    assert "Settings of fusion:" in shell([verb, "--help"]).out


@pytest.mark.parametrize("name", list(MEASURES))
def test_measures_shows_defaults(
    shell: Shell, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    shown = shell(["measures", name]).out
    measure = MEASURES[name]
    for setting in (*measure.build, *measure.ask):
        flag, default = f"--{setting.name.replace('_', '-')}", str(setting.default)
        assert re.search(rf"^ *{flag}\b +{re.escape(default)}\b", shown, re.M | re.I), flag
        assert setting.allowed.split()[0] in shown
    assert main(["measures", name, "--format", "json"]) == 0
    assert [m["measure"] for m in json.loads(capsys.readouterr().out)["measures"]] == [name]


@pytest.mark.parametrize("verb", sorted(_COMMANDS))
def test_help_uses_complete_sentences(verb: str) -> None:
    """A default may come last."""
    for name, text in options(verb).items():
        sentences = text.split("  [default")[0].split(" [default")[0]
        assert re.match(r"[A-Z]|in: |-", sentences), (name, text)
        assert sentences.endswith((".", ")")), (name, text)
