"""Wrong commands: one message that says what to do, an exit code, and no file."""

import json
import re
import shlex
from pathlib import Path

import pytest

import cocite
from tests.conftest import Ask

LINKS = "hub\tone\nhub\ttwo\nhub\t[red]three[/]\nother\tone\nother\ttwo\n"
FILES = {
    "links.tsv": LINKS,
    "a file.tsv": LINKS,
    "bad.tsv": "".join(f"a{i}\tb\n" for i in range(30)) + "a\n",
    "tsvs/1.tsv": LINKS,
    "draft.txt": "one\nunheard of\n",
    "pairs.tsv": "one\ttwo\n",
    "wide.csv": "number,to,from\n0,one,two\n",
    "strangers.tsv": "one\ttwo\nx\tone\ny\tz\n",
    "mine.npy": "mine",
    "page.html": "<html>\n<a href='x'>y</a>\n</html>\n",
    "towns.txt": "New York  Los Angeles\nParis  New York\n",
    "a.pdf": "%PDF-1.7\n1 0 obj\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of links and of names, their graph ``g``, and an index ``i`` of psimrank."""
    folder = tmp_path_factory.mktemp("errors")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "empty").mkdir()
    graph = cocite.ingest(folder / "links.tsv", folder / "g", header="no")
    cocite.build(graph, folder / "i", samples=40, seed=1, measure="psimrank")
    return folder


MANY = "--threads 99999999999"
THREADS = "threads is 99999999999; it must be a whole number from 1 to 1,024"
SOURCE = "pass a graph, an index, an edge list or --cache"
OPEN = "it must be a number above 0 and below 1"
OTHER = "Choose another output, or pass --overwrite"
FIRST = "must come first: pass the"
WHOLE = "it must be a whole number, 1 or more, not"
A_FOLDER = (
    "is a folder with 1 file, such as 1.tsv, and is not a cocite graph or index; it has no HTML "
)
TO_QUERY = "'a file.tsv' is a file, not a command. To query it: cocite related 'a file.tsv'"
GENERATE = "generate web -o x"
WRONG: dict[str, list[tuple[str, int, str]]] = {
    "commands": [
        ("relatd x", 2, "There is no command 'relatd'. Did you mean related"),
        ("indx x", 2, "There is no command 'indx'. Did you mean index"),
        ("xyzzy x", 2, "Error: There is no command 'xyzzy'."),
        ("'a file.tsv' a", 2, f"{TO_QUERY} a"),
        ("'a file.tsv'", 2, f"{TO_QUERY} PAGE"),
        ("help relate", 2, "Did you mean related"),
        ("help related all", 2, "has no subcommands"),
        ("measures simrnk", 2, "Did you mean simrank?"),
    ],
    "nodes": [
        ("related i tow", 2, "no node is named 'tow'; the nearest name is 'two'"),
        ("why i one tow", 2, "no node is named 'tow'; the nearest name is 'two'"),
        ("related i -- -k", 2, "no node is named '-k'"),
        ("similarity i one ?", 2, "no node is named '?'"),
        ("related i", 2, "no node is given: pass a node, or a draft with --draft"),
        ("why i one", 2, "why needs two nodes, but only 'one' is given"),
        ("related - -", 2, "cannot provide both links and names"),
        (
            "nodes i hack --search hub",
            2,
            "'hack' and --search 'hub' both set the text to search for: omit one",
        ),
        ("related links.tsv tsvs/1.tsv one", 2, "To query several edge lists, pass a pattern"),
    ],
    "numbers": [
        ("related i one -k abc", 2, f"Error: Invalid value for '-k': {WHOLE} 'abc'"),
        ("related i one -k 0", 2, f"Error: Invalid value for '-k': {WHOLE} 0"),
        ("why i one two -k 0", 2, f"Error: Invalid value for '-k': {WHOLE} 0"),
        ("related i one --min-score low", 2, "'--min-score': it must be a number, not 'low'"),
        ("related g one --samples 1.5", 2, "'--samples': it must be a whole number, not '1.5'"),
        ("related i one --min-score -1", 2, "Error: --min-score is -1.0; it must be"),
        ("related i one --target-error 7", 2, "Error: --target-error is 7.0; it must be"),
        ("related i one --decay 2", 2, "Error: --decay is 2.0; it must be"),
        ("related i one --confidence 3", 2, "Error: --confidence is 3.0; it must be"),
        ("related i one --min-confidence 9", 2, f"Error: --min-confidence is 9.0; {OPEN}"),
        ("related i one --min-confidence 9 --refine", 2, f"Error: --min-confidence is 9.0; {OPEN}"),
        (
            "refresh i g --fraction 2",
            2,
            "--fraction is 2.0; it must be a number above 0, at most 1",
        ),
        ("index g -o x --measure simrank --length 16", 2, "length is 16"),
        ("index g -o x --memory lots", 2, "'lots' is not a size"),
        ("ingest links.tsv -o x --memory x", 2, "'x' is not a size; write a size like 600MB"),
        ("ingest links.tsv -o x --threads 0", 2, "Invalid value for '--threads'"),
        (f"ingest links.tsv -o x {MANY}", 2, THREADS),
        (f"index g -o x {MANY}", 2, THREADS),
        (f"refresh i g {MANY}", 2, THREADS),
        (f"related-all i -o x.csv {MANY}", 2, THREADS),
        (f"all-pairs g -o x.csv {MANY}", 2, THREADS),
        (f"plan g {MANY}", 2, THREADS),
        (f"{GENERATE} --pages 0 --links 0", 2, "--pages is 0; a graph has 1 to 4,294,967,295"),
        (
            f"{GENERATE} --pages 5 --links 11",
            2,
            "--links is 11; a generated graph of 5 nodes has 0 ",
        ),
        (f"{GENERATE} --pages 5 --links 5 --seed -3", 2, "--seed is -3; it must be 0 to 2**64 - 1"),
        (f"{GENERATE} --pages x --links 5", 2, "Invalid value for '--pages'"),
        (f"{GENERATE} --pages 5", 2, "Missing option '--links'"),
    ],
    "words": [
        ("related i one --format xml", 2, "'xml' is not one of"),
        ("similarity i one two --format gexf", 2, "'gexf' is not one of"),
        ("info g --format xml", 2, "Invalid value for '--format'"),
        ("ingest links.tsv -o x --delimiter x", 2, "Invalid value for '--delimiter'"),
        ("watch links.tsv --format csv", 2, "lines of text or JSON"),
        ("index g -o x --measure pagerank", 2, "no measure is called"),
        ("related i one --max-edgs 1", 2, "'--max-edges'"),
        ("related i one --confidense 1", 2, "'--confidence'"),
        ("related i one --mesure 1", 2, "'--measure'"),
        ("related i one --sample 3", 2, "'--samples'"),
        (f"{GENERATE} --pages 5 --links 5 --names urls", 2, "Invalid value for '--names'"),
        (
            "plan g --measure psimrank --time '1 day'",
            2,
            "'1 day' is not a time; write a time like 90s, ",
        ),
    ],
    "options that do not apply": [
        ("related i one --samples 9", 2, "takes samples when building its index"),
        ("why i one two --samples 9", 2, "takes samples when building its index"),
        ("why i one two --idf", 2, "psimrank has no setting 'idf' when asking"),
        (
            "related-all i -o x.csv --measure simrank",
            2,
            "--measure is fixed when an index is built",
        ),
        ("why g one two --measure tfidf", 2, "needs an index with texts: cocite index"),
        ("related g one --graph g", 2, "g is a graph itself: omit --graph"),
        ("why g one two --graph g", 2, "g is a graph itself: omit --graph"),
        ("related links.tsv one --graph g", 2, "links.tsv is an edge list: omit --graph"),
        ("index g -o x --refine", 2, "--refine stores data for simrank"),
        (
            "related i one --delay 3",
            2,
            "--delay is an option of cocite ingest: cocite ingest LINKS ",
        ),
        ("nodes g x --no-cache", 2, "g is a stored graph or index, and nothing is cached for it: "),
        ("watch --no-cache links.tsv", 2, "omit --no-cache"),
        ("plan g --measure cocitation --delta 0.1", 2, "cocitation has no samples, so delta"),
        ("plan g --measure pagesim --samples 9", 2, "pagesim has no build setting 'samples'"),
        (
            "plan g --measure psimrank --samples 9 --disk 1GB",
            2,
            "samples and disk exclude each other",
        ),
        ("info", 2, SOURCE),
        ("info somewhere --cache", 2, SOURCE),
    ],
    "inputs": [
        ("related none.tsv x", 1, "Error: none.tsv does not exist"),
        ("related i-not one", 1, "does not exist. To create a stored index: cocite index GRAPH"),
        ("related linsk.tsv x", 1, "Error: linsk.tsv does not exist. Did you mean links.tsv?"),
        (
            "related linkstsv x",
            1,
            "Did you mean links.tsv? To create a stored index: cocite index GRAPH",
        ),
        ("related away/links.tsv x", 1, "away/links.tsv does not exist. Neither does away"),
        ("related nothing* x", 1, "nothing*"),
        ("watch nowhere", 2, "nowhere is neither a folder nor an edge list"),
        (
            "info none",
            1,
            "Error: none does not exist. To create a stored graph: cocite ingest LINKS -o",
        ),
        ("ingest none -o x", 1, "Error: none: no such file, and no file matches it as a pattern"),
        ("ingest -o x", 2, "Missing argument 'LINKS...'"),
        ("related one i", 2, f"i {FIRST} index, then the nodes"),
        ("similarity one two i", 2, f"i {FIRST} index, then the nodes"),
        ("why one two i", 2, f"i {FIRST} index, then the nodes"),
        ("related x links.tsv", 2, f"links.tsv {FIRST} edge list, then"),
        ("related empty x", 2, "empty is a folder with no files"),
        ("related tsvs x", 2, f"tsvs {A_FOLDER}"),
        ("nodes tsvs", 2, f"{A_FOLDER}pages or notes either"),
        ("verify tsvs", 2, "quote a pattern: 'tsvs/*.tsv'"),
        ("info tsvs", 2, f"Error: tsvs {A_FOLDER}"),
        (
            "verify pairs.tsv",
            2,
            "pairs.tsv is not a stored graph or index, and nothing is cached for ",
        ),
        ("index i -o x", 1, "is a stored index; a stored graph is needed here"),
        ("why i one two --graph i", 1, "a stored graph is needed here"),
        ("why i one two --graph not", 1, "does not exist"),
        ("related a.pdf one", 2, "a.pdf"),
        ("related page.html x", 2, "Error: page.html is an HTML page, which cocite does not read"),
        ("related towns.txt x", 2, "--columns 1,2. If names"),
        ("related bad.tsv x", 1, "pass --bad-rows few"),
        (
            "nodes bad.tsv x",
            1,
            "These are options of cocite ingest bad.tsv -o DIR; then run cocite ",
        ),
        ("ingest a.pdf -o x", 2, "a.pdf"),
        ("related postgres://me@127.0.0.1/shop#orders x", 2, "store the links with cocite ingest"),
        ("ingest links.tsv -o x --columns x,y", 2, "Error: links.tsv has no column 'x'"),
        ("ingest links.tsv -o x --columns 1", 2, "Error: --columns is 1; it must be two"),
        ("ingest links.tsv -o x --comment ab", 2, "Error: --comment is 'ab'; it must be one ASCII"),
        ("ingest bad.tsv -o x", 1, "--bad-rows few to skip such rows"),
        (
            "ingest links.tsv -o x --memory 1MB",
            1,
            "Error: ingest needs 284 MB of memory; the limit is 1 MB",
        ),
    ],
    "drafts": [
        ("related i --draft draft.txt", 2, "1 unknown page: 'unheard of'"),
        ("why i one --draft draft.txt", 2, "1 unknown page: 'unheard of'"),
        ("related i one --draft draft.txt", 2, "either nodes, such as 'one', or a draft"),
        ("why i one two --draft draft.txt", 2, "either nodes, such as 'one', or a draft"),
        ("related i one --skip-unknown", 2, "--skip-unknown needs a draft"),
        ("related i one --draft-name x", 2, "--draft-name needs a draft"),
        (
            "related i --draft draft.txt --skip-unknown --draft-name two",
            2,
            "'two' is the name of a node",
        ),
    ],
    "pairs": [
        ("similarity i one two --pairs pairs.tsv", 2, "already provides all names: omit 'one'"),
        ("similarity i one", 2, "pass two nodes, A and B, or a file of pairs"),
        ("similarity i", 2, "pass two nodes, A and B, or a file of pairs"),
        ("similarity i one two -o x.csv", 2, "--output needs --pairs FILE"),
        ("similarity i one two --overwrite", 2, "--overwrite needs --pairs FILE"),
        ("similarity i --pairs none.tsv", 2, "none.tsv"),
        ("similarity i --pairs pairs.tsv -o x.png", 2, "it must end in one of"),
        ("similarity i --pairs pairs.tsv --append", 2, "--append needs a database table"),
        ("similarity i --pairs wide.csv --pair-columns 1", 2, "there must be two pair columns"),
        ("similarity i --pairs wide.csv --pair-columns a,to", 2, "has no column 'a'"),
        ("similarity i --pairs strangers.tsv", 2, "3 of the names are not nodes: 'x'"),
        ("similarity i --pairs pairs.tsv --side user", 2, "is not bipartite"),
    ],
    "outputs": [
        ("ingest links.tsv", 2, "Missing option '-o' / '--output'"),
        ("ingest links.tsv -o g", 1, f"Error: g exists. {OTHER}"),
        ("index g -o i", 1, f"Error: i exists. {OTHER}"),
        (
            "ingest links.tsv -o . --overwrite",
            2,
            "Error: the output is '.'; it must be the path of a new directory, such as ./links",
        ),
        ("ingest links.tsv -o links.tsv/x", 1, "Error: links.tsv/x.building cannot be created: "),
        (f"{GENERATE} --pages 5 --links 5 --labels .", 1, ". is a directory"),
        ("all-pairs g -o s.xlsx", 2, "ends in '.xlsx'; it must end in one of .parquet"),
        ("rank g -o r.xlsx", 2, "ends in '.xlsx'; it must end in one of .parquet"),
        ("all-pairs g -o mine.npy", 1, f"mine.npy exists. {OTHER}"),
        ("rank g -o mine.npy", 1, f"mine.npy exists. {OTHER}"),
        ("related-all i -o x.odd", 2, "ends in '.odd'; it must end in one of .parquet"),
        ("related-all i -o x", 2, "x has no extension; it must end in one of .parquet"),
        ("related-all i -o x.odd", 2, "; or set the format with --output-format"),
        ("rank g -o r", 2, "r has no extension; it must end in one of .parquet"),
        ("evaluate g -o r", 2, "r has no extension; a report must end in .html"),
        ("related-all i -o - --overwrite", 2, "do not apply to standard output"),
        *(
            (
                f"related-all i -o - --output-format {kind}",
                2,
                f"{kind} cannot be written to a pipe: choose one of csv, tsv, jsonl, arrow with "
                "--output-format",
            )
            for kind in ("parquet", "folder")
        ),
    ],
}
"""Commands, exit codes and parts of messages, by kind of error."""


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("command", "code", "message"), [case for cases in WRONG.values() for case in cases]
)
def test_commands_report_errors(
    folder: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch, command: str, code: int, message: str
) -> None:
    """Messages use the names of options, not Python's; also as JSON."""
    monkeypatch.chdir(folder)
    before = content(folder)
    actual, out, err = ask(*shlex.split(command))
    assert (actual, out) == (code, "")
    assert message in " ".join(err.split())
    assert "Traceback" not in err
    assert not re.search(r"\b[a-z_]+=", err)
    actual, out, err = ask("--log-json", *shlex.split(command))
    assert (actual, out) == (code, "")
    last = json.loads(err.splitlines()[-1])
    assert (last["level"], last["code"]) == ("error", code)
    assert message.removeprefix("Error: ") in " ".join(last["message"].split())
    assert content(folder) == before
