"""Text: two pages are similar if their texts have the same words, rare ones above all.

With f(w, v) how often the word w is in the text of v, and d(w) how many of the N texts have it,

    t_v(w)      = (1 + log f(w, v)) * (1 + log((1 + N) / (1 + d(w))))          0 if f(w, v) = 0
    score(u, v) = sum over w of t_u(w) * t_v(w) / (|t_u| * |t_v|),  |t| the root of the sum of t**2

the cosine of TF-IDF vectors. Of each page only the ``words`` of the largest weight are in t_v, the
first by the alphabet if two are equal: what a page is about, and not all that it mentions. Words
that fewer than ``min_df`` texts have, or more than the share ``max_df`` of them, are in none.

Words are scikit-learn's: two or more letters, digits or underscores on end, in lower case, in any
language that puts blanks between its words. There is no list of stop words: ``max_df`` and d(w) do
their work, in all languages.

Convention: a page without a text, or of whose words none is left, scores 0 with all others. A page
and itself score 1. It looks at no links, so it takes no direction and leaves weights aside.

Cost: an index takes 16 bytes for each word of a page, and reading the texts. A question, one
addition for each page that has a word of the page's own. Exact for the vectors, whose entries are
stored as float32: a score is off by no more than 2.4e-7 of itself, which intervals contain.
Source: Salton, Buckley 1988, *Term-weighting approaches in automatic text retrieval*; Spärck Jones
1972 for what rare words tell.
"""

from __future__ import annotations

from cocite.graph.links import NO_LINKS
from cocite.measures.measure import Measure
from cocite.measures.settings import Setting

WORDS = Setting(
    "words", 500, "how many words of a page are kept, those that tell most of it", 1, 2**31 - 1
)
MIN_DF = Setting("min_df", 5, "leave out words that fewer texts have", 1, 2**32 - 1)
MAX_DF = Setting("max_df", 0.5, "leave out words that a larger share of the texts has", 0, 1)

SHARE = 0.5
"""Of the scores of a blend with another measure, unless one chooses: ``docs/evaluation.md``."""

TFIDF = Measure(
    name="tfidf",
    summary="the same words are in both texts (TF-IDF, cosine); needs texts",
    layouts=("text",),
    build=(WORDS, MIN_DF, MAX_DF),
    direction=NO_LINKS,
    directions=(NO_LINKS,),
    texts=True,
)
