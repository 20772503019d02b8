"""The user's cache: nobody else can write there; what is done instead is said."""

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
    """A temporary directory of this test's own; the private one is made in it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def private(temporary: Path) -> Path:
    return temporary / f"cocite-{os.geteuid()}"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"COCITE_CACHE": "{}/a/chosen", "XDG_CACHE_HOME": "{}/x"}, "a/chosen"),
        ({"XDG_CACHE_HOME": "{}/x"}, "x/cocite"),
        ({"XDG_CACHE_HOME": "relative"}, ".cache/cocite"),
        ({}, ".cache/cocite"),
    ],
)
def test_the_variable_comes_first_then_the_cache_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], wanted: str
) -> None:
    monkeypatch.setattr(places, "_CACHES", (".cache",))
    environ = {name: value.format(tmp_path) for name, value in given.items()}
    found = find_place({"HOME": str(tmp_path), **environ})
    assert (found.folder, found.note) == (tmp_path / wanted, "")
    private = stat.S_IMODE((tmp_path / wanted).stat().st_mode) == 0o700
    assert private or "COCITE_CACHE" in given


def test_without_home_a_private_directory_is_used_and_said(temporary: Path) -> None:
    found = find_place({})
    assert found.folder == private(temporary)
    assert stat.S_IMODE(private(temporary).stat().st_mode) == 0o700
    assert not found.grave
    assert found.note == (
        f"HOME is not set; the cache is in {private(temporary)}. To choose another directory, "
        "set COCITE_CACHE"
    )


def test_what_cannot_be_made_is_not_used(tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "file").touch()
    found = find_place({"HOME": str(tmp_path / "file")})
    assert found.folder == private(temporary)
    assert str(tmp_path / "file") in found.note


def test_read_only_part(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    kept = home / ".cache" / "cocite"
    kept.mkdir(parents=True)
    monkeypatch.setattr(places, "_CACHES", (".cache",))
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: (path != kept or not mode & os.W_OK) and access(path, mode)
    )
    found = find_place({"HOME": str(home)})
    assert found.folder == private(temporary)
    assert "cannot be written to" in found.note
    assert not found.grave


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_writable_directory_is_not_used(tmp_path: Path, temporary: Path, mode: int) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(mode)
    found = find_place({"COCITE_CACHE": str(open_to_all)})
    assert found.folder == private(temporary)
    assert found.grave
    assert f"{open_to_all} is not used: others can write to {open_to_all}" in found.note


def test_nor_one_that_others_can_exchange(tmp_path: Path) -> None:
    above = tmp_path / "above"
    (above / "mine").mkdir(parents=True)
    above.chmod(0o777)
    assert fault_of(above / "mine") == f"others can write to {above}"
    above.chmod(0o1777)  # as /tmp: only its owner can exchange what is there
    assert fault_of(above / "mine") == ""
    (tmp_path / "link").symlink_to(above)
    above.chmod(0o777)
    assert fault_of(tmp_path / "link" / "mine") == f"others can write to {above}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
def test_nor_one_of_another_user(tmp_path: Path, temporary: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(0o755)
    os.chown(theirs, 65534, 65534)
    found = find_place({"COCITE_CACHE": str(theirs)})
    assert found.folder == private(temporary)
    assert f"{theirs} belongs to another user" in found.note
    assert found.grave
    assert fault_of(theirs / "below") == f"{theirs} belongs to another user"


def test_foreign_cache_has_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, for those who are not root: somebody else looks at what is ours."""
    if tmp_path.stat().st_uid == 0:
        pytest.skip("what belongs to root is everybody's to use")
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert "belongs to another user" in fault_of(tmp_path)


@pytest.mark.parametrize("what", ["file", "open", "link"])
def test_no_safe_place_means_no_cache(tmp_path: Path, temporary: Path, what: str) -> None:
    squatted = private(temporary)
    if what == "file":
        squatted.touch()
    elif what == "open":
        squatted.mkdir()
        squatted.chmod(0o777)
    else:
        (tmp_path / "elsewhere").mkdir()
        squatted.symlink_to(tmp_path / "elsewhere")
    found = find_place({})
    assert found.folder is None
    assert found.grave
    assert f"{squatted} is not used either: " in found.note


def test_said_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
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
