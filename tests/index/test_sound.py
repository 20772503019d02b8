"""Files of an index that are not what the format says, though all checksums fit: what is verified
finds each, in words, and what copies them refuses to.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.errors import Damaged
from cocite.index.results import verify
from tests.conftest import by_walks, of_texts
from tests.storage.enemy import change_file

CASES: dict[str, dict[str, Any]] = {
    "trees": {"layout": "trees", "measure": "simrank", "refine": True, "samples": 3, "length": 5},
    "paths": {"layout": "paths", "samples": 3, "length": 5},
    "compact": {"measure": "compact-simrank", "samples": 3},
    "minhash": {"measure": "xjaccard", "samples": 3, "length": 3},
    "sketch": {"measure": "xjaccard", "bits": 2, "samples": 3},
    "links": {"measure": "cocitation"},
    "any": {"measure": "ppr-symmetric"},
    "features": {"measure": "pagesim"},
    "nearest": {"measure": "snn"},
    "rows": {"measure": "fusion"},
    "text": {"measure": "tfidf"},
    "kept": {"layout": "trees", "samples": 3, "only_prefix": "page"},
}
SHARD = "in.samples-000000"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder = tmp_path_factory.mktemp("sound")
    rng = np.random.default_rng(3)
    edges = {tuple(pair) for pair in rng.integers(0, 21, (70, 2)).tolist()}
    rows = [f"http://a.org/{a}\tpage {b}\n" for a, b in sorted(edges)]
    (folder / "links.tsv").write_text("".join(rows))
    return cocite.ingest(folder / "links.tsv", folder / "g", delimiter="tab", header="no")


@pytest.fixture(scope="module")
def built(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def build(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp("index") / "x"
            options = by_walks(CASES[name])
            cocite.build(graph, made[name], **options, **of_texts(graph, options["measure"]))
        return made[name]

    return build


@pytest.mark.parametrize("name", CASES)
def test_what_is_built_is_sound(built: Callable[[str], Path], name: str) -> None:
    assert verify(built(name)).faults == []


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
    built: Callable[[str], Path],
    tmp_path: Path,
    name: str,
    file: str,
    change: Callable[[Any], Any],
    fault: str,
) -> None:
    path = tmp_path / "x"
    shutil.copytree(built(name), path)
    file = file if (path / file).exists() else file.split(".", 1)[1]
    prefix = "" if file == "wanted" else next(p.name for p in path.iterdir() if file in p.name)
    file = file if file == "wanted" else prefix
    array = np.array(cocite.open(path).stored.store.array(file))
    change_file(path, file, change(array).astype(array.dtype))
    faults = verify(path).faults
    assert faults
    assert f"{path / file} matches its checksum, but violates the format: " in faults[0]
    assert fault in faults[0]


@pytest.mark.parametrize("place", [0, 5, -1])
@pytest.mark.parametrize("value", [1, 2**40, 2**63 - 1])
def test_texts_that_point_outside_are_not_carried_over(
    built: Callable[[str], Path], graph: Graph, tmp_path: Path, place: int, value: int
) -> None:
    path = tmp_path / "x"
    shutil.copytree(built("text"), path)
    offsets = np.array(cocite.open(path).stored.store.array("none.texts.offsets"))
    change_file(path, "none.texts.offsets", put(place, value)(offsets))
    with pytest.raises(Damaged, match=r"none\.texts\.offsets is damaged"):
        cocite.refresh(path, graph, force=True)
