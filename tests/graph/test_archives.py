"""Archives of HTML pages: the graph of the folder that was packed, and nothing written outside."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import cocite
from cocite.cli.main import main
from cocite.errors import InputError, NotLinks
from tests.graph.plain import links

PAGES = {
    "site/index.html": '<title>Home</title><a href="guide/">x</a><a href="logo.png">x</a>',
    "site/guide/index.html": '<a href="../program">x</a><a href="../gone.html">x</a>',
    "site/program": "<!doctype html><title>P</title><a href='/'>x</a></html>",
    "site/logo.png": "no page",
    "site/.hidden.html": '<a href="index.html">x</a>',
}
FOUND = {
    ("index.html", "guide/index.html"),
    ("guide/index.html", "program"),
    ("program", "index.html"),
}


def tarred(files: dict[str, str], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def zipped(files: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def ingested(tmp_path: Path, content: bytes, name: str = "site.tar") -> cocite.Graph:
    (tmp_path / name).write_bytes(content)
    return cocite.ingest(tmp_path / name, tmp_path / "g", overwrite=True)


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_the_manual_of_git_is_the_graph_of_its_folder(
    data: Callable[[str], Path], tmp_path: Path, kind: str
) -> None:
    """272 pages, 1,855 distinct links between them (README of the data), without unpacking it."""
    packed = data("html-git-htmldocs") / "git-htmldocs.tar.gz"
    if kind == "zip":
        with tarfile.open(packed) as archive:
            texts = {
                member.name: archive.extractfile(member).read().decode("utf-8", "surrogateescape")  # type: ignore[union-attr]
                for member in archive
                if member.isfile()
            }
        packed = tmp_path / "git.zip"
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
            for name, text in texts.items():
                out.writestr(name, text.encode("utf-8", "surrogateescape"))
    graph = cocite.ingest(packed, tmp_path / "g", keep_self_loops=True)
    assert (graph.nodes, graph.edges) == (272, 1855)
    assert "git-add.html" in graph.names


@pytest.mark.parametrize(
    "content",
    [
        tarred(PAGES),
        tarred(PAGES, tarfile.GNU_FORMAT),
        gzip.compress(tarred(PAGES)),
        bz2.compress(tarred(PAGES)),
        lzma.compress(tarred(PAGES)),
        zipped(PAGES),
        tarred({f"./{name.removeprefix('site/')}": text for name, text in PAGES.items()}),
        zipped(PAGES | {"__MACOSX/site/._index.html": "x"}),
    ],
    ids=["pax", "gnu", "gzip", "bzip2", "xz", "zip", "dot", "mac"],
)
def test_an_archive_is_read_as_its_folder(tmp_path: Path, content: bytes) -> None:
    """Files that are no pages are there, so that only one link is broken; the one folder that all
    lies in is the site, as ``/`` says.
    """
    graph = ingested(tmp_path, content, "links.tsv")
    assert set(links(graph)) == FOUND
    (source,) = graph.store.facts["sources"]
    assert source["others"] == {"broken": 1, "to files that are no pages": 1}
    assert graph.titles is not None
    assert graph.titles.of(graph.names.ids(["index.html"])) == ["Home"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g", "links.tsv"]


def test_a_pipe_of_tar_is_read_and_one_of_zip_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cocite", "ingest", "-", "-o", str(tmp_path / "g")]
    packed = gzip.compress(tarred(PAGES))
    done = subprocess.run(command, input=packed, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(links(cocite.Graph.open(tmp_path / "g"))) == FOUND
    command[-1] += "2"
    done = subprocess.run(command, input=zipped(PAGES), capture_output=True, check=False)
    assert done.returncode == 2
    assert b"standard input is a zip archive, which cannot be read as a stream" in done.stderr


def test_an_archive_is_asked_as_a_file_of_links_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "site.zip").write_bytes(zipped(PAGES))
    main(["related", str(tmp_path / "site.zip"), "index.html", "--format", "csv"])
    assert "program" in capsys.readouterr().out


def test_nothing_is_written_outside(tmp_path: Path) -> None:
    """Names that lead out, links of the file system to write through, devices, files where folders
    are: left out, and counted.
    """
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:

        def add(name: str, text: str = "", **fields: object) -> None:
            member = tarfile.TarInfo(name)
            for field, value in fields.items():
                setattr(member, field, value)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))

        away = str(tmp_path / "away")
        add("index.html", '<a href="latest/">x</a><a href="again.html">x</a><a href="way/a">x</a>')
        add("../away/1.html", "x")
        add(f"{away}/2.html", "x")
        add("way", type=tarfile.SYMTYPE, linkname=away)
        add("way/a", "<html></html>")
        add("latest", type=tarfile.SYMTYPE, linkname="v2")
        add("v2/index.html", '<a href="../index.html">x</a>')
        add("again.html", type=tarfile.LNKTYPE, linkname="index.html")
        add("out.html", type=tarfile.LNKTYPE, linkname="../../etc/passwd")
        add("pipe", type=tarfile.FIFOTYPE)
        add("index.html/below.html", "x")
    (tmp_path / "away").mkdir()
    graph = ingested(tmp_path, out.getvalue())
    assert list((tmp_path / "away").iterdir()) == []
    (source,) = graph.store.facts["sources"]
    assert source["left_out"] == {
        "file in the archive where another one is": 2,
        "name in the archive that leads out of it": 3,
        "no file": 1,
    }
    assert set(links(graph)) == {
        *(("index.html", "v2/index.html"), ("v2/index.html", "index.html")),
        *(("index.html", "again.html"), ("again.html", "v2/index.html")),
        *(("index.html", "way/a"), ("again.html", "way/a")),
    }


def test_links_of_the_file_system_in_zip_are_links(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("index.html", '<a href="new.html">x</a>')
        archive.writestr("page.html", "")
        link = zipfile.ZipInfo("new.html")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "page.html")
    assert set(links(ingested(tmp_path, out.getvalue()))) == {("index.html", "page.html")}


@pytest.mark.parametrize(
    ("content", "kind", "command"),
    [
        (tarred({"links.tsv": "a\tb\n"}), "a tar archive", "tar -xf"),
        (gzip.compress(tarred({"a/links.tsv": "a\tb\n"})), r"a tar archive \(packed", "tar -xf"),
        (zipped({"links.tsv": "a\tb\n"}), "a zip archive", "unzip"),
        (zipped({}), "a zip archive", "unzip"),
    ],
)
def test_an_archive_of_other_files_is_to_be_unpacked(
    tmp_path: Path, content: bytes, kind: str, command: str
) -> None:
    with pytest.raises(NotLinks, match=f"is {kind}.*no site of HTML pages.*: {command} ") as caught:
        ingested(tmp_path, content)
    assert caught.value.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["site.tar"]


def damaged(content: bytes, place: int) -> bytes:
    return content[:place] + b"\xff" * 40 + content[place + 40 :]


@pytest.mark.parametrize(
    ("content", "at"),
    [
        (tarred(PAGES)[:700], ""),
        (damaged(tarred(PAGES), 1024), ""),
        (gzip.compress(tarred(PAGES))[:-30], ""),
        (zipped(PAGES)[:-30], ""),
        (damaged(zipped(PAGES), 50), ": site/index.html"),
    ],
)
def test_a_damaged_archive_is_named(tmp_path: Path, content: bytes, at: str) -> None:
    with pytest.raises(InputError, match=rf"site\.tar{at} cannot be (unpacked|read to its end): "):
        ingested(tmp_path, content)
    assert [path.name for path in tmp_path.iterdir()] == ["site.tar"]
