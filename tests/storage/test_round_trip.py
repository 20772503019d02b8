"""Arrays, manifest and directory: read as they were written, or refused."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cocite.errors import Damaged, NotAStore, StoreError, WrongFormat
from cocite.storage import ArrayWriter, Entry, Manifest, Store, kind_of
from cocite.storage import manifest as module
from cocite.storage.staging import Staging
from tests.storage.enemy import rewrite

ARRAYS: dict[str, NDArray[Any]] = {
    "bytes": np.arange(200, dtype=np.uint8),
    "pairs": np.arange(12, dtype=np.uint32).reshape(6, 2),
    "none": np.empty(0, np.uint64),
}


def make(output: Path, value: int = 0, **options: bool) -> Store:
    with Staging(output, "graph", **options) as draft:
        files = {}
        for name, array in ARRAYS.items():
            with ArrayWriter(draft.path / name, array.dtype, array.shape[1:]) as writer:
                writer.write(array[:2] + array.dtype.type(value))
                writer.write(array[2:])
            files[name] = writer.finished
        return Store.open(draft.publish(Manifest("graph", {"é": value}, files)), "graph")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make(tmp_path / "s")


def change(store: Store, **changes: Any) -> None:
    """Change the manifest and its checksum, as an attacker could."""
    rewrite(store.path, lambda value: value.update(changes))


def entry(**changes: Any) -> dict[str, Any]:
    return {"dtype": "|u1", "shape": [200], "xxh3_128": "0" * 32} | changes


def test_store_reads_written_arrays(store: Store) -> None:
    for name, array in ARRAYS.items():
        found = store.array(name)
        np.testing.assert_array_equal(found, array, strict=True)
        assert not found.flags.writeable
        assert store.verify(name) is None
    assert store.facts == {"é": 0}
    assert store.nbytes == 200 + 48
    assert (store.has("bytes"), store.has("other")) == (True, False)
    with pytest.raises(Damaged, match="has no other in its manifest"):
        store.array("other")
    assert kind_of(store.path) == "graph"


def test_array_writer_writes_little_endian(store: Store) -> None:
    assert (store.path / "pairs").read_bytes() == ARRAYS["pairs"].astype("<u4").tobytes()
    assert store.manifest.files["pairs"] == Entry(
        "<u4", (6, 2), xxhash.xxh3_128_hexdigest(ARRAYS["pairs"].tobytes())
    )


@given(st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=9), max_size=6))
def test_array_writer_joins_pieces(tmp_path: Path, pieces: list[list[int]]) -> None:
    with ArrayWriter(tmp_path / "a", np.uint64) as writer:
        for piece in pieces:
            writer.write(np.array(piece, np.uint32))
    whole = np.array([number for piece in pieces for number in piece], "<u8")
    assert (tmp_path / "a").read_bytes() == whole.tobytes()
    assert writer.finished.shape == whole.shape


def test_array_writer_refuses_lossy_cast(tmp_path: Path) -> None:
    with pytest.raises(TypeError), ArrayWriter(tmp_path / "a", np.uint32) as writer:
        writer.write(np.array([0.5]))
    with pytest.raises(ValueError, match="is not finished"):
        _ = writer.finished


def test_manifest_digest_depends_on_content(tmp_path: Path) -> None:
    first, second = make(tmp_path / "a").manifest, make(tmp_path / "b").manifest
    other = make(tmp_path / "c", value=1).manifest
    assert first.digest() == second.digest() != other.digest()
    assert first.digest("none") == other.digest("none") != first.digest()


def test_manifest_finds_changed_bytes(store: Store) -> None:
    path = store.path / "manifest.json"
    whole, before = path.read_bytes(), store.manifest
    for index in range(len(whole)):
        for change in (0x01, 0x20, 0x80):
            path.write_bytes(whole[:index] + bytes([whole[index] ^ change]) + whole[index + 1 :])
            try:
                assert Manifest.read(store.path, "graph") == before
            except StoreError:
                continue
            assert whole[index : index + 1].isspace()


def test_manifest_finds_truncation(store: Store) -> None:
    path = store.path / "manifest.json"
    whole = path.read_bytes()
    for size in range(len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(Damaged):
            Manifest.read(store.path, "graph")


@pytest.mark.parametrize("size", [0, 1, 47, 49, 4096])
def test_store_open_finds_wrong_file_size(store: Store, size: int) -> None:
    path = store.path / "pairs"
    os.truncate(path, size)
    message = (
        f"{path} should have 48 bytes; found: {size} bytes. Restore the directory from an intact "
        "copy, or rebuild it"
    )
    with pytest.raises(Damaged) as caught:
        Store.open(store.path, "graph")
    assert str(caught.value) == message == store.verify("pairs")


def test_store_open_finds_missing_file(store: Store) -> None:
    (store.path / "none").unlink()
    with pytest.raises(Damaged, match="none cannot be opened: No such file or directory"):
        Store.open(store.path, "graph")
    assert store.verify("none") is not None


def test_store_verify_finds_flipped_bit(store: Store) -> None:
    path = store.path / "pairs"
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        broken = bytearray(whole)
        broken[bit // 8] ^= 1 << bit % 8
        path.write_bytes(broken)
        fault = store.verify("pairs")
        assert fault is not None
        assert fault.startswith(f"{path} has checksum ")
    path.write_bytes(whole)
    assert store.verify("pairs") is None


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("replace", [_link, _pipe, _directory])
@pytest.mark.parametrize("name", ["pairs", "manifest.json"])
def test_store_opens_only_regular_files(store: Store, replace: Any, name: str) -> None:
    replace(store.path / name)
    with pytest.raises(Damaged):
        Store.open(store.path, "graph").array("pairs")
    assert kind_of(store.path) == ("graph" if name == "pairs" else None)


@pytest.mark.parametrize(
    "name", ["..", "../x", "/etc/passwd", "a/b", ".hidden", "", "A", "a\n", "é", "a" * 101]
)
def test_manifest_refuses_unsafe_file_name(store: Store, name: str) -> None:
    change(store, files={name: entry()})
    with pytest.raises(Damaged) as caught:
        Store.open(store.path, "graph")
    assert str(caught.value) == f"the manifest lists {name!r}, which is not a valid file name"


@pytest.mark.parametrize(
    "value",
    [
        *(entry(dtype=dtype) for dtype in ("|O", "O", ">u4", ["<u4"])),
        *(entry(shape=[size]) for size in (10**18, -1, 1.0, True)),
        *(entry(shape=shape) for shape in ([2**40, 2**40], [], [1] * 4, "1")),
        *(entry(xxh3_128=None), {}, [], None, "x"),
    ],
)
def test_manifest_refuses_invalid_entry(store: Store, value: Any) -> None:
    change(store, files={"bytes": value})
    with pytest.raises(Damaged, match="the manifest's entry for bytes is invalid: "):
        Store.open(store.path, "graph")


@pytest.mark.parametrize(
    "changes", [{"facts": []}, {"facts": None}, {"files": []}, {"files": "x"}, {"facts": "\ud800"}]
)
def test_manifest_refuses_wrong_types(store: Store, changes: dict[str, Any]) -> None:
    change(store, **changes)
    with pytest.raises(Damaged):
        Store.open(store.path, "graph")


@pytest.mark.parametrize("depth", [100, 300, 480, 900, 990, 100_000])
def test_manifest_refuses_deep_nesting(store: Store, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    text = f'{{"cocite": "graph", "format": 2, "facts": {deep}, "files": {{}}, "checksum": ""}}'
    (store.path / "manifest.json").write_text(text)
    with pytest.raises(Damaged):
        Store.open(store.path, "graph")
    assert kind_of(store.path) in ("graph", None)


@pytest.mark.parametrize("text", ["", "[]", "1", '"x"', "null", "{}", "\xff", "[" * 20, "1" * 5000])
def test_manifest_refuses_invalid_json(store: Store, text: str) -> None:
    (store.path / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(Damaged, match=r"manifest\.json cannot be read \("):
        Store.open(store.path, "graph")
    assert kind_of(store.path) is None


def test_manifest_refuses_large_file(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_MANIFEST", 100)
    with pytest.raises(Damaged, match="is larger than 100 bytes: not a manifest"):
        Store.open(store.path, "graph")
    assert kind_of(store.path) is None


NOW = module.FORMAT_VERSION


@pytest.mark.parametrize(
    ("changes", "kind", "error", "advice"),
    [
        ({"format": NOW + 1}, "graph", WrongFormat, "Update cocite: a newer release wrote it"),
        ({"format": 1}, "graph", WrongFormat, "Rebuild it with: cocite ingest"),
        ({}, "index", NotAStore, "To create an index from it: cocite index {path} -o OUTPUT"),
    ],
)
def test_store_open_explains_wrong_format_or_kind(
    store: Store, changes: dict[str, Any], kind: str, error: type[StoreError], advice: str
) -> None:
    change(store, **changes)
    with pytest.raises(error) as caught:
        Store.open(store.path, kind)
    fault = f"has format {changes.get('format')}; this release reads format {NOW}"
    if not changes:
        fault = "is a stored graph; a stored index is needed here"
    assert str(caught.value) == f"{store.path} {fault}. {advice.format(path=store.path)}"


def test_store_open_explains_missing_store(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    (tmp_path / "half.building").mkdir()
    for path, message in (
        (tmp_path / "no", "does not exist. To create a stored graph: cocite ingest LINKS -o "),
        (tmp_path, "has no manifest.json: it is not a stored graph"),
        (file, "is a file; a stored graph is a directory"),
        (tmp_path / "half", "is not finished: it is being built, or its build was interrupted. "),
    ):
        with pytest.raises(NotAStore) as caught:
            Store.open(path, "graph")
        assert str(caught.value).startswith(f"{path} {message}")
