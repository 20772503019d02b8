"""``cocite warm``: compile all kernels beforehand, as while an image is made.

Kernels are compiled for the types of what they are given, so the sure way to have those that the
verbs need is to run the verbs, on a graph of some pages in a scratch directory. Each step is a
process of its own, so that as many are compiled at once as there are cores.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import click

from cocite.cli.console import Stages
from cocite.cli.options import format_option, threads_option
from cocite.cli.output import Reply, Show, say
from cocite.compiled.cache import place
from cocite.errors import ResourceError, UsageError
from cocite.measures import DEFAULT, MEASURES, SAMPLES, find_measure
from cocite.resources import checked_threads, format_time
from cocite.results import Document

_PAGES = 48
_FIRST, _SECOND = "Page 1", "Page 3"
_BASICS, _OTHERS = "reading links", "PageRank, all pairs and generated webs"


_SAMPLES = {
    "web.graph": b"\x4e",  # node 0 has one successor (010), it is 0 + 1 (011); node 1 has none (1)
    "web.properties": b"nodes=2\narcs=1\nwindowsize=0\nminintervallength=0\nversion=0\n"
    b"compressionflags=RESIDUALS_GAMMA\ngraphclass=it.unimi.dsi.webgraph.BVGraph\n",
    "wiki.sql": b"""CREATE TABLE `page` (
  `page_id` int,
  `page_namespace` int,
  `page_title` varbinary(255),
  `page_is_redirect` int
);
INSERT INTO `page` VALUES (1,0,'A',0),(2,0,'B',0);
CREATE TABLE `pagelinks` (
  `pl_from` int,
  `pl_namespace` int,
  `pl_title` varbinary(255),
  `pl_from_namespace` int
);
INSERT INTO `pagelinks` VALUES (1,0,'B',0);
CREATE TABLE `redirect` (
  `rd_from` int,
  `rd_namespace` int,
  `rd_title` varbinary(255),
  `rd_interwiki` varbinary(255)
);
""",
    "titles.tsv": b"0\tfirst\nA\tfirst\n",
}
_READ = ("web.graph", "wiki.sql")
"""Inputs whose readers have kernels of their own (what they need beside them is in _SAMPLES)."""


@dataclass(frozen=True)
class WarmDocument(Document):
    """Kernels compiled now; those that were there before are not counted. ``seconds`` are those of
    all processes together.
    """

    cache: str | None
    kernels: int
    seconds: float


@click.command()
@click.option(
    "--measure",
    "measures",
    multiple=True,
    metavar="NAME",
    help="Compile what this measure needs, only. Repeatable.  [default: all measures, and what "
    "else there is]",
)
@threads_option
@format_option
def warm(measures: tuple[str, ...], threads: int | None, show: Show) -> None:
    """Compile the kernels of all verbs now, so that nobody waits for them later.

    They are kept where "cocite info --cache" says.
    """
    steps = [find_measure(name).name for name in measures] or [*MEASURES, _OTHERS]
    kernels, seconds = 0, 0.0
    with (
        tempfile.TemporaryDirectory(prefix="cocite-warm-") as folder,
        Stages({"compiling": "steps"}) as stages,
    ):
        say(f"compiling kernels in {len(steps) + 1} steps")
        stages("compiling kernels", 0, len(steps) + 1)
        for done, found in enumerate(_run_all(steps, folder, checked_threads(threads)), 1):
            kernels, seconds = kernels + found[0], seconds + found[1]
            stages("compiling kernels", done, len(steps) + 1, f"{kernels:,} so far")
    written = place().written
    document = WarmDocument(None if written is None else str(written), kernels, seconds)
    show(Reply(document, lambda: _text(document)))


def _text(found: WarmDocument) -> str:
    where = f"; they are kept in {found.cache}" if found.cache else ""
    if not found.kernels:
        return f"all kernels were compiled before{where}"
    return f"compiled {found.kernels:,} kernels in {format_time(found.seconds)} of work{where}"


def _run_all(steps: Sequence[str], folder: str, threads: int) -> Iterator[tuple[int, float]]:
    """Links first, as all else stands on them; yields what each step compiled."""
    yield _run_process(_BASICS, folder)
    with ThreadPoolExecutor(threads) as pool:
        waiting = [pool.submit(_run_process, step, folder) for step in steps]
        try:
            for done in as_completed(waiting):
                yield done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _run_process(step: str, folder: str) -> tuple[int, float]:
    """One step in a process of its own: (kernels, seconds)."""
    code = "import sys; from cocite.cli.commands.compile import run_step; run_step(*sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, step, folder], capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise ResourceError(f"the kernels of {step} could not be compiled: {last}")
    kernels, seconds = json.loads(done.stdout)
    return int(kernels), float(seconds)


# -- in the process of a step ------------------------------------------------------------


def run_step(step: str, folder: str) -> None:
    """Run the verbs of a step; prints how many kernels that compiled, and in how many seconds."""
    from cocite.compiled.clock import compiling

    with contextlib.redirect_stdout(io.StringIO()):
        here = Path(folder)
        if step == _BASICS:
            _read(here)
        elif step == _OTHERS:
            _compute_others(here)
        else:
            _ask_measure(step, here)
    print(json.dumps([compiling.kernels, compiling.seconds]))


def _must(*arguments: object) -> None:
    """Run a verb, as the command line does."""
    from cocite.cli.main import cli

    cli.main([str(each) for each in arguments], standalone_mode=False)


def _may(*arguments: object) -> None:
    """Run a verb that may be refused as wrong use, as not every measure has everything: what is
    refused needs no kernel.
    """
    with contextlib.suppress(UsageError, click.UsageError):
        _must(*arguments)


def _read(folder: Path) -> None:
    """Graphs with names, with numbers, and with weights; what is read by later steps."""
    links = [(v, (v * v + step * 7 + 1) % _PAGES) for v in range(_PAGES) for step in range(4)]
    rows = {
        "names": [f"Page {a}\tPage {b}" for a, b in links],
        "numbers": [f"{a}\t{b}" for a, b in links],
        "weights": [f"Page {a}\tPage {b}\t{1 + a % 3}.5" for a, b in links],
    }
    for name, lines in rows.items():
        source = folder / f"{name}.tsv"
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        weights = ["--weight-column", "3"] if name == "weights" else []
        _must("ingest", source, "-o", folder / name, "--header", "no", *weights)
    for name, content in _SAMPLES.items():
        (folder / name).write_bytes(content)
    for name in _READ:
        _must(
            "ingest",
            folder / name,
            "-o",
            folder / f"{name} read",
            "--titles",
            folder / "titles.tsv",
        )
    words = [f"Page {v}\tword{v % 7} word{v % 5} word{v}" for v in range(_PAGES)]
    (folder / "texts.tsv").write_text("\n".join(words) + "\n", encoding="utf-8")
    _may("related", folder / "names", "page 1x")


def _ask_measure(name: str, folder: Path) -> None:
    """Indexes of one measure, in each of its layouts, with weights and without; questions."""
    measure = find_measure(name)
    sampled = any(setting.name == SAMPLES.name for setting in measure.build)
    few: list[object] = ["--samples", 20] if sampled else []
    texts = ["--texts", folder / "texts.tsv", "--min-df", 1] if measure.texts else []
    made = 0

    def index(graph: str, *options: object) -> Path | None:
        nonlocal made
        made += 1
        output = folder / f"{name}-{made}.index"
        _may("index", folder / graph, "-o", output, "--measure", name, *few, *texts, *options)
        return output if output.exists() else None

    layouts = [["--layout", layout] for layout in measure.layouts] if name != DEFAULT else []
    for graph in ("names", "weights"):
        for options in layouts or [[]]:
            if built := index(graph, *options):
                _ask(built)
    if name == DEFAULT:
        return  # its directions and forms are those of its parts
    for way in ("out", "both", "any"):
        if built := index("names", "--direction", way):
            _may("related", built, _FIRST)
    _may("related", folder / "names", _FIRST, "--measure", name, "--refine")
    if few:
        for options in (["--hubs", "idf"], ["--out-of-core"]):
            index("names", *options)
        if built := index("names", "--blocks", 2):
            _may("refresh", built, folder / "weights", "--share", "0.5")
            _may("related", built, _FIRST)


def _ask(index: Path) -> None:
    """All questions, of one page and of all."""
    for refine in ([], ["--refine"]):
        _may("related", index, _FIRST, *refine)
        _may("similarity", index, _FIRST, _SECOND, *refine)
        _may("related", index, _FIRST, _SECOND, *refine)
    pairs = index.with_suffix(".tsv")
    pairs.write_text(f"{_FIRST}\t{_SECOND}\n")
    _may("similarity", index, "--pairs", pairs)
    _may("why", index, _FIRST, _SECOND)
    _may("related-all", index, "-o", index.with_suffix(".csv"))


def _compute_others(folder: Path) -> None:
    """PageRank and HITS, exact scores, and a generated web."""
    _must("rank", folder / "names", "-o", folder / "ranks.csv")
    _must("rank", folder / "weights", "-o", folder / "weighted.csv")
    _must("rank", folder / "names", "--by", "hubs", "-o", folder / "hubs.csv")
    for measure in ("simrank", "psimrank"):
        _must("all-pairs", folder / "names", "--measure", measure, "-o", folder / f"{measure}.csv")
    _must("generate", "web", "-o", folder / "web", "--pages", 1000, "--links", 5000)
