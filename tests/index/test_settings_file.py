"""Settings files: they are applied, stored in the index and shown; errors name the file."""

import json
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite import Graph
from cocite.errors import InputError, UsageError
from cocite.index.settings import IndexSettings, read_settings
from tests.builds import files
from tests.conftest import MakeGraph, Shell


@pytest.fixture(scope="module")
def graph(module_graph: MakeGraph) -> Graph:
    return module_graph((a, b) for a in "abcdef" for b in "uvwxyz" if (ord(a) * 7 + ord(b)) % 3)


def write_settings(folder: Path, text: str) -> Path:
    path = folder / "settings.toml"
    path.write_text(text, "utf-8")
    return path


def test_read_settings_round_trips_index_settings(tmp_path: Path) -> None:
    settings = IndexSettings(
        "psimrank", "both", "paths", True, {"samples": 7, "hubs": "idf", "decay": 0.25}
    )
    path = write_settings(tmp_path, settings.text(["a remark", "", "another"]))
    assert read_settings(path) == settings
    assert path.read_text().startswith("# a remark\n#\n# another\n\nmeasure = ")


def test_settings_file_equals_options(graph: Graph, tmp_path: Path) -> None:
    text = 'measure = "psimrank"\ndirection = "both"\n[settings]\nsamples = 20\nseed = 3\n'
    from_file = cocite.build(graph, tmp_path / "one", settings=write_settings(tmp_path, text))
    options: dict[str, Any] = {"measure": "psimrank", "direction": "both", "samples": 20, "seed": 3}
    from_options = cocite.build(graph, tmp_path / "two", **options)
    assert from_file.stored.digest == from_options.stored.digest
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_index_settings_set_query_defaults(graph: Graph, tmp_path: Path) -> None:
    settings = IndexSettings("cocitation", settings={"form": "jaccard", "idf": True})
    index = cocite.build(graph, tmp_path / "index", settings=settings)
    default = cocite.build(graph, tmp_path / "default", measure="cocitation")
    assert index.related("u") == default.related("u", form="jaccard", idf=True)
    assert index.related("u", form="cosine", idf=False) == default.related("u")
    assert index.related("u") != default.related("u")
    assert index.stored.store.facts["asks"] == {"form": "jaccard", "idf": True}
    assert "asks" not in default.stored.store.facts


def test_meeting_weight_overrides_stored_decay(graph: Graph, tmp_path: Path) -> None:
    settings = IndexSettings("simrank", settings={"samples": 50, "decay": 0.2})
    index = cocite.build(graph, tmp_path / "index", settings=settings)
    default = cocite.build(graph, tmp_path / "default", measure="simrank", samples=50)
    queries: list[dict[str, Any]] = [
        {},
        {"meeting_weight": "t<=2"},
        {"meeting_weight": "decay/t"},
        {"decay": 0.9},
    ]
    for query in queries:
        stored: dict[str, Any] = (
            {"decay": 0.2} if query in ({}, {"meeting_weight": "decay/t"}) else {}
        )
        assert index.related("u", **query) == default.related("u", **query, **stored), query


def test_query_defaults_survive_refresh_and_merge(graph: Graph, tmp_path: Path) -> None:
    settings = IndexSettings("psimrank", settings={"decay": 0.3})
    for name, numbers in (("a", range(4)), ("b", range(4, 9))):
        cocite.build(graph, tmp_path / name, settings=settings, numbers=numbers)
    joined = cocite.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "joined")
    assert joined.stored.query_defaults == {"decay": 0.3}
    fresh = cocite.refresh(tmp_path / "joined", graph, fraction=0.5, force=True)
    assert fresh.stored.query_defaults == {"decay": 0.3}
    cocite.build(graph, tmp_path / "c", measure="psimrank", numbers=range(9, 12))
    with pytest.raises(UsageError, match="decay"):
        cocite.merge([tmp_path / "b", tmp_path / "c"], tmp_path / "other")


def test_index_command_options_override_settings_file(
    graph: Graph, tmp_path: Path, shell: Shell
) -> None:
    path = write_settings(tmp_path, 'measure = "psimrank"\n[settings]\nsamples = 20\ndecay = 0.5\n')
    arguments = [
        "index",
        str(graph.path),
        "--settings",
        str(path),
        "--samples",
        "5",
        "--direction",
        "out",
    ]
    described = json.loads(
        shell([*arguments, "-o", str(tmp_path / "index"), "--format", "json"]).out
    )
    assert (described["measure"], described["direction"], described["samples"]) == (
        "psimrank",
        "out",
        5,
    )
    assert described["query_defaults"] == {"decay": 0.5}
    info = shell(["info", str(tmp_path / "index")]).out
    assert "decay 0.5, unless a query overrides it" in info
    refused = shell([*arguments, "-o", str(tmp_path / "x"), "--measure", "simrank"], 2)
    message = "the settings are for psimrank, but the measure is simrank: omit one"
    assert message in refused.err
    shell([*arguments, "-o", str(tmp_path / "y"), "--measure", "psimrank"])


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_read_settings_reports_invalid_value(tmp_path: Path, text: str, message: str) -> None:
    path = write_settings(tmp_path, text)
    with pytest.raises(UsageError, match=message) as caught:
        read_settings(path)
    assert str(caught.value).startswith(str(path))


def test_read_settings_reports_unreadable_file(tmp_path: Path) -> None:
    for path in (write_settings(tmp_path, "measure = "), tmp_path / "nowhere.toml"):
        with pytest.raises(InputError, match="cannot be read as a settings file"):
            read_settings(path)
