"""Study how PageRank converges, or compare the orders of two personalizations.

    python -m benchmarks.convergence study GRAPH -o DIR [--query-words WORDS]... [--texts PATH]
    python -m benchmarks.convergence compare GRAPH FILE OTHER [--query-words WORDS]...

``study`` writes the residual, and the positions and similarity of the top nodes after each sweep,
to the new directory DIR, as CSV and plots. ``compare`` ranks by the node weights in FILE and by the
node weights in OTHER, and prints how similar the two orders are. GRAPH is a stored graph. Queries
select the nodes whose names (or texts, with --texts) contain all of the WORDS, or the nodes in
--query-nodes FILE.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.convergence.comparison import compare
from benchmarks.convergence.figures import (
    among,
    check_study_output,
    settled_rows,
    similar,
    write_study,
)
from benchmarks.convergence.queries import Query, queries_of_words, query_of_nodes
from benchmarks.convergence.study import study
from cocite import Graph
from cocite.ranking import WeightsFile


def _arguments() -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("graph")
    shared.add_argument("--top", type=int, default=10_000, help="look at so many highest nodes")
    shared.add_argument("--bucket", type=int, default=1, help="positions in a histogram bar")
    shared.add_argument("--damping", type=float, default=0.85)
    shared.add_argument("--query-nodes", action="append", default=[], metavar="FILE")
    shared.add_argument("--query-words", action="append", default=[], metavar="WORDS")
    shared.add_argument("--texts", metavar="PATH", help="find the words in these texts")
    studied = commands.add_parser("study", parents=[shared])
    studied.add_argument("-o", "--output", required=True, metavar="DIR")
    studied.add_argument("--max-sweeps", type=int, nargs="+", default=[5, 10, 25, 50])
    studied.add_argument("--reference", type=int, default=100, help="sweeps in all")
    studied.add_argument("--no-plots", action="store_true")
    studied.add_argument("--overwrite", action="store_true")
    compared = commands.add_parser("compare", parents=[shared])
    compared.add_argument("file")
    compared.add_argument("other")
    compared.add_argument("--max-sweeps", type=int, help="make exactly so many sweeps")
    return parser.parse_args()


def _queries(graph: Graph, chosen: argparse.Namespace) -> list[Query]:
    queries = [query_of_nodes(graph, file) for file in chosen.query_nodes]
    return queries + queries_of_words(graph, chosen.query_words, chosen.texts)


def _study(graph: Graph, chosen: argparse.Namespace) -> None:
    check_study_output(chosen.output, chosen.overwrite, not chosen.no_plots)
    found = study(
        graph,
        queries=_queries(graph, chosen),
        sweeps=chosen.max_sweeps,
        reference=chosen.reference,
        top=chosen.top,
        bucket=chosen.bucket,
        damping=chosen.damping,
    )
    write_study(found, chosen.output, with_plots=not chosen.no_plots, overwrite=chosen.overwrite)
    for iteration, residuals in found.residuals.items():
        after = (f"{residuals[s - 1]:.1e} after {s}" for s in (*found.sweeps, found.reference))
        print(f"{iteration.value}: L1 residual {', '.join(after)}")
    titles = ("iteration", "n", "nearly", "members", "order", "only")
    print("\t".join(titles))
    for row in settled_rows(found):
        print("\t".join("never" if row[key] is None else str(row[key]) for key in titles))


def _compare(graph: Graph, chosen: argparse.Namespace) -> None:
    found = compare(
        graph,
        WeightsFile(chosen.file),
        WeightsFile(chosen.other),
        queries=_queries(graph, chosen),
        top=chosen.top,
        bucket=chosen.bucket,
        damping=chosen.damping,
        tolerance=1e-300 if chosen.max_sweeps else 1e-8,
        max_sweeps=chosen.max_sweeps or 10_000,
    )
    for difference in found.differences:
        away = np.repeat(np.abs(difference.positions.middle), difference.positions.nodes)
        print(
            f"{among(difference)}: the first {difference.same_order:,} places are the same; half "
            f"of the {away.size:,} nodes at either top moved by {int(np.median(away)):,} places "
            "or fewer"
        )
        for n, value in similar(difference):
            print(f"  top {n:,}: {value:.3f} alike")


def main() -> None:
    """Run the command that was given."""
    chosen = _arguments()
    graph = Graph.open(chosen.graph)
    if graph.in_weights is not None and chosen.command == "study":
        raise SystemExit("a study lets all links count the same, and these have weights")
    {"study": _study, "compare": _compare}[chosen.command](graph, chosen)


if __name__ == "__main__":
    main()
