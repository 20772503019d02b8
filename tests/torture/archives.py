"""Hostile archives and hostile XML, read as links.

An archive has random members: pages, symbolic and hard links to existing paths, devices, sparse
files, duplicate or absolute names, ``..``, contents that unpack to a thousand times their size,
nested archives; as tar with raw headers or zip, compressed once or twice; then some bytes may
change. XML is GraphML, GEXF, a sitemap or a worksheet, with parts that nest, repeat or never end.
Each is read beside a folder with a precious file: a case is lost if a file there or in the output's
folder changes, or if a step has a forbidden outcome (``children.py``).
"""

import bz2
import gzip
import importlib
import io
import lzma
import random
import shutil
import stat
import struct
import tarfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import cocite
from tests.torture.children import Step, judge
from tests.torture.results import Given, Row

Member = tuple[str, bytes, str | bytes]
"""A name, a tar type, and the content or link target."""
_MEMORY, _ADDRESSES = "350MB", 2 << 30
"""The memory option of a run, and its address space, including threads and libraries."""
_CASES = 4000
_PRECIOUS = "precious.html"


def member(
    name: str, kind: bytes, content: bytes, *, target: str = "", size: int | None = None,
    real: int = 0, more: bool = False,
) -> bytes:  # fmt: skip
    """A tar member, header and content; the header may claim another ``size``, a sparse file of
    ``real`` size, or ``more`` headers after it.
    """
    info = tarfile.TarInfo()
    info.size = len(content) if size is None else size
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[:100] = _bytes(name)[:100].ljust(100, b"\0")
    header[157:257] = _bytes(target)[:100].ljust(100, b"\0")
    header[156:157] = kind
    if kind == tarfile.GNUTYPE_SPARSE:
        header[482] = more
        header[483:495] = b"\x80" + real.to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + content + bytes(-len(content) % 512)


def tar_of(members: Sequence[Member]) -> bytes:
    """A tar archive; names and targets longer than a header have a GNU header."""
    parts = []
    for name, kind, body in members:
        is_link = kind in (tarfile.SYMTYPE, tarfile.LNKTYPE)
        text = body if isinstance(body, str) else body.decode("utf-8", "surrogateescape")
        if is_link and len(text) > 100:
            parts.append(member("", tarfile.GNUTYPE_LONGLINK, _bytes(text)))
        content = b"" if is_link else _bytes(body)
        if len(name) > 100:
            parts.append(member("", tarfile.GNUTYPE_LONGNAME, _bytes(name)))
        parts.append(member(name, kind, content, target=text if is_link else ""))
    return b"".join(parts) + bytes(1024)


def _bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text


def zip_of(members: Sequence[Member]) -> bytes:
    """A zip archive; links of both kinds become symbolic links."""
    modes = {tarfile.SYMTYPE: stat.S_IFLNK, tarfile.LNKTYPE: stat.S_IFLNK}
    modes |= {tarfile.CHRTYPE: stat.S_IFCHR, tarfile.FIFOTYPE: stat.S_IFIFO}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about duplicate names
        for name, kind, content in members:
            info = zipfile.ZipInfo("x")
            info.filename = info.orig_filename = name  # unchanged, with all special characters
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (modes.get(kind, stat.S_IFREG) | 0o777) << 16
            try:
                archive.writestr(info, _bytes(content))
            except (ValueError, struct.error):  # not possible in zip
                continue
    return out.getvalue()


# -- archives ---------------------------------------------------------------------------


def _name(chance: random.Random, place: Path) -> str:
    plain = ["index.html", "a.html", "b/index.html", "b", "b/c", "b/c/d.html", "program", "x.png"]
    bad = [
        "", ".", "..", "/", "//", "../a.html", f"../{place.name}/{_PRECIOUS}", "b/../../a.html",
        f"{place}/{_PRECIOUS}", f"/proc/self/cwd/{place}/{_PRECIOUS}", "index.html/a.html",
        "b/" * 200 + "a.html", "a" * 300 + ".html", "a\\..\\b.html", "C:\\a.html", "a\0.html",
        "\udcff.html", "é.html", "a.html?x=1", ".hidden.html", "__MACOSX/a.html", "*.html",
        "[a].html", "-o", "pages.jsonl", "unpacked", "nodes/links.tsv", "links.tsv",
    ]  # fmt: skip
    return chance.choice(plain if chance.random() < 0.6 else bad)


def _member(chance: random.Random, place: Path) -> Member:
    kind = chance.choice([b"0"] * 8 + [b"2"] * 5 + [b"1"] * 3 + [*(b"3", b"6", b"5", b"7", b"Z")])
    name = _name(chance, place)
    if kind in (b"1", b"2"):
        places = [str(place), f"{place}/{_PRECIOUS}", f"/proc/self/cwd/{place}", "/etc", "/", "a\0"]
        other = chance.choice([*places, "." * 5000, "a/" * 3000])
        return name, kind, other if chance.random() < 0.4 else _name(chance, place)
    page = "<!doctype html>" + "".join(
        f'<a href="{_name(chance, place)}">x</a>' for _ in range(chance.randrange(4))
    )
    contents: list[str | bytes] = [
        page, page, page, "", b"\0" * 2000, b"\xff\xfe<\0a\0>\0", page * 200,
        gzip.compress(_bytes(page)), tar_of([("z.html", b"0", page)]),
        zip_of([("z.html", b"0", page)]), " " * (1 << 18),
    ]  # fmt: skip
    return name, kind, chance.choice(contents)


def _archive(chance: random.Random, place: Path) -> bytes:
    """A random archive."""
    members = [_member(chance, place) for _ in range(chance.randrange(1, 12))]
    if chance.random() < 0.8:
        members.insert(0, ("index.html", b"0", '<a href="a.html">x</a><a href="b/">x</a>'))
        members.append(("a.html", b"0", '<a href="index.html">x</a>'))
    if chance.random() < 0.35:
        archive = zip_of(members)
    else:
        archive = tar_of(members)
        if chance.random() < 0.3:
            archive = _odd_headers(chance) + archive
        if chance.random() < 0.05:  # hundreds of megabytes of zeros
            blank = member("big.html", b"0", b"", size=1 << 30)
            return gzip.compress(archive[:-1024] + blank) + gzip.compress(bytes(1 << 24)) * 64
    for _ in range(chance.choice((0, 0, 0, 1, 3))):
        at = chance.randrange(len(archive))
        noise = bytes(chance.choice((0, 255, chance.randrange(256))) for _ in range(4))
        archive = archive[:at] + noise + archive[at + 4 :]
    if chance.random() < 0.1:
        archive = archive[: chance.randrange(len(archive))]
    compressors: list[Callable[[bytes], bytes]] = [gzip.compress, bz2.compress, lzma.compress]
    packings = (0, 0, 0, 0, 0, 0, 1) if archive.startswith(b"PK") else (0, 0, 0, 1, 1, 1, 1, 2)
    for _ in range(chance.choice(packings)):
        archive = chance.choice(compressors)(archive)
    return archive


def _odd_headers(chance: random.Random) -> bytes:
    """Headers to precede members, with wrong sizes and texts."""
    texts = [
        b"", b"12 path=a.x\n", b"9" * 2000, b"20 path=../../a.html\n", b"30 size=9999999999999\n",
        b"22 GNU.sparse.major=1\n", b"25 GNU.sparse.map=0,99999\n", b"-1 a=b\n", b"a" * 2000,
        b"19 linkpath=/etc/x\n", b"11 path=\xff\0\n",
    ]  # fmt: skip
    kinds = [b"x", b"g", b"L", b"K", b"X", b"S", b"V", b"M", b"N"]
    headers = []
    for _ in range(chance.choice((1, 2, 1500))):
        size = chance.choice((None, None, None, 0, -1, 1 << 20, 1 << 40, 1 << 62))
        text, kind = chance.choice(texts), chance.choice(kinds)
        real, more = chance.choice((0, 1 << 60)), chance.random() < 0.3
        headers.append(member("odd.html", kind, text, size=size, real=real, more=more))
    return b"".join(headers)


# -- XML --------------------------------------------------------------------------------

_GRAPHML = (
    '<graphml><key id="k" for="node" attr.name="label"/><graph edgedefault="directed">',
    '<node id="a"><data key="k">A</data></node><node id="b"/><edge source="a" target="b"/>',
    "</graph></graphml>",
)
_GEXF = (
    '<gexf version="1.3"><graph defaultedgetype="directed">',
    '<nodes><node id="a" label="A"/><node id="b"/></nodes>'
    '<edges><edge source="a" target="b"/></edges>',
    "</graph></gexf>",
)
_SITEMAP = (
    "<urlset>",
    "<url><loc>https://a.org/a.html</loc></url><url><loc>https://a.org/b.html</loc></url>",
    "</urlset>",
)
_WORKSHEET = (
    "<worksheet><sheetData>",
    '<row r="1"><c r="A1"><v>1</v></c><c r="B1"><v>2</v></c></row>',
    "</sheetData></worksheet>",
)
_PLACES = ("B1", "Z9", "C1000", "Z100000", "XFD1048576", "A0", "", "1", "ZZZZZZZ1", "A" + "9" * 30)
_BOOK: tuple[Member, ...] = (
    (
        "_rels/.rels",
        b"0",
        '<Relationships><Relationship Id="i" Type="http://schemas.openxmlformats.org/'
        'officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/>'
        "</Relationships>",
    ),
    (
        "xl/workbook.xml",
        b"0",
        '<workbook xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">'
        '<sheets><sheet name="S" sheetId="1" r:id="i"/></sheets></workbook>',
    ),
    (
        "xl/_rels/workbook.xml.rels",
        b"0",
        '<Relationships><Relationship Id="i" Type="http://schemas.openxmlformats.org/'
        'officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/>'
        "</Relationships>",
    ),
)


def _xml(chance: random.Random, parts: tuple[str, str, str], *, pack: bool = True) -> bytes:
    """A random document, possibly compressed if ``pack``, whose content nests or repeats."""
    head, body, tail = parts
    length = chance.choice((1, 100, 10_000, 1_000_000, 20_000_000))
    x = "x" * length
    few = min(length, 100_000)
    odd = [
        "", f"<!-- {x} -->", f"<?p {x} ?>", f"<![CDATA[{x}]]>", x, f'<node id="{x}"/>',
        f'<node id="n"><data key="k">{x}</data></node>', f"<url><loc>{x}</loc></url>",
        f'<nodes><node id="n" label="{x}"/></nodes>', f"<{x}/>", "<a>" * few, "<node>" * few,
        "<graph>" * few, "<url><loc>" * few, "<!--", "<![CDATA[", "<a b='", "&a;", "&#0;",
        "&#xFFFFFFFF;", "<a " + " ".join(f"a{i}='1'" for i in range(few)) + "/>",
        "".join(f"<b{i}/>" for i in range(few)), "<key id='k' for='edge'/>" * few,
        f"<hyperedge/>{x}", "\0", "\ud800", "]]>", "<a xmlns:b='c' b:d='e'/>",
    ]  # fmt: skip
    entity = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(12))
    begin = [
        "", "", "", '<?xml version="1.0"?>', '<?xml version="1.0" encoding="hex"?>',
        '<?xml version="1.0" encoding="idna"?>', '<?xml version="1.0" encoding="utf-7"?>',
        f'<?xml version="1.0" encoding="{x[:1000]}"?>', '<?xml version="1.0" encoding="UTF-16"?>',
        f'<!DOCTYPE g [<!ENTITY e0 "{x[:1000]}">{entity}]>', '<!DOCTYPE g SYSTEM "/etc/passwd">',
        f'<!DOCTYPE g [<!ATTLIST a b CDATA "{x}">]>', f"<!DOCTYPE g [<!-- {x} -->]>",
        '<!DOCTYPE g [<!ENTITY % p SYSTEM "file:///etc/passwd">%p;]>',
        f"<!DOCTYPE g [<!ELEMENT a ({'(' * min(few, 20_000)}",
    ]  # fmt: skip
    middle = [body, *(chance.choice(odd) for _ in range(chance.randrange(3)))]
    chance.shuffle(middle)
    document = "".join((chance.choice(begin), head, *middle, tail))
    content = document.encode(chance.choice(("utf-8",) * 6 + ("utf-16", "utf-32")), "replace")
    if chance.random() < 0.2:
        content = content[: chance.randrange(1, len(content) + 1)]
    if not pack:
        return content
    if chance.random() < 0.05:  # 2 GB in 2 MB
        content = gzip.compress((document.partition("x")[0] + "<!--").encode())
        return content + gzip.compress(b"x" * (1 << 24)) * 128
    return gzip.compress(content, 1) if chance.random() < 0.5 else content


def _spreadsheet(chance: random.Random, place: Path) -> bytes:
    """A random workbook, with cells anywhere."""
    head, body, tail = _WORKSHEET
    parts = head, body.replace("B1", chance.choice(_PLACES)), tail
    return zip_of([*_BOOK, ("xl/worksheets/sheet1.xml", b"0", _xml(chance, parts, pack=False))])


# -- running them ------------------------------------------------------------------------


def _tree(folder: Path) -> dict[str, bytes]:
    """All files of a folder, with their contents."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def _attack(given: Given, make: Callable[[random.Random, Path], bytes], form: str) -> Row:
    """Read random inputs, and check the files beside them."""
    _warm()
    row = Row()
    place, outside = given.folder / f"strange-{form}", given.folder / f"away-{form}"
    for folder in (place, outside):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    (outside / _PRECIOUS).write_text("precious")
    (place / "old.graph").mkdir()
    (place / "old.graph" / "index.html").write_text("old")
    (place / "pages").mkdir()
    for name in ("a", "b", "c"):
        (place / "pages" / f"{name}.html").write_text('<a href="a.html">x</a><a href="b.html">')
    before = _tree(outside), _tree(place)

    def changed(counts: Counter[str]) -> str:
        shutil.rmtree(place / "out.graph", ignore_errors=True)
        (place / "input").unlink()
        same = (_tree(outside), _tree(place)) == before
        return "" if same else "files were added or changed"

    for number in given.cases(_CASES, row):
        chance = random.Random(f"{given.seed} {form} {number}")
        (place / "input").write_bytes(make(chance, outside))
        steps: list[Step] = [(f"ingest {form}", partial(_ingest, place, form))]
        judge(f"{form} {number}", steps, row, _ADDRESSES, changed)
    return row


def _warm() -> None:
    """Load the modules that all cases need, once."""
    for name in ("io.tables", "io.ingest", "io.readers.formats"):
        importlib.import_module(f"cocite.{name}")
    importlib.import_module("duckdb")


def _ingest(place: Path, form: str) -> None:
    out = place / "out.graph"
    if form == "sitemap":
        pages, sitemap = place / "pages", place / "input"
        cocite.ingest(pages, out, memory=_MEMORY, threads=1, site="https://a.org/", pages=sitemap)
    else:
        input_format = "auto" if form == "archive" else form
        cocite.ingest(place / "input", out, memory=_MEMORY, threads=1, input_format=input_format)


def attack_archives(given: Given) -> dict[str, Row]:
    """Attack with random archives."""
    return {"archives": _attack(given, _archive, "archive")}


def attack_xml(given: Given) -> dict[str, Row]:
    """Attack with random documents of each format."""
    forms: dict[str, Callable[[random.Random, Path], bytes]] = {
        "graphml": partial(_document, _GRAPHML),
        "gexf": partial(_document, _GEXF),
        "sitemap": partial(_document, _SITEMAP),
        "spreadsheet": _spreadsheet,
    }
    rows = {}
    for form, until in given.until.parts([form for form in forms if given.only in form]):
        own = Given(given.folder, until, given.share / len(forms), given.seed)
        rows[form] = _attack(own, forms[form], form)
    return rows


def _document(parts: tuple[str, str, str], chance: random.Random, place: Path) -> bytes:
    return _xml(chance, parts)
