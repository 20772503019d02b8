"""Guessed headers and delimiters, and inputs too ambiguous to guess."""

from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite.errors import InputError, MalformedRow, UnrecognizedInput, UsageError
from tests.io.plain import cleaned, links, read, refused, source_of, weights_of

PAGES = "".join(f"page{i}.html,http://a.org/{i + 1}\n" for i in range(5))
PEOPLE = "Ann,Bob\nBob,Cy\nCy,Dan\n"


@pytest.mark.parametrize(
    ("content", "first"),
    [
        ("Page,Links to\nZebra,Savanna\nLion,Zebra\n", ("Page", "Links to")),
        ("follower,followee\nalice,bob\nbob,carol\n", ("follower", "followee")),
        ("Quelle;Ziel\nBonn;Ulm\n", ("Quelle", "Ziel")),
        ("FromNodeId\tToNodeId\n1\t2\n", ("FromNodeId", "ToNodeId")),
        ("x,y\n1,2\n", ("x", "y")),
        ("origin page,page behind\n" + PAGES, ("origin page", "page behind")),
        ("fan,idol\n" + PEOPLE, ("fan", "idol")),
        ("x,y,weight\na,b,1\nc,d,2\n", ("x", "y")),
        ("x,y,likes\na,b,1\nc,d,2\n", ("x", "y")),
    ],
)
def test_header_is_detected(tmp_path: Path, content: str, first: tuple[str, str]) -> None:
    rows, found = cleaned(tmp_path, content, "links.csv")
    assert found.header
    assert first not in rows
    link = f"({first[0]!r}, {first[1]!r}; if these are a link: --header no)"
    assert f"a header {link}" in found.describe()
    assert len(rows) == content.count("\n") - 1
    rows, _ = cleaned(tmp_path, content, "links.csv", header="no")
    assert len(rows) == content.count("\n")


@pytest.mark.parametrize(
    "content",
    [
        *("Africa,Savanna\nLion,Zebra\nZebra,Horse\n", "ann,bob,5\ncy,dan,6\n", "n1,2\n3,4\n5,6\n"),
        *("apple,pear\nplum,cherry\nfig,grape\nkiwi,lime\n", "from,to,5\ncy,dan,6\n"),
        "about,contact\npage1.html,home\npage2.html,shop\npage3.html,shop\n",
        "about,news.html\na.html,b.html\nb.html,c.html\nc.html,d.html\n",
        "source,target\ntarget,other\nother,source\n",  # nodes with these names
        *("x,y,nan\na,b,1\nc,d,2\n", "x,y,n/a\na,b,1\nx,d,2\n", "x,y,1;5\na,b,1\nc,d,2\n"),
        *("x,y,?\na,b,1\nc,d,2\n", "e.g.,i.e.\nA1,B2\nA2,B3\nA4,B4\n"),
    ],
)
def test_header_detection_keeps_first_link(tmp_path: Path, content: str) -> None:
    rows, found = cleaned(tmp_path, content, "links.csv")
    assert not found.header
    assert len(rows) == content.count("\n")


@pytest.mark.parametrize(
    ("titles", "row", "link"),
    [
        ("id,source,target", "{i},a{i},b{i}", "2 and 3"),
        ("Id,Source,Target,Type,Weight", "{i},a{i},b{i},Directed,1.5", "2 and 3"),
        ("Target,Source", "b{i},a{i}", "2 and 1"),
        (",source,target", "{i},a{i},b{i}", "2 and 3"),
        (",one,other", "{i},a{i},b{i}", "2 and 3"),
        ("weight,citing,cited", "0.5,a{i},b{i}", "2 and 3"),
        ("date,followee,follower", "2020-01-0{i},b{i},a{i}", "3 and 2"),
        ("n,Parent,Child", "{i},a{i},b{i}", "2 and 3"),
        ("n,Child,Parent", "{i},a{i},b{i}", "2 and 3"),
        ("id source target", "{i} a{i} b{i}", "2 and 3"),
        ("id,page,target", "{i},a{i},b{i}", "2 and 3"),
        ("rowid,seite,verweis", "{i},a{i},b{i}", "2 and 3"),
        ("id,page,reference,qty", '{i},a{i},b{i},"1,5"', "2 and 3"),
        ("qty,customer,product", '"1,5",a{i},b{i}', "2 and 3"),
    ],
)
def test_columns_are_chosen_by_header_names(
    tmp_path: Path, titles: str, row: str, link: str
) -> None:
    """Once, the first two were always taken, even an index column of pandas."""
    rows = [row.format(i=i) for i in range(4)]
    expected = [(f"a{i}", f"b{i}") for i in range(4)]
    content = "\n".join([titles, *rows])
    for header in ("auto", "yes"):
        read_rows, found = cleaned(tmp_path, content, "links.csv", header=header)
        assert read_rows == expected
        columns = f" columns, with links from column {link.replace(' and ', ' to column ')}"
        assert columns in found.describe()
        hint = " (to choose others: --columns SOURCE,TARGET)"
        assert (hint in found.describe()) == (header == "auto")
    chosen = ",".join(reversed(link.split(" and ")))
    swapped, _ = cleaned(tmp_path, content, "links.csv", columns=chosen, header="yes")
    assert swapped == [(b, a) for a, b in expected]


@pytest.mark.parametrize(
    "content",
    [
        "n1,source,target\nn2,target,source\nn3,x,source\n",  # nodes with these names
        "a,b,target\nc,d,e\n",
        "source,target,source\na,b,c\n",
        "a,source,target\nc,d,e\nf,source,g\n",
        "id,name,parent\n7,one,8\n8,two,9\n",  # `id` does not number the rows
    ],
)
def test_columns_default_to_first_two(tmp_path: Path, content: str) -> None:
    assert cleaned(tmp_path, content, "links.csv")[1].taken == (0, 1)


def test_header_no_ignores_column_titles(tmp_path: Path) -> None:
    content = "1,source,target\n2,a,b\n"
    rows, _ = cleaned(tmp_path, content, "links.csv", header="no")
    assert rows == [("1", "source"), ("2", "a")]


def test_weight_column_excludes_source_and_target(tmp_path: Path) -> None:
    content = "id,source,target,weight\n1,a,b,2.5\n2,b,c,0.5\n"
    graph = read(tmp_path, content, "links.csv", weight_column="weight")
    assert weights_of(graph) == {("a", "b"): 2.5, ("b", "c"): 0.5}
    with pytest.raises(
        UsageError, match=r"twice\. Links are read from 'source' and 'target' unless"
    ):
        read(tmp_path, content, "links.csv", weight_column="target")


def test_parquet_columns_are_found_by_name(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "links.parquet"
    duckdb.execute(f"COPY (SELECT 1 AS id, 'b' AS target, 'a' AS source) TO '{path}'")
    graph = cocite.ingest(path, tmp_path / "out.graph")
    assert links(graph) == [("a", "b")]
    assert "columns 'source' and 'target'" in source_of(graph)["read_as"]
    graph = cocite.ingest(path, tmp_path / "out.graph", columns="target,source", overwrite=True)
    assert links(graph) == [("b", "a")]


def test_header_that_is_also_node_is_refused(tmp_path: Path) -> None:
    """Even if the node occurs only after the sampled rows."""
    content = "parent\tchild\n" + "a\tb\n" * 300
    assert cleaned(tmp_path, content)[1].rows == 300
    error = refused(tmp_path, UnrecognizedInput, content + "b\tchild\n")
    assert str(error) == (
        f"{tmp_path / 'links.tsv'}: the first row, 'parent' and 'child', seems to be a header, but "
        "'child' is also a node in other rows. Choose --header yes (header='yes') or --header no "
        "(header='no')"
    )
    assert cleaned(tmp_path, content + "b\tchild\n", header="yes")[1].rows == 301
    assert cleaned(tmp_path, content + "b\tchild\n", header="no")[1].rows == 302


@pytest.mark.parametrize("weight", ["x", "high", "1;5", "nan", "-"])
def test_header_is_not_guessed_from_bad_weight(tmp_path: Path, weight: str) -> None:
    """Once, the row was taken for a header, and its link was lost."""
    content = f"a\tb\t{weight}\nc\td\t1\ne\tf\t2\n"
    with pytest.raises(MalformedRow, match="a weight that is not a number") as caught:
        cleaned(tmp_path, content, weight_column=3)
    assert caught.value.line == 1
    advice = "If it names the columns: --header yes. Fix the row, or pass --bad-rows"
    assert advice in str(caught.value)
    assert cleaned(tmp_path, content, weight_column=3, header="yes")[1].rows == 2
    titles = f"a\tb\tWeight\n{content.split(chr(10), 1)[1]}"
    assert cleaned(tmp_path, titles, weight_column=3)[1].rows == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "New York  Los Angeles\nSan Diego  New York\n",
            "has 4 columns separated by blanks, as in 'New York  Los Angeles'; it is unclear "
            "which are source and target. If they are the first two: --columns 1,2. If names "
            "contain blanks, put a tab between source and target",
        ),
        ("New York  Paris\nOslo  Rome\nBonn  New York\n", "has 2 to 3 columns separated by blanks"),
        ("1 2 0.5\n2 3 0.5\n", "has 3 columns separated by blanks, as in '1 2 0.5'; it is"),
        (
            "a -> b\nb -> c\n",
            "has arrows between its names, as in 'a -> b'. Choose the columns "
            "of source and target: --columns 1,3",
        ),
        ("b <- a\nc <- b\n", "of source and target: --columns 3,1"),
        ("a\t->\tb\nb\t->\tc\n", "of source and target: --columns 1,3"),
        ("a → b\nb → c\n", "of source and target: --columns 1,3"),
        ("a b -> c\nb -> c d\n", "Replace them with tabs"),
        ("New York => Paris\nRome => Oslo\n", "'New York => Paris'. Replace them with tabs"),
    ],
)
def test_delimiter_refuses_ambiguous_blanks_and_arrows(
    tmp_path: Path, content: str, message: str
) -> None:
    with pytest.raises(UnrecognizedInput) as caught:
        cleaned(tmp_path, content)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("from,to,page\n1,2,a\n", {}, [("1", "2")]),
        ("from,to,page\n1,2,a\n", {"columns": (2, 3)}, [("2", "a")]),
        ("from,to,page\n1,2,a\n", {"columns": ("3", "1")}, [("a", "1")]),
        ("from,to,page\n1,2,a\n", {"columns": ("Page", "TO")}, [("a", "2")]),
        ("1 2 0.5\n2 3 0.5\n", {"columns": (1, 2)}, [("1", "2"), ("2", "3")]),
        ("1 2 0.5\n2 3 0.5\n", {"weight_column": 3}, [("1", "2"), ("2", "3")]),
        ("1 2 0.5\n2 3 0.5\n", {"delimiter": "space"}, [("1", "2"), ("2", "3")]),
        ("a -> b\nb -> c\n", {"columns": "1,3"}, [("a", "b"), ("b", "c")]),
        ("b <- a\nc <- b\n", {"columns": "3,1"}, [("a", "b"), ("b", "c")]),
        ("a  b\nb\tc\n", {}, [("a", "b"), ("b", "c")]),
        ("a -> b\tc\n", {"header": "no"}, [("a -> b", "c")]),
        ("a b\nb c\nc d\nd\n", {"bad_rows": "few"}, [("a", "b"), ("b", "c"), ("c", "d")]),
    ],
)
def test_ingest_options_override_guesses(
    tmp_path: Path, content: str, options: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    rows, _ = cleaned(tmp_path, content, **options)
    assert [row[:2] for row in rows] == expected


def test_bad_rows_advice_depends_on_share(tmp_path: Path) -> None:
    """Skipping is advised for few bad rows; ingest stops if most rows are bad."""
    few = "a\tb\n" * 30 + "c\nd\n"
    refused(tmp_path, MalformedRow, few, match="Fix the row, or pass --bad-rows few")
    assert read(tmp_path, few, bad_rows="few").info().bad_rows == 2
    many = "a\tb\nc\td\n" + "e\n" * 7
    error = refused(tmp_path, MalformedRow, many)
    assert str(error).endswith(
        "links.tsv:3: not 2 tab-separated columns: 'e'. 7 of the first 9 rows are bad: this may "
        "not be an edge list, or may need other options. See --delimiter, --columns and --header "
        "in cocite ingest --help"
    )
    with pytest.raises(InputError, match=r"has 7 bad rows and 2 good ones: .* --bad-rows all"):
        read(tmp_path, many, bad_rows="few")
    assert read(tmp_path, many, bad_rows="all").info().bad_rows == 7
    with pytest.raises(
        MalformedRow, match=r"'only'\. If it names the columns: --header yes\. An edge list"
    ):
        read(tmp_path, "only\n")


def test_bad_rows_few_allows_half(tmp_path: Path) -> None:
    assert read(tmp_path, "a\tb\nc\n", bad_rows="few").info().bad_rows == 1
