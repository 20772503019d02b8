"""The address of a cluster: what may be one, and whether anything answers there.

Cost: a connection.
"""

from __future__ import annotations

import socket
from contextlib import closing

from cocite.errors import ClusterError, UsageError
from cocite.runner.ray.local import address_kept, set_token

__all__ = ["answers", "reached"]

_SECONDS = 5.0
"""How long a head node has to take a connection."""


def reached(address: str) -> str:
    """The address of a head node that takes connections."""
    if address == "auto":
        kept = address_kept()
        if kept is None:
            return "auto"
        set_token(kept.token)
        address = kept.address
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdigit() and 0 < int(port) < 1 << 16):
        raise UsageError(
            f"{address!r} is no cluster: it is local:N, for N nodes on this machine, HOST:PORT of "
            "a head node, or auto, for the one that is here"
        )
    kept = address_kept()
    if kept is not None and kept.address == address:
        set_token(kept.token)
    if not answers(address):
        raise ClusterError(
            f"no cluster answers at {address}. Is it up? cocite cluster up --local N starts one on "
            "this machine"
        )
    return address


def answers(address: str) -> bool:
    """Whether connections are taken at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        with closing(socket.create_connection((host.strip("[]"), int(port)), _SECONDS)):
            return True
    except OSError:
        return False
