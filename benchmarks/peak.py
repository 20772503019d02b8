"""Peak resident memory of this process, without that of the process that started it."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path


def peak() -> int:
    """Bytes. Not what ``getrusage`` says where there is better: on Linux that begins with the peak
    of the process that started this one.
    """
    try:
        found = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    except OSError:
        found = None
    if found:
        return 1024 * int(found[1])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
