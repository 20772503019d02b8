"""Web archives: handmade WARC and WAT files like those of crawls, some damaged."""

import gzip
import json
import os
import shutil
import subprocess
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import brotli
import pytest

import cocite
from cocite.cli.main import main
from cocite.errors import InputError, UnrecognizedInput, UsageError
from cocite.io.readers import Source
from cocite.io.readers.crawl import warc
from cocite.io.readers.crawl.captures import HttpMessage, body_of, message_of
from tests.io.plain import graph_of, links, nothing_left, read_path, source_of, title_of, zstd
from tests.io.served import Served, html

A, B, C, D, E = (f"http://a.org/{name}" for name in "abcde")
HTML = "Content-Type: text/html; charset=utf-8"
Pack = Callable[[bytes], bytes]


def record(
    kind: str, url: str, block: bytes, *lines: str, at: str = "2026-01-01T00:00:00Z"
) -> bytes:
    head = ["WARC/1.0", f"WARC-Type: {kind}", f"WARC-Date: {at}", f"WARC-Target-URI: {url}"]
    if not any(line.startswith("Content-Type") for line in lines):
        head.append("Content-Type: application/http; msgtype=response")
    head += [*lines, f"Content-Length: {len(block)}"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def http(status: str, body: str | bytes, *lines: str) -> bytes:
    body = body.encode() if isinstance(body, str) else body
    return "\r\n".join([f"HTTP/1.1 {status}", *lines]).encode() + b"\r\n\r\n" + body


def response(url: str, body: str | bytes, status: str = "200 OK", type_: str = HTML) -> bytes:
    return record("response", url, http(status, body, type_))


def page(url: str, *urls: str, title: str = "", at: str = "2026-01-01T00:00:00Z") -> bytes:
    return record("response", url, http("200 OK", html(*urls, title=title), HTML), at=at)


def redirect(url: str, to: str, status: str = "301 Moved") -> bytes:
    return record("response", url, http(status, "gone", f"Location: {to}"))


def write_archive(path: Path, *records: bytes, pack: Pack = gzip.compress) -> Path:
    path.write_bytes(b"".join(map(pack, records)))
    return path


def read(path: Path | list[Path], **options: Any) -> tuple[set[tuple[str, ...]], dict[str, Any]]:
    """The links, without ``http://a.org/``, and what the manifest says."""
    found, source = read_path(path, threads=1, **options)
    return {tuple(url.removeprefix("http://a.org/") for url in link) for link in found}, source


def edge(path: str, url: Any, **attributes: str) -> dict[str, Any]:
    """A link in WAT form."""
    return {"path": path, "url": url} | attributes


INFO = record("warcinfo", "", b"software: x\r\n", "Content-Type: application/warc-fields")


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("x.warc", bytes),
        ("x.warc.gz", gzip.compress),
        ("x.warc.zst", zstd.compress),
        ("noname", gzip.compress),
    ],
)
def test_warc_reader_reads_compressed_archives(tmp_path: Path, name: str, pack: Pack) -> None:
    request = record("request", A, b"GET /a HTTP/1.1\r\n\r\n")
    archive = write_archive(
        tmp_path / name,
        *(INFO, request, page(A, "b", "/c#top", "//a.org/a", title="A  page"), page(B, "a?x#y")),
        *(page("<http://a.org/c>", "https://b.org/"), page("HTTP://A.ORG:80/a?x")),
        pack=pack,
    )
    graph = graph_of(archive, keep_self_loops=True, threads=1)
    assert set(links(graph)) == {(A, B), (A, C), (A, A), (B, "http://a.org/a?x")}
    assert source_of(graph)["pages"] == 4
    assert source_of(graph)["others"] == {
        "to pages that were not captured (--keep-external keeps them)": 1
    }
    assert title_of(graph, A) == "A page"


def test_warc_reader_reads_lz4_and_zstd_dictionaries(tmp_path: Path) -> None:
    from fastwarc.stream_io import Lz4Writer

    records = [page(A, "b"), page(B, "a")]
    with (tmp_path / "x.warc.lz4").open("wb") as file:
        writer = Lz4Writer(file)
        for each in records:
            writer.write(each)
        writer.close()
    assert read(tmp_path / "x.warc.lz4")[0] == {("a", "b"), ("b", "a")}
    samples = [each + bytes([i % 256]) * 9 for i in range(500) for each in records]
    dictionary = zstd.train_dict(samples, 1000)
    content = dictionary.dict_content
    frame = b"\x5d\x2a\x4d\x18" + len(content).to_bytes(4, "little") + content
    packed = b"".join(zstd.compress(each, zstd_dict=dictionary) for each in records)
    (tmp_path / "y.warc.zst").write_bytes(frame + packed)
    assert read(tmp_path / "y.warc.zst")[0] == {("a", "b"), ("b", "a")}


def chunked(body: bytes) -> bytes:
    parts = [body[i : i + 7] for i in range(0, len(body), 7)]
    return b"".join(b"%x;a=b\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def deflated(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


BODY = "<title>Käse</title><p>".encode() + b"x" * 100
GZIP = gzip.compress(BODY, mtime=0)


@pytest.mark.parametrize(
    ("header", "body", "expected"),
    [
        ({"transfer-encoding": "chunked"}, chunked(BODY), BODY),
        ({"transfer-encoding": "Chunked"}, BODY, BODY),  # already decoded
        ({"transfer-encoding": "chunked"}, chunked(BODY)[:50], None),
        ({"content-encoding": "gzip"}, GZIP, BODY),
        ({"content-encoding": "x-gzip", "transfer-encoding": "chunked"}, chunked(GZIP), BODY),
        ({"content-encoding": "gzip"}, BODY, BODY),
        ({"content-encoding": "deflate"}, deflated(BODY), BODY),
        ({"content-encoding": "br"}, brotli.compress(BODY), BODY),
        ({"content-encoding": "zstd"}, zstd.compress(BODY), BODY),
        ({"content-encoding": "gzip, br"}, brotli.compress(GZIP), BODY),
        ({"content-encoding": "identity"}, BODY, BODY),
        ({"content-encoding": "no such"}, BODY, BODY),
    ],
)
def test_body_of_decodes_body(header: dict[str, str], body: bytes, expected: bytes | None) -> None:
    found = body_of(HttpMessage(200, header, body), 1 << 20)
    if expected is None:
        assert found
        assert BODY.startswith(found)
    else:
        assert found == expected


def test_body_of_rejects_damaged_or_huge_body() -> None:
    damaged = GZIP[:10] + b"\0" * 40
    assert body_of(HttpMessage(200, {"content-encoding": "gzip"}, damaged), 1 << 20) is None
    for name, pack in (("gzip", gzip.compress), ("br", brotli.compress), ("zstd", zstd.compress)):
        bomb = HttpMessage(200, {"content-encoding": name}, pack(bytes(1 << 20)))
        assert body_of(bomb, 1 << 19) is None
        assert body_of(bomb, 1 << 20) == bytes(1 << 20)


def test_message_of_parses_status_and_header() -> None:
    message = message_of(
        b"HTTP/1.0 200\nA: b\n  c\nA: d\nContent-Type: x; Charset='koi8-r'\n\nhi\n\n"
    )
    assert message is not None
    assert message.header["a"] == "b c"
    assert (message.status, message.charset, message.body) == (200, "koi8-r", b"hi\n\n")
    assert message_of(b"GET / HTTP/1.1\r\n\r\n") is None


def test_warc_reader_resolves_redirects_and_copies(tmp_path: Path) -> None:
    canonical = html("d", head='<link rel=canonical href="/b">')
    refresh = html(head='<meta http-equiv=refresh content="0; url=/b">')
    pages = ["moved", "far", "loop1", "image.png", "lost", "copy", "sent", "self", "mailto:x@a.org"]
    archive = write_archive(
        tmp_path / "x.warc.gz",
        page(A, *pages, "https://b.org/", "//x y/"),
        page(B, "a"),
        page(D),
        *(
            redirect("http://a.org/moved", "/moved2", "302 Found"),
            redirect("http://a.org/moved2", "/b"),
        ),
        redirect("http://a.org/far", "https://b.org/far"),
        *(redirect("http://a.org/loop1", "/loop2"), redirect("http://a.org/loop2", "loop1")),
        response("http://a.org/image.png", b"\x89PNG\0", type_="Content-Type: image/png"),
        response("http://a.org/lost", html("b"), "404 Not Found"),
        *(response("http://a.org/copy", canonical), response("http://a.org/sent", refresh)),
        response("http://a.org/self", html(head="<link rel=canonical href=self>"), "200"),
        record("response", "dns:a.org", b"a.org. 1 IN A 1.2.3.4", "Content-Type: text/dns"),
    )
    report = tmp_path / "report.tsv"
    found, source = read(archive, report=report)
    assert found == {("a", "b"), ("a", "self"), ("b", "a"), ("b", "d")}
    assert source["others"] == {
        "broken": 2,  # lost and loop1
        "malformed": 1,
        "to files that are not pages": 1,
        "to addresses that are not web pages (mailto: and so on)": 1,
        "to pages that were not captured (--keep-external keeps them)": 2,
    }
    assert (source["pages"], source["copies"], source["redirects"]) == (4, 2, 5)
    assert source["left_out"] == {
        "server error, or response without a page": 1,
        "file that is not a page": 1,
        "record that is not a web page (dns: and so on)": 1,
    }
    rows = report.read_text().splitlines()
    assert rows[1:] == [
        f"{A}\tmalformed\t//x y/\t",
        f"{A}\tbroken\tloop1\thttp://a.org/loop1",
        f"{A}\tbroken\tlost\thttp://a.org/lost",
    ]
    found, source = read(archive, keep_external=True, ignore_canonical=True)
    assert found == {
        *(("a", "b"), ("a", "self"), ("b", "a"), ("a", "copy"), ("a", "sent"), ("copy", "d")),
        *(("a", "https://b.org/"), ("a", "https://b.org/far")),
    }


def test_warc_reader_keeps_newest_capture(tmp_path: Path) -> None:
    revisit = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    archive = write_archive(
        tmp_path / "x.warc.gz",
        page(A, "b", at="2026-01-02T00:00:00Z"),
        page(A, "c", at="2026-01-01T00:00:00Z"),
        record("revisit", A, http("200 OK", b"", HTML), revisit, at="2026-02-01T00:00:00Z"),
        *(page(B, "c", at="2026-01-01T00:00:00Z"), page(C)),
        record("response", B, http("304 Not Modified", b""), at="2026-01-03T00:00:00Z"),
        record("revisit", D, http("200 OK", b"", HTML), f"WARC-Refers-To-Target-URI: {C}"),
        record("revisit", E, http("200 OK", b""), "WARC-Refers-To-Target-URI: http://b.org/"),
        record("revisit", "http://a.org/f", http("301 x", b"", "Location: /a")),
        page("http://a.org/g", "d", "e", "f"),
        page(C, at="2026-03-01T00:00:00Z"),
        record("response", C, http("404 x", b""), at="2025-03-01T00:00:00Z"),
    )
    found, source = read(archive)
    assert found == {("a", "b"), ("b", "c"), ("g", "c"), ("g", "e"), ("g", "a")}
    assert source["pages"] == 5  # a, b, c, e, g
    assert source["left_out"]["revisit"] == 4


def test_warc_reader_links_pages_across_files(tmp_path: Path) -> None:
    files = [
        write_archive(tmp_path / f"{i}.warc.gz", page(url, *"abcd"))
        for i, url in enumerate((A, B, C))
    ]
    found, source = read(files)
    assert found == {(x, y) for x in "abc" for y in "abc"}
    assert (source["files"], source["pages"]) == (3, 3)
    assert "0.warc.gz and 2 more: 3 pages in a web archive" in source["read_as"]
    (tmp_path / "links.tsv").write_text(f"{A}\tx\n")
    mixed = cocite.ingest([files[0], tmp_path / "links.tsv"], tmp_path / "mixed")
    assert set(links(mixed)) == {(A, "x")}


def test_warc_reader_applies_base_frames_and_encoding(tmp_path: Path) -> None:
    body = '<base href="/x/"><meta charset=koi8-r><a href="мир"></a><iframe src="/b"></iframe>'
    archive = write_archive(
        tmp_path / "x.warc.gz",
        response(A, body.encode("cp1251"), type_="Content-Type: text/html; charset=windows-1251"),
        page("http://a.org/x/мир"),
        page(B),
    )
    found, source = read(archive)
    assert found == {("a", "x/%D0%BC%D0%B8%D1%80"), ("a", "b")}
    assert source["links"] == {"a": 1, "area": 0, "frame": 1}
    assert read(archive, link_tags="frame")[0] == {("a", "b")}


# -- WAT -------------------------------------------------------------------------------


def wat(
    url: str, metadata: Any, status: str = "200", kind: str = "response", **header: str
) -> bytes:
    envelope = {
        "Container": {"Filename": "x.warc.gz"},
        "Envelope": {
            "WARC-Header-Metadata": {
                "WARC-Type": kind,
                "WARC-Target-URI": url,
                "WARC-Date": "2026-01-01T00:00:00Z",
            },
            "Payload-Metadata": {
                "HTTP-Response-Metadata": {
                    "Response-Message": {"Status": status, "Version": "HTTP/1.1"},
                    "Headers": {"Content-Type": "text/html"} | header,
                }
                | ({"HTML-Metadata": metadata} if metadata is not None else {})
            },
        },
    }
    return record("metadata", url, json.dumps(envelope).encode(), "Content-Type: application/json")


def test_warc_reader_reads_wat(tmp_path: Path) -> None:
    a = "A@/href"
    elements = [
        *(edge(a, "b", text="B"), edge(a, "/c?x=1#y"), edge("IMG@/src", "d"), {"path": a}),
        *(edge("AREA@/href", "http://a.org/d"), edge("IFRAME@/src", "../moved"), edge(a, 7)),
        *("no link", edge(a, "mailto:x@a.org")),
    ]
    canonical = edge("LINK@/href", "/a", rel="canonical")
    head = {"Title": " A \n page \ud800", "Link": [canonical]}
    copy = {"Head": {"Link": [{"rel": "Canonical", "url": "b"}]}}
    refresh = [{"http-equiv": "Refresh", "content": "3; url=b"}, {"name": "x"}]
    sent = {"Head": {"Metas": refresh, "Link": []}}
    based = {"Head": {"Base": "/x/", "Title": "D"}, "Links": [edge(a, "../b")]}
    archive = write_archive(
        tmp_path / "x.warc.wat.gz",
        INFO,
        wat(A, None, kind="request"),
        wat(A, {"Head": head, "Links": elements}),
        wat(B, {}),
        wat("http://a.org/c?x=1", copy),
        wat(D, based),
        wat("http://a.org/sent", sent),
        wat("http://a.org/moved", None, status="301", Location="sent"),
        wat("http://a.org/p.pdf", None, **{"Content-Type": "application/pdf"}),
        wat("http://a.org/7", {}, status="500"),
        record("metadata", A, b"x: y", "Content-Type: application/warc-fields"),
    )
    found, source = read(archive)
    assert found == {("a", "b"), ("a", "d"), ("d", "b"), ("a", "a")}
    assert source["links"] == {"a": 4, "area": 1, "frame": 1}
    assert source["pages"] == 3
    assert title_of(graph_of(archive), A) == "A page ?"


def test_warc_reader_rejects_or_counts_invalid_wat(tmp_path: Path) -> None:
    deep = b"[" * 100_000
    bad = [
        record("metadata", A, block, "Content-Type: application/json")
        for block in (b"{", b"[]", deep, b"{}")
    ]
    good = [wat(B, {}), wat(A, {"Links": [edge("A@/href", "b")]})]
    for each in bad:
        with pytest.raises(
            InputError, match=r"x\.wat\.gz: at byte \d+: a record of metadata that is not WAT"
        ):
            read(write_archive(tmp_path / "x.wat.gz", each))
    found, source = read(write_archive(tmp_path / "x.wat.gz", *bad, *good), bad_rows="all")
    assert found == {("a", "b")}
    assert source["bad_rows"] == {"damaged record": 4}


# -- damage ----------------------------------------------------------------------------

RECORDS = [page(A, "b", "c"), page(B, "a"), page(C, "b")]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_warc_records_reports_any_truncation(tmp_path: Path, pack: Pack) -> None:
    parts = [pack(each) for each in RECORDS]
    content = b"".join(parts)
    ends = [sum(map(len, parts[:i])) for i in (1, 2, 3)]
    tail = 4 if pack is bytes else 0  # blank lines after a record
    near = {end + i for end in ends[:2] for i in range(-9, 9)}
    for cut in sorted({*range(1, len(content), 9), *near}):
        path = tmp_path / "x.warc"
        path.write_bytes(content[:cut])
        reported: list[int] = []

        def report(place: int, what: str, reported: list[int] = reported) -> None:
            reported.append(place)

        records = list(warc.WarcRecords(Source(path), report, ("response",), lambda at: None))
        # A compressed record may be whole without its checksum.
        slack = 20 if pack is not bytes else tail
        assert sum(cut >= end - tail for end in ends) <= len(records)
        assert len(records) <= sum(cut >= end - slack for end in ends)
        between = any(end - tail <= cut <= end for end in ends)
        assert bool(reported) != between, cut


@pytest.mark.parametrize(("pack", "pipe"), [(bytes, False), (bytes, True), (gzip.compress, False)])
def test_warc_reader_reports_or_skips_damage(tmp_path: Path, pack: Pack, pipe: bool) -> None:
    parts = [pack(each) for each in RECORDS]
    damaged = bytearray(parts[1])
    damaged[4:20] = b"\0" * 16
    if pack is bytes:
        damaged[:4] = b"JUNK"
    archive = tmp_path / "x.warc"
    archive.write_bytes(parts[0] + bytes(damaged) + parts[2])
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for skip in (False, True):
        path = archive
        if pipe:
            path = fifo
            thread = threading.Thread(target=write_fifo, args=(fifo, archive.read_bytes()))
            thread.start()
        if not skip:
            with pytest.raises(
                InputError, match=rf"{path.name}: at byte 0: .* after the record that"
            ):
                read(path, input_format="warc")
            assert nothing_left(tmp_path)
        else:
            found, source = read(path, bad_rows="few", keep_external=True, input_format="warc")
            assert found == (
                {("a", "b"), ("a", "c")} if pipe else {("a", "b"), ("a", "c"), ("c", "b")}
            )
            assert source["bad_rows"] == {"damaged record": 1}
        if pipe:
            thread.join()


def write_fifo(path: Path, content: bytes) -> None:
    with suppress(BrokenPipeError):
        path.write_bytes(content)


def test_warc_reader_requires_content_length(tmp_path: Path) -> None:
    bad = RECORDS[1].replace(b"Content-Length", b"Kontent-Length")
    archive = write_archive(tmp_path / "x.warc.gz", RECORDS[0], bad, RECORDS[2])
    with pytest.raises(InputError, match=r"at byte \d+: a record .*no Content-Length"):
        read(archive)
    found, source = read(archive, bad_rows="few")
    assert found == {("a", "c")}
    assert source["bad_rows"] == {"damaged record": 1}


def test_warc_reader_skips_long_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc, "LARGEST", 1000)
    large = record("response", B, http("200 OK", html("a") + "x" * 1000, HTML))
    found, source = read(
        write_archive(tmp_path / "x.warc.gz", page(A, "b", "c"), large, page(C, "a"))
    )
    assert found == {("a", "c"), ("c", "a")}
    assert source["left_out"] == {"page of more than 32 MiB": 1}


@pytest.mark.parametrize(
    ("records", "error", "message"),
    [
        ([INFO], UnrecognizedInput, "has no record of a fetched page"),
        (
            [page(A, "https://b.org/")],
            UnrecognizedInput,
            r"no links: .* has 1 pages .*--keep-external keeps them",
        ),
        ([b"WARC/1.0\r\n"], InputError, "at byte 0: "),
    ],
)
def test_warc_reader_reports_archive_without_links(
    tmp_path: Path, records: list[bytes], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read(write_archive(tmp_path / "x.warc.gz", *records))
    assert nothing_left(tmp_path)


def test_warc_reader_rejects_site_option(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "x.warc.gz", *RECORDS)
    with pytest.raises(UsageError, match="a web archive"):
        read(archive, site="http://a.org/")


@pytest.mark.process
@pytest.mark.skipif(shutil.which("wget") is None, reason="wget is not here")
def test_warc_reader_reads_wget_archive(served: Served, tmp_path: Path) -> None:
    served.page("/", "sub", "b.html", "lost.html")
    served.page("/b.html", "/", title="Bee")
    served.pages["/sub"] = 301, {"Location": "/sub/"}, b""
    served.page("/sub/", "../b.html")
    home = served.url + "/"
    command = ["wget", "-q", "-r", "--no-proxy", "-e", "robots=off", "--warc-file=x", home]
    subprocess.run(command, cwd=tmp_path, check=False, timeout=60)
    found, source = read_path(tmp_path / "x.warc.gz")
    page, sub = home + "b.html", home + "sub/"
    assert found == {(home, sub), (home, page), (page, home), (sub, page)}
    assert source["others"]["broken"] == 1
    assert source["redirects"] == 1


def test_warc_reader_normalizes_urls(tmp_path: Path) -> None:
    archive = write_archive(
        tmp_path / "x.warc.gz",
        page("http://a.org/%7Ea?utm_source=x", "b?gclid=1#2", "c?fbclid=1", title="Tilde"),
        page(B, "~a"),
        redirect("http://a.org/c?fbclid=2", "/~a?utm_id=3"),
    )
    graph = graph_of(archive, normalize_urls=True, keep_self_loops=True, threads=1)
    tilde = "http://a.org/~a"
    assert set(links(graph)) == {(tilde, B), (tilde, tilde), (B, tilde)}
    assert title_of(graph, tilde) == "Tilde"


def test_related_reads_archive_directly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = write_archive(tmp_path / "x.warc.gz", *RECORDS, page(D, "b", "c", title="Dee"))
    assert main(["related", str(archive), A, "--no-cache"]) == 0
    assert "Dee" in capsys.readouterr().out
    assert main(["ingest", str(archive), "-o", str(tmp_path / "g"), "--input-format", "warc"]) == 0
    assert "x.warc.gz: 4 pages in a web archive; 6 links" in capsys.readouterr().err
