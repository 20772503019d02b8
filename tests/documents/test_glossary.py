"""The glossary names what there is: functions, options, keys of answers."""

from benchmarks.glossary import BLOCK, option_classes, result_classes, tables


def test_glossary_names_what_the_code_has() -> None:
    text = BLOCK.document.read_text("utf-8")
    assert BLOCK.within(text, None) == text, "python -m benchmarks.glossary --write"


def test_glossary_finds_every_option_and_answer() -> None:
    assert len(option_classes()) > 12
    assert len(result_classes()) > 15
    shown = tables()
    for name in ("`min_score` | `--min-score`", "`certain_ranks`", "`pagerank`"):
        assert name in shown
