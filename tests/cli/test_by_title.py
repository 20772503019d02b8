"""A page asked for by its title: never guessed, but told what to type."""

from __future__ import annotations

from pathlib import Path

import pytest

import cocite
from cocite.cli.main import main
from tests.cli.test_completion import offered
from tests.conftest import Shell

PAGES = {"a": "Apples", "b": "Pears", "faq": "Questions &amp;  Answers", "old": "Old Questions"}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site").mkdir()
    links = "".join(f"<a href='{name}.html'>{name}</a>" for name in PAGES)
    for name, title in PAGES.items():
        page = f"<html><head><title>{title}</title></head><body>{links}</body></html>"
        (tmp_path / "site" / f"{name}.html").write_text(page)
    return "site"


@pytest.mark.parametrize(
    "asked", ["Questions & Answers", "questions & answers", "QUESTIONS  &  answers", "FAQ.html"]
)
def test_the_only_title_names_the_page(site: str, shell: Shell, asked: str) -> None:
    expected = shell(["related", site, "faq.html", "-k", "3"]).out
    told = shell(["related", site, asked, "-k", "3"])
    assert told.out == expected
    assert f"{asked!r} is answered as 'faq.html'\n" in told.err
    assert main(["why", site, "a.html", asked]) == 0


@pytest.mark.parametrize("asked", ["& Answers", "ANSWERS"])
def test_what_to_type_is_told(site: str, shell: Shell, asked: str) -> None:
    reply = shell(["related", site, asked, "-k", "3"], 2)
    assert reply.err.endswith(
        f"Error: no node is named {asked!r}; 'Questions & Answers' is the title of 'faq.html'. "
        "Nodes are asked for by their names. Type: cocite related site faq.html -k 3\n"
    )
    assert "Type: cocite why site a.html faq.html\n" in shell(["why", site, "a.html", asked], 2).err


def test_several_are_named(site: str, shell: Shell) -> None:
    told = shell(["related", site, "questions"], 2).err
    assert "'Questions & Answers' is the title of 'faq.html', 'Old Questions' is" in told
    assert "Type:" not in told
    assert "the nearest name is 'faq.html'" in shell(["related", site, "faq"], 2).err


def test_programs_are_told_too(site: str) -> None:
    graph = cocite.ingest(site, "g")
    with pytest.raises(cocite.UnknownNode) as found:
        graph.names.id("old questions")
    assert found.value.titled == (("old.html", "Old Questions"),)
    assert found.value.suggestions == ("old.html",)
    with pytest.raises(cocite.UnknownNode, match="'Apples' is the title of"):
        cocite.build(graph, "i").related("apples")


def test_names_of_a_site_complete(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path("cache").absolute()))
    assert offered("cocite related site f") == []
    assert main(["related", site, "a.html"]) == 0
    assert offered("cocite related site f") == ["plain,faq.html"]
    assert offered("cocite related site/ f") == ["plain,faq.html"]
