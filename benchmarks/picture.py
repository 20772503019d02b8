"""The picture of the page in the README: modules of the standard library, as ``make serve-demo``
has them, in Debian's chromium.

    python -m benchmarks.picture [FILE] [--write]    build/page.png, or docs/page.png with --write

Colors are reduced to 64, which nobody sees and makes the file a third as large.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from benchmarks.block import ROOT, add_write
from benchmarks.serving import serving

CHROMIUM = "/usr/bin/chromium"
PAGE = "/?node=threading&why=queue"
SIZE = {"width": 1280, "height": 800}
COLORS = 128


def demo() -> Any:
    """The module that builds the demonstration."""
    folder = ROOT / "examples"
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location("stdlib_serve", folder / "stdlib_serve.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    add_write(parser, "docs/page.png, unless FILE is given")
    given = parser.parse_args()
    file = given.file or ROOT / ("docs" if given.write else "build") / "page.png"
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        indexes = demo().build(Path(folder))
        command = [sys.executable, "-m", "cocite", "serve", *indexes, "--port", "0"]
        options = ["--no-requests", "--target-latency", "100000"]
        with serving([*command, *options]) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]
            page.goto(f"http://127.0.0.1:{server.port}{PAGE}")
            page.wait_for_selector("svg.map")
            shot = page.screenshot()
            browser.close()
    Image.open(BytesIO(shot)).convert("RGB").quantize(COLORS).save(file, optimize=True)
    print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
