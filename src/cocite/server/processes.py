"""Run the processes of a server with Granian.

On SIGTERM, requests in flight are answered. With ``drain_time``, the server first keeps serving for
that time, while /readyz reports 503. On SIGHUP, every process reads the keys again.
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
from cocite.progress import turn
from cocite.server.app import make_app
from cocite.server.results import FOLDER, Config

_TOLD = 1.0
"""Seconds between signals to the processes while the server is stopping."""
_ENDING = 30
"""Seconds for processes to stop."""
_HEAD = 48 << 10
"""Maximum bytes of a request head; beyond that, Granian answers 414 or 431."""
_FILES = 256
"""File descriptors reserved for indexes."""
_SWITCH = 0.0001
"""Seconds after which a Python thread yields; the default, 5 ms, would dominate answer times."""


class _AppServer(MPServer):
    """Granian's server, except that SIGHUP is forwarded to the processes instead of restarting
    them, and stopping waits for ``drain`` seconds.
    """

    drain = 0.0

    def _serve_loop(self, spawn_target: Any, target_loader: Any) -> None:
        super()._serve_loop(spawn_target, target_loader)  # type: ignore[no-untyped-call]
        if self.drain and self.interrupt_signal:
            self.main_loop_interrupt.clear()
            end = monotonic() + self.drain
            stopped = False
            while not stopped and (left := end - monotonic()) > 0:
                for worker in self.wrks:  # repeat: a starting process does not listen yet
                    with suppress(ProcessLookupError):
                        os.kill(worker.inner.pid, signal.SIGUSR1)
                stopped = self.main_loop_interrupt.wait(min(_TOLD, left))

    def _reload(self, spawn_target: Any, target_loader: Any) -> None:
        self.reload_signal = False
        self.main_loop_interrupt.clear()
        for worker in self.wrks:
            os.kill(worker.inner.pid, signal.SIGHUP)


def address(config: Config) -> int:
    """Return the port to listen on; raises :class:`UsageError` for an address that requires keys,
    and :class:`ResourceError` for an unavailable one.
    """
    options, place = config.options, f"{config.options.host}:{config.options.port}"
    if not (config.local or options.api_keys or options.insecure):
        raise UsageError(
            f"other machines can reach {options.host}, and no key is required: pass keys with "
            "--api-keys FILE, or pass --insecure to let everyone query"
        )
    try:
        family = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family[0], socket.SOCK_STREAM) as tried:
            # Do not share the port, to detect another server that uses it.
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(family[4])
            tried.listen()
            return int(tried.getsockname()[1])
    except OSError as error:
        raise ResourceError(
            f"cannot listen on {place}: {error.strerror or error}. Choose another --port, or 0 "
            "for a free one"
        ) from error


def serve(config: Config) -> None:
    """Serve until SIGTERM or SIGINT."""
    options = config.options
    with tempfile.TemporaryDirectory(prefix="cocite-serve-") as folder:
        if options.workers > 1:
            os.environ[FOLDER] = folder
        server = _AppServer(
            "cocite.server.processes:application",
            options.host,
            options.port,
            interface=Interfaces.ASGINL,
            workers=options.workers,
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
        server.drain = options.drain_time
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # until processes install their handler
        server.serve(target_loader=partial(application, config), wrap_loader=False)


def _connections() -> int:
    """Return the maximum number of connections per process, from the limit on open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        wanted = hard if hard != resource.RLIM_INFINITY else 1 << 16
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, 1 << 16), hard))
        soft = min(wanted, 1 << 16)
    return max(128, min(soft, 1 << 16) - _FILES)


def application(config: Config) -> ASGIApp:
    """Create a process's application, before the process listens."""
    from cocite.server.load import set_aside
    from cocite.server.service import Service

    for number in (signal.SIGTERM, signal.SIGINT):  # until Granian handles them
        signal.signal(number, signal.SIG_DFL)
    sys.setswitchinterval(_SWITCH)
    turn(False)
    service = Service(config)
    signal.signal(signal.SIGHUP, lambda number, frame: service.read_keys())
    signal.signal(signal.SIGUSR1, lambda number, frame: service.draining())
    app = make_app(service)
    set_aside()
    return app
