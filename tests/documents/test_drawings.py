"""The drawings of the documents are what their command draws today."""

import pytest
from benchmarks.drawings import PICTURES, drawings


@pytest.mark.long
def test_drawings_are_those_of_today() -> None:
    assert drawings() == {path.stem: path.read_text("utf-8") for path in PICTURES.glob("*.svg")}
