"""A study of how good answers are as a document: all figures, a row each."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cocite import __version__
from cocite.documents import Rows
from cocite.evaluation.drawing import Picture
from cocite.evaluation.figures import pictures
from cocite.evaluation.report import LONG_TITLES, long_rows, write_pictures, write_report
from cocite.evaluation.study import Study
from cocite.evaluation.written import Written

__all__ = ["StudyDocument"]


@dataclass(frozen=True)
class StudyDocument(Written):
    """What a study came to."""

    study: Study
    command: str = ""
    """The call that it came of."""

    def facts(self) -> dict[str, Any]:
        """What it is of, and its figures."""
        figures = [dict(zip(LONG_TITLES, row, strict=True)) for row in long_rows(self.study)]
        study = self.study
        about = {"suite": study.suite.name, "graph": study.graph, "facts": study.facts}
        about |= {"cocite": __version__, "date": study.date, "read": study.sources}
        return about | {"figures": figures, "examples": study.examples, "notes": study.notes}

    def rows(self) -> Rows:
        """The same rows, without the facts."""
        return Rows(LONG_TITLES, long_rows(self.study))

    @cached_property
    def pictures(self) -> dict[str, Picture]:
        """Its pictures by title; raises :class:`~cocite.errors.UsageError` without matplotlib."""
        return pictures(self.study)

    def _write_report(self, path: Path, overwrite: bool, command: str) -> Path:
        command, drawn = command or self.command, self.pictures
        return write_report(self.study, path, overwrite=overwrite, command=command, drawn=drawn)

    def write_pictures(
        self, folder: str | os.PathLike[str], *, overwrite: bool = False
    ) -> list[Path]:
        """Write every picture as SVG and PNG into a folder; returns the files."""
        return write_pictures(self.pictures, folder, overwrite=overwrite)
