"""Labels, texts and tables from folders, archives and Parquet files, and their errors."""

import gzip
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from cocite import Graph
from cocite.errors import InputError, MalformedRow, UsageError
from cocite.evaluation import read_labels, read_texts
from cocite.io.readers import read_values

MakeGraph = Callable[..., Graph]


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    return make_graph([("U.S._Navy", "Ship"), ("Ship", "100%_Ünï")])


@pytest.mark.parametrize(("columns", "warned"), [((1, 2), True), ((1, 3), False)])
def test_read_labels_warns_about_single_node_labels(
    make_graph: MakeGraph,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    columns: tuple[int, int],
    warned: bool,
) -> None:
    graph = make_graph([(i, i + 1) for i in range(20)])
    path = tmp_path / "labels.tsv"
    path.write_text("".join(f"{i}\thost {i}\tkind {i % 2}\n" for i in range(20)))
    read_labels(path, graph.names, columns)
    message = "20 of its 20 labels have a single node"
    assert (message in caplog.text, "columns 1 and 2" in caplog.text) == (warned, warned)


def test_read_values_reads_text(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text('\ufeff# a comment\r\n\r\na\tx y\t1\r\nb\t"q\t2\r\n', "utf-8")
    assert list(read_values(path)) == [("a", "x y"), ("b", '"q')]
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(b'a,"x, y"\nb,z\n'))
    assert list(read_values(packed)) == [("a", "x, y"), ("b", "z")]


def test_read_values_reads_parquet(tmp_path: Path) -> None:
    path = tmp_path / "any name"
    rows = "SELECT 7 AS id, 'x' AS b UNION ALL SELECT 8, 'y' UNION ALL SELECT 9, NULL"
    duckdb.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    assert sorted(read_values(path)) == [("7", "x"), ("8", "y")]


def test_read_values_reports_invalid_table(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("# c\na\tb\n\nc\n")
    with pytest.raises(MalformedRow, match=r"t.tsv:4: only 1 of 2 columns: 'c'"):
        list(read_values(path))
    with pytest.raises(InputError, match="is not a file"):
        read_values(tmp_path / "none.tsv")
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(b"a\tb\n" * 1000)[:-9])
    with pytest.raises(InputError, match="cannot be read"):
        list(read_values(cut))


def test_read_labels_splits_paths_and_counts_unknown_nodes(tmp_path: Path, graph: Graph) -> None:
    path = tmp_path / "l.tsv"
    path.write_text("Ship\tsubject.Sea.Ships\nShip\tsubject.War\nnobody\tx\nShip\tsubject.War\n")
    found = read_labels(path, graph.names)
    assert set(found.paths) == {("subject", "Sea", "Ships"), ("subject", "War")}
    assert found.labeled.tolist() == [graph.names.id("Ship")]
    assert (found.nodes.size, found.unknown) == (2, 1)
    whole = read_labels(path, graph.names, separator="")
    assert ("subject.War",) in whole.paths
    with pytest.raises(InputError, match=r"no labels for nodes of the graph\. Its names are 'subj"):
        read_labels(path, graph.names, columns=(2, 1))


def test_read_labels_selects_columns_by_name_or_number(tmp_path: Path, graph: Graph) -> None:
    path = tmp_path / "l.csv"
    path.write_text("id,Topic,Page\n1,sea,Ship\n2,war,U.S._Navy\n")
    for columns in (("page", "topic"), ("Page", "2"), (3, 2)):
        found = read_labels(path, graph.names, columns, header="yes")
        assert found.paths == (("sea",), ("war",))
        assert "name and label in columns 3 and 2" in found.read
    with pytest.raises(UsageError, match="has no column 'kind'; its columns are 'id', 'Topic'"):
        read_labels(path, graph.names, ("page", "kind"))
    with pytest.raises(UsageError, match="columns page,topic are column names, but header is no"):
        read_labels(path, graph.names, ("page", "topic"), header="no")
    with pytest.raises(UsageError, match="are the same column"):
        read_labels(path, graph.names, ("page", "3"), header="yes")
    with pytest.raises(UsageError, match="has no column '0'"):
        read_labels(path, graph.names, (0, 1))
    other = tmp_path / "any"
    rows = "SELECT 'sea' AS topic, 'Ship' AS page"
    duckdb.execute(f"COPY ({rows}) TO '{other}' (FORMAT parquet)")
    assert read_labels(other, graph.names, ("page", "topic")).paths == (("sea",),)
    assert (
        "Parquet, name and label in columns 2 and 1" in read_labels(other, graph.names, (2, 1)).read
    )
    with pytest.raises(UsageError, match="has no column '3'; its columns are '1', '2'"):
        read_labels(other, graph.names, (1, 3))


def test_read_labels_header_is_not_node_row(tmp_path: Path, make_graph: MakeGraph) -> None:
    graph = make_graph([("page", "Ship"), ("Ship", "x")])
    path = tmp_path / "l.tsv"
    path.write_text("page\tcategory\nShip\tsea\n")
    assert read_labels(path, graph.names).nodes.size == 2
    assert read_labels(path, graph.names, header="yes").nodes.size == 1
    assert read_labels(path, graph.names, header="no").nodes.size == 2


def test_read_labels_bad_rows_are_refused_or_counted(tmp_path: Path, graph: Graph) -> None:
    path = tmp_path / "l.tsv"
    path.write_text("Ship\tsea\nShip\nU.S._Navy\twar\n\tsea\n")
    with pytest.raises(MalformedRow, match=r"l\.tsv:2: only 1 of 2 columns: 'Ship'"):
        read_labels(path, graph.names)
    found = read_labels(path, graph.names, bad_rows="few")
    assert found.nodes.size == 2
    assert "left out 2 bad rows, such as line 2: only 1 of 2 columns" in found.read
    path.write_text("Ship\tsea\nShip\nU.S._Navy\n")
    with pytest.raises(InputError, match="2 of 3 rows are bad, more than half"):
        read_labels(path, graph.names, bad_rows="few")
    assert read_labels(path, graph.names, bad_rows="all").nodes.size == 1


def test_read_labels_refuses_ambiguous_format(tmp_path: Path, graph: Graph) -> None:
    path = tmp_path / "l"
    path.write_text("Ship sea\nNew York city\n")
    with pytest.raises(UsageError, match="2 to 3 columns separated by blanks, as in 'Ship sea'"):
        read_labels(path, graph.names)
    with pytest.raises(MalformedRow, match=r"l:2: 3 blank-separated columns, not 2"):
        read_labels(path, graph.names, delimiter="space")
    path.write_text("<html><body>Ship</body></html>\n")
    with pytest.raises(UsageError, match="is an HTML page; labels must be rows of name and label"):
        read_labels(path, graph.names)
    with pytest.raises(UsageError, match="delimiter is 'dot'; it must be auto or tab"):
        read_labels(path, graph.names, delimiter="dot")


TEXTS = {"U.S._Navy.txt": "ships", "Ship": "a hull", "100%_Ünï.html": "ü", "stranger.txt": "no"}


def pack(path: Path) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in TEXTS.items():
            info = tarfile.TarInfo(f"texts/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


@pytest.mark.parametrize("kind", ["folder", "archive", "table"])
def test_read_texts_reads_folder_archive_and_table(tmp_path: Path, graph: Graph, kind: str) -> None:
    path = tmp_path / "texts"
    if kind == "folder":
        (path / "below").mkdir(parents=True)
        for name, text in TEXTS.items():
            (path / "below" / name).write_text(text, "utf-8")
    elif kind == "archive":
        path = pack(tmp_path / "texts.tar.gz")
    else:
        path.write_text("".join(f"{name}\t{text}\n" for name, text in TEXTS.items()), "utf-8")
    found = read_texts(path, graph.names)
    assert {graph.names.name(node): text for node, text in found.items()} == {
        "U.S._Navy": "ships",
        "Ship": "a hull",
        "100%_Ünï": "ü",
    }


def test_read_texts_refuses_texts_without_nodes(tmp_path: Path, graph: Graph) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x.txt").write_text("x")
    with pytest.raises(InputError, match="contains no text with the name of a node"):
        read_texts(tmp_path / "folder", graph.names)
    with pytest.raises(InputError, match="does not exist"):
        read_texts(tmp_path / "nothing", graph.names)
