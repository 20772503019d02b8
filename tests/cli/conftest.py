"""What all tests of the command line share."""

import pytest


@pytest.fixture(autouse=True)
def no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes so long that a log would say how far it is: not what is tested."""
    monkeypatch.setattr("cocite.cli.console._FIRST_LINE", float("inf"))
