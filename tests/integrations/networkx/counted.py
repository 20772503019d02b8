"""A pytest plug-in for NetworkX's tests: counts the calls in the backend and those left to
NetworkX, by NetworkX's log, and writes the counts to the file that COUNTED_TO names.
"""

import json
import logging
import os
from collections import Counter
from pathlib import Path
from typing import Any

RAN: Counter[str] = Counter()
LEFT: Counter[str] = Counter()
SIGNS = ("Falling back to use 'networkx'", "raised when calling", "Graph conversion failed")


class Counting(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        message, values = str(record.msg), record.args
        if not isinstance(values, tuple):
            return
        if message.startswith("Using backend '%s' for call"):
            RAN[str(values[1])] += 1
        elif any(sign in message for sign in SIGNS):
            LEFT[str(values[1])] += 1


def pytest_configure(config: Any) -> None:
    logger = logging.getLogger("networkx.utils.backends")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(Counting())


def pytest_sessionfinish(session: Any) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    target = Path(os.environ["COUNTED_TO"])
    target.with_name(f"{target.stem}-{worker}.json").write_text(
        json.dumps({"ran": RAN, "left": LEFT})
    )
