"""The files of an index, compared with what its parts' layouts declare.

    names...        those of the graph's kind of names (``graph/names.py``)
    titles...       those of the graph, if it has any (``graph/titles/``)
    since           of an index with samples of several graphs
    wanted          of an index that keeps some pages of its graph only
    in....          those of each part's layout; shards of samples by number
    in.diagonal     where refined answers are ready

Cost: none but the manifest; no file is opened.
"""

from __future__ import annotations

from pathlib import Path

from cocite.engine.certificate import LIMITS
from cocite.errors import Damaged
from cocite.graph.names import take_name_files
from cocite.graph.titles import take_title_files
from cocite.index.facts import IndexFacts
from cocite.index.refined import DIAGONAL
from cocite.layouts.format import SHARD, shard_number
from cocite.layouts.freshness import SINCE
from cocite.layouts.plan import PartPlan
from cocite.layouts.table import format_of, is_sampled, sampled_format
from cocite.layouts.wanted import WANTED
from cocite.measures import SAMPLES
from cocite.store import DeclaredFiles, Manifest

__all__ = ["check_files"]


def check_files(path: Path, manifest: Manifest, facts: IndexFacts) -> None:
    """Raises :class:`Damaged` for a file that is missing, not as declared, or not declared."""
    files = DeclaredFiles(path, manifest.files)
    sizes = {"n": facts.nodes, "m": int(facts.graph["edges"])}
    take_name_files(files, facts.names, facts.nodes)
    take_title_files(files, facts.nodes)
    if len(facts.generations) > 1:
        files.take({SINCE: "<u4[n]"}, sizes, optional=(SINCE,))
    if facts.kept is not None:
        files.take({WANTED: "<u4[n]"}, sizes)
    for plan in facts.parts:
        if is_sampled(plan.layout):
            _take_samples(files, path, facts, plan)
        else:
            files.take(format_of(plan.layout).files_of(plan), sizes, plan.prefix)
        if facts.refined:
            files.take({DIAGONAL: f"<f4[n, {1 + LIMITS}]"}, sizes, plan.prefix)
    files.no_more()


def _take_samples(files: DeclaredFiles, path: Path, facts: IndexFacts, plan: PartPlan) -> None:
    """The files of a part of samples: its shards begin with numbers of samples, the first one with
    the oldest.
    """
    layout = sampled_format(plan.layout)
    files.take(layout.files, {"N": plan.settings[SAMPLES]}, plan.prefix)
    names = files.starting(plan.prefix + SHARD)
    files.take_all(names, layout.shard)
    firsts = [shard_number(name.removeprefix(plan.prefix)) for name in names]
    numbers = range(facts.generations[0].first, facts.generations[-1].numbers.stop)
    if not all(first in numbers for first in firsts) or numbers.start not in firsts:
        raise Damaged(
            f"{path}: its shards of samples are not those of samples {numbers.start} to "
            f"{numbers.stop - 1}. Copy the index again from where it was whole, or build it again"
        )
