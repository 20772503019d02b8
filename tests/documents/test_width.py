"""Lines of prose fit an editor."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WIDTH = 100
SET = re.compile(r"^ *(`{3,}).*?^ *\1|<!--(?: \w+: python|.*make ).*?<!-- end[^\n]*", re.M | re.S)
"""Code, and blocks that commands write."""
WHOLE = re.compile(r"\]\([^)]*\)|`[^`]*`")
"""What does not break: addresses and code."""


def test_documents_have_lines_of_100_columns() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("no checkout")
    names = [name for name in listed.stdout.split() if name != "CHANGELOG.md"]
    assert len(names) > 30
    wide = [
        f"{name}: {line}"
        for name in names
        for line in SET.sub("", (ROOT / name).read_text("utf-8")).splitlines()
        if len(WHOLE.sub("", line)) > WIDTH
        and not line.lstrip().startswith(("|", "<"))
        and not line.startswith("    ")
    ]
    assert wide == []
