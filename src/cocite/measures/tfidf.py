"""TF-IDF: two pages are similar if their texts have the same words, rare ones above all.

With f(w, v) how often the word w is in the text of v, and d(w) how many of the N texts have it,

    t_v(w)      = (1 + log f(w, v)) * (1 + log((1 + N) / (1 + d(w))))          0 if f(w, v) = 0
    score(u, v) = sum over w of t_u(w) * t_v(w) / (|t_u| * |t_v|),   the cosine

Only the ``words`` of the largest weight of a page count, ties by the alphabet; words in fewer than
``min_df`` texts, or in more than the share ``max_df``, do not. Words are scikit-learn's: two or
more letters, digits or underscores, in lower case. There is no list of stop words.

Convention: a page without words scores 0 with all others, and 1 with itself. No direction, no
links.
Cost: 16 bytes for each word of a page; a question, one addition for each page that shares a word.
Exact for vectors of float32: a score is off by at most 2.4e-7 of itself, which intervals contain.
Source: Salton, Buckley 1988, *Term-weighting approaches in automatic text retrieval*; Spärck Jones
1972 for what rare words tell.
"""

from __future__ import annotations

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting
from cocite.options import NO_LINKS

WORDS = Setting(
    "words", 500, "how many words of a page are kept, those that tell most of it", 1, 2**31 - 1
)
MIN_DF = Setting("min_df", 5, "leave out words that fewer texts have", 1, 2**32 - 1)
MAX_DF = Setting("max_df", 0.5, "leave out words that a larger share of the texts has", 0, 1)

SHARE = 0.5
"""Default share of the scores in a blend with another measure: ``docs/evaluation.md``."""

TFIDF = Measure(
    name="tfidf",
    summary="the same words are in both texts (TF-IDF, cosine); needs texts",
    layouts=("text",),
    build=(WORDS, MIN_DF, MAX_DF),
    direction=NO_LINKS,
    directions=(NO_LINKS,),
    texts=True,
)
