"""What is kept: whole, ours, of this version; and what is removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cocite.compiled.cache import Place, cached_versions, folder_name, load, remove, save


def at(*folders: Path) -> Place:
    return Place(folders, folders[-1], "the test says so")


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    save(at(tmp_path), "a.nbc", b"code")
    assert load(at(tmp_path), "a.nbc") == b"code"
    assert load(at(tmp_path), "b.nbc") is None
    assert sorted(p.name for p in (tmp_path / folder_name()).iterdir()) == ["a.nbc", "about.json"]


def test_the_first_place_that_has_it_is_read_and_the_last_written(tmp_path: Path) -> None:
    first, last = tmp_path / "first", tmp_path / "last"
    first.mkdir()
    last.mkdir()
    save(at(first), "a.nbc", b"first")
    both = at(first, last)
    save(both, "b.nbc", b"last")
    assert load(both, "a.nbc") == b"first"
    assert load(both, "b.nbc") == b"last"
    assert not (first / folder_name() / "b.nbc").exists()


def test_without_a_place_nothing_is_kept(tmp_path: Path) -> None:
    nowhere = Place((), None, "no place is safe")
    save(nowhere, "a.nbc", b"code")
    assert load(nowhere, "a.nbc") is None


def test_what_was_cut_or_changed_is_not_loaded(tmp_path: Path) -> None:
    save(at(tmp_path), "a.nbc", b"code")
    file = tmp_path / folder_name() / "a.nbc"
    whole = file.read_bytes()
    flips = [
        whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]
        for at in range(len(whole))
        for bit in range(8)
    ]
    cuts = [whole[:end] for end in range(len(whole))]
    for spoilt in (*cuts, *flips, whole + b"X"):
        file.write_bytes(spoilt)
        assert load(at(tmp_path), "a.nbc") is None
    file.write_bytes(whole)
    assert load(at(tmp_path), "a.nbc") == b"code"


@pytest.mark.parametrize("which", ["file", "folder"])
def test_what_others_can_write_to_is_not_loaded(tmp_path: Path, which: str) -> None:
    save(at(tmp_path), "a.nbc", b"code")
    folder = tmp_path / folder_name()
    (folder / "a.nbc" if which == "file" else folder).chmod(0o777)
    assert load(at(tmp_path), "a.nbc") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("which", ["file", "folder"])
def test_what_belongs_to_another_user_is_not_loaded(tmp_path: Path, which: str) -> None:
    save(at(tmp_path), "a.nbc", b"code")
    folder = tmp_path / folder_name()
    os.chown(folder / "a.nbc" if which == "file" else folder, 65534, 65534)
    assert load(at(tmp_path), "a.nbc") is None


def test_old_versions_are_removed_and_nothing_else(tmp_path: Path) -> None:
    save(at(tmp_path), "a.nbc", b"code")
    old = tmp_path / "kernels-0123456789abcdef"
    old.mkdir()
    (old / "b.nbc").write_bytes(b"older")
    for mine in ("kernels-of-mine", "kernels-0123456789abcdeX", "notes"):
        (tmp_path / mine).mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "kernels-fedcba9876543210").symlink_to(tmp_path / "elsewhere")
    found = cached_versions(at(tmp_path))
    assert [(each.current, each.kernels) for each in found] == [(True, 1), (False, 1)]
    assert found[0].made_by.keys() == {"cocite", "numba", "llvmlite", "numpy", "python"}
    assert found[1].made_by == {}

    assert [each.folder for each in remove(at(tmp_path))] == [str(old)]
    assert not old.exists()
    assert len(list(tmp_path.iterdir())) == 6
    assert load(at(tmp_path), "a.nbc") == b"code"
    assert [each.current for each in remove(at(tmp_path), every=True)] == [True]
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.process
def test_code_that_checks_bounds_has_a_folder_of_its_own() -> None:
    """Else whoever asks for checks would be given code without them, and others slow code."""
    folders = [_folder_with(value) for value in (None, "0", "1")]
    assert folders[0] == folders[1] != folders[2]


def _folder_with(checks: str | None) -> str:
    env = {name: text for name, text in os.environ.items() if name != "NUMBA_BOUNDSCHECK"}
    env |= {} if checks is None else {"NUMBA_BOUNDSCHECK": checks}
    told = "from cocite.compiled.cache import folder_name; print(folder_name())"
    run = subprocess.run(
        [sys.executable, "-c", told], env=env, capture_output=True, text=True, check=True
    )
    return run.stdout
