"""Browse related modules of the standard library: serve two indexes of their imports.

The imports are read as in ``stdlib_demo.py``, and the server's page opens in a browser. The demo
needs no network and no data. It removes all its files when it ends (Ctrl-C).

Run it with ``make serve-demo``, or ``python examples/stdlib_serve.py [PORT]``.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path

from stdlib_demo import write_links

import cocite


def build(folder: Path) -> list[str]:
    """Build an index of the default measure, and a sampled index, whose scores have intervals."""
    write_links(Path(sysconfig.get_paths()["stdlib"]), folder / "imports.tsv")
    graph = cocite.ingest(folder / "imports.tsv", folder / "imports.graph", header="no")
    cocite.build(graph, folder / "fusion.index")
    cocite.build(graph, folder / "psimrank.index", measure="psimrank", samples=400)
    return [str(folder / "fusion.index"), str(folder / "psimrank.index")]


def show(url: str) -> None:
    """Open the page when the server answers."""
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{url}readyz", timeout=5).close()
            break
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    if not webbrowser.open(url):
        print(f"no browser was found: open {url}", file=sys.stderr)


def main() -> None:
    """Build the indexes, serve them, and open the page."""
    port = sys.argv[1] if len(sys.argv) > 1 else "8080"
    with tempfile.TemporaryDirectory(prefix="cocite-demo-") as folder:
        indexes = build(Path(folder))
        command = [sys.executable, "-m", "cocite", "serve", *indexes, "--port", port]
        threading.Thread(target=show, args=(f"http://127.0.0.1:{port}/",), daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):  # the server gets it, too
            sys.exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
