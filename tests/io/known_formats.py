"""A small sample of each common format, as its own programs write it."""

import base64

BIBTEX = """@article{page1999,
  title = {The PageRank citation ranking},
}
@inproceedings{jeh2002, title={SimRank}, year={2002}, crossref={kdd02}}
"""
RIS = "TY  - JOUR\nAU  - Jeh, Glen\nTI  - SimRank\nDO  - 10.1145/775047.775126\nER  -\n"
ENDNOTE = "%0 Journal Article\n%T SimRank\n%A Jeh, Glen\n%A Widom, Jennifer\n%D 2002\n"
MEDLINE = "PMID- 12345678\nOWN - NLM\nTI  - A measure of structural-context\n      similarity\n"
WEB_OF_SCIENCE = """FN Clarivate Analytics Web of Science
VR 1.0
PT J
AU Jeh, G
   Widom, J
CR Page L, 1999, TR
ER
EF
"""
ENDNOTE_XML = """<?xml version="1.0" encoding="UTF-8"?>
<xml><records><record><rec-number>1</rec-number><titles><title>SimRank</title></titles>
</record></records></xml>
"""
DOT = 'digraph G {\n  rankdir=LR;\n  "a" -> "b" [weight=2];\n  b -> c;\n}\n'
PAJEK = '*Vertices 2\n1 "a"\n2 "b"\n*Arcs\n1 2 1\n'
UCINET = "dl n=3 format=edgelist1\nlabels:\na,b,c\ndata:\n1 2 1\n2 3 1\n"
TGF = "1 First node\n2 Second node\n#\n1 2 Edge between them\n"
MERMAID = "graph TD\n    A[Start] --> B{Is it?}\n    B -->|Yes| C[OK]\n    B --> D\n"
PLANTUML = "@startuml\nAlice -> Bob: Request\nBob --> Alice: Response\n@enduml\n"
GEOJSON = """{"type": "FeatureCollection", "features": [
 {"type": "Feature", "geometry": {"type": "Point", "coordinates": [13.4, 52.5]},
  "properties": {"name": "Berlin"}}]}
"""
GEOJSON_LINES = (
    '{"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}}\n'
    '{"type": "Feature", "geometry": {"type": "Point", "coordinates": [3, 4]}}\n'
)
JSON_LOG = (
    '{"level": "info", "time": "2024-05-01T10:00:00Z", "msg": "started", "port": 8080}\n'
    '{"level": "warn", "time": "2024-05-01T10:00:01Z", "msg": "slow query", "ms": 512}\n'
)
NOTEBOOK = '{"cells": [{"cell_type": "code", "source": ["1 + 1"]}],\n "nbformat": 4}\n'
PACKAGE_JSON = (
    '{\n  "name": "me",\n  "version": "1.0.0",\n  "dependencies": {"left-pad": "^1.3"}\n}\n'
)
TSCONFIG = '{\n  // strict\n  "compilerOptions": {"strict": true},\n  "include": ["src"]\n}\n'
ACCESS_LOG = (
    '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 200 2326\n'
    '127.0.0.1 - - [10/Oct/2000:13:55:37 -0700] "GET /b HTTP/1.0" 404 12 "-" "Mozilla/5.0 (X11)"\n'
)
SYSLOG = (
    "May  1 10:00:00 host sshd[812]: Accepted publickey for me from 10.0.0.7 port 5022\n"
    "May  1 10:00:02 host systemd[1]: Started Session 4 of user me.\n"
)
APP_LOG = (
    "2024-05-01 10:00:00,123 INFO  app.main: started\n"
    "2024-05-01 10:00:01,456 ERROR app.db: lost connection\n"
    "2024-05-01 10:00:01,457 INFO  app.db: again\n"
)
PYTHON = "import os\nimport sys\n\n\ndef main() -> None:\n    print(os.name, sys.argv)\n"
C = '#include <stdio.h>\n\nint main(void)\n{\n    printf("%d\\n", 1);\n    return 0;\n}\n'
JAVA = (
    "package org.example;\n\nimport java.util.List;\n\n"
    "public class Main {\n    public static void main(String[] args) { }\n}\n"
)
JAVASCRIPT = (
    "import React from 'react';\nconst a = require('b');\n\n"
    "export default function App() {\n  return a(1, 2);\n}\n"
)
RUST = 'use std::fs;\n\nfn main() {\n    let x = fs::read("a").unwrap();\n}\n'
GO = 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Println("x")\n}\n'
HASKELL = "module Main where\n\nimport Data.List\n\nmain :: IO ()\nmain = print 1\n"
R_CODE = "library(ggplot2)\nx <- c(1, 2, 3)\nplot(x, x^2)\n"
SHELL = '#!/bin/sh\nset -e\nfor f in *.txt; do\n  cp "$f" out/\ndone\n'
MAKEFILE = "CC = gcc\n\nall: main.o\n\t$(CC) -o main main.o\n\nmain.o: main.c\n\t$(CC) -c main.c\n"
DOCKERFILE = "FROM python:3.12\nWORKDIR /app\nCOPY . .\nRUN pip install .\n"
CSS = "body {\n  margin: 0;\n  color: #333;\n}\na:hover { color: red; }\n"
YAML = "name: build\non: [push]\njobs:\n  test:\n    steps:\n      - run: make\n"
CONDA = "name: env\nchannels:\n  - conda-forge\ndependencies:\n  - python=3.12\n  - numpy\n"
TOML = '[project]\nname = "x"\nversion = "1"\n\n[tool.ruff]\nline-length = 100\n'
INI = '[core]\nname = x\npath = /tmp\n\n[remote "origin"]\nurl = https://example.org\n'
PROPERTIES = "# made\napp.name=x\napp.port=8080\ndb.url=jdbc:postgresql://h/d\n"
DOTENV = "SECRET=abc\nexport PORT=80\nURL=https://example.org/\n"
MBOX = """From me@example.org Sat Jan  1 00:00:00 2000
From: Me <me@example.org>
Message-ID: <1@example.org>

Dear you,
"""
EML = """Received: from a.example.org by b.example.org; Sat, 1 Jan 2000 00:00:00 +0000
From: Me <me@example.org>

Dear you,
"""
VCARD = "BEGIN:VCARD\nVERSION:3.0\nFN:Ada Lovelace\nEMAIL:ada@example.org\nEND:VCARD\n"
ICALENDAR = "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\nDTSTART:20240501T100000Z\nEND:VEVENT\n"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9"><a href="x"><circle r="4"/></a></svg>\n'
RSS = """<?xml version="1.0"?>
<rss version="2.0"><channel><title>News</title>
<item><link>https://example.org/1</link></item></channel></rss>
"""
ATOM = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title>
<entry><link href="https://example.org/1"/></entry></feed>
"""
OPML = '<opml version="2.0"><body>\n<outline xmlUrl="https://example.org/f"/>\n</body></opml>\n'
KML = '<kml xmlns="http://www.opengis.net/kml/2.2"><Placemark><name>A</name></Placemark></kml>\n'
PLIST = '<?xml version="1.0"?>\n<plist version="1.0"><dict><key>a</key><true/></dict></plist>\n'
LATEX = "\\documentclass{article}\n\\begin{document}\nAs \\cite{jeh2002} says, $a, b$.\n"
BBL = "\\begin{thebibliography}{9}\n\\bibitem{jeh2002} Jeh, Widom.\n\\end{thebibliography}\n"
MARKDOWN = (
    "# Reading list\n\nSome [papers](papers.md) on links, and [[Other notes]].\n\n- one\n- two\n"
)
FRONT_MATTER = "---\ntitle: A note\ntags: [a, b]\n---\n\nSee [[Other note]].\n"
RST = "Title\n=====\n\n.. toctree::\n\n   a\n   b\n\nSee :doc:`other`.\n"
PROSE = (
    "It was the best of times, it was the worst of times, it was the age of\nwisdom, it was the "
    "age of foolishness.\n\nIt was the epoch of belief, it was the season\nof Light.\n"
)
DIFF = "diff --git a/x.txt b/x.txt\n--- a/x.txt\n+++ b/x.txt\n@@ -1,2 +1,2 @@\n-a b\n+a c\n"
GIT_LOG = """commit 83db48f0a1b2c3d4e5f60718293a4b5c6d7e8f90
Author: Me <me@example.org>
Date:   Sat Jan 1 00:00:00 2000 +0000

    First
"""
SQL = "-- dump\nCREATE TABLE `links` (\n `a` int\n);\nINSERT INTO `links` VALUES (1,2);\n"
QUERY = "SELECT src, dst\nFROM links\nWHERE src <> dst;\n"
YARN_LOCK = """# THIS IS AN AUTOGENERATED FILE. DO NOT EDIT THIS FILE DIRECTLY.
# yarn lockfile v1


left-pad@^1.3.0:
  version "1.3.0"
"""
PNPM_LOCK = "lockfileVersion: '9.0'\n\nimporters:\n  .:\n    dependencies:\n      a: 1.0\n"
GEMFILE_LOCK = (
    "GEM\n  remote: https://rubygems.org/\n  specs:\n    rails (7.0)\n      rack (~> 2.2)\n"
)
GO_SUM = "a.org/x v1.0.0 h1:AbC=\na.org/x v1.0.0/go.mod h1:DeF=\n"
SUBTITLES = (
    "1\n00:00:01,000 --> 00:00:04,000\nHello, you\n\n2\n00:00:05,000 --> 00:00:06,000\nYes\n"
)
FASTA = ">sp|P1|A_HUMAN Protein A\nMKTAYIAKQR\nQISFVKSHFS\n>sp|P2|B_HUMAN Protein B\nMSEQ\n"
VCF = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\n1\t10\trs1\tA\tT\n"
PEM = "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmg\nAwIBAgIUQz==\n-----END CERTIFICATE-----\n"
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog >>\nendobj\n"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

REFUSED: dict[str, list[str | bytes]] = {
    "BibTeX": [BIBTEX],
    "a list of works (RIS, EndNote, MEDLINE, Web of Science)": [
        *(RIS, ENDNOTE, MEDLINE, WEB_OF_SCIENCE)
    ],
    "Graphviz (DOT)": [DOT],
    "Pajek": [PAJEK],
    "a DIMACS, GDF, graph6 or UCINET graph": [UCINET],
    "a diagram (Mermaid, PlantUML)": [MERMAID, PLANTUML],
    "JSON": [GEOJSON, NOTEBOOK, PACKAGE_JSON],
    "XML": [ENDNOTE_XML, SVG, RSS, ATOM, OPML, PLIST],
    "a script": [SHELL],
    "a contacts or calendar file (vCard, iCalendar)": [VCARD, ICALENDAR],
    "LaTeX": [LATEX, BBL],
    "a diff": [DIFF],
    "a Git log": [GIT_LOG],
    "SQL": [SQL],
    "a log": [SYSLOG, APP_LOG],
    "a yarn or pnpm lock file": [YARN_LOCK, PNPM_LOCK],
    "a Bundler lock file": [GEMFILE_LOCK],
    "a list of modules (go.sum)": [GO_SUM],
    "a subtitle file": [SUBTITLES],
    "a variant file (VCF, GFF)": [VCF],
    "a certificate or key (PEM)": [PEM],
    "a PDF": [PDF],
    "an image": [PNG],
}
"""Samples by the name in the error; ``test_every_reader.py`` has samples of readable formats."""
AMBIGUOUS = {"objects with 'level', 'time', 'msg', 'port'; it is unclear which are": JSON_LOG}
"""Samples by the message that asks for a choice."""
NOT_TABLES = [
    *(TGF, GEOJSON_LINES, TSCONFIG, ACCESS_LOG, PYTHON, C, JAVA, JAVASCRIPT),
    *(RUST, GO, HASKELL, R_CODE, MAKEFILE, DOCKERFILE, CSS, YAML, CONDA, TOML, INI, PROPERTIES),
    *(DOTENV, MBOX, EML, KML, MARKDOWN, FRONT_MATTER, RST, PROSE, QUERY, FASTA),
]
"""Samples without a signature of their own, refused as malformed rows."""
