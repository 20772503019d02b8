"""A small site for generators: two subjects with links within each, a page that all pages link to,
a page that only the index links to. The index links to all.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

SUBJECTS = ("garden", "kitchen")
PER_SUBJECT = 6
HEADING = "Related pages"


def links() -> dict[str, list[str]]:
    """Page -> targets of its links: the next two of its subject, and the glossary."""
    found: dict[str, list[str]] = {}
    for subject in SUBJECTS:
        for n in range(PER_SUBJECT):
            near = [f"{subject}/page{(n + step) % PER_SUBJECT}" for step in (1, 2)]
            found[f"{subject}/page{n}"] = [*near, "glossary"]
    found |= {"glossary": [], "license": []}
    return found | {"index": list(found)}


def title(page: str) -> str:
    """With signs that HTML must escape."""
    return f"About {page} & <more>"


def write(
    folder: Path,
    suffix: str,
    render: Callable[[str, list[str]], str],
    pages: Mapping[str, list[str]],
) -> None:
    for page, targets in pages.items():
        path = folder / f"{page}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = render(page, targets)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def related(page: Path) -> list[tuple[str, str]]:
    """The (address, HTML title) pairs of the list on a page."""
    lists = re.findall(
        r'<nav class="related cocite-related".*?</nav>', page.read_text("utf-8"), re.S
    )
    assert len(lists) <= 1
    return re.findall(r'<a class="[^"]*" href="([^"]*)">(.*?)</a>', "".join(lists))


def check_lists(file_of: Callable[[str], Path]) -> None:
    """Each page of a subject lists three others, with valid links."""
    files = {file_of(page): page for page in links()}
    for path, page in files.items():
        listed = related(path)
        assert len(listed) == (3 if "/" in page else 0), page
        for address, name in listed:
            target = (path.parent / address).resolve()
            other = files[target / path.name if target.is_dir() else target]
            assert other.partition("/")[0] == page.partition("/")[0]
            assert name == f"About {other} &amp; &lt;more&gt;"
    assert f"<h2>{HEADING}</h2>" in file_of("garden/page0").read_text()
    assert HEADING not in file_of("license").read_text()
