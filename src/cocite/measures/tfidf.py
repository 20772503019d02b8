"""TF-IDF: two pages are similar if their texts have words in common, especially rare ones.

f(w, v) counts the occurrences of word w in the text of v; d(w) of the N texts contain w.

    t_v(w)      = (1 + log f(w, v)) * (1 + log((1 + N) / (1 + d(w))))          0 if f(w, v) = 0
    score(u, v) = sum over w of t_u(w) * t_v(w) / (|t_u| * |t_v|),   the cosine

A page keeps only its ``words`` largest weights; ties go in alphabetical order. Words in fewer
than ``min_df`` texts, or in more than the share ``max_df``, are ignored. As in scikit-learn, a word
is two or more letters, digits or underscores, in lower case. There are no stop words.

Convention: a page without words scores 1 with itself, and 0 with all others. Links are ignored. An
index takes 16 bytes per word of a page; a query takes one addition per word of the page per page
that contains the word. Vectors are float32, so scores have a relative error of up to 2.4e-7, which
intervals include. Source: Salton, Buckley 1988, *Term-weighting approaches in automatic text
retrieval*; Spärck Jones 1972 for the weights of rare words.
"""

from __future__ import annotations

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting
from cocite.options import NO_LINKS

WORDS = Setting(
    "words", 500, "number of words per page, those with the largest weights", 1, 2**31 - 1
)
MIN_DF = Setting("min_df", 5, "ignore words that are in fewer texts than this", 1, 2**32 - 1)
MAX_DF = Setting("max_df", 0.5, "ignore words that are in a larger share of texts than this", 0, 1)

SHARE = 0.5
"""Default weight in a blend; see ``docs/evaluation.md``."""

TFIDF = Measure(
    name="tfidf",
    summary="similar if both texts contain the same words (TF-IDF, cosine); needs texts",
    layouts=("text",),
    build=(WORDS, MIN_DF, MAX_DF),
    direction=NO_LINKS,
    directions=(NO_LINKS,),
    texts=True,
)
