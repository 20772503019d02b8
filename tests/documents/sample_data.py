"""Small data for the pages of docs/how-to, each with groups that good answers keep together."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.io.test_mediawiki import Row, dump

__all__ = ["citations", "documentation", "hosts", "notes", "pairs", "project", "triples", "wiki"]


def pairs(groups: int, each: int, links: int, within: float) -> list[tuple[int, int]]:
    """Links of ``groups * each`` nodes, group by group; most stay in their group."""
    rng = np.random.default_rng(5)
    found: set[tuple[int, int]] = set()
    for node in range(groups * each):
        for _ in range(links):
            first = node // each * each
            stays = rng.random() < within
            other = int(first + rng.integers(each) if stays else rng.integers(groups * each))
            if other != node:
                found.add((node, other))
    return sorted(found)


SECTIONS = ("guide", "reference", "tutorial")
SUBJECTS = ("install", "backup", "upgrade", "users", "mail", "search", "themes", "plugins")


def documentation(folder: Path) -> None:
    """An HTML site: a menu on each page, links in the text, one broken link."""
    pages = [f"{section}/{subject}.html" for section in SECTIONS for subject in SUBJECTS]
    menu = "".join(f'<a href="/{page}">{page}</a>' for page in ["index.html", *pages])
    linked = pairs(len(SECTIONS), len(SUBJECTS), 4, 0.85)
    targets_of = {page: [pages[b] for a, b in linked if a == n] for n, page in enumerate(pages)}
    targets_of["index.html"] = pages
    targets_of["guide/mail.html"].append("guide/gone.html")
    for page, targets in targets_of.items():
        text = " ".join(f'<p>See <a href="/{to}">that</a>.</p>' for to in targets)
        path = folder / "site" / page
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f"<!doctype html><title>On {page}</title><nav>{menu}</nav>"
        path.write_text(f"{head}<main>{text}</main>")
    (folder / "leave-out.txt").write_text("index.html\n")


BIRDS = ["Gray_heron", "Night_heron", "Egret", "Stork", "Crane", "Ibis"]
TREES = ["Oak", "Beech", "Birch", "Ash", "Elm", "Lime"]


def notes(folder: Path) -> None:
    """A vault: notes on birds and on trees, with a tag each, a broken link, a draft."""
    for group, names in (("birds", BIRDS), ("trees", TREES)):
        (folder / "vault" / group).mkdir(parents=True)
        titles = [name.replace("_", " ") for name in names]
        for position, title in enumerate(titles):
            others = [titles[(position + step) % len(titles)] for step in (1, 2, 4)]
            text = " ".join(f"See [[{other}]]." for other in others) + f" #{group}\n"
            (folder / "vault" / group / f"{title}.md").write_text(f"# On {title}\n\n{text}")
    (folder / "vault" / "Home.md").write_text("[[Oak]] [[Gray heron]] [[Gone]]\n")
    (folder / "new.md").write_text("# New\n\nLike [[Egret]] and [that](birds/Stork.md).\n")


def wiki(folder: Path) -> None:
    """A dump: articles on birds and on trees, a redirect, a red link."""
    titles = [*BIRDS, *TREES]
    name = "xxwiki-20260101-{}.sql.gz"
    page = [(n, 0, title, 0, 0.5, None) for n, title in enumerate(titles, 1)]
    page.append((90, 0, "Heron", 1, 0.5, None))
    targets = [*titles, "Heron", "No_such_tree"]
    links = [(a + 1, 0, b + 1) for a, b in pairs(2, len(BIRDS), 6, 0.9)]
    links += [(3, 0, 13), (8, 0, 14)]  # Egret to Heron; Beech to a missing page
    tables: dict[str, Sequence[Row]] = {
        "page": page,
        "linktarget": [(n, 0, title) for n, title in enumerate(targets, 1)],
        "redirect": [(90, 0, "Gray_heron", "", "")],
        "pagelinks": links,
    }
    for table, rows in tables.items():
        (folder / name.format(table)).write_bytes(gzip.compress(dump(table, rows)))
    labels = "".join(f"{each}\tbirds\n" for each in BIRDS)
    labels += "".join(f"{each}\ttrees\n" for each in TREES)
    (folder / "categories.tsv").write_text(labels)


FIELDS = ("nests", "songs", "flight")


def citations(folder: Path) -> None:
    """Papers of three fields, which cite only earlier ones."""
    each = 40
    rows = []
    for a, b in pairs(len(FIELDS), each, 6, 0.85):
        if b % each < a % each:
            new, old = (n // each + len(FIELDS) * (n % each) for n in (a, b))
            rows.append(f"p{new:03}\tp{old:03}\n")
    (folder / "citations.tsv").write_text("citing\tcited\n" + "".join(sorted(rows)))
    papers = [(f"p{n:03}", FIELDS[n % len(FIELDS)]) for n in range(each * len(FIELDS))]
    lines = [f"{paper}\tOn {field}, part {paper[1:]}\t{field}\n" for paper, field in papers]
    (folder / "papers.tsv").write_text("paper\ttitle\tfield\n" + "".join(lines))
    (folder / "references.txt").write_text("".join(f"{row.split()[1]}\n" for row in rows[-5:]))
    by_id = {paper: {"id": paper, "title": f"On {f}, part {paper[1:]}"} for paper, f in papers}
    works = [
        w | {"referenced_works": [r[5:-1] for r in rows if r[:4] == p]} for p, w in by_id.items()
    ]
    (folder / "works" / "updated_date=2026-01-01").mkdir(parents=True)
    content = "".join(json.dumps(work) + "\n" for work in works).encode()
    part = folder / "works" / "updated_date=2026-01-01" / "part_000.gz"
    part.write_bytes(gzip.compress(content))


def project(folder: Path) -> None:
    """A Python program and its dependencies."""
    files = {
        "pyproject.toml": "[project]\n",
        "src/app/__init__.py": "",
        "src/app/main.py": "import logging\nfrom app import db, web\n",
        "src/app/db.py": "import logging\nfrom app import models\n",
        "src/app/web.py": "from app import db, models\n",
        "src/app/models.py": "import logging\n",
        "tests/test_app.py": "from app import db, main, web\n",
    }
    for name, content in files.items():
        (folder / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "project" / name).write_text(content)
    needs = {"me": ["flask", "quart"], "flask": ["click", "jinja"], "quart": ["click", "jinja"]}
    tables = (
        f'[[package]]\nname = "{name}"\ndependencies = ['
        + ", ".join(f'{{ name = "{each}" }}' for each in needs.get(name, ()))
        + "]\n"
        for name in [*needs, "click", "jinja"]
    )
    (folder / "uv.lock").write_text("version = 1\n" + "".join(tables))


def triples(folder: Path) -> None:
    """Birds and trees as in Wikidata: kinds, neighbors in books, labels, years."""
    entity, direct = "http://www.wikidata.org/entity/Q", "http://www.wikidata.org/prop/direct/P"
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    rows = []
    for number, name in enumerate([*BIRDS, *TREES]):
        kind = 100 + (name in TREES)
        rows += [f"<{entity}{number}> <{direct}31> <{entity}{kind}> ."]
        rows += [f"<{entity}{200 + number % 5}> <{direct}921> <{entity}{number}> ."]
        rows += [f'<{entity}{number}> <{label}> "{name.replace("_", " ")}"@en .']
        rows += [f'<{entity}{number}> <{direct}577> "2001" .']
    (folder / "truthy.nt.gz").write_bytes(gzip.compress("\n".join(rows).encode()))


KINDS = ("museum", "club", "shop")


def hosts(folder: Path) -> None:
    """Vertices and edges as in Common Crawl; hosts mostly link within their kind."""
    each = 20
    names = [f"org.example.{kind}{n}" for kind in KINDS for n in range(each)]
    template = "cc-main-2026-sample-host-{}.txt.gz"
    vertices = "".join(f"{n}\t{name}\n" for n, name in enumerate(names))
    edges = "".join(f"{a}\t{b}\n" for a, b in pairs(len(KINDS), each, 8, 0.9))
    for kind, text in (("vertices", vertices), ("edges", edges)):
        (folder / template.format(kind)).write_bytes(gzip.compress(text.encode()))
    shown = [".".join(reversed(name.split("."))) for name in names]
    (folder / "mine.txt").write_text("".join(f"{name}\n" for name in shown[:each]))
    subjects = "".join(f"{name}\t{KINDS[n // each]}\n" for n, name in enumerate(shown))
    (folder / "subjects.tsv").write_text(subjects)
