"""Every file of every layout is what the layout declares and FORMAT.md says, or is not opened; what
fits its checksum and not the format is found when it is verified, and not copied.
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
from tests.conftest import by_walks, of_texts
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
"""Another dtype of as many bytes, or that goes into them."""


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
    """An index of a case, built once."""

    @cache
    def made(name: str) -> Path:
        path, options = tmp_path_factory.mktemp("index") / "x", by_walks((CASES | MORE)[name])
        cocite.build(graph, path, **options, **of_texts(graph, options["measure"]))
        return path

    return made


@pytest.fixture(scope="module", params=sorted(CASES))
def built(request: pytest.FixtureRequest, build: Callable[[str], Path]) -> Path:
    return build(request.param)


def test_there_is_a_case_for_every_layout() -> None:
    assert set(CASES) == set(LAYOUTS)


def refused(path: Path, match: str) -> None:
    """Neither opened nor found to be whole."""
    with pytest.raises(Damaged, match=re.escape(match)):
        cocite.open(path)
    assert main(["verify", str(path)]) == 1


def test_a_file_of_another_dtype_or_shape_is_refused(built: Path, tmp_path: Path) -> None:
    store = cocite.open(built).stored.store
    for name, entry in store.manifest.files.items():
        array = store.array(name)
        others = [array[:-1], np.concatenate([array, array[-1:]])] if array.size else []
        if array.nbytes % 2 == 0:
            others.append(array.reshape(-1).view(SWAPS[entry.dtype]).reshape(-1))
        others.append(array.reshape(1, *array.shape))
        for other in others:
            loose = "samples-" in name or name in ("names.data", "none.words.letters")
            if loose and other.dtype == array.dtype and other.ndim == 1:
                continue  # their sizes follow from what is in other files
            path = tmp_path / "x"
            shutil.copytree(built, path)
            change_file(path, name, other)
            refused(path, f"{path}: ")
            shutil.rmtree(path)


def test_a_file_that_is_missing_is_refused(built: Path, tmp_path: Path) -> None:
    for name in cocite.open(built).stored.store.manifest.files:
        if name == "names.by_name":
            continue  # it may be missing
        path = tmp_path / "x"
        shutil.copytree(built, path)
        rewrite(path, lambda value, name=name: value["files"].pop(name))  # type: ignore[misc]
        refused(path, str(path))
        shutil.rmtree(path)


@pytest.mark.parametrize(
    "name",
    ["more", "in.more", "out.members", "in.samples-00000", "in.samples-0000000", SINCE, WANTED],
)
def test_a_file_that_is_not_declared_is_refused(built: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "x"
    shutil.copytree(built, path)
    change_file(path, name, np.zeros(4, np.uint32))
    refused(path, str(path))


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
def test_a_shard_has_one_name(name: str, number: int | None) -> None:
    assert shard_number(name) == number


def test_shards_that_leave_samples_out_are_refused(graph: Graph, tmp_path: Path) -> None:
    cocite.build(graph, tmp_path / "x", samples=4, shard=2, measure="psimrank")

    def rename(value: dict[str, Any]) -> None:
        value["files"]["in.samples-000001"] = value["files"].pop("in.samples-000000")

    (tmp_path / "x" / "in.samples-000000").rename(tmp_path / "x" / "in.samples-000001")
    rewrite(tmp_path / "x", rename)
    refused(tmp_path / "x", "the shards do not match samples 0 to 3")


@pytest.mark.parametrize("change", ["dtype", "shape", "missing", "more"])
def test_files_of_a_graph_are_compared_too(graph: Graph, tmp_path: Path, change: str) -> None:
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


# -- what is declared, and what the document says --------------------------------------


def tables() -> dict[str, dict[str, str]]:
    """Heading -> file -> array, as the document has them."""
    found: dict[str, dict[str, str]] = {}
    for section in re.split(r"^##+ ", FORMAT.read_text("utf-8"), flags=re.M)[1:]:
        rows = re.findall(r"^\| `([^`]+)` \| (\\?[|<]\w\w\[[^]]+\]) \|", section, re.M)
        found[section.splitlines()[0]] = {name: form.replace("\\", "") for name, form in rows}
    return found


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
def test_what_is_declared_is_what_the_document_says(heading: str) -> None:
    assert tables()[heading] == DECLARED[heading]()


@pytest.mark.parametrize("layout", [x for x in LAYOUTS if is_sampled(x)])
def test_layouts_of_samples_declare_what_the_document_says(layout: str) -> None:
    found = sampled_format(layout)
    declared = {f"in.{name}": form for name, form in found.files.items()}
    declared["in.samples-FFFFFF"] = SHARD_FORM
    documented = tables()["Parts of samples"]
    if layout == "trees":
        documented |= tables()["Positions (`trees` layout)"]
    assert documented == declared


def test_no_table_of_the_document_is_forgotten() -> None:
    assert {heading for heading, files in tables().items() if files} == {
        *DECLARED,
        "Parts of samples",
        "Positions (`trees` layout)",
    }


# -- what fits its checksum ---------------------------------------------------------------

SHARD = "in.samples-000000"


@pytest.mark.parametrize("name", [*CASES, *MORE])
def test_what_is_built_is_sound(build: Callable[[str], Path], name: str) -> None:
    assert verify(build(name)).faults == []


def put(place: int, value: int) -> Callable[[Any], Any]:
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
    ("trees", "in.positions", put(0, 7), "column 0 does not match its sample"),
    ("trees", SHARD, put(-1, 1), "the digest differs"),
    ("trees", "in.diagonal", nan, "not within its bounds"),
    ("paths", SHARD, put(0, 1), "the positions do not match the members"),
    ("paths", SHARD, put(-1, 1), "the digest differs"),
    ("compact", SHARD, put(0, 1), "do not match the steps"),
    ("minhash", SHARD, put(0, 2**31), "outside the groups"),
    ("minhash", SHARD, put(0, 1), "the groups do not match the nodes"),
    ("sketch", SHARD, put(15, 1), "bits beyond the last node"),
    ("sketch", SHARD, put(0, 1), "the digest differs"),
    ("links", "in.in_neighbours", back, "does not ascend"),
    ("links", "in.out_offsets", back, "do not span"),
    ("links", "in.norms", nan, "not finite"),
    ("any", "any.any_neighbours", back, "does not ascend"),
    ("any", "any.degrees", nan, "not finite"),
    ("features", "in.holders.nodes", put(-1, 10**6), "not below"),
    ("features", "in.features.values", nan, "not finite"),
    ("nearest", "both.holders.offsets", put(1, 2**40), "do not ascend"),
    ("rows", "both.rows.ids", put(-1, 10**6), "not below"),
    ("rows", "both.columns.offsets", put(1, 2**40), "do not ascend"),
    ("text", "none.texts.words", put(-1, 10**6), "not below"),
    ("text", "none.words.letters", put(0, 255), "words do not ascend"),
    ("text", "none.words.letters", put(-1, 255), "a word is not valid UTF-8"),
    ("text", "none.words.offsets", back, "word offsets do not span"),
    ("kept", "wanted", back, "page ids do not ascend"),
]


@pytest.mark.parametrize(("name", "file", "change", "fault"), FAULTS)
def test_what_fits_its_checksum_and_not_the_format_is_found(
    build: Callable[[str], Path],
    tmp_path: Path,
    name: str,
    file: str,
    change: Callable[[Any], Any],
    fault: str,
) -> None:
    path = tmp_path / "x"
    shutil.copytree(build(name), path)
    if not (path / file).exists():  # a part of another direction
        file = next(p.name for p in path.iterdir() if file.split(".", 1)[1] in p.name)
    array = np.array(cocite.open(path).stored.store.array(file))
    change_file(path, file, change(array).astype(array.dtype))
    faults = verify(path).faults
    assert faults
    assert f"{path / file} matches its checksum, but violates the format: " in faults[0]
    assert fault in faults[0]


@pytest.mark.parametrize("place", [0, 5, -1])
@pytest.mark.parametrize("value", [1, 2**40, 2**63 - 1])
def test_texts_that_point_outside_are_not_carried_over(
    build: Callable[[str], Path], graph: Graph, tmp_path: Path, place: int, value: int
) -> None:
    path = tmp_path / "x"
    shutil.copytree(build("text"), path)
    offsets = np.array(cocite.open(path).stored.store.array("none.texts.offsets"))
    change_file(path, "none.texts.offsets", put(place, value)(offsets))
    with pytest.raises(Damaged, match=r"none\.texts\.offsets is damaged"):
        cocite.refresh(path, graph, force=True)
