"""TF-IDF: two pages are similar if their texts share words, above all rare ones.

With f(w, v) how often the word w is in the text of v, and d(w) how many of the N texts have it,

    t_v(w)      = (1 + log f(w, v)) * (1 + log((1 + N) / (1 + d(w))))          0 if f(w, v) = 0
    score(u, v) = sum over w of t_u(w) * t_v(w) / (|t_u| * |t_v|),   the cosine

Only the ``words`` with the largest weights of a page count, with ties in alphabetical order. Words
in fewer than ``min_df`` texts, or in more than the share ``max_df``, are ignored. A word is two or
more letters, digits or underscores, in lower case, as in scikit-learn. There are no stop words.

Convention: a page without words scores 0 with all others, and 1 with itself. Links are not used.
Cost: 16 bytes for each word of a page; a query takes one addition for each pair of a word of the
page and another page that has it. Vectors are float32: the relative error of a score is at most
2.4e-7, which intervals include.
Source: Salton, Buckley 1988, *Term-weighting approaches in automatic text retrieval*; Spärck Jones
1972 for the weights of rare words.
"""

from __future__ import annotations

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting
from cocite.options import NO_LINKS

WORDS = Setting(
    "words", 500, "how many words of a page count, those with the largest weights", 1, 2**31 - 1
)
MIN_DF = Setting("min_df", 5, "ignore words that are in fewer texts", 1, 2**32 - 1)
MAX_DF = Setting("max_df", 0.5, "ignore words that are in a larger share of texts", 0, 1)

SHARE = 0.5
"""Default share of the scores in a blend with another measure: ``docs/evaluation.md``."""

TFIDF = Measure(
    name="tfidf",
    summary="similar if both texts have the same words (TF-IDF, cosine); needs texts",
    layouts=("text",),
    build=(WORDS, MIN_DF, MAX_DF),
    direction=NO_LINKS,
    directions=(NO_LINKS,),
    texts=True,
)
