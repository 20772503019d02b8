"""Outputs at a URL: a store is made here, then sent as one publication; so is a file.

``sending.json`` goes first and says which files are on their way, so that who finds it without a
manifest knows of a kill. Then the manifest of a store that is replaced goes, the files come, and
their manifest last: a reader never sees half a store. What the old one had more goes at the end.

While it is made it lies beside the copies of stores (``io/remote.py``), where a build that was
interrupted goes on; what was sent stays there as a copy. A reader of a store that is replaced may
get files of both: checksums tell. Of two runs on one machine the second is refused; several
machines that send to one URL are not kept apart.
"""

from __future__ import annotations

import json
from pathlib import Path

import xxhash

from cocite.errors import CociteError, Damaged, NotAStore, OutputExists
from cocite.io.remote import Remote, adopted, cache_folder, name_of
from cocite.storage.manifest import MANIFEST, Manifest

_SENDING = "sending.json"
_SMALL = 1 << 24


class Sending:
    """A store of a ``kind`` that is to be at ``url``: make it at ``path``, then :meth:`send` it."""

    def __init__(self, url: str, kind: str, overwrite: bool) -> None:
        """Raises :class:`UsageError` for what is no URL that can be reached,
        :class:`OutputExists` if something is there, :class:`NotAStore` if that is something else
        than such a store, and :class:`StoreError`.
        """
        self._remote, self._kind, self._overwrite = Remote(url), kind, overwrite
        self._earlier()
        self.url = self._remote.url
        folder = cache_folder() / f"{xxhash.xxh3_128_hexdigest(self.url.encode())}.out"
        folder.mkdir(0o700, exist_ok=True)
        self.path = folder / name_of(self.url)

    def _earlier(self) -> set[str]:
        """The files that are there and may go: of a store, or of a run that was killed."""
        stated = self._remote.read(MANIFEST, _SMALL)
        mark = self._remote.read(_SENDING, _SMALL)
        found = set() if mark is None else set(_listed(mark))
        url, names = self._remote.url, self._remote.names()
        if stated is not None:
            if not self._overwrite:
                raise OutputExists.already(url)
            kind, files = _stated(stated)
            if kind != self._kind:
                raise NotAStore.kept(url, f"stored {self._kind}")
            found |= files
        elif mark is None and names:
            raise OutputExists(
                f"{url} holds what is no stored {self._kind}, such as {sorted(names)[0]}. Choose "
                "another output"
            )
        return found & set(names)

    def send(self) -> Path:
        """Send what was made; returns where it stays here, as a copy."""
        try:
            self._send()
        except CociteError as error:
            error.add_note(f"What was made is whole in {self.path}")
            raise
        folder = self.path.parent
        found = adopted(self.url, self.path)
        if not any(folder.iterdir()):
            folder.rmdir()
        return found

    def _send(self) -> None:
        remote, files = self._remote, set(Manifest.read(self.path, self._kind).files)
        earlier = self._earlier()
        remote.write(_SENDING, json.dumps(sorted(files | earlier)).encode())
        remote.remove(MANIFEST)
        for name in sorted(files):
            remote.put(self.path / name, name)
        remote.write(MANIFEST, (self.path / MANIFEST).read_bytes())
        remote.remove(*sorted(earlier - files), _SENDING)


def _listed(mark: bytes) -> list[str]:
    try:
        return [str(name) for name in json.loads(mark)]
    except (ValueError, TypeError):
        return []


def _stated(manifest: bytes) -> tuple[str, set[str]]:
    """The kind of a store, and its files."""
    try:
        told = json.loads(manifest)
        return str(told["cocite"]), set(map(str, told["files"]))
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(
            f"a manifest that is to be replaced cannot be read: {error}. Remove it, and what is "
            "beside it"
        ) from error
