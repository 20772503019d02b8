"""Files of settings: what they say is built, kept, and told; what is wrong in them is told, too."""

import json
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite.errors import InputError, UsageError
from cocite.index.settings import IndexSettings, read_settings
from tests.builds import files
from tests.conftest import MakeGraph, Shell

LINKS = [(a, b) for a in "abcdef" for b in "uvwxyz" if (ord(a) * 7 + ord(b)) % 3]


def written(folder: Path, text: str) -> Path:
    path = folder / "settings.toml"
    path.write_text(text, "utf-8")
    return path


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    chosen = IndexSettings(
        "psimrank", "both", "paths", True, {"samples": 7, "hubs": "idf", "decay": 0.25}
    )
    path = written(tmp_path, chosen.text(["a remark", "", "another"]))
    assert read_settings(path) == chosen
    assert path.read_text().startswith("# a remark\n#\n# another\n\nmeasure = ")


def test_settings_file_equals_options(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph(LINKS)
    text = 'measure = "psimrank"\ndirection = "both"\n[settings]\nsamples = 20\nseed = 3\n'
    found = cocite.build(graph, tmp_path / "one", settings=written(tmp_path, text))
    chosen: dict[str, Any] = {"measure": "psimrank", "direction": "both", "samples": 20, "seed": 3}
    same = cocite.build(graph, tmp_path / "two", **chosen)
    assert found.stored.digest == same.stored.digest
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_settings_of_questions_are_kept_and_give_way(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph(LINKS)
    chosen = IndexSettings("cocitation", settings={"form": "jaccard", "idf": True})
    kept = cocite.build(graph, tmp_path / "kept", settings=chosen)
    bare = cocite.build(graph, tmp_path / "bare", measure="cocitation")
    assert kept.related("u") == bare.related("u", form="jaccard", idf=True)
    assert kept.related("u", form="cosine", idf=False) == bare.related("u")
    assert kept.related("u") != bare.related("u")
    assert kept.stored.store.facts["asks"] == {"form": "jaccard", "idf": True}
    assert "asks" not in bare.stored.store.facts


def test_a_decay_that_is_kept_gives_way_to_by(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph(LINKS)
    chosen = IndexSettings("simrank", settings={"samples": 50, "decay": 0.2})
    index = cocite.build(graph, tmp_path / "index", settings=chosen)
    bare = cocite.build(graph, tmp_path / "bare", measure="simrank", samples=50)
    questions: list[dict[str, Any]] = [
        {},
        {"meeting_weight": "t<=2"},
        {"meeting_weight": "decay/t"},
        {"decay": 0.9},
    ]
    for given in questions:
        own: dict[str, Any] = {"decay": 0.2} if given in ({}, {"meeting_weight": "decay/t"}) else {}
        assert index.related("u", **given) == bare.related("u", **given, **own), given


def test_settings_survive_refresh_and_merge(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph, chosen = make_graph(LINKS), IndexSettings("psimrank", settings={"decay": 0.3})
    for name, numbers in (("a", range(4)), ("b", range(4, 9))):
        cocite.build(graph, tmp_path / name, settings=chosen, numbers=numbers)
    joined = cocite.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "joined")
    assert joined.stored.query_defaults == {"decay": 0.3}
    fresh = cocite.refresh(tmp_path / "joined", graph, fraction=0.5, force=True)
    assert fresh.stored.query_defaults == {"decay": 0.3}
    cocite.build(graph, tmp_path / "c", measure="psimrank", numbers=range(9, 12))
    with pytest.raises(UsageError, match="decay"):
        cocite.merge([tmp_path / "b", tmp_path / "c"], tmp_path / "other")


def test_what_is_given_beside_a_file_goes_before_it(
    make_graph: MakeGraph, tmp_path: Path, shell: Shell
) -> None:
    graph = str(make_graph(LINKS).path)
    path = written(tmp_path, 'measure = "psimrank"\n[settings]\nsamples = 20\ndecay = 0.5\n')
    arguments = ["index", graph, "--settings", str(path), "--samples", "5", "--direction", "out"]
    found = json.loads(shell([*arguments, "-o", str(tmp_path / "index"), "--format", "json"]).out)
    assert (found["measure"], found["direction"], found["samples"]) == ("psimrank", "out", 5)
    assert found["query_defaults"] == {"decay": 0.5}
    shown = shell(["info", str(tmp_path / "index")]).out
    assert "decay 0.5, unless a query overrides it" in shown
    refused = shell([*arguments, "-o", str(tmp_path / "x"), "--measure", "simrank"], 2)
    said = "the settings are for psimrank, but the measure is simrank: omit one"
    assert said in refused.err
    shell([*arguments, "-o", str(tmp_path / "y"), "--measure", "psimrank"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("direction = 'in'", "measure is missing"),
        (
            "measure = 'psimrank'\nsample = 3",
            "unknown key 'sample'; the keys are measure, direction, layout",
        ),
        ("measure = 'pagerank'", "no measure is called 'pagerank'. Did you mean prank"),
        ("measure = 3", "measure is 3; it must be a string, such as fusion"),
        ("measure = 'psimrank'\ndirection = 'up'", "direction is 'up'; it must be in or out"),
        ("measure = 'ppr-symmetric'\ndirection = 'in'", "for ppr-symmetric it must be any"),
        (
            "measure = 'psimrank'\nlayout = 'sketch'",
            "layout is 'sketch'; for psimrank it must be trees",
        ),
        ("measure = 'psimrank'\nunweighted = 1", "unweighted is 1; it must be true or false"),
        ("measure = 'psimrank'\nsettings = 1", "write \\[settings\\]"),
        (
            "measure = 'psimrank'\n[settings]\nidf = true",
            "no setting 'idf'; its settings are decay",
        ),
        (
            "measure = 'psimrank'\n[settings]\nsamples = 0",
            "samples is 0; it must be a whole number",
        ),
        (
            "measure = 'psimrank'\n[settings]\ndecay = 2",
            "decay is 2; it must be a number above 0",
        ),
        (
            "measure = 'psimrank'\n[settings]\nhubs = [1]",
            "hubs is \\[1\\]; it must be a number, a string",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_told(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError, match=said) as caught:
        read_settings(path)
    assert str(caught.value).startswith(str(path))


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for path in (written(tmp_path, "measure = "), tmp_path / "nowhere.toml"):
        with pytest.raises(InputError, match="cannot be read as a settings file"):
            read_settings(path)
