"""By which names a server may be asked that listens at this machine alone, and asks for no key.

Pages of any site may have a browser ask a server on the same machine. The browser keeps the answers
from them, unless the name of the site is made to lead to 127.0.0.1 (DNS rebinding): then the page
and the server seem to be of one site. What cannot be forged is the name that the browser asks by,
so that is to be ``localhost``, an address, or a name that whoever started the server gave.

Cost: next to nothing, as a client asks by the same name again and again.
Source: Jackson, Barth, Bortz, Shao, Boneh 2007, *Protecting browsers from DNS rebinding attacks*.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address

__all__ = ["is_known"]

_HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(?::\d*)?")


@lru_cache(256)
def is_known(host: str, names: frozenset[str]) -> bool:
    """Whether a request with this ``Host`` means us; one without means us, too."""
    match = _HOST.fullmatch(host.strip())
    if match is None:
        return False
    name = match[1].lower().rstrip(".")
    if name in ("", "localhost") or name.endswith(".localhost") or name in names:
        return True
    try:
        return ip_address(name.strip("[]")) is not None
    except ValueError:
        return False
