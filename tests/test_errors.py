"""The tree of errors is the one in the docstring, and messages are complete."""

import inspect
import pickle
import re

from cocite import errors
from cocite.errors import CociteError, MalformedRow, UnknownNode, UsageError


def docstring_tree() -> dict[str, str]:
    """Class and parent of every line of the tree in the module's docstring."""
    parents, stack = {}, [("CociteError", -1)]
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"(    [ │├└─]*[├└]── )(\w+)", line):
            depth = len(match[1])
            while stack[-1][1] >= depth:
                stack.pop()
            parents[match[2]] = stack[-1][0]
            stack.append((match[2], depth))
    return parents


def test_error_tree_matches_docstring() -> None:
    classes = {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, CociteError)
    }
    assert sorted(classes) == errors.__all__
    parents = {name: value.__bases__[0].__name__ for name, value in classes.items()}
    assert docstring_tree() == {
        name: base for name, base in parents.items() if name != "CociteError"
    }


def test_exit_code_is_2_for_usage_errors_else_1() -> None:
    for name in errors.__all__:
        value = getattr(errors, name)
        assert value.exit_code == (2 if issubclass(value, UsageError) else 1)
        assert value.__doc__


def test_unknown_node_names_nearest() -> None:
    assert str(UnknownNode("zebar")) == "no node is named 'zebar'"
    error = UnknownNode("zebar", ["Zebra", "it's"])
    assert str(error) == "no node is named 'zebar'; the nearest names are 'Zebra', \"it's\""
    assert isinstance(error, KeyError)
    assert isinstance(error, ValueError)


def test_malformed_row_gives_file_and_line() -> None:
    error = MalformedRow("a.tsv", 3, "an empty name", "x\t")
    assert str(error) == (
        "a.tsv:3: an empty name: 'x\\t'. Fix the row, or pass --bad-rows few (bad_rows='few') "
        "to skip such rows and count them"
    )


def test_errors_survive_pickling() -> None:
    error = UnknownNode("zebar", ["Zebra"])
    error.add_note("look again")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), vars(again)) == (str(error), vars(error))
    for name in errors.__all__:
        if name not in ("UnknownNode", "MalformedRow"):
            error = getattr(errors, name)("text")
            assert str(pickle.loads(pickle.dumps(error))) == "text"
