"""Archives of HTML pages: the graph of the packed folder, and nothing written outside."""

import bz2
import gzip
import io
import lzma
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import cocite
from cocite.errors import InputError, ResourceError, UnrecognizedInput
from cocite.io.readers import sources
from cocite.io.readers.html import reader as archive_reader
from tests.io.plain import links, refused, source_of, title_of, write_files
from tests.torture.archives import Member, attack_archives, attack_xml, member, tar_of, zip_of
from tests.torture.results import Given, Row, Until

PAGES = {
    "site/index.html": '<title>Home</title><a href="guide/">x</a><a href="logo.png">x</a>',
    "site/guide/index.html": '<a href="../program">x</a><a href="../gone.html">x</a>',
    "site/program": "<!doctype html><title>P</title><a href='/'>x</a></html>",
    "site/logo.png": "no page",
    "site/.hidden.html": '<a href="index.html">x</a>',
}
EXPECTED = {
    ("index.html", "guide/index.html"),
    ("guide/index.html", "program"),
    ("program", "index.html"),
}


def add(archive: tarfile.TarFile, name: str, text: str = "", **fields: object) -> None:
    """Add a member with these header fields."""
    member_info = tarfile.TarInfo(name)
    for field, value in ({"size": len(text.encode())} | fields).items():
        setattr(member_info, field, value)
    archive.addfile(member_info, io.BytesIO(text.encode()))


def make_tar(files: dict[str, str], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, text in files.items():
            add(archive, name, text)
    return out.getvalue()


def make_zip(files: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def ingest_bytes(tmp_path: Path, content: bytes, name: str = "site.tar") -> cocite.Graph:
    (tmp_path / name).write_bytes(content)
    return cocite.ingest(tmp_path / name, tmp_path / "g", overwrite=True, threads=1)


@pytest.mark.parametrize("kind", ["tar.gz", pytest.param("zip", marks=pytest.mark.long), "folder"])
def test_archive_and_folder_give_git_manual_links(
    data: Callable[[str], Path], tmp_path: Path, kind: str
) -> None:
    """272 pages with 1,855 distinct links, 57 of them self-loops (see the data's README)."""
    path = data("html-git-htmldocs") / "git-htmldocs.tar.gz"
    if kind != "tar.gz":
        with tarfile.open(path) as archive:
            archive.extractall(tmp_path, filter="data")
        path = tmp_path / "git-htmldocs"
    if kind == "zip":
        path = Path(shutil.make_archive(str(tmp_path / "git"), "zip", path))
    graph = cocite.ingest(path, tmp_path / "g", keep_self_loops=True)
    edges = links(graph)
    assert graph.nodes == 272
    assert len(edges) == len(set(edges)) == graph.edges == 1855
    assert sum(a == b for a, b in edges) == 57
    assert "git-add.html" in graph.names


@pytest.mark.parametrize(
    "content",
    [
        make_tar(PAGES),
        make_tar(PAGES, tarfile.GNU_FORMAT),
        gzip.compress(make_tar(PAGES)),
        bz2.compress(make_tar(PAGES)),
        lzma.compress(make_tar(PAGES)),
        make_zip(PAGES),
        make_tar({f"./{name.removeprefix('site/')}": text for name, text in PAGES.items()}),
        make_zip(PAGES | {"__MACOSX/site/._index.html": "x"}),
    ],
    ids=["pax", "gnu", "gzip", "bzip2", "xz", "zip", "dot", "mac"],
)
def test_archive_reads_like_its_folder(tmp_path: Path, content: bytes) -> None:
    """Only one link is broken: other files count as targets, and ``/`` is the top folder."""
    graph = ingest_bytes(tmp_path, content, "links.tsv")
    assert set(links(graph)) == EXPECTED
    assert source_of(graph)["others"] == {"broken": 1, "to files that are not pages": 1}
    assert title_of(graph, "index.html") == "Home"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g", "links.tsv"]


@pytest.mark.process
def test_ingest_stdin_accepts_tar_and_refuses_zip(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cocite", "ingest", "-", "-o", str(tmp_path / "g")]
    packed = gzip.compress(make_tar(PAGES))
    done = subprocess.run(command, input=packed, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(links(cocite.Graph.open(tmp_path / "g"))) == EXPECTED
    command[-1] += "2"
    done = subprocess.run(command, input=make_zip(PAGES), capture_output=True, check=False)
    assert done.returncode == 2
    assert b"standard input is a zip archive, which cannot be read as a stream" in done.stderr


def test_archive_writes_nothing_outside(tmp_path: Path) -> None:
    """Paths that lead outside, symlinks, devices and conflicting names are skipped and counted."""
    out = io.BytesIO()
    outside = str(tmp_path / "outside")
    home_page = '<a href="latest/">x</a><a href="again.html">x</a><a href="way/a">x</a>'
    with tarfile.open(fileobj=out, mode="w") as archive:
        add(archive, "index.html", home_page)
        add(archive, "../outside/1.html", "x")
        add(archive, f"{outside}/2.html", "x")
        add(archive, "way", type=tarfile.SYMTYPE, linkname=outside)
        add(archive, "way/a", "<html></html>")
        add(archive, "latest", type=tarfile.SYMTYPE, linkname="v2")
        add(archive, "v2/index.html", '<a href="../index.html">x</a>')
        add(archive, "again.html", type=tarfile.LNKTYPE, linkname="index.html")
        add(archive, "out.html", type=tarfile.LNKTYPE, linkname="../../etc/passwd")
        add(archive, "pipe", type=tarfile.FIFOTYPE)
        add(archive, "index.html/below.html", "x")
    (tmp_path / "outside").mkdir()
    graph = ingest_bytes(tmp_path, out.getvalue())
    assert list((tmp_path / "outside").iterdir()) == []
    assert source_of(graph)["left_out"] == {
        "file in the archive with the path of another": 2,
        "path outside the archive": 3,
        "special file": 1,
    }
    home, again, latest = "index.html", "again.html", "v2/index.html"
    assert set(links(graph)) == {
        *((home, latest), (latest, home), (home, again), (again, latest)),
        *((home, "way/a"), (again, "way/a")),
    }


def test_zip_follows_symlinks(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("index.html", '<a href="new.html">x</a>')
        archive.writestr("page.html", "")
        link = zipfile.ZipInfo("new.html")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "page.html")
    assert set(links(ingest_bytes(tmp_path, out.getvalue()))) == {("index.html", "page.html")}


@pytest.mark.parametrize(
    ("content", "kind", "command"),
    [
        (make_tar({"links.tsv": "a\tb\n"}), "a tar archive", "tar -xf"),
        (gzip.compress(make_tar({"a/links.tsv": "a\tb\n"})), r"a tar archive \(packed", "tar -xf"),
        (make_zip({"links.tsv": "a\tb\n"}), "a zip archive", "unzip"),
        (make_zip({}), "a zip archive", "unzip"),
    ],
)
def test_archive_without_html_is_refused(
    tmp_path: Path, content: bytes, kind: str, command: str
) -> None:
    with pytest.raises(
        UnrecognizedInput, match=rf"is {kind}.*without a site of HTML pages.*\({command} "
    ) as caught:
        ingest_bytes(tmp_path, content)
    assert caught.value.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["site.tar"]


def corrupt(content: bytes, offset: int) -> bytes:
    return content[:offset] + b"\xff" * 40 + content[offset + 40 :]


@pytest.mark.parametrize(
    ("content", "member_part"),
    [
        (make_tar(PAGES)[:700], ""),
        (corrupt(make_tar(PAGES), 1024), ""),
        (gzip.compress(make_tar(PAGES))[:-30], ""),
        (make_zip(PAGES)[:-30], ""),
        (corrupt(make_zip(PAGES), 50), ": site/index.html"),
    ],
)
def test_archive_reports_damage(tmp_path: Path, content: bytes, member_part: str) -> None:
    with pytest.raises(
        InputError, match=rf"site\.tar{member_part} cannot be (unpacked|read to its end): "
    ):
        ingest_bytes(tmp_path, content)
    assert [path.name for path in tmp_path.iterdir()] == ["site.tar"]


# -- hostile archives --------------------------------------------------------------------

LINK, SAME, SPARSE, PAX, LONG = b"2", b"1", b"S", b"x", b"L"
HOME: Member = ("index.html", b"0", '<a href="a.html">x</a><a href="b.html">x</a>')
TWO: list[Member] = [HOME, ("a.html", b"0", "")]


@pytest.mark.parametrize(
    ("extra", "packs"),
    [
        (("a/precious.txt", LINK, "/etc/hostname"), [tar_of, zip_of]),
        (("a/precious.txt", SAME, "index.html"), [zip_of, tar_of]),
        (("a/precious.txt", b"0", "<html>mine</html>"), [tar_of, zip_of]),
        (("a/new.html", b"0", "<html>mine</html>"), [zip_of, tar_of]),
    ],
)
def test_archive_never_writes_through_links(
    tmp_path: Path, extra: Member, packs: list[Callable[[list[Member]], bytes]]
) -> None:
    """A link to a folder, and another member written through it, packed either way in turn."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious.txt").write_text("precious")
    targets = (str(victim), f"/proc/self/root{victim}", "../victim", "../../../victim")
    for target, pack in zip(targets, packs * 2, strict=True):
        ingest_bytes(tmp_path, pack([*TWO, ("a", LINK, target), extra]))
        assert [path.name for path in victim.iterdir()] == ["precious.txt"]
        assert not (victim / "precious.txt").is_symlink()
        assert (victim / "precious.txt").read_text() == "precious"


def test_tar_symlinks_stay_within_archive(tmp_path: Path) -> None:
    """Cycles, chains, targets outside the archive, and targets that are not paths."""
    graph = ingest_bytes(
        tmp_path,
        tar_of(
            [
                ("index.html", b"0", "".join(f'<a href="{n}">x</a>' for n in "abcdefghi")),
                ("d/index.html", b"0", '<a href="../index.html">x</a>'),
                ("a", LINK, "b"),
                ("b", LINK, "./d/../d"),
                ("c", LINK, "c"),
                ("e", LINK, "f"),
                ("f", LINK, "e"),
                ("g", LINK, "/d"),
                ("h", LINK, "../d"),
                ("i", LINK, "x" * 5000),
                ("j", LINK, ""),
            ]
        ),
    )
    assert source_of(graph)["left_out"] == {
        "symbolic link to a target outside the folder": 2,
        "broken symbolic link": 5,
    }
    assert set(links(graph)) == {("index.html", "d/index.html"), ("d/index.html", "index.html")}
    assert source_of(graph)["others"] == {"broken": 6}


def test_zip_skips_invalid_names_and_links(tmp_path: Path) -> None:
    members = [("index.html", b"0", '<a href="a.html">x</a>'), ("a.html", b"0", "")]
    bad = [("b.html", LINK, "a\0b"), ("c.html", LINK, "a" * (1 << 20)), ("", b"0", "no name")]
    bad += [(f"{'d' * 300}.html", b"0", ""), ("e/" * 101 + "f.html", b"0", "")]
    graph = ingest_bytes(tmp_path, zip_of(members + bad))
    assert source_of(graph)["left_out"] == {
        "broken symbolic link": 2,
        "name in the archive that is too long, or in more than 100 folders": 2,
    }


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_archive_refuses_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The limits are 1 MB (normally 268 MB) and 200 times the packed size."""
    monkeypatch.setattr(sources, "ALWAYS_UNPACKED", 1 << 20)
    members = [*TWO, ("big.html", b"0", " " * (3 << 20))]
    content = gzip.compress(tar_of(members)) if kind == "tar" else zip_of(members)
    message = (
        r"'big\.html' in .*site\.tar unpacks to more than 1\.\d* MB\. .*200 times.*FILE|site\.tar$"
    )
    with pytest.raises(InputError, match=message):
        ingest_bytes(tmp_path, content)
    assert [path.name for path in tmp_path.iterdir()] == ["site.tar"]
    monkeypatch.setattr(sources, "ALWAYS_UNPACKED", 1 << 22)
    assert ingest_bytes(tmp_path, content).nodes == 3


@pytest.mark.long
def test_html_skips_page_over_32_mib(tmp_path: Path) -> None:
    members = [*TWO, ("b.html", b"0", " " * (33 << 20))]
    folder = write_files(tmp_path / "folder", {name: text for name, _, text in members})
    (tmp_path / "site.tar.gz").write_bytes(gzip.compress(tar_of(members), 1))
    for path in (folder, tmp_path / "site.tar.gz"):
        graph = cocite.ingest(path, tmp_path / "g", overwrite=True)
        assert source_of(graph)["left_out"] == {"page of more than 33,554,432 bytes": 1}
        assert set(links(graph)) == {("index.html", "a.html")}


def test_archive_refuses_names_beyond_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names may take a quarter of the memory; here each counts as 64 KiB, not 512 B."""
    monkeypatch.setattr(archive_reader, "_NAME", 1 << 16)
    content = b"".join(member(f"{i}.png", b"0", b"") for i in range(1500))
    (tmp_path / "site.tar").write_bytes(content + bytes(1024))
    with pytest.raises(ResourceError, match=r"too many members for the memory: 1,2\d\d.*--memory"):
        cocite.ingest(tmp_path / "site.tar", tmp_path / "g", memory="340MB")


@pytest.mark.parametrize(
    "content",
    [
        member("x", PAX, b"", size=1 << 31),
        member("x", LONG, b"", size=1 << 31),
        member("x", PAX, b"9" * 100_000),
        member("x", PAX, b"30 size=-1\n"),
        member("x", PAX, b"11 size=-1\n") + member("x", b"0", b""),
        member("x", b"0", b"", size=-5),
        member("x", b"0", b"", size=1 << 61),
        member("x", LONG, b"name") * 5000,
        member("x", SPARSE, b"", more=True) + b"\x01" * 5120,
    ],
)
def test_tar_refuses_oversized_headers(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match=r"cannot be unpacked: |without a site of HTML pages"):
        ingest_bytes(tmp_path, content)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (8, 1, r"is encrypted.*Unpack the archive yourself, and pass the folder$"),
        (10, 97, r"not supported\. Unpack the archive yourself, and pass the folder$"),
        (16, 0, r"Bad CRC-32.*Fetch or copy the archive again$"),
    ],
    ids=["encrypted", "compression", "checksum"],
)
def test_zip_error_suggests_remedy(tmp_path: Path, field: int, value: int, message: str) -> None:
    content = bytearray(make_zip(PAGES))
    content[content.index(b"PK\x01\x02") + field] = value  # of the first file
    with pytest.raises(InputError, match=message):
        ingest_bytes(tmp_path, bytes(content), "site.zip")


def test_tar_skips_sparse_files_and_archives(tmp_path: Path) -> None:
    """A huge sparse file takes a few bytes; its zeros are never read."""
    inner = gzip.compress(tar_of([("c.html", b"0", "x")]))
    members = tar_of([*TWO, ("inner.tar.gz", b"0", inner)])
    sparse = member("b.html", SPARSE, b"", real=1 << 60)
    content = members[:-1024] + sparse + bytes(1024)
    graph = ingest_bytes(tmp_path, content)
    assert source_of(graph)["left_out"] == {"sparse file": 1}
    assert graph.nodes == 2


# -- compressed files ----------------------------------------------------------------------


def test_xz_takes_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An xz file declares its dictionary size, and with it the memory that it needs."""
    text = b"a\tb\nb\tc\n" * 1000
    (tmp_path / "links.tsv.xz").write_bytes(
        lzma.compress(text) + bytes(8) + lzma.compress(b"c\ta\n")
    )
    assert set(links(cocite.ingest(tmp_path / "links.tsv.xz", tmp_path / "g"))) == {
        *(("a", "b"), ("b", "c"), ("c", "a"))
    }
    monkeypatch.setattr(sources, "_XZ_MEMORY", 1 << 20)
    with pytest.raises(InputError, match=r"links\.tsv\.xz.*[Mm]emory usage limit"):
        cocite.ingest(tmp_path / "links.tsv.xz", tmp_path / "h")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_ingest_refuses_compression_bomb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(sources, "ALWAYS_UNPACKED", 1 << 20)
    bomb, message = pack(b"a\tb\n" * (1 << 19)), r"links\.tsv unpacks to more than 1\.\d* MB"
    refused(tmp_path, InputError, bomb, match=message)
    assert [path.name for path in tmp_path.iterdir()] == ["links.tsv"]


@pytest.mark.long
@pytest.mark.parametrize(("attack", "share"), [(attack_archives, 0.006), (attack_xml, 0.006)])
def test_torture_archives_and_xml_lose_nothing(
    attack: Callable[[Given], dict[str, Row]], share: float, tmp_path: Path
) -> None:
    """A part of ``python -m tests.torture archives xml``."""
    row = Row.sum([*attack(Given(tmp_path, Until(600), share, 5)).values()])
    assert row.lost == []
    assert row.injected == 24
    assert row.survived > 1
    assert row.reported > 8
