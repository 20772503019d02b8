"""Staging directories, named ``<output>.building``, in which outputs are written.

A staging directory is locked, and contains a marker file that is created first and removed last.
After a kill, the output is either the old or the complete new one, and the next run reuses the
staging directory. The run resumes if the builder supports this and ``plan.json`` has the same
plan. Otherwise, the run clears the directory, or raises an error if the directory contains results
of another plan.

``publish`` writes the manifest, then renames the directory. Files outside the store are removed
before that, or afterwards if the run can be resumed. A replaced output gets the staging directory's
name until it is removed. The marker records the files outside the store, and whether an output was
replaced, so the next run can clean up after a kill.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

from cocite.errors import Busy, Damaged, NotAStore, OutputExists, StoreError, UsageError
from cocite.storage import disk
from cocite.storage.arrays import DIGEST, Entry, checksum
from cocite.storage.atomic import (
    MARK,
    is_private,
    is_still,
    lock,
    staged_file,
    sweep_staged,
    unclaimed,
)
from cocite.storage.manifest import MANIFEST, Manifest, kind_of

_PLAN = "plan.json"
_PUBLISHED = "published"
_TRIES = 5
_LONGEST = 100
_FOLLOWING = ("/format", "/piece")
"""Plan fields that depend on the release or on other settings."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/+[^/]")
"""A URL, possibly with a missing slash."""


class Building:
    """A staging directory ``path``: ``with Building(output) as building: ... building.done()``.

    After an error, the directory is removed unless ``resumable``. Raises :class:`Busy` if another
    process builds the same output, and :class:`StoreError` if the directory cannot be created.
    """

    def __init__(self, output: str | Path, *, resumable: bool = False) -> None:
        self.output = Path(output)
        if _URL.match(str(output)):
            raise UsageError(
                f"{output} is a URL; this output must be a directory. Only tables, and the "
                "outputs of cocite index, ingest and merge, can be URLs"
            )
        if not self.output.name:
            raise UsageError(
                f"the output is {str(output)!r}; it must be the path of a new directory, such as "
                "./links.index"
            )
        self.path = self.output.with_name(self.output.name + ".building")
        self._resumable = resumable
        self._published = False
        self._lock = -1

    def __enter__(self) -> Self:
        for _ in range(_TRIES):
            try:
                disk.make_folder(self.output.parent)
                disk.make_own_folder(self.path)
                self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except OSError as error:
                raise StoreError(
                    f"{self.path} cannot be created: {error.strerror}. Choose another output"
                ) from error
            if not lock(self._lock):
                os.close(self._lock)
                raise Busy(f"another process is building {self.output}; wait until it is finished")
            if is_still(self.path, self._lock):
                break
            os.close(self._lock)  # published or removed before we locked it
        else:
            raise Busy(f"other processes keep building {self.output}")
        try:
            self._take_over()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def _take_over(self) -> None:
        """Claim the directory; raises :class:`StoreError` if no build created its contents."""
        found = {entry.name for entry in self.path.iterdir()}
        if found and (MARK not in found or (self.path / MARK).is_symlink()):
            raise StoreError(
                f"{self.path} exists, but is not an unfinished build: it contains "
                f"{', '.join(sorted(found)[:3])}. Move it, or choose another output"
            )
        if MARK not in found:
            disk.touch(self.path / MARK)
            disk.sync_directory(self.path)
        for name in filter(is_private, found):
            disk.remove(self.path / name)
        if not self._resumable or self._is_old():
            self.clear()

    def _is_old(self) -> bool:
        """Return whether the directory comes from a finished run."""
        return False

    def clear(self) -> None:
        """Remove an unfinished run's files."""
        for entry in self.path.iterdir():
            if entry.name != MARK:
                disk.remove(entry)

    @property
    def plan(self) -> dict[str, Any] | None:
        """Return an unfinished run's plan, or None."""
        try:
            found = json.loads((self.path / _PLAN).read_bytes())
        except (FileNotFoundError, ValueError):  # or the run was killed while writing it
            return None
        return found if isinstance(found, dict) else {}

    def goes_on(self, plan: dict[str, Any], what: str, *, restart: bool) -> bool:
        """Return whether a run with the same plan can be resumed; otherwise clear the directory and
        store the new ``plan``.

        A plan contains everything on which the result depends. Raises :class:`UsageError` for an
        unfinished ``what`` (a noun) with another plan, unless ``restart``.
        """
        found = self.plan
        if not restart and found is not None and (found == plan or not self._is_bare()):
            if found == plan:
                return True
            raise UsageError(
                f"{self.path} contains an unfinished {what} with other settings: "
                f"{'; '.join(_differences(found, plan)) or 'its plan is damaged'}. Repeat those "
                "settings to resume it, or pass --no-resume (restart=True) to start over"
            )
        self.clear()
        with staged_file(self.path / _PLAN) as file:
            disk.write(file, json.dumps(plan).encode())
        return False

    def _is_bare(self) -> bool:
        """Return whether the directory contains only a plan and empty files."""
        others = [entry for entry in self.path.iterdir() if entry.name not in (MARK, _PLAN)]
        return not any(entry.is_dir() or entry.lstat().st_size for entry in others)

    def done(self) -> None:
        """Remove the directory after the output was published."""
        remove_building(self.path)
        self._published = True

    def sweep(self) -> None:
        """Clean up after a run that was killed between publishing and cleanup."""
        if not os.path.lexists(self.output) or self.path.is_symlink():
            return
        with unclaimed(self.path) as free:
            if not free or not (self.path / MARK).is_file():
                return
            bare = [entry.name for entry in self.path.iterdir()] == [MARK]
            if bare or _known(self.output) == _report(self.path / _PUBLISHED):
                remove_building(self.path)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if not self._published and is_still(self.path, self._lock):
                found = {entry.name for entry in self.path.iterdir()}
                ours = not found or MARK in found
                # After success, keep the plan: other processes may be working on it.
                bare = found <= ({MARK} if kind is None else {MARK, _PLAN})
                if ours and (bare or not self._resumable):
                    remove_building(self.path)
        finally:
            os.close(self._lock)


def _differences(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """Describe how two plans differ, as ``setting: value there, here value``. Omits dependent
    fields and, for different measures, settings that only one of them has.
    """
    their, own = (dict(_leaves("", plan)) for plan in (theirs, ours))
    differing = [place for place in their | own if their.get(place) != own.get(place)]
    if any(place.endswith("/measure") for place in differing):
        differing = [place for place in differing if place in their and place in own]
    differing = [place for place in differing if place not in _FOLLOWING] or differing
    found = []
    for place in differing:
        name = place.rpartition("/")[2].replace("_", " ")
        before, now = _in_words(their.get(place)), _in_words(own.get(place))
        opaque = DIGEST.fullmatch(before) or DIGEST.fullmatch(now)
        found.append(f"{name}: different" if opaque else f"{name}: {before}, here {now}")
    return list(dict.fromkeys(found))


def _leaves(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (path, value) for the scalars and plain lists in a plan."""
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        inner = enumerate(value)
    else:
        yield place, value
    for key, each in inner:
        yield from _leaves(f"{place}/{key}", each)


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        value = ", ".join(map(_in_words, value))
    if value is None or value == "":
        return "none"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def remove_building(path: Path) -> None:
    """Remove a staging directory, its marker last."""
    disk.remove_tree(path, _PUBLISHED, MARK)


@contextmanager
def written_from(building: Path, path: Path) -> Iterator[BinaryIO]:
    """Open a :func:`staged_file` in a run's staging directory."""
    with staged_file(path, building) as file:
        yield file
        publishing(Path(file.name), building)


def publishing(made: Path, building: Path) -> None:
    """Record in a staging directory that ``made`` is about to become the output."""
    with staged_file(building / _PUBLISHED) as file:
        disk.write(file, _known(made).encode())


def _known(path: Path) -> str:
    """Return an identity that survives renaming, or "" if the file or folder is missing."""
    try:
        status = path.lstat()
    except OSError:
        return ""
    return f"{status.st_dev} {status.st_ino} {status.st_mtime_ns}"


def _report(note: Path) -> str:
    try:
        return note.read_text("ascii")
    except (OSError, ValueError):
        return ""


_NAMED = 5
"""Maximum number of foreign files to list in a message."""
_REST, _OLD = "rest", "replaced"
_MARKING = re.compile(re.escape(f".{MARK}.") + r"[0-9a-f]{16}\.new")
"""Temporary name of a marker that is being written."""


class Staging(Building):
    """A store's staging directory: ``with Staging(output, "graph") as draft: ...
    draft.publish(manifest)``.

    Also raises :class:`OutputExists` if the output exists without ``overwrite`` or contains foreign
    files, and :class:`NotAStore` if the output is not a store of this ``kind``.
    """

    def __init__(
        self, output: str | Path, kind: str, *, overwrite: bool = False, resumable: bool = False
    ) -> None:
        super().__init__(output, resumable=resumable)
        self._kind, self._overwrite = kind, overwrite
        if os.path.lexists(self.output):
            self._finish_earlier()
            if not overwrite:
                raise OutputExists.already(self.output)
            self._check_replaceable()

    def publish(self, manifest: Manifest) -> Path:
        """Write the manifest, rename the directory to the output, and return the output's path.

        If an output that must not be replaced was created meanwhile, raises :class:`OutputExists`
        or :class:`NotAStore`, and leaves the staging directory in place.
        """
        manifest.write(self.path)
        rest = self._rest({*manifest.files, MANIFEST, MARK})
        if self._overwrite and os.path.lexists(self.output):
            self._check_replaceable()
            self._replace()
        else:
            try:
                disk.rename_new(self.path, self.output)
            except FileExistsError as error:
                raise OutputExists(
                    f"{self.output} was created during the build; the new build is in {self.path}"
                ) from error
            self._published = True
            disk.sync_directory(self.output.parent)
        _clean(self.output, rest)
        return self.output

    def _rest(self, kept: set[str]) -> list[str]:
        """Return the files outside the store that a resumable run needs until publication, after
        recording them in the marker. For other runs, remove these files and return [].
        """
        rest = sorted({entry.name for entry in self.path.iterdir()} - kept)
        if self._resumable:
            if rest:
                _mark(self.path, rest=rest)
            return rest
        for name in rest:
            disk.remove(self.path / name)
        if rest:
            disk.sync_directory(self.path)
        return []

    def _finish_earlier(self) -> None:
        """Remove the leftovers of a run that was killed during publication: files in the output,
        and the replaced store under the staging name. Ignores failures.
        """
        if not self.output.is_symlink() and kind_of(self.output) == self._kind:
            with suppress(OSError), unclaimed(self.output) as free:
                if free:
                    sweep_staged(self.output / MARK)
                    files = set(os.listdir(self.output)) - _in_manifest(self.output)
                    if _is_marked(self.output):
                        _clean(self.output, sorted(_left(self.output)[0] & files))
        if not self.path.is_symlink() and _is_marked(self.path) and _left(self.path)[1]:
            with suppress(OSError), unclaimed(self.path) as free:
                if free:
                    _remove_own(self.path)

    def _is_old(self) -> bool:
        """Return whether the directory is a replaced store."""
        return _left(self.path)[1]

    def clear(self) -> None:
        """Remove an unfinished run's files, and reset the marker."""
        super().clear()
        if _left(self.path) != (set(), False):
            disk.sync_directory(self.path)  # no longer a replaced store
            _mark(self.path)

    def _check_replaceable(self) -> None:
        """Check that the output is a store of this kind without foreign files."""
        if kind_of(self.output) != self._kind:
            raise NotAStore.in_the_way(self.output, f"stored {self._kind}")
        if self.output.is_symlink():
            return
        strange = sorted(set(os.listdir(self.output)) - _own(self.output))
        if strange:
            more = f" and {len(strange) - _NAMED} more" if len(strange) > _NAMED else ""
            raise OutputExists(
                f"{self.output} contains files outside the stored {self._kind}, which would be "
                f"lost: {', '.join(strange[:_NAMED])}{more}. Move them, or choose another output"
            )

    def _replace(self) -> None:
        """Exchange the old and the new store, then remove the old store's files. If the output is a
        link, remove only the link.
        """
        link = self.output.is_symlink()
        old = os.open(self.output, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # After the exchange, the old store has the staging name. The lock protects it from
            # other processes, and the marker lets the next run remove it after a kill.
            lock(old)
            try:
                if not link:
                    _mark(self.output, old=True)
                disk.exchange(self.path, self.output)
            except BaseException:
                if not link:
                    disk.remove(self.output / MARK)
                raise
            self._published = True
            try:
                disk.sync_directory(self.output.parent)
            finally:
                if link:
                    disk.remove(self.path)
                else:
                    self._remove_old()
        finally:
            os.close(old)

    def _remove_old(self) -> None:
        """Remove the old store, which now has the staging name."""
        try:
            _remove_own(self.path)
        except OSError as error:
            raise StoreError(
                f"{self.output} was replaced; files that were added to the old directory "
                f"meanwhile are in {self.path}: move them, and remove that directory"
            ) from error


def _mark(directory: Path, rest: list[str] | None = None, old: bool = False) -> None:
    """Record in a directory's marker the files outside the store (``rest``), and whether the store
    was replaced (``old``).
    """
    facts = {**({_REST: rest} if rest else {}), **({_OLD: True} if old else {})}
    with staged_file(directory / MARK) as file:
        disk.write(file, json.dumps(facts).encode() if facts else b"")


def _left(directory: Path) -> tuple[set[str], bool]:
    """Return the marker's record: (files outside the store, whether the store was replaced)."""
    mark = directory / MARK
    if mark.is_symlink():
        return set(), False
    try:
        facts = json.loads(mark.read_bytes() or b"{}")
        return set(map(str, facts.get(_REST, ()))), facts.get(_OLD) is True
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return set(), False


def _clean(directory: Path, rest: list[str]) -> None:
    """Remove the leftovers in a published store, then its marker."""
    for name in rest:
        disk.remove(directory / name)
    if rest:
        disk.sync_directory(directory)  # before removing their record
    disk.remove(directory / MARK)


def _remove_own(directory: Path) -> None:
    """Remove a replaced store's files, then its manifest, its marker, and the directory."""
    for name in sorted(_own(directory) - {MANIFEST, MARK}):
        disk.remove(directory / name)
    for name in (MANIFEST, MARK):
        disk.sync_directory(directory)
        disk.remove(directory / name)
    disk.remove_empty(directory)


def _is_marked(directory: Path) -> bool:
    return (directory / MARK).is_file() and not (directory / MARK).is_symlink()


def _own(directory: Path) -> set[str]:
    """Return the files that belong to a directory's store, including leftovers of its build."""
    listed = _in_manifest(directory)
    left: set[str] = set() if (directory / MARK).is_symlink() else {MARK, *_left(directory)[0]}
    return {
        each.name
        for each in directory.iterdir()
        if each.name in left
        or (
            (each.name in listed or _MARKING.fullmatch(each.name))
            and (each.is_symlink() or not each.is_dir())
        )
    }


def _in_manifest(directory: Path) -> set[str]:
    """Return the manifest's name and the files listed in it, if it can be read."""
    try:
        value = json.loads((directory / MANIFEST).read_bytes())
        return {MANIFEST, *map(str, value["files"])}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {MANIFEST}


def copy_array(source: Path, target: Path, entry: Entry) -> None:
    """Copy an array file and verify the copy."""
    with source.open("rb") as reader, disk.create_anew(target) as writer:
        while piece := reader.read(1 << 22):
            disk.write(writer, piece)
        disk.sync_file(writer)
    if checksum(target, entry) != entry.xxh3_128:
        raise Damaged(f"{source} does not match its checksum. Rebuild it")
