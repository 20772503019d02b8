"""Clusters on this machine: several real Ray nodes, for trials and tests.

A separate process owns the nodes (``cluster/ray/nodes.py``), and stops them when its standard input
ends. Nodes started by ``cocite cluster up`` are permanent; a file in the user's cache, locked while
they run, contains their address and token. Ray's client replaces loopback addresses, so Ray listens
on the machine's own address, and access requires a token.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from cocite.errors import ClusterError, UsageError
from cocite.storage.user_cache import VARIABLE, place

_MOST = 64
_LOCAL = re.compile(r"local:([0-9]{1,4})")
_TOKEN = "RAY_AUTH_TOKEN"
_PATIENCE = "RAY_worker_register_timeout_seconds"
_SECONDS = 30.0


def local_nodes(address: str) -> int:
    """Return N in the address ``local:N``; raises :class:`UsageError`."""
    match = _LOCAL.fullmatch(address)
    if match is None or not 1 <= int(match[1]) <= _MOST:
        raise UsageError(
            f"{address!r} is not a local cluster; it must be local:N for N nodes, 1 to {_MOST}"
        )
    return int(match[1])


def set_token(token: str) -> None:
    """Set Ray's token in this process, before it connects."""
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ[_TOKEN] = token
    if "ray" in sys.modules:  # Ray reads its settings on import
        raylet = import_module("ray._raylet")
        raylet.Config.initialize("")
        raylet.AuthenticationTokenLoader.instance().reset_cache()


def _own_token() -> str:
    """Return this process's token, which Ray reads once."""
    if os.environ.get("RAY_AUTH_MODE") != "token" or not os.environ.get(_TOKEN):
        set_token(secrets.token_hex(32))
    return os.environ[_TOKEN]


def _environment() -> dict[str, str]:
    """Return the environment for the nodes' process, with the same cocite as here."""
    found = dict(os.environ)
    source = str(Path(__file__).parents[3])
    found["PYTHONPATH"] = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    # On a busy machine, a worker can take longer to start than the minute that Ray allows. Ray
    # would then start another worker, again and again.
    patient = os.environ.get(_PATIENCE, "600")
    return found | {"RAY_USAGE_STATS_ENABLED": "0", _PATIENCE: patient}


class LocalNodes:
    """Nodes for one run: their process, address and Ray ids."""

    def __init__(self, process: subprocess.Popen[str], address: str, ids: list[str]) -> None:
        self._process, self.address, self.ids = process, address, ids

    @classmethod
    def start(cls, address: str) -> Self:
        """Start ``local:N``; raises :class:`ClusterError` on failure."""
        process, facts = _started(local_nodes(address))
        return cls(process, facts["address"], facts["ids"])

    def kill(self, number: int) -> None:
        """Send SIGKILL to a node's raylet and its workers."""
        if not 1 <= number < len(self.ids):
            raise UsageError(
                f"node {number} cannot be killed; it must be 1 to {len(self.ids) - 1}; 0 is the "
                "head"
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"kill {number}\n")
        self._process.stdin.flush()
        self._process.stdout.readline()

    def stop(self) -> None:
        """Stop all nodes."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _started(count: int, *keep: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """Start the nodes' process in its own session, which Ctrl-C does not reach; return it with its
    report. ``keep`` are the options of a permanent cluster.
    """
    _own_token()
    process = subprocess.Popen(
        [sys.executable, "-m", "cocite.cluster.ray.nodes", "--nodes", str(count), *keep],
        stdin=subprocess.DEVNULL if keep else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
    except BaseException:  # interrupted while the nodes start
        _end(process)
        raise
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError:
        found = {"error": "their process ended"}
    if "error" in found:
        with suppress(subprocess.TimeoutExpired):  # the process cleans up first
            process.wait(_SECONDS)
        _end(process)
        raise ClusterError(
            f"local nodes did not start: {found['error']}. Each node needs a few hundred "
            "megabytes of memory; start fewer nodes"
        )
    return process, found


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


# -- permanent clusters -----------------------------------------------------------------------


@dataclass(frozen=True)
class RunningCluster:
    """A permanent local cluster: its address, its token, and its process."""

    address: str
    token: str
    process: int
    nodes: int


def address_file() -> Path:
    """Return the path of the permanent cluster's file; raises :class:`ClusterError`."""
    written = place().folder
    if written is None:
        raise ClusterError(
            "the address of the local cluster cannot be saved: there is no private directory for "
            f"it. Set {VARIABLE} to a directory that only you can access"
        )
    return written / "cluster.json"


def saved_address() -> RunningCluster | None:
    """Return the permanent cluster, or None."""
    try:
        path = address_file()
        if not _is_held(path):
            return None
        found = json.loads(path.read_text("utf-8"))
        return RunningCluster(**found)
    except (ClusterError, OSError, ValueError, TypeError):
        return None


def start_cluster(count: int) -> RunningCluster:
    """Start a permanent cluster; raises :class:`ClusterError` if one is running."""
    local_nodes(f"local:{count}")
    found = saved_address()
    if found is not None:
        raise ClusterError(
            f"a local cluster is already running at {found.address}; to stop it, run cocite "
            "cluster down"
        )
    process, _ = _started(count, "--keep", str(address_file()))
    assert process.stdout is not None
    process.stdout.close()
    process.returncode = 0  # the process stays; Popen must not wait for it
    found = saved_address()
    if found is None:
        raise ClusterError("the local cluster ended right after it started")
    return found


def stop_cluster() -> RunningCluster:
    """Stop the permanent cluster; raises :class:`ClusterError` if none is running."""
    found = saved_address()
    if found is None:
        raise ClusterError("no local cluster is running, so there is nothing to stop")
    os.kill(found.process, signal.SIGTERM)
    until = time.monotonic() + _SECONDS
    while _is_held(address_file()):
        if time.monotonic() > until:
            raise ClusterError(
                f"the cluster's process does not stop; end it with kill -9 {found.process}"
            )
        time.sleep(0.05)
    return found


def _is_held(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
