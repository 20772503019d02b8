"""Screenshots of the result page for README and documentation.

    python -m benchmarks.picture [--write]    into build/pictures, or into docs with --write

Shows modules of the standard library, as ``make serve-demo`` does, in Debian's chromium. page.png
is the whole page. The other pictures exist for each theme: ``map`` (the map of a module, then that
of a module on it, as exported, with an animation of three seconds that plays once and respects
reduced motion), ``why`` (reasons) and ``sure`` (scores with intervals). Colors are reduced to 128,
which is invisible and makes the files a third as large.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from benchmarks.block import ROOT, add_write
from benchmarks.serving import serving

CHROMIUM = "/usr/bin/chromium"
NODE, NEXT = "threading", "queue"
SIZE = {"width": 1280, "height": 800}
WIDE, NARROW = {"width": 1500, "height": 730}, {"width": 560, "height": 900}
COLORS = 128
SVG = "http://www.w3.org/2000/svg"
NAME = "{" + SVG + "}"

# The first map opens and gives way when its node is chosen; the second opens behind it and stays.
MOTION = """
#first { display: none }
@media (prefers-reduced-motion: no-preference) {
  #first { display: inline; animation: leave .3s 1.7s both }
  #first > .node { animation: open .6s var(--wait) both cubic-bezier(.2, .8, .3, 1) }
  #first > .late { animation: appear .4s .6s both }
  #first > .chosen circle { animation: choose .5s 1.3s both; stroke: currentColor }
  #second > .node { animation: open .6s calc(2s + var(--wait)) both cubic-bezier(.2, .8, .3, 1) }
  #second > .late { animation: appear .4s 2.6s both }
  #second > .middle { animation: appear .3s 1.9s both }
}
@keyframes open { from { transform: translate(var(--x), var(--y)); opacity: 0 } }
@keyframes appear { from { opacity: 0 } }
@keyframes leave { to { opacity: 0 } }
@keyframes choose { to { stroke-width: 8px } }
"""


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


def exported(page: Page, url: str) -> ElementTree.Element:
    """Return the map of a page as the page itself exports it."""
    page.goto(url)
    page.wait_for_selector("svg.map.live")
    page.wait_for_timeout(1000)  # the map settles
    with page.expect_download() as download:
        page.get_by_role("button", name="SVG").click()
    return ElementTree.parse(download.value.path()).getroot()


def moving(maps: list[ElementTree.Element]) -> str:
    """Return one picture of two maps, the second of which follows from a node of the first."""
    ElementTree.register_namespace("", SVG)
    sizes = {name: maps[-1].attrib[name] for name in ("viewBox", "width", "height")}
    root = ElementTree.Element(f"{NAME}svg", sizes)
    ElementTree.SubElement(root, f"{NAME}style").text = MOTION
    for name, drawn in zip(("first", "second"), maps, strict=True):
        layer = ElementTree.SubElement(root, f"{NAME}g", {"id": name})
        middle = drawn.find(f"{NAME}g[@class='middle']/{NAME}circle")
        assert middle is not None
        x, y = (float(middle.attrib[each]) for each in ("cx", "cy"))
        for rank, part in enumerate(list(drawn)):
            kind = part.attrib.get("class", "")
            if part.tag == f"{NAME}a":
                circle, title = part.find(f"{NAME}circle"), part.findtext(f"{NAME}title")
                assert circle is not None
                moved = x - float(circle.attrib["cx"]), y - float(circle.attrib["cy"])
                part.tag = f"{NAME}g"
                part.attrib = {
                    "class": "node chosen" if title == NEXT else "node",
                    "style": f"--x:{moved[0]:.0f}px;--y:{moved[1]:.0f}px;--wait:{rank * 0.02:.2f}s",
                }
            elif kind != "middle":
                part.set("class", "late")
            for each in part.iter():
                kept = {k: v for k, v in each.attrib.items() if shown(k, v)}
                each.attrib = {k: re.sub(r"(\.\d)\d+", r"\1", v) for k, v in kept.items()}
            layer.append(part)
    for parent in root.iter():
        for child in list(parent):
            if child.attrib.get("display") == "none" or child.tag == f"{NAME}title":
                parent.remove(child)
    return ElementTree.tostring(root, encoding="unicode")


def shown(name: str, value: str) -> bool:
    """Tell whether an attribute changes the picture: the export writes every computed style."""
    plain = {
        "display": "inline",
        "opacity": "1",
        "stroke-dasharray": "none",
        "stroke-linecap": "butt",
        "stroke-linejoin": "miter",
        "stroke-opacity": "1",
        "paint-order": "normal",
        "stroke-width": "1px",
    }
    return plain.get(name) != value and not name.startswith(("data-", "aria-"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_write(parser, "docs")
    docs = ROOT / "docs" if parser.parse_args().write else ROOT / "build" / "pictures"
    (docs / "pictures" / "page").mkdir(parents=True, exist_ok=True)

    def save(name: str, content: bytes) -> None:
        file = docs / name
        if name.endswith(".png"):
            picture = Image.open(BytesIO(content)).convert("RGB").quantize(COLORS)
            picture.save(file, optimize=True)
        else:
            file.write_bytes(content)
        print(f"{file}: {file.stat().st_size:,} bytes")

    with tempfile.TemporaryDirectory() as folder:
        indexes = demo().build(Path(folder))
        command = [sys.executable, "-m", "cocite", "serve", *indexes, "--port", "0"]
        options = ["--no-requests", "--target-latency", "100000"]
        with serving([*command, *options]) as server, sync_playwright() as playwright:
            url = f"http://127.0.0.1:{server.port}/?node="
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]
            page.goto(f"{url}{NODE}&why={NEXT}")
            page.wait_for_selector("svg.map")
            save("page.png", page.screenshot())
            for theme in ("light", "dark"):
                page = browser.new_page(
                    viewport=WIDE,  # type: ignore[arg-type]
                    color_scheme=theme,
                    device_scale_factor=2,
                )
                maps = [exported(page, f"{url}{node}") for node in (NODE, NEXT)]
                save(f"pictures/page/map-{theme}.svg", moving(maps).encode())
                page.set_viewport_size(NARROW)  # type: ignore[arg-type]
                page.goto(f"{url}{NODE}&why={NEXT}")
                save(f"pictures/page/why-{theme}.png", page.locator(".ribbons").screenshot())
                page.goto(f"{url}{NODE}&index=psimrank&k=9")
                save(
                    f"pictures/page/sure-{theme}.png",
                    page.locator("section.list tbody").screenshot(),
                )
            browser.close()


if __name__ == "__main__":
    main()
