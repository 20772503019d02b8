"""Every file of every layout must match what the layout declares and FORMAT.md says. Files that
match their checksum but violate the format are found by ``verify``, and never copied.
"""

import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.cli.main import main
from cocite.errors import Damaged
from cocite.graph import graph as graph_module
from cocite.graph import name_files as titles_module
from cocite.index.layouts.contract import SHARD_FORM, WANTED, shard_number
from cocite.index.layouts.reader import LAYOUTS, format_of, is_sampled, sampled_format
from cocite.index.layouts.snapshots import SINCE
from cocite.index.results import verify
from cocite.storage import manifest
from tests.conftest import measure_texts, with_psimrank
from tests.storage.enemy import change_file, rewrite

FORMAT = Path(manifest.__file__).with_name("FORMAT.md")
CASES: dict[str, dict[str, Any]] = {
    "trees": {"layout": "trees", "measure": "simrank", "refine": True, "samples": 3, "length": 5},
    "packed": {"layout": "packed", "measure": "simrank", "samples": 3},
    "paths": {"layout": "paths", "samples": 3, "length": 5},
    "compact": {"measure": "compact-simrank", "samples": 3},
    "minhash": {"measure": "xjaccard", "samples": 3, "length": 3},
    "sketch": {"measure": "xjaccard", "bits": 2, "samples": 3},
    "links": {"measure": "cocitation"},
    "features": {"measure": "pagesim"},
    "nearest": {"measure": "snn"},
    "rows": {"measure": "fusion"},
    "text": {"measure": "tfidf"},
}
"""An index of each layout."""
MORE: dict[str, dict[str, Any]] = {
    "any": {"measure": "ppr-symmetric"},
    "kept": {"layout": "trees", "samples": 3, "only_prefix": "page"},
}
SWAPS = {"<u4": "<f4", "<f4": "<u4", "<u8": "<f8", "<f8": "<u8", "|u1": "<u2"}
"""Another dtype of the same size, or of a size that fits."""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(3)
    edges = {tuple(pair) for pair in rng.integers(0, 21, (70, 2)).tolist()}
    rows = [f"http://a.org/{a}\tpage {b}\n" for a, b in sorted(edges)]
    (folder / "links.tsv").write_text("".join(rows))
    return cocite.ingest(folder / "links.tsv", folder / "g", delimiter="tab", header="no")


@pytest.fixture(scope="module")
def build(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Build the index of a case, once."""

    @cache
    def build_once(name: str) -> Path:
        path, options = tmp_path_factory.mktemp("index") / "x", with_psimrank((CASES | MORE)[name])
        cocite.build(graph, path, **options, **measure_texts(graph, options["measure"]))
        return path

    return build_once


@pytest.fixture(scope="module", params=sorted(CASES))
def built(request: pytest.FixtureRequest, build: Callable[[str], Path]) -> Path:
    return build(request.param)


def test_layouts_each_have_file_case() -> None:
    assert set(CASES) == set(LAYOUTS)


def check_refused(path: Path, match: str) -> None:
    """Check that a store neither opens nor passes ``verify``."""
    with pytest.raises(Damaged, match=re.escape(match)):
        cocite.open(path)
    assert main(["verify", str(path)]) == 1


def test_open_refuses_file_with_other_dtype_or_shape(built: Path, tmp_path: Path) -> None:
    store = cocite.open(built).stored.store
    for name, entry in store.manifest.files.items():
        array = store.array(name)
        replacements = [array[:-1], np.concatenate([array, array[-1:]])] if array.size else []
        if array.nbytes % 2 == 0:
            replacements.append(array.reshape(-1).view(SWAPS[entry.dtype]).reshape(-1))
        replacements.append(array.reshape(1, *array.shape))
        for replacement in replacements:
            variable_size = "samples-" in name or name in ("names.data", "none.words.letters")
            if variable_size and replacement.dtype == array.dtype and replacement.ndim == 1:
                continue  # their sizes depend on the content of other files
            path = tmp_path / "x"
            shutil.copytree(built, path)
            change_file(path, name, replacement)
            check_refused(path, f"{path}: ")
            shutil.rmtree(path)


def test_open_refuses_missing_file(built: Path, tmp_path: Path) -> None:
    for name in cocite.open(built).stored.store.manifest.files:
        if name == "names.by_name":
            continue  # it is optional
        path = tmp_path / "x"
        shutil.copytree(built, path)
        rewrite(path, lambda value, name=name: value["files"].pop(name))  # type: ignore[misc]
        check_refused(path, str(path))
        shutil.rmtree(path)


@pytest.mark.parametrize(
    "name",
    ["more", "in.more", "out.members", "in.samples-00000", "in.samples-0000000", SINCE, WANTED],
)
def test_open_refuses_undeclared_file(built: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "x"
    shutil.copytree(built, path)
    change_file(path, name, np.zeros(4, np.uint32))
    check_refused(path, str(path))


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("samples-000000", 0),
        ("samples-000012", 12),
        ("samples-1234567", 1234567),
        ("samples-0000012", None),
        ("samples-12", None),
        ("samples-1_0000", None),
        ("samples-", None),
        ("000012", None),
        ("members", None),
    ],
)
def test_shard_number_reads_canonical_names_only(name: str, number: int | None) -> None:
    assert shard_number(name) == number


def test_open_refuses_shards_with_missing_samples(graph: Graph, tmp_path: Path) -> None:
    cocite.build(graph, tmp_path / "x", samples=4, shard=2, measure="psimrank")

    def rename(value: dict[str, Any]) -> None:
        value["files"]["in.samples-000001"] = value["files"].pop("in.samples-000000")

    (tmp_path / "x" / "in.samples-000000").rename(tmp_path / "x" / "in.samples-000001")
    rewrite(tmp_path / "x", rename)
    check_refused(tmp_path / "x", "the shards do not match samples 0 to 3")


@pytest.mark.parametrize("change", ["dtype", "shape", "missing", "more"])
def test_graph_open_refuses_changed_files(graph: Graph, tmp_path: Path, change: str) -> None:
    for name, entry in graph.store.manifest.files.items():
        path, array = tmp_path / "g", graph.store.array(name)
        shutil.copytree(graph.path, path)
        if change == "missing" and name != "names.by_name":
            rewrite(path, lambda value, name=name: value["files"].pop(name))  # type: ignore[misc]
        elif change == "more":
            change_file(path, f"{name}.more", array)
        elif change == "dtype" and array.nbytes % 2 == 0:
            change_file(path, name, array.view(SWAPS[entry.dtype]))
        elif change == "shape" and name != "names.data":
            change_file(path, name, array[1:])
        else:
            shutil.rmtree(path)
            continue
        with pytest.raises(Damaged, match=re.escape(str(path))):
            Graph.open(path)
        shutil.rmtree(path)


# -- declared files and FORMAT.md ------------------------------------------------------


def tables() -> dict[str, dict[str, str]]:
    """Return heading -> file -> array, as FORMAT.md lists them."""
    listed: dict[str, dict[str, str]] = {}
    for section in re.split(r"^##+ ", FORMAT.read_text("utf-8"), flags=re.M)[1:]:
        rows = re.findall(r"^\| `([^`]+)` \| (\\?[|<]\w\w\[[^]]+\]) \|", section, re.M)
        listed[section.splitlines()[0]] = {name: form.replace("\\", "") for name, form in rows}
    return listed


Declared = Callable[[], dict[str, str]]
DECLARED: dict[str, Declared] = {
    "Names (in graphs and indexes)": lambda: {
        name: form for files in titles_module._NAME_FORMS.values() for name, form in files.items()
    },
    "Titles (in graphs and indexes)": lambda: titles_module._TITLE_FORMS,
    "Graph": lambda: graph_module._FILES,
    "Index": lambda: {SINCE: "<u4[n]", WANTED: "<u4[n]"},
    "Data for refined answers": lambda: {"in.diagonal": "<f4[n, 6]"},
    **{
        heading: lambda layout=layout: format_of(layout).files  # type: ignore[misc]
        for heading, layout in (
            ("Layout `links`", "links"),
            ("Layout `features` (`pagesim`)", "features"),
            ("Layout `nearest` (`snn`)", "nearest"),
            ("Layout `rows` (`fusion`, `ppr-pmi`)", "rows"),
            ("Layout `text` (`tfidf`)", "text"),
        )
    },
}


@pytest.mark.parametrize("heading", DECLARED)
def test_format_doc_lists_declared_files(heading: str) -> None:
    assert tables()[heading] == DECLARED[heading]()


@pytest.mark.parametrize("layout", [x for x in LAYOUTS if is_sampled(x)])
def test_format_doc_lists_files_of_sampled_layouts(layout: str) -> None:
    sampled = sampled_format(layout)
    declared = {f"in.{name}": form for name, form in sampled.files.items()}
    declared["in.samples-FFFFFF"] = SHARD_FORM
    documented = tables()["Parts of samples"]
    if layout == "trees":
        documented |= tables()["Positions (`trees` layout)"]
    assert documented == declared


def test_format_doc_tables_are_all_checked() -> None:
    assert {heading for heading, files in tables().items() if files} == {
        *DECLARED,
        "Parts of samples",
        "Positions (`trees` layout)",
    }


# -- format violations with valid checksums -----------------------------------------------

SHARD = "in.samples-000000"


@pytest.mark.parametrize("name", [*CASES, *MORE])
def test_verify_accepts_new_index(build: Callable[[str], Path], name: str) -> None:
    assert verify(build(name)).faults == []


def set_item(place: int, value: int) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array = array.copy()
        array.reshape(-1)[place] = value
        return array

    return change


def twice(array: Any) -> Any:
    return np.concatenate((array[1:2], array[1:]))


def nan(array: Any) -> Any:
    return array * np.nan


def back(array: Any) -> Any:
    return np.ascontiguousarray(array[::-1])


FAULTS: list[tuple[str, str, Callable[[Any], Any], str]] = [
    ("trees", SHARD, twice, "a node occurs twice"),
    ("trees", "in.positions", set_item(0, 7), "column 0 does not match its sample"),
    ("trees", SHARD, set_item(-1, 1), "the digest differs"),
    ("trees", "in.diagonal", nan, "not within its bounds"),
    ("paths", SHARD, set_item(0, 1), "the positions do not match the members"),
    ("paths", SHARD, set_item(-1, 1), "the digest differs"),
    ("compact", SHARD, set_item(0, 1), "do not match the steps"),
    ("minhash", SHARD, set_item(0, 2**31), "outside the groups"),
    ("minhash", SHARD, set_item(0, 1), "the groups do not match the nodes"),
    ("sketch", SHARD, set_item(15, 1), "bits beyond the last node"),
    ("sketch", SHARD, set_item(0, 1), "the digest differs"),
    ("links", "in.in_neighbours", back, "does not ascend"),
    ("links", "in.out_offsets", back, "do not span"),
    ("links", "in.norms", nan, "not finite"),
    ("any", "any.any_neighbours", back, "does not ascend"),
    ("any", "any.degrees", nan, "not finite"),
    ("features", "in.holders.nodes", set_item(-1, 10**6), "not below"),
    ("features", "in.features.values", nan, "not finite"),
    ("nearest", "both.holders.offsets", set_item(1, 2**40), "do not ascend"),
    ("rows", "both.rows.ids", set_item(-1, 10**6), "not below"),
    ("rows", "both.columns.offsets", set_item(1, 2**40), "do not ascend"),
    ("text", "none.texts.words", set_item(-1, 10**6), "not below"),
    ("text", "none.words.letters", set_item(0, 255), "words do not ascend"),
    ("text", "none.words.letters", set_item(-1, 255), "a word is not valid UTF-8"),
    ("text", "none.words.offsets", back, "word offsets do not span"),
    ("kept", "wanted", back, "page ids do not ascend"),
]


@pytest.mark.parametrize(("name", "file", "change", "fault"), FAULTS)
def test_verify_finds_format_violation_despite_checksum(
    build: Callable[[str], Path],
    tmp_path: Path,
    name: str,
    file: str,
    change: Callable[[Any], Any],
    fault: str,
) -> None:
    path = tmp_path / "x"
    shutil.copytree(build(name), path)
    if not (path / file).exists():  # the part has another direction
        file = next(p.name for p in path.iterdir() if file.split(".", 1)[1] in p.name)
    array = np.array(cocite.open(path).stored.store.array(file))
    change_file(path, file, change(array).astype(array.dtype))
    faults = verify(path).faults
    assert faults
    assert f"{path / file} matches its checksum, but violates the format: " in faults[0]
    assert fault in faults[0]


@pytest.mark.parametrize("place", [0, 5, -1])
@pytest.mark.parametrize("value", [1, 2**40, 2**63 - 1])
def test_refresh_refuses_text_offsets_out_of_range(
    build: Callable[[str], Path], graph: Graph, tmp_path: Path, place: int, value: int
) -> None:
    path = tmp_path / "x"
    shutil.copytree(build("text"), path)
    offsets = np.array(cocite.open(path).stored.store.array("none.texts.offsets"))
    change_file(path, "none.texts.offsets", set_item(place, value)(offsets))
    with pytest.raises(Damaged, match=r"none\.texts\.offsets is damaged"):
        cocite.refresh(path, graph, force=True)
