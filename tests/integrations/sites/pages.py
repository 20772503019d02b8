"""A small site for generators: two subjects whose pages link to each other, a page that all link
to, a page that nobody does but the index, which links to all.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

SUBJECTS = ("garden", "kitchen")
EACH = 6
HEADING = "Related pages"


def links() -> dict[str, list[str]]:
    """Page -> pages that its text links to: in its subject the next two, and the glossary."""
    found: dict[str, list[str]] = {}
    for subject in SUBJECTS:
        for n in range(EACH):
            near = [f"{subject}/page{(n + step) % EACH}" for step in (1, 2)]
            found[f"{subject}/page{n}"] = [*near, "glossary"]
    found |= {"glossary": [], "license": []}
    return found | {"index": list(found)}


def title(page: str) -> str:
    """With signs that HTML has to escape."""
    return f"About {page} & <more>"


def write(
    folder: Path, ending: str, render: Callable[[str, list[str]], str], of: Mapping[str, list[str]]
) -> None:
    for page, tos in of.items():
        path = folder / f"{page}{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = render(page, tos)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def related(page: Path) -> list[tuple[str, str]]:
    """(address, title as in HTML) of what stands under a page."""
    lists = re.findall(
        r'<nav class="related cocite-related".*?</nav>', page.read_text("utf-8"), re.S
    )
    assert len(lists) <= 1
    return re.findall(r'<a class="[^"]*" href="([^"]*)">(.*?)</a>', "".join(lists))


def check_lists(file_of: Callable[[str], Path]) -> None:
    """Each page of a subject has a list of three others, whose links lead to them."""
    files = {file_of(page): page for page in links()}
    for path, page in files.items():
        listed = related(path)
        assert len(listed) == (3 if "/" in page else 0), page
        for address, name in listed:
            there = (path.parent / address).resolve()
            other = files[there / path.name if there.is_dir() else there]
            assert other.partition("/")[0] == page.partition("/")[0]
            assert name == f"About {other} &amp; &lt;more&gt;"
    assert f"<h2>{HEADING}</h2>" in file_of("garden/page0").read_text()
    assert HEADING not in file_of("license").read_text()
