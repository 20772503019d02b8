"""Folders of Markdown notes: links, targets, titles and tags, and whole vaults."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cocite
from cocite.errors import MalformedRow, UnrecognizedInput, UsageError
from cocite.io.readers.html.site import folder_kind
from cocite.io.readers.notes.note import EMBED, MARKDOWN, WIKI, links_of
from cocite.io.readers.notes.vault import AMBIGUOUS, BROKEN, EXTERNAL, FILE, NO_PAGE, NOTE, Vault
from tests.io.plain import MakeFolder, graph_of, links, read_path, source_of, title_of

read = partial(read_path, threads=1)
"""With one parser, which starts faster than two."""


def targets_in(text: str) -> list[str]:
    """The targets of a note's links: ! before embeds, : before Markdown links."""
    prefixes = {WIKI: "", EMBED: "!", MARKDOWN: ":"}
    return [prefixes[kind] + target for kind, target in links_of(text.encode())["links"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[A]] and [[f/A b#part|shown]], ![[B]] #[[C d]]", ["A", "f/A b#part", "!B", "C d"]),
        ("[[A]] [[]] [[ ]] [[a[b]] [[a\nb]] [A] [[1,2],[3,4]]", ["A"]),
        ("| x | y |\n|---|---|\n| [[A\\|b]] | [[C]] |", ["A", "C"]),
        ("[a](b%20c.md#d) [e](<f g.md> 'title') ![h](i.md)", [":b%20c.md#d", ":f g.md", "!i.md"]),
        ("[a][r] [r][] [r] ![r]\n\n[r]: t.md 'x'\n[no]: no.md", [":t.md"] * 3 + ["!t.md"]),
        ("<https://a.org> https://b.org [m](mailto:x@y)", [":https://a.org", ":mailto:x@y"]),
        ("`[[a]]` ``[b](c) ` [[d]]`` `[[e]]\n[[f]]` [[G]]", ["G"]),
        ("```\n[[a]]\n```\n~~~ x\n[[b]]\n~~~\n    [[c]]\n\n[[D]]", ["D"]),
        ("- a\n  ```\n  [[a]]\n  ```\n\n      [[b]]\n\n  > [[C]]\n\n1. [[D]]", ["C", "D"]),
        ("<!-- [[a]]\n\n[[b]] -->\n\nx <!-- [c](d) --> [[E]]", ["E"]),
        ("%% [[a]] %% [[B]] %%\n\n[[c]]\n\n%%[[D]]", ["B", "D"]),
        ("`%%` [[A]] %% [[b]] %%\n```\n%%\n```\n[[C]] 100%% [[D]]", ["A", "C", "D"]),
        (r"\[[a]] \[b](c) [d\](e) [[F]]", ["F"]),
        ("# [[A]] *x*\n\nSet [[B]]\n===\n", ["A", "B"]),
        ('[a]({{< ref "p.md" >}}) {{% relref "/q" %}} {{< figure "r" >}}', [":p.md", ":/q"]),
        ("[a]({% link _posts/p.md %}) [b]({% post_url 2020-01-01-q %})", [":_posts/p.md"]),
        ("<div>[[a]]</div>\n\n<a href='b.md'>c</a> [[D]]", ["D"]),
        ("---\nup: '[[A|b]]'\nx: [['[[C]]'], '[[D', 'x [[e]]']\n---\n[[F]]", ["A", "C", "F"]),
        ("+++\ntitle = '[[a]]'\nup = '[[B]]'\n+++\n[[C]]", ["a", "B", "C"]),
        ("x\n---\n[[A]]\n---\n", ["A"]),
    ],
)
def test_links_of_parses_note_links(text: str, expected: list[str]) -> None:
    if "post_url" in text:
        expected = [*expected, ":2020-01-01-q"]
    assert targets_in(text) == expected
    assert targets_in(text.replace("\n", "\r\n")) == expected


@pytest.mark.parametrize(
    ("text", "title", "aliases", "tags"),
    [
        ("---\ntitle: A *b*: 'c'\n---\n# D", "", [], []),  # not YAML: a colon
        ("---\ntitle: 2024\naliases: [x, 'y, z']\ntags: a, b c\n---\n",
         "2024", ["x", "y, z"], "abc"),
        ("---\nTitle: ~\nalias: p, q\ntag: ['#Big Tag', 12]\n---\n## H `c` [[t|u]] *v* \\*\n# I",
         "H c u v *", ["p", "q"], ["big tag"]),
        ("+++\ntitle = 'T'\ntags = ['x']\ndate = 2024-01-01\n+++\n# H", "T", [], "x"),
        ("title:: L\nalias:: m, [[n]]\ntags:: o, [[p]]\n\n- [[q]]", "L", ["L", "m", "n"], "op"),
        ("#one #two/x, (#no) a#no #12 `#no` \\#no #Ü1\n", "", [], ["one", "two/x", "ü1"]),
        ("Title\n=====\n# other", "Title", [], []),
        ("\ufeff# With a mark", "With a mark", [], []),
    ],
)  # fmt: skip
def test_links_of_reads_title_aliases_and_tags(
    text: str, title: str, aliases: Any, tags: Any
) -> None:
    found = links_of(text.encode())
    if not title and "---" in text:
        assert found["fault"] == "front matter that is not YAML"
        title = "D"
    assert (found["title"], found["aliases"], found["tags"]) == (title, aliases, list(tags))


@pytest.mark.parametrize(
    ("front", "fault"),
    [
        ("---\na: &a [x, x]\nb: *a\n---\n", "front matter that is not YAML"),
        ("---\na: !!python/object/apply:os.system [x]\n---\n", ""),
        (f"---\na: {'[' * 5000}\n---\n", "front matter that is not YAML"),
        (f"---\n{'- ' * 30_000}\n---\n", "front matter that is not YAML"),
        ("---\na: " + "[\n" * 30_000 + "\n---\n", "front matter that is not YAML"),
        (f"---\na: {'x' * 300}\n---\n", ""),
        (f"---\na: {'x' * 70_000}\n---\n", "front matter of more than 65,536 characters"),
        ("---\n- a\n---\n", "front matter without named values"),
        ("---\n# nothing\n---\n", ""),
        ("---\na: {{title}}\n---\n", "front matter that is not YAML"),
        ("+++\na = \n+++\n", "front matter that is not TOML"),
    ],
    ids=[
        *("aliases", "object", "deep", "items", "lines", "wide", "long", "list", "empty"),
        *("template", "toml"),
    ],
)
def test_links_of_reports_broken_front_matter(front: str, fault: str) -> None:
    found = links_of(f"{front}[[A]]".encode())
    assert found["fault"] == fault
    assert found["links"] == [(WIKI, "A")]


NAMES = [
    *("Home", "a/Note", "a/b/Note", "c/d/Note", "c/Long note", "Café", "guide/index", "v1.2"),
    *("x/Case", "x/case", "pages/top___sub", "docs/README"),
]


@pytest.mark.parametrize(
    ("kind", "target", "source", "expected"),
    [
        (WIKI, "Home", "a/Note", (NOTE, "Home")),
        (WIKI, "home", "a/Note", (NOTE, "Home")),
        (WIKI, "Home.md", "a/Note", (NOTE, "Home")),
        (WIKI, "Home#x", "a/Note", (NOTE, "Home")),
        (WIKI, "#x", "a/Note", (NOTE, "a/Note")),
        (WIKI, "Note", "Home", (AMBIGUOUS, "a/Note")),
        (WIKI, "Note", "a/b/x", (AMBIGUOUS, "a/b/Note")),
        (WIKI, "Note", "c/x", (AMBIGUOUS, "c/d/Note")),
        (WIKI, "b/note", "Home", (NOTE, "a/b/Note")),
        (WIKI, "a/Note", "Home", (NOTE, "a/Note")),
        (WIKI, "/Note", "Home", (BROKEN, "")),
        (WIKI, "./Note", "a/x", (NOTE, "a/Note")),
        (WIKI, "../Note", "a/b/x", (NOTE, "a/Note")),
        (WIKI, "../../../etc/Note", "a/b/x", (BROKEN, "")),
        (WIKI, "long NOTE", "Home", (NOTE, "c/Long note")),
        (WIKI, "Cafe\u0301", "Home", (NOTE, "Café")),
        (WIKI, "Case", "Home", (AMBIGUOUS, "x/Case")),
        (WIKI, "x/case", "Home", (NOTE, "x/case")),
        (WIKI, "x/CASE", "Home", (AMBIGUOUS, "x/Case")),
        (WIKI, "v1.2", "Home", (NOTE, "v1.2")),
        (WIKI, "Other name", "Home", (NOTE, "Home")),
        (WIKI, "top/sub", "Home", (NOTE, "pages/top___sub")),
        (WIKI, "pic.png", "a/Note", (FILE, "")),
        (WIKI, "no/pic.png", "a/Note", (BROKEN, "")),
        (WIKI, "guide", "Home", (BROKEN, "")),
        (WIKI, "https://a.org", "Home", (BROKEN, "")),
        (EMBED, "img/pic.png?raw=1", "Home", (FILE, "")),
        (MARKDOWN, "b/Note.md", "a/Note", (NOTE, "a/b/Note")),
        (MARKDOWN, "Note.md", "c/d/x", (NOTE, "c/d/Note")),
        (MARKDOWN, "./Note", "Home", (BROKEN, "")),
        (MARKDOWN, "Long%20note.md", "a/Note", (NOTE, "c/Long note")),
        (MARKDOWN, "/c/Long%20note.html?x#y", "a/Note", (NOTE, "c/Long note")),
        (MARKDOWN, "../guide/", "a/Note", (NOTE, "guide/index")),
        (MARKDOWN, "/docs", "a/Note", (NOTE, "docs/README")),
        (MARKDOWN, "../img/", "a/Note", (FILE, "")),
        (MARKDOWN, "../../etc/passwd", "a/Note", (BROKEN, "")),
        (MARKDOWN, "%2e%2e/%2e%2e/x", "a/Note", (BROKEN, "")),
        (MARKDOWN, "", "a/Note", (NOTE, "a/Note")),
        (MARKDOWN, "HTTPS://a.org/b#c", "a/Note", (EXTERNAL, "HTTPS://a.org/b#c")),
        (MARKDOWN, "//a.org", "a/Note", (EXTERNAL, "//a.org")),
        (MARKDOWN, "obsidian://open?x", "a/Note", (NO_PAGE, "")),
    ],
)
def test_vault_finds_notes(kind: int, target: str, source: str, expected: tuple[int, str]) -> None:
    vault = Vault(NAMES, ["img/pic.png"], ["img", "guide", "docs", "a", "c"])
    vault.add_alias("Other name", "Home")
    assert vault.find(kind, target, source) == expected


def test_notes_reader_stores_titles_tags_and_report(site: MakeFolder, tmp_path: Path) -> None:
    folder = site(
        {
            "Home.md": "---\ntitle: Start\n---\n[[Note]] [[gone]] [w](https://e.org/x) ![[p.png]] "
            "![](https://e.org/y.png)",
            "deep/er/Note.md": "# The *note*\n[[Home]] [[Second]] [[#self]] #Tag #Tag [[Home]]",
            "deep/b.markdown": "---\naliases: Second\n---\n[[Note]]",
            "other/Note.md": "",
            ".trash/x.md": "[[Home]]",
            "p.png": "",
            "old.html": "",
        }
    )
    note, report = "deep/er/Note", tmp_path / "report.tsv"
    found, source = read(folder, report=str(report))
    assert found == {
        *(("Home", "other/Note"), (note, "Home"), (note, "deep/b"), (note, note), ("deep/b", note))
    }
    assert report.read_text().splitlines()[1:] == [
        "Home\tambiguous\tNote\tother/Note",
        "Home\tbroken\tgone\t",
        "deep/b\tambiguous\tNote\tdeep/er/Note",
    ]
    assert source["links"] == {"wiki link": 6}
    assert source["others"] == {
        "that could lead to several notes (the nearest is used)": 2,
        "to files that are not notes": 1,
        "to other sites": 2,
        "broken": 1,
    }
    assert source["left_out"] == {"HTML pages (--input-format html reads them)": 1}
    graph = graph_of(folder, tags=True, keep_external=True)
    assert ("deep/er/Note", "#tag") in set(links(graph))
    assert ("Home", "https://e.org/x") in set(links(graph))
    assert {*graph.names} == {
        *("Home", "deep/er/Note", "deep/b", "other/Note", "#tag", "https://e.org/x")
    }
    for name, title in (("Home", "Start"), ("deep/er/Note", "The note"), ("deep/b", "b")):
        assert title_of(graph, name) == title


def test_notes_reader_counts_duplicates_and_separates_names(site: MakeFolder) -> None:
    folder = site({"a.md": "[[b]] [[b]] [[b.markdown]]", "b.markdown": "", "b.md": "", "#a.md": ""})
    graph = graph_of(folder, count_duplicates=True)
    assert sorted(graph.names) == ["#a.md", "a", "b", "b.md"]
    assert set(links(graph)) == {("a", "b")}
    assert source_of(graph)["rows"] == 3


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        (["a.md", "b.md", "c.html"], "notes"),
        (["a.md", "index.html"], "html"),
        (["a.md", "b.MD", "index.html"], "notes"),
        (["a.md", "b.html", ".obsidian/app.json"], "notes"),
        (["README.md", "links.tsv"], ""),
        (["a.html", "b.html", "data.csv"], "html"),
        (["a.html", "b.html", "data.csv", "more.tsv", "most.tsv.gz"], ""),
        (["index.html", "data.csv", "more.tsv"], "html"),
        (["deep/er/a.md"], "notes"),
        (["a.txt"], ""),
        ([".git/a.md", "b.tsv"], ""),
    ],
)
def test_folder_kind_picks_most_common_format(
    site: MakeFolder, files: list[str], kind: str
) -> None:
    assert folder_kind(site(dict.fromkeys(files, ""))) == kind


def test_html_reader_reports_unread_notes(site: MakeFolder) -> None:
    folder = site({"index.html": "<a href=b.html>b</a>", "b.html": "", "a.md": "[[c]]", "c.md": ""})
    _, source = read(folder)
    assert source["format"] == "HTML pages"
    assert source["left_out"] == {"Markdown notes (--input-format notes reads them)": 2}
    found, source = read(folder, input_format="notes")
    assert found == {("a", "c")}
    assert source["left_out"] == {}


def test_notes_reader_stays_inside_folder(site: MakeFolder, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("# Secret\n[[a]]")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "b.md").write_text("[[a]]")
    folder = site({"a.md": "[x](../secret.md) [[../secret]] [y](out/b.md) [[link]] [z](in/c.md)",
                    "real/c.md": ""})  # fmt: skip
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "out").symlink_to(tmp_path / "out")
    (folder / "in").symlink_to("real")
    (folder / "other name.md").symlink_to("real/c.md")
    (folder / "b.md").write_text("[[Other name]] [x](other%20name.md)")
    found, source = read(folder)
    assert found == {("a", "real/c"), ("b", "real/c")}
    assert source["others"] == {"broken": 4}
    assert source["left_out"] == {"symbolic link to a target outside the folder": 2}
    assert source["pages"] == 3


def test_notes_reader_reports_unreadable_notes(
    site: MakeFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cocite.io.readers.notes.reader._LARGEST", 1000)
    folder = site(
        {
            "a.md": "[[b]] [[long]]",
            "b.md": b"\0\0[[a]]",
            "long.md": "[[a]]" * 300,
            "latin.md": "# Käse [[a]]".encode("cp1252"),
            "wide.md": "# Käse [[a]]".encode("utf-16"),
            "front.md": "---\na: [\n---\n[[a]]",
        }
    )
    report = tmp_path / "r.tsv"
    found, source = read(folder, report=str(report))
    assert found == {("a", "b"), ("a", "long"), ("latin", "a"), ("wide", "a"), ("front", "a")}
    assert source["left_out"] == {
        "Markdown file with binary content": 1,
        "front matter that is not YAML": 1,
        "page of more than 1,000 bytes": 1,
    }
    assert "front\tfront matter that is not YAML" in report.read_text()


def test_notes_reader_survives_parser_crash(
    site: MakeFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "dies.py"
    script.write_text(
        """import json, os, sys
while size := int.from_bytes(sys.stdin.buffer.read(8), "little"):
    if b"die" in sys.stdin.buffer.read(size):
        os.abort()
    found = {"title": "", "aliases": [], "tags": [], "links": [[0, "b"]], "fault": ""}
    answer = json.dumps(found).encode()
    sys.stdout.buffer.write(len(answer).to_bytes(8, "little") + answer)
    sys.stdout.buffer.flush()
"""
    )
    monkeypatch.setattr("cocite.io.readers.notes.note.__file__", str(script))
    found, source = read(site({"a.md": "", "b.md": "die"}), threads=1)
    assert found == {("a", "b")}
    assert source["left_out"] == {"note whose parser crashed": 1}


def test_notes_reader_rejects_unusable_input(
    site: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = site({"a.md": "[[a]]"})
    with pytest.raises(UnrecognizedInput, match=r"is a file; notes must be read as a folder"):
        cocite.ingest(folder / "a.md", folder.with_name("out.graph"), input_format="notes")
    (folder / "a.md").unlink()
    (folder / "a.txt").write_text("")
    with pytest.raises(UnrecognizedInput, match="contains no Markdown note"):
        graph_of(folder, input_format="notes")
    with pytest.raises(UnrecognizedInput, match="without HTML pages or notes"):
        graph_of(folder)
    site({"a\nb.md": "", "c.md": "[[d]]", "d.md": ""})
    with pytest.raises(MalformedRow, match="control character in a name"):
        graph_of(folder)
    assert graph_of(folder, bad_rows="few").nodes == 2
    monkeypatch.setitem(sys.modules, "mdit_py_plugins", None)
    with pytest.raises(UsageError, match=r"needs mdit-py-plugins, .*: pip install .*\[notes\]'"):
        graph_of(folder, bad_rows="few")


# -- any content ----------------------------------------------------------------------------


_PIECES = st.sampled_from(
    [
        *("[[", "]]", "![[", "|", "#", "%%", "`", "```\n", "\n", "\n\n", "---\n", "+++\n", "<!--"),
        *("-->", "[a](b)", "](", "a", " ", "é", "\\", "{{< ref ", " >}}", "title: x", ":: ", "- "),
        *("> ", "    ", "*", "<a>", "&amp;", "\t", "\r\n", "\0", "~~~", "aliases: [", "&a", "*a"),
    ]
)


_TEXTS = st.lists(_PIECES, max_size=60).map("".join) | st.text(max_size=200)


@given(_TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=200))
def test_links_of_accepts_any_bytes(content: bytes) -> None:
    found = links_of(content)
    assert {*found} == {"title", "aliases", "tags", "links", "fault"}
    assert json.loads(json.dumps(found))["fault"] == found["fault"]
    vault = Vault(["a", "b/a"], ["c.png"])
    for kind, target in found["links"]:
        outcome, name = vault.find(kind, target, "b/a")
        assert (outcome in (NOTE, AMBIGUOUS)) <= (name in ("a", "b/a"))


@pytest.mark.parametrize("piece", ["%%", "%% ", "`%%", "```\n%%\n", "%%\n\n"])
def test_links_of_reads_unclosed_comments_fast(piece: str) -> None:
    """100,000 characters: a quadratic scan takes minutes."""
    assert links_of((piece * (100_000 // len(piece)) + "\n\n[[A]]").encode())["fault"] == ""
