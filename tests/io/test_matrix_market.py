"""Matrix Market against SciPy's writer, and invalid matrices."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite.errors import InputError, MalformedRow, ResourceError, UnrecognizedInput, UsageError
from tests.io.plain import links, read, refused, weights_of

HEAD = "%%MatrixMarket matrix coordinate"
GENERAL = HEAD + " pattern general\n"


@settings(max_examples=15)
@given(
    st.integers(1, 7),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12),
    st.sampled_from(["pattern", "integer", "real"]),
    st.booleans(),
)
def test_matrix_market_reads_scipy_output(
    tmp_path: Path, n: int, cells: list[tuple[int, int]], field: str, symmetric: bool
) -> None:
    matrix = np.zeros((n, n))
    for number, (a, b) in enumerate(cells, 1):
        matrix[a % n, b % n] = number if field != "real" else number / 4
    matrix = np.maximum(matrix, matrix.T) if symmetric else matrix
    out = io.BytesIO()
    symmetry = "symmetric" if symmetric else "general"
    sparse = scipy.sparse.coo_array(matrix)
    scipy.io.mmwrite(out, sparse, comment="made\nhere", field=field, symmetry=symmetry)
    weight = None if field == "pattern" else "value"
    graph = read(
        tmp_path, gzip.compress(out.getvalue()), weight_column=weight, keep_self_loops=True
    )
    expected = {(str(a + 1), str(b + 1)): matrix[a, b] for a, b in np.argwhere(matrix)}
    assert set(links(graph)) == set(expected)
    assert list(graph.names) == [str(i + 1) for i in range(n)]
    assert graph.info().rows == len(expected)
    if weight:
        assert weights_of(graph) == expected


def test_matrix_market_read_as_explains_links(tmp_path: Path) -> None:
    content = HEAD + " pattern symmetric\n%\n\n 3 3 2 \n2 1\n% in between\n3 3\n"
    graph = read(tmp_path, content, "a.mtx")
    assert sorted(links(graph)) == [("1", "2"), ("2", "1")]
    assert graph.store.facts["sources"][0]["read_as"] == (
        "a.mtx: Matrix Market, rows link to columns, and are numbered from 1; the matrix is "
        "symmetric, so all links go both ways"
    )
    mirrored = read(tmp_path, content.replace("symmetric", "GENERAL"), "a.mtx", undirected=True)
    assert sorted(links(mirrored)) == [("1", "2"), ("2", "1")]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("%%MatrixMarket matrix\n1 1 0\n", InputError, "x:1: '%%MatrixMarket matrix' is"),
        (
            "%%MatrixMarket matrix array real general\n1 1\n1\n",
            UnrecognizedInput,
            "the qualifiers array, real and general",
        ),
        (HEAD + " real odd\n1 1 0\n", UnrecognizedInput, "coordinate, real and odd. cocite"),
        (HEAD + " real general\n%\n", InputError, "x:2: the line with rows, columns"),
        (HEAD + " real general\n2 2\n", InputError, "x:2: '2 2' is not three numbers"),
        (
            HEAD + " real general\n2 3 0\n",
            UnrecognizedInput,
            "2 rows and 3 columns: row 1 and column 1",
        ),
        (
            HEAD + f" real general\n{2**32} {2**32} 0\n",
            ResourceError,
            "4,294,967,296 rows; the maximum is",
        ),
        (GENERAL + "3 3 2\n1 2\n", InputError, "1 entries, but line 2 says 2"),
        (GENERAL + "3 3 1\n1 2\n1 3\n", InputError, "2 entries, but line 2 says 1"),
        (GENERAL + "3 3 2\n1 2\n1\n", MalformedRow, "x:4: not 2 blank-separated"),
        (GENERAL + "3 3 2\n1 2\n1 4\n", MalformedRow, "x, entry:2: an entry outside"),
        (GENERAL + "3 3 1\n0 1\n", MalformedRow, "outside 3 rows and columns: '0 1'"),
        (GENERAL + "3 3 1\n-1 1\n", MalformedRow, "outside 3 rows"),
    ],
)
def test_matrix_market_refuses_invalid_matrix(
    tmp_path: Path, content: str, error: type[Exception], message: str
) -> None:
    caught = refused(tmp_path, error, content, "x")
    assert message in str(caught)


def test_matrix_market_skips_bad_entries(tmp_path: Path) -> None:
    content = HEAD + " real general\n3 3 5\n1 2 1\n1 9 1\n2 3 x\n3 1 -1\n2 3 1\n"
    graph = read(tmp_path, content, bad_rows="all", weight_column=3)
    assert links(graph) == [("1", "2"), ("2", "3")]
    assert graph.store.facts["sources"][0]["bad_rows"] == {"weight": 2, "outside": 1}


@pytest.mark.parametrize(
    ("kind", "column", "message"),
    [
        ("real general", "4", "has no column '4'; the values of entries are in column 3"),
        ("pattern general", "3", "pattern general matrix, which has no values to use as weights"),
        ("real skew-symmetric", "3", "has no values to use as weights"),
        ("complex hermitian", "value", "has no values to use as weights"),
    ],
)
def test_matrix_market_refuses_bad_weight_column(
    tmp_path: Path, kind: str, column: str, message: str
) -> None:
    refused(tmp_path, UsageError, f"{HEAD} {kind}\n1 1 0\n", weight_column=column, match=message)


def test_matrix_market_refuses_rows_beyond_memory(tmp_path: Path) -> None:
    content = f"{HEAD} pattern general\n2147483647 2147483647 1\n1 2\n"
    message = r":2: 2,147,483,647 rows, and 1 entries: .* 34\.4 GB"
    refused(tmp_path, ResourceError, content, memory="2GB", match=message)
    assert read(tmp_path, f"{HEAD} pattern general\n20000 20000 1\n1 2\n").nodes == 20000
