"""The user's cache: nobody else can write there, and a fallback is reported."""

import logging
import os
import stat
import tempfile
from pathlib import Path

import pytest

from cocite.storage import user_cache as places
from cocite.storage.user_cache import fault_of, find_place


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory for this test, which gets the private cache."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def private(temporary: Path) -> Path:
    return temporary / f"cocite-{os.geteuid()}"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"COCITE_CACHE": "{}/a/chosen", "XDG_CACHE_HOME": "{}/x"}, "a/chosen"),
        ({"XDG_CACHE_HOME": "{}/x"}, "x/cocite"),
        ({"XDG_CACHE_HOME": "relative"}, ".cache/cocite"),
        ({}, ".cache/cocite"),
    ],
)
def test_find_place_prefers_environment_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], expected: str
) -> None:
    monkeypatch.setattr(places, "_CACHES", (".cache",))
    environ = {name: value.format(tmp_path) for name, value in given.items()}
    found = find_place({"HOME": str(tmp_path), **environ})
    assert (found.folder, found.note) == (tmp_path / expected, "")
    is_private = stat.S_IMODE((tmp_path / expected).stat().st_mode) == 0o700
    assert is_private or "COCITE_CACHE" in given


def test_find_place_without_home_uses_private_directory(temporary: Path) -> None:
    found = find_place({})
    assert found.folder == private(temporary)
    assert stat.S_IMODE(private(temporary).stat().st_mode) == 0o700
    assert not found.grave
    assert found.note == (
        f"HOME is not set; the cache is in {private(temporary)}. To choose another directory, "
        "set COCITE_CACHE"
    )


def test_find_place_skips_uncreatable_directory(tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "file").touch()
    found = find_place({"HOME": str(tmp_path / "file")})
    assert found.folder == private(temporary)
    assert str(tmp_path / "file") in found.note


def test_find_place_skips_read_only_directory(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    used = home / ".cache" / "cocite"
    used.mkdir(parents=True)
    monkeypatch.setattr(places, "_CACHES", (".cache",))
    access = os.access
    monkeypatch.setattr(
        os,
        "access",
        lambda path, mode: (path != used or not mode & os.W_OK) and access(path, mode),
    )
    found = find_place({"HOME": str(home)})
    assert found.folder == private(temporary)
    assert "cannot be written to" in found.note
    assert not found.grave


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_find_place_skips_directory_writable_by_others(
    tmp_path: Path, temporary: Path, mode: int
) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(mode)
    found = find_place({"COCITE_CACHE": str(open_to_all)})
    assert found.folder == private(temporary)
    assert found.grave
    assert f"{open_to_all} is not used: others can write to {open_to_all}" in found.note


def test_fault_of_checks_parent_permissions(tmp_path: Path) -> None:
    parent = tmp_path / "above"
    (parent / "mine").mkdir(parents=True)
    parent.chmod(0o777)
    assert fault_of(parent / "mine") == f"others can write to {parent}"
    parent.chmod(0o1777)  # as /tmp: only owners can rename their files
    assert fault_of(parent / "mine") == ""
    (tmp_path / "link").symlink_to(parent)
    parent.chmod(0o777)
    assert fault_of(tmp_path / "link" / "mine") == f"others can write to {parent}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
def test_find_place_skips_directory_of_other_user(tmp_path: Path, temporary: Path) -> None:
    foreign = tmp_path / "theirs"
    foreign.mkdir(0o755)
    os.chown(foreign, 65534, 65534)
    found = find_place({"COCITE_CACHE": str(foreign)})
    assert found.folder == private(temporary)
    assert f"{foreign} belongs to another user" in found.note
    assert found.grave
    assert fault_of(foreign / "below") == f"{foreign} belongs to another user"


def test_fault_of_names_other_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same without root: another user looks at a directory of ours."""
    if tmp_path.stat().st_uid == 0:
        pytest.skip("anyone may use a directory of root")
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert "belongs to another user" in fault_of(tmp_path)


@pytest.mark.parametrize("kind", ["file", "open", "link"])
def test_find_place_without_safe_place_returns_none(
    tmp_path: Path, temporary: Path, kind: str
) -> None:
    taken = private(temporary)
    if kind == "file":
        taken.touch()
    elif kind == "open":
        taken.mkdir()
        taken.chmod(0o777)
    else:
        (tmp_path / "elsewhere").mkdir()
        taken.symlink_to(tmp_path / "elsewhere")
    found = find_place({})
    assert found.folder is None
    assert found.grave
    assert f"{taken} is not used either: " in found.note


def test_place_logs_note_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "COCITE_CACHE"):
        monkeypatch.delenv(name, raising=False)
    places.place.cache_clear()
    try:
        with caplog.at_level(logging.INFO, "cocite"):
            places.place()
            places.place()
    finally:
        places.place.cache_clear()
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "HOME is not set" in caplog.text
