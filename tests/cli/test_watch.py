"""``cocite watch``: updates as files change, what is parsed again, and how it ends."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cocite.io.readers.html.parsers import Pages
from tests.conftest import Ask

pytest.importorskip("watchfiles", reason="watchfiles is not installed")
pytest.importorskip("markdown_it", reason="markdown-it-py is not installed")

Step = Callable[[], object]


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    for name, targets in {"A": "BC", "B": "C", "C": "A", "D": "AB"}.items():
        links = " ".join(f"[[{target}]]" for target in targets)
        (folder / f"{name}.md").write_text(f"# {name}\n\n{links}\n")
    return folder


@pytest.fixture
def watch(
    monkeypatch: pytest.MonkeyPatch, ask: Ask, vault: Path
) -> Callable[..., list[dict[str, object]]]:
    """The updates that ``watch`` prints, with one step between each two."""

    def run(*steps: Step, options: tuple[str, ...] = ()) -> list[dict[str, object]]:
        def changes(path: Path) -> Iterator[list[str]]:
            yield []
            for step in steps:
                step()
                yield ["changed"]

        monkeypatch.setattr("cocite.cli.commands.site.changes", changes)
        code, out, err = ask("watch", vault, "--format", "json", *options)
        assert code == 0, err
        return [json.loads(line) for line in out.splitlines()]

    return run


def test_watch_prints_update_for_each_change(
    watch: Callable[..., list[dict[str, object]]], vault: Path, ask: Ask
) -> None:
    updates = watch(lambda: (vault / "E.md").write_text("[[A]] [[B]]"), (vault / "D.md").unlink)
    found = [(each["changed"], each["nodes"], each["links"]) for each in updates]
    assert found == [([], 4, 6), (["changed"], 5, 8), (["changed"], 4, 6)]
    _, _, err = ask("related", vault, "E")
    assert "unchanged, so the cached index is used" in err


def test_watch_parses_only_changed_files(
    watch: Callable[..., list[dict[str, object]]], vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = list[str]()
    real = Pages._parse

    def counting(self: Pages, page: object) -> object:
        parsed.append(page.key)  # type: ignore[attr-defined]
        return real(self, page)  # type: ignore[arg-type]

    monkeypatch.setattr(Pages, "_parse", counting)
    watch(
        lambda: (vault / "B.md").write_text("[[A]]"),
        lambda: (vault / "E.md").write_text("[[A]]"),  # same content as B: parsed once
    )
    assert sorted(parsed[:4]) == ["A.md", "B.md", "C.md", "D.md"]
    assert parsed[4:] == ["B.md"]


def test_watch_reports_bad_input_and_continues(
    watch: Callable[..., list[dict[str, object]]], vault: Path
) -> None:
    bad = vault / "x\u202ey.md"
    updates = watch(lambda: bad.write_text("[[A]]"), bad.unlink)
    assert [set(each) - {"changed"} for each in updates] == [
        {"nodes", "links", "seconds"},
        {"error"},
        {"nodes", "links", "seconds"},
    ]


def test_watch_accepts_query_options(
    watch: Callable[..., list[dict[str, object]]], vault: Path, ask: Ask
) -> None:
    (vault / "B.md").write_text("[[C]] #birds")
    assert watch(options=("--tags", "--measure", "cocitation"))[0]["nodes"] == 5
    _, _, err = ask("related", vault, "C", "--tags", "--measure", "cocitation")
    assert "unchanged, so the cached index is used; measure: cocitation" in err


@pytest.mark.process
@pytest.mark.chosen
def test_watch_follows_folder_until_interrupt(vault: Path) -> None:
    command = [sys.executable, "-m", "cocite", "watch", str(vault)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("4 nodes, 6 links, ")
        (vault / "E.md").write_text("[[A]] [[B]]")
        assert process.stdout.readline().startswith("1 file changed (E.md): 5 nodes, 8 links, ")
        process.send_signal(signal.SIGINT)
        assert (process.stdout.read(), process.wait()) == ("", 0)


@pytest.mark.process
def test_watch_follows_links_file(tmp_path: Path) -> None:
    file = tmp_path / "links.tsv"
    file.write_text("a\tb\nc\tb\n")
    command = [sys.executable, "-m", "cocite", "watch", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("3 nodes, 2 links, ")
        (tmp_path / "other.tsv").write_text("not watched")
        file.write_text("a\tb\nc\tb\nd\tb\n")
        line = process.stdout.readline()
        assert line.startswith("1 file changed (links.tsv): 4 nodes, 3 links, ")
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
