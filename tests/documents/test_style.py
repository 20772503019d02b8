"""The English of the documents: short sentences, American spelling; lines that fit an editor."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEAN_WORDS, MOST_WORDS = 18, 40
"""Words per sentence: mean of a page, and maximum."""
BLOCKS = re.compile(r"^ *(`{3,}).*?^ *\1|<!--.*?-->", re.M | re.S)
LINES = re.compile(r"^\s*(?:[|<#:]|---).*$|^    .*$", re.M)
SENTENCE = re.compile(r"(?<=[.!?:;])[\")*]* +(?=[A-Z0-9*`\"(\[]|code|cocite)|(?<=;) ")
AWKWARD = re.compile(
    r"\b(?:save that|so (?:do|does|did) (?:it|they|this|that)|whoever|whosoever|in the place of"
    r"|hangs? on|by itself alone|which is said|in its turn|that which)\b",
    re.I,
)
"""Constructions of old or translated English (see also tests/cli/test_quiet.py)."""


def documents() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("no checkout")
    return listed.stdout.split()


def pages() -> list[str]:
    excluded = ("tests/", "benchmarks/", "CHANGELOG.md", "docs/glossary.md", ".github/")
    return [name for name in documents() if not name.startswith(excluded)]


def sentences(text: str) -> Iterator[str]:
    text = LINES.sub("\n", BLOCKS.sub("\n\n", text))
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "code", text))
    for block in re.split(r"\n\s*\n|\n\s*(?:[*+-]|\d+\.) ", text):
        yield from SENTENCE.split(" ".join(block.replace("**", "").split()))


def words(sentence: str) -> int:
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


def test_pages_have_short_sentences() -> None:
    """Except for the format definition, whose formulas count as words."""
    long = list[str]()
    for name in pages():
        if name.endswith("FORMAT.md"):
            continue
        counts = {each: words(each) for each in sentences((ROOT / name).read_text("utf-8"))}
        counts = {each: count for each, count in counts.items() if count}
        long += [f"{name}: {each}" for each, count in counts.items() if count > MOST_WORDS]
        if len(counts) > 5 and sum(counts.values()) / len(counts) > MEAN_WORDS:
            long.append(f"{name}: {sum(counts.values()) / len(counts):.1f} words on average")
    assert long == []


def test_pages_avoid_awkward_phrases() -> None:
    found = [
        f"{name}: {match[0]}: {each}"
        for name in pages()
        for each in sentences((ROOT / name).read_text("utf-8"))
        for match in AWKWARD.finditer(each)
    ]
    assert found == []


def test_docstrings_have_no_stray_quote() -> None:
    """Four quotes in a row start a docstring with a quote."""
    files = [path for path in (ROOT / "src").rglob("*.py") if '"' * 4 in path.read_text("utf-8")]
    assert files == []


def test_pages_have_american_spelling() -> None:
    pytest.importorskip("codespell_lib", reason="codespell is not installed")
    command = [sys.executable, "-m", "codespell_lib", "--builtin=clear,en-GB_to_en-US"]
    command += ["-L", "edn,nd", *pages()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    quoted = [line for line in done.stdout.splitlines() if "normalised" not in line]
    assert quoted == []  # the spelling of a stored key


WIDTH = 100
VERBATIM = re.compile(
    r"^ *(`{3,}).*?^ *\1|<!--(?: \w+: python|.*make ).*?<!-- end[^\n]*", re.M | re.S
)
"""Code, and generated blocks."""
UNBREAKABLE = re.compile(r"\]\([^)]*\)|`[^`]*`")
"""Addresses and code, which do not break."""


def test_documents_fit_100_columns() -> None:
    names = [name for name in documents() if name != "CHANGELOG.md"]
    assert len(names) > 30
    wide = [
        f"{name}: {line}"
        for name in names
        for line in VERBATIM.sub("", (ROOT / name).read_text("utf-8")).splitlines()
        if len(UNBREAKABLE.sub("", line)) > WIDTH
        and not line.lstrip().startswith(("|", "<"))
        and not line.startswith("    ")
    ]
    assert wide == []
