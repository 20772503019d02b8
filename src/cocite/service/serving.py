"""Running a server: Granian, with as many processes as are asked for, which map the same files.

The address is looked at before anything is started: one that others can reach needs keys, or the
word of whoever starts it. Every process opens the indexes itself; what they read is in memory once.
SIGTERM and SIGINT: no new connections, requests in flight are answered, then all ends; who does not
end in time is killed. With ``drain`` seconds, ``/readyz`` says no for so long first, and all else
goes on, so that whoever shares out requests sends them elsewhere. SIGHUP has every process read the
keys again. A process that dies is started anew.

Heads of requests that trickle, and connections that are silent, are closed by Granian after
``Limits.head_time``; bodies are timed here. HTTP/1.1 only: behind a proxy that speaks others.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server import MPServer
from starlette.types import ASGIApp

from cocite.errors import ResourceError, UsageError
from cocite.service.config import FOLDER, Config

__all__ = ["address", "serve"]

_TOLD = 1.0
"""After how many seconds processes are told again that the server is about to end."""
_ENDING = 30
"""Seconds that processes have to end."""
_HEAD = 48 << 10
"""Bytes of a request's head, beyond which Granian answers 414 or 431 itself."""
_FILES = 256
"""Descriptors that are kept for indexes."""
_SWITCH = 0.0001
"""Seconds after which a thread of Python gives way: waiting for the usual 5 ms would be most of
what an answer takes.
"""


class _Server(MPServer):
    """Granian's, which hands SIGHUP on instead of starting all processes anew, and goes on for
    ``drain`` seconds when it is to end.
    """

    drain = 0.0

    def _serve_loop(self, spawn_target: Any, target_loader: Any) -> None:
        super()._serve_loop(spawn_target, target_loader)  # type: ignore[no-untyped-call]
        if self.drain and self.interrupt_signal:
            self.main_loop_interrupt.clear()
            end = monotonic() + self.drain
            told = False
            while not told and (left := end - monotonic()) > 0:
                for worker in self.wrks:  # again and again: one that still starts does not listen
                    with suppress(ProcessLookupError):
                        os.kill(worker.inner.pid, signal.SIGUSR1)
                told = self.main_loop_interrupt.wait(min(_TOLD, left))

    def _reload(self, spawn_target: Any, target_loader: Any) -> None:
        self.reload_signal = False
        self.main_loop_interrupt.clear()
        for worker in self.wrks:
            os.kill(worker.inner.pid, signal.SIGHUP)


def address(config: Config, insecure: bool) -> int:
    """The port that is listened at, a free one for 0; raises :class:`UsageError` for an address
    that may not be, and :class:`ResourceError` for one that cannot be.
    """
    if not config.local and config.keys is None and not insecure:
        raise UsageError(
            f"{config.host} can be reached by others, and nobody is asked for a key: give keys "
            "with --api-keys FILE, or pass --insecure if all of them may ask"
        )
    try:
        family = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family[0], socket.SOCK_STREAM) as tried:
            # Not to be shared, so that another server there is found.
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(family[4])
            tried.listen()
            return int(tried.getsockname()[1])
    except OSError as error:
        raise ResourceError(
            f"{config.host}:{config.port} cannot be listened at: {error.strerror or error}. Choose "
            "another --port, or 0 for one that is free"
        ) from error


def serve(config: Config) -> None:
    """Serve until told to end."""
    with tempfile.TemporaryDirectory(prefix="cocite-serve-") as folder:
        if config.workers > 1:
            os.environ[FOLDER] = folder
        server = _Server(
            "cocite.service.serving:application",
            config.host,
            config.port,
            interface=Interfaces.ASGINL,
            workers=config.workers,
            backlog=4096,
            backpressure=_connections(),
            http=HTTPModes.http1,
            websockets=False,
            http1_settings=HTTP1Settings(
                header_read_timeout=int(1000 * config.limits.head_time), max_buffer_size=_HEAD
            ),
            log_level=LogLevels.warning,
            respawn_failed_workers=True,
            workers_kill_timeout=_ENDING,
        )
        server.drain = config.drain
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # and of processes, until they hear it
        server.serve(target_loader=partial(application, config), wrap_loader=False)


def _connections() -> int:
    """How many connections a process may have: as many as it may open, but for some files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        wanted = hard if hard != resource.RLIM_INFINITY else 1 << 16
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, 1 << 16), hard))
        soft = min(wanted, 1 << 16)
    return max(128, min(soft, 1 << 16) - _FILES)


def application(config: Config) -> ASGIApp:
    """What a process runs; called in it, before it listens."""
    from cocite.service.app import make_app
    from cocite.service.garbage import set_aside
    from cocite.service.service import Service

    for number in (signal.SIGTERM, signal.SIGINT):  # until Granian hears them
        signal.signal(number, signal.SIG_DFL)
    sys.setswitchinterval(_SWITCH)
    service = Service(config)
    signal.signal(signal.SIGHUP, lambda number, frame: service.read_keys())
    signal.signal(signal.SIGUSR1, lambda number, frame: service.draining())
    app = make_app(service)
    set_aside()
    return app
