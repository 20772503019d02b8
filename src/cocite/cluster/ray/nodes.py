"""The process that owns a local cluster's nodes: ``python -m cocite.cluster.ray.nodes --nodes N``.

Once the nodes are up, the process prints a JSON line (address, ids). ``kill I`` on standard input
kills node I with SIGKILL; the end of the input stops all nodes. With ``--keep FILE``, the process
reads no input: it writes the address to FILE, locks FILE, and stops on SIGTERM. Each node has an
equal share of the cores and the memory, and 100 MB for objects; further objects go to disk.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from typing import Any

from cocite.cluster.ray.cluster import library
from cocite.cluster.ray.local import RunningCluster
from cocite.resources import available, cores

_OBJECTS = 100_000_000
_DIRECT = 1 << 20
"""Largest result, in bytes, that Ray returns directly. Its default is 100 KiB; larger results go
through the object stores, which doubled the latency of the slowest shard queries.
"""
_TRIES, _SECONDS = 3, 60.0


class _Nodes:
    """The nodes; ``folder`` contains Ray's files."""

    def __init__(self, count: int, folder: str) -> None:
        ray = library()
        from ray.cluster_utils import Cluster

        self._ray = ray
        share: dict[str, Any] = {
            "num_cpus": max(1, cores() // count),
            "memory": available() // count,
            "object_store_memory": _OBJECTS,
            "temp_dir": folder,
        }
        head: dict[str, Any] = {
            "include_dashboard": False,
            "no_monitor": True,
            "include_log_monitor": False,
            "_system_config": {"max_direct_call_object_size": _DIRECT},
        }
        self._cluster = Cluster(initialize_head=True, head_node_args=share | head)
        self._nodes: list[Any] = [self._cluster.head_node]
        self._nodes += [self._cluster.add_node(wait=False, **share) for _ in range(count - 1)]
        self._cluster.wait_for_nodes(_SECONDS)
        self.address = self._cluster.address
        self.ids = [node.node_id for node in self._nodes]

    def kill(self, number: int) -> None:
        """Send SIGKILL to all processes of a node, and to their descendants."""
        node = self._nodes[number]
        for info in [each for some in node.all_processes.values() for each in some]:
            _kill(info.process.pid)


def _kill(process: int, *, itself: bool = True) -> None:
    """Send SIGKILL to a process's descendants and, if ``itself``, to the process."""
    psutil = import_module("psutil")  # installed with Ray
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(process)
        for each in [*([parent] if itself else ()), *parent.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGKILL)


def _started(count: int, folder: str) -> _Nodes:
    """Start nodes; retry, because Ray may time out on a busy machine."""
    for _ in range(_TRIES - 1):
        with suppress(Exception):
            return _Nodes(count, folder)
        _kill(os.getpid(), itself=False)
    return _Nodes(count, folder)


def _say(stream: Any, **facts: object) -> None:
    stream.write(json.dumps(facts) + "\n")
    stream.flush()


def main() -> None:
    """Run nodes until stopped."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--keep")
    asked = parser.parse_args()
    # Send Ray's own output to standard error.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.set_inheritable(out.fileno(), False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    held = None
    if asked.keep:
        held = os.open(asked.keep, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(out, error="another cluster is running")
            return
    # Paths of Ray's sockets may have at most 107 characters.
    place = None if len(tempfile.gettempdir()) < 30 else "/tmp"
    folder = tempfile.mkdtemp(prefix="cocite-ray-", dir=place)
    # For ray.init("auto"), Ray records the newest cluster in a shared folder, which may belong to
    # another user. A private folder avoids this.
    os.environ["RAY_TMPDIR"] = folder
    os.mkdir(os.path.join(folder, "ray"))
    try:
        nodes = _started(asked.nodes, folder)
        if held is not None:
            token = os.environ["RAY_AUTH_TOKEN"]
            kept = RunningCluster(nodes.address, token, os.getpid(), asked.nodes)
            text = json.dumps(asdict(kept))
            os.ftruncate(held, 0)
            os.pwrite(held, text.encode(), 0)
        _say(out, address=nodes.address, ids=nodes.ids)
        if held is not None:
            out.close()
            while True:
                signal.pause()
        for line in sys.stdin:
            nodes.kill(int(line.split()[1]))
            _say(out, killed=line.split()[1])
    except SystemExit:
        pass
    except Exception as error:
        with suppress(OSError, ValueError):
            _say(out, error=" ".join(str(error).split()) or type(error).__name__)
    finally:
        _kill(os.getpid(), itself=False)
        shutil.rmtree(folder, ignore_errors=True)
        if held is not None:
            os.unlink(asked.keep)
        os._exit(0)  # Ray's handlers would wait for killed processes


if __name__ == "__main__":
    main()
