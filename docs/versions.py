"""Build the documentation of every release beside that of the working tree: ``make docs-versions``.

Each tag ``v*`` is checked out and builds its own pages by its own ``make docs``, so a release is
documented with the code and the libraries it was made with. The result is one folder:

    build/docs/versions/index.html      leads to the newest release
    build/docs/versions/versions.json   versions, newest first, for the menu of each page
    build/docs/versions/v1.2.0/         pages of a release, kept until its tag moves
    build/docs/versions/latest/         pages of the working tree
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

OUTPUT = Path("build/docs/versions")
PAGES = Path("build/docs/html")
LATEST = "latest"


def git(*arguments: str) -> str:
    """Return what ``git`` prints."""
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def build(tag: str) -> None:
    """Build the pages of ``tag``, unless they are there and the tag has not moved."""
    commit = git("rev-parse", f"{tag}^{{commit}}").strip()
    folder, mark = OUTPUT / tag, OUTPUT / f".{tag}"
    if folder.is_dir() and mark.is_file() and mark.read_text() == commit:
        return
    tree = Path("build/docs/worktree").resolve()
    shutil.rmtree(tree, ignore_errors=True)  # left by a run that was killed
    git("worktree", "add", "--quiet", "--force", "--detach", str(tree), commit)
    try:
        subprocess.run(["make", "docs"], cwd=tree, check=True)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tree / PAGES, folder)
        mark.write_text(commit)
    finally:
        git("worktree", "remove", "--force", str(tree))


def main() -> int:
    """Build all versions and write the files that lead to them."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    tags = git("tag", "--list", "v*", "--sort=-version:refname").split()
    for tag in tags:
        build(tag)
    shutil.rmtree(OUTPUT / LATEST, ignore_errors=True)
    shutil.copytree(PAGES, OUTPUT / LATEST)
    versions = [*tags, LATEST]
    (OUTPUT / "versions.json").write_text(json.dumps(versions) + "\n")
    (OUTPUT / "index.html").write_text(
        f'<!doctype html><meta http-equiv="refresh" content="0; url={versions[0]}/index.html">\n'
    )
    print(OUTPUT / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
