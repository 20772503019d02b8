"""API keys.

A key file has lines ``NAME sha256:HASH``, followed by ``write`` if the key may add links. Keys have
256 random bits, so one round of SHA-256 suffices. A key is compared with every hash in constant
time. Clients send ``Authorization: Bearer KEY``, ``X-API-Key: KEY``, or the key as the password of
HTTP Basic authentication.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from cocite.errors import InputError

_LINE = re.compile(r"(\S{1,64})\s+sha256:([0-9a-f]{64})(\s+write)?")
_LONGEST = 512


class Keys:
    """The key hashes in a file; ``writers`` are the names of keys with write access."""

    def __init__(self, path: str | Path) -> None:
        """Read the file; raises :class:`InputError`."""
        self.path = path
        self._hashes: dict[str, bytes] = {}
        self.writers: frozenset[str] = frozenset()
        self.read()

    def __len__(self) -> int:
        return len(self._hashes)

    def read(self) -> None:
        """Read the file again; after an :class:`InputError`, the old keys remain in use."""
        try:
            lines = Path(self.path).read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{self.path} cannot be read: {error}") from error
        found, writers = {}, set()
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            match = _LINE.fullmatch(line.strip())
            if match is None:
                raise InputError(
                    f"{self.path}:{number}: not the hash of a key. A line must be NAME "
                    "sha256:HASH, or NAME sha256:HASH write; cocite serve --new-key NAME creates "
                    "a key and its line"
                )
            found[match[1]] = bytes.fromhex(match[2])
            if match[3]:
                writers.add(match[1])
        if not found:
            raise InputError(
                f"{self.path} has no keys, so no request could succeed. Create one: cocite "
                "serve --new-key NAME"
            )
        self._hashes, self.writers = found, frozenset(writers)

    def holder(self, key: str | None) -> str | None:
        """Return the name that a key belongs to, or None."""
        if not key or len(key) > _LONGEST:
            return None
        shown = hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
        found = [n for n, stored in self._hashes.items() if hmac.compare_digest(stored, shown)]
        return found[-1] if found else None


def shown_key(headers: Mapping[str, str]) -> str | None:
    """Return the key in the request headers, or None."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    if kind.lower() == "basic":
        with suppress(binascii.Error, UnicodeDecodeError):
            return base64.b64decode(value, validate=True).decode("utf-8").partition(":")[2]
        return None
    return headers.get("x-api-key")


def new_key(name: str) -> tuple[str, str]:
    """Return a new key, and its line for the key file."""
    key = secrets.token_urlsafe(32)
    return key, f"{name} sha256:{hashlib.sha256(key.encode()).hexdigest()}"
