"""Figures, tables and drawings that commands write into documents are current. Other figures cite a
command.
"""

import re
from datetime import date
from pathlib import Path

import pytest
from benchmarks.drawings import PICTURES, drawings
from benchmarks.glossary import BLOCK as GLOSSARY
from benchmarks.glossary import option_classes, result_classes, tables
from benchmarks.origins import MARK, MEASURED, origins, write_page

ROOT = Path(__file__).parents[2]

BLOCK = re.compile(r"<!-- (?!end).*?<!-- end.*?-->|^ *(`{3,}).*?^ *\1", re.M | re.S)
FIGURE = re.compile(
    r"(?<![-\w.`/])\d[\d.,]*\s(?:µs|ms|s|minutes|hours)\b"
    r"|\d[\d.,]* ?(?:as fast|times faster|times slower)"
    r"|precision@\d+\D{0,20}0?\.\d|0?\.\d{2,3} ±"
    r"|\d[\d.,]* (?:pages|questions|requests|answers|nodes|links|lists) a second"
)
"""Measured figures: times, speeds and qualities. Limits have other forms."""
CITES = re.compile(
    r"`python\s+-m\s+benchmarks|`make (?:bench|torture|reproduce)"
    r"|`cocite (?:evaluate|tune|all-pairs)"
    r"|\]\((?:\.\./)?(?:performance|evaluation|related-all|reproduction|measures|figures)\.md"
)
"""A measurement, or a link to one."""
GENERATED = {"reproduction.md"}
"""Pages that a command writes."""


def test_pages_cite_source_of_measured_figures() -> None:
    found = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        if path.name in GENERATED:
            continue
        for section in re.split(r"(?m)^(?=#+ )", path.read_text("utf-8")):
            figures = FIGURE.findall(BLOCK.sub("", section))
            if figures and not (CITES.search(section) or MARK.search(section)):
                found.append((path.name, section.partition("\n")[0], figures[:3]))
    assert found == []


def test_origins_have_date_and_machine() -> None:
    listed = origins()
    assert len(listed) > 15
    for origin in listed:
        if origin.results is not None:
            assert date.fromisoformat(origin.about["date"]) <= date.today(), origin
            assert "Python 3." in origin.about["machine"], origin


def test_write_page_marks_old_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"log": "abc1234", "rev-list": "3"}
    monkeypatch.setattr("benchmarks.origins._git", lambda command, *rest: answers[command])
    write_page(tmp_path / "results.md")
    text = (tmp_path / "results.md").read_text("utf-8")
    measured = [origin for origin in origins() if origin.results is not None]
    assert text.count("**older**: 3") == len(measured)
    assert all(f"`{origin.command}`" in text for origin in origins())


@pytest.mark.parametrize("module", sorted(MEASURED))
def test_measured_names_existing_sources(module: str) -> None:
    assert all((ROOT / "src/cocite" / name).exists() for name in MEASURED[module])


@pytest.mark.long
def test_drawings_are_current() -> None:
    assert drawings() == {path.stem: path.read_text("utf-8") for path in PICTURES.glob("*.svg")}


def test_glossary_is_current() -> None:
    text = GLOSSARY.document.read_text("utf-8")
    assert GLOSSARY.within(text, None) == text, "python -m benchmarks.glossary --write"


def test_glossary_lists_options_and_results() -> None:
    assert len(option_classes()) > 12
    assert len(result_classes()) > 15
    shown = tables()
    for name in ("`min_score` | `--min-score`", "`certain_ranks`", "`pagerank`"):
        assert name in shown
