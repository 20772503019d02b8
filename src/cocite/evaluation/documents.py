"""A study of how good answers are as a document: all figures, a row each."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cocite.documents import Document, Rows
from cocite.evaluation.report import LONG_TITLES, long_rows, write_report
from cocite.evaluation.study import Study

__all__ = ["StudyDocument"]


@dataclass(frozen=True)
class StudyDocument(Document):
    """What a study came to."""

    study: Study

    def facts(self) -> dict[str, Any]:
        """What it is of, and its figures."""
        figures = [dict(zip(LONG_TITLES, row, strict=True)) for row in long_rows(self.study)]
        return {"suite": self.study.suite.name, "facts": self.study.facts, "figures": figures}

    def rows(self) -> Rows:
        """The same rows, without the facts."""
        return Rows(LONG_TITLES, long_rows(self.study))

    def write(self, output: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write a report, an HTML page that needs nothing else, and its tables as .md and .csv
        beside it. Raises as :func:`~cocite.evaluation.report.write_report` does.
        """
        return write_report(self.study, output, overwrite=overwrite)
