"""Labels and texts that unpack to too much are refused in bounded memory."""

import gzip
import io
import resource
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cocite
from cocite.errors import InputError, MalformedRow, ResourceError
from cocite.evaluation import read_labels, read_texts
from cocite.io.readers.tables import LONGEST
from tests.conftest import MakeGraph

NODES = [("a", "b"), ("b", "c"), ("c", "a")]
MEGABYTE = b"z" * (1 << 20)

CHILD = """
import sys
from pathlib import Path
from cocite.cli.main import main

code = main(sys.argv[1:])
# The peak of this process alone: that of getrusage starts at the peak of the parent.
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(int(status["VmHWM"].split()[0]) // 1024, file=sys.stderr)
sys.exit(code)
"""


def run_failing(command: Sequence[object], **options: Any) -> tuple[str, int]:
    """Run a command that fails; return its stderr and its peak memory in MB."""
    arguments = [sys.executable, "-c", CHILD, *map(str, command)]
    done = subprocess.run(arguments, check=False, capture_output=True, text=True, **options)
    assert done.returncode == 1, done.stderr
    return done.stderr, int(done.stderr.splitlines()[-1])


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 MB of one line, in 600 kB."""
    path = tmp_path_factory.mktemp("endless") / "x.tsv.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        for piece in [b"a\tx y\nb\tx z\nc\t", *[MEGABYTE] * 600, b"\n"]:
            file.write(piece)
    return path


@pytest.mark.process
@pytest.mark.parametrize("option", ["--labels", "--texts"])
def test_evaluate_refuses_endless_line(
    make_graph: MakeGraph, tmp_path: Path, endless: Path, option: str
) -> None:
    """It took 2.5 GB, or 3 GB as text."""
    cocite.build(make_graph(NODES), tmp_path / "i")
    command = ["evaluate", tmp_path / "i", option, endless, "--memory", "300MB"]
    stderr, peak = run_failing(command)
    assert "x.tsv.gz:3: the line is longer than 33,554,432 characters" in stderr
    assert peak < 600


def repeated(path: Path, text: str, rows: int = 3000) -> Path:
    """A Parquet file of some kilobytes that repeats one long text."""
    texts = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([text]))
    names = pa.array(["a", "b", "c", *map(str, range(rows - 3))])
    pq.write_table(pa.table({"name": names, "title": texts}), path, compression="zstd")
    return path


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["ingest", "l.tsv", "-o", "g", "--titles"], "a value of more than 1,048,576 bytes"),
        (["evaluate", "i", "--texts"], "has 61.4 GB of text in 2,048 rows"),
    ],
)
def test_parquet_reader_refuses_repeated_long_value(
    make_graph: MakeGraph, tmp_path: Path, command: list[str], message: str
) -> None:
    """3,000 rows of 30 million letters in 50 kB: 90 GB, up to 60 GB at a time."""
    (tmp_path / "l.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in NODES))
    cocite.build(make_graph(NODES), tmp_path / "i")
    file = repeated(tmp_path / "x.parquet", "z" * 30_000_000)
    assert file.stat().st_size < 100_000
    bounded = partial(resource.setrlimit, resource.RLIMIT_AS, (8 << 30, 8 << 30))
    stderr, peak = run_failing(
        [*command, file, "--memory", "400MB"], cwd=tmp_path, preexec_fn=bounded
    )
    assert message in stderr
    assert peak < 1000


def test_read_labels_refuses_long_label(make_graph: MakeGraph, tmp_path: Path) -> None:
    names = make_graph(NODES).names
    for label, valid in (("x" * 65_535, True), ("x" * 65_536, False)):
        (tmp_path / "l.tsv").write_text(f"a\tx\nb\t{label}\n")
        if valid:
            assert (label,) in read_labels(tmp_path / "l.tsv", names, header="no").paths
        else:
            with pytest.raises(MalformedRow, match="a name or label of more than 65,535"):
                read_labels(tmp_path / "l.tsv", names, header="no")


def test_read_labels_respects_memory_limit(make_graph: MakeGraph, tmp_path: Path) -> None:
    names = make_graph(NODES).names
    (tmp_path / "l.tsv").write_text("".join(f"a\tlabel {i}\n" for i in range(5000)))
    assert len(read_labels(tmp_path / "l.tsv", names, header="no", memory=10**7).paths) == 5000
    with pytest.raises(ResourceError, match=r"the 5,000 labels of .*needs 6\.\d+ MB of memory"):
        read_labels(tmp_path / "l.tsv", names, header="no", memory=500_000)


def test_read_labels_counts_unknown_nodes(make_graph: MakeGraph, tmp_path: Path) -> None:
    names = make_graph(NODES).names
    rows = "".join(f"stranger {i}\tx\n" for i in range(5000))
    (tmp_path / "l.tsv").write_text(f"a\tx\n{rows}")
    assert read_labels(tmp_path / "l.tsv", names, header="no", memory=2000).unknown == 5000
    (tmp_path / "l.tsv").write_text(rows)
    with pytest.raises(
        InputError, match=r"names are 'stranger 0', 'stranger 1', 'stranger 2'\. The"
    ):
        read_labels(tmp_path / "l.tsv", names, header="no")


def test_read_texts_respects_memory_limit(make_graph: MakeGraph, tmp_path: Path) -> None:
    names = make_graph(NODES).names
    file = tmp_path / "t.tsv"
    file.write_text("".join(f"{name}\t{'word ' * 20_000}\n" for name in "abc"))
    assert len(read_texts(file, names, memory=150_700_000)) == 3
    with pytest.raises(ResourceError, match=r"the words of .* needs 151 MB of memory"):
        read_texts(file, names, memory=150_500_000)


def test_read_texts_refuses_large_file(make_graph: MakeGraph, tmp_path: Path) -> None:
    names = make_graph(NODES).names
    content = bytes(LONGEST + 1)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_bytes(content)
    with tarfile.open(tmp_path / "texts.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("a.txt")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    for source in ("texts", "texts.tar.gz"):
        with pytest.raises(InputError, match="has more than 33,554,432 bytes"):
            read_texts(tmp_path / source, names)
