"""TF-IDF from its definition (``measures/tfidf.py``), in plain Python, a dictionary a text.

Words are cut by hand: runs of two or more letters, digits or underscores, in lower case.
"""

import math
from collections.abc import Mapping, Sequence

Vector = dict[str, float]


def words_in(text: str) -> list[str]:
    """The words of a text, in their order."""
    found, word = [], ""
    for sign in text.lower() + " ":
        if sign.isalnum() or sign == "_":
            word += sign
            continue
        if len(word) >= 2:
            found.append(word)
        word = ""
    return found


def vectors(
    texts: Mapping[int, str], words: int, min_df: int, max_df: float
) -> tuple[dict[int, Vector], set[str]]:
    """The vectors t_v of the texts, cut, not of length 1; and which words may be in them."""
    told = {node: words_in(text) for node, text in texts.items()}
    held: dict[str, int] = {}
    for each in told.values():
        for word in set(each):
            held[word] = held.get(word, 0) + 1
    kept = {word for word, d in held.items() if min_df <= d <= max_df * len(texts)}
    found = {}
    for node, each in told.items():
        weights = {
            word: (1 + math.log(each.count(word)))
            * (1 + math.log((1 + len(texts)) / (1 + held[word])))
            for word in set(each) & kept
        }
        # Nearly equal weights are equal ones, which logarithms of another kind tell apart.
        best = sorted(weights, key=lambda word: (-round(weights[word], 9), word))[:words]
        found[node] = {word: weights[word] for word in best}
    return found, kept


def cosine(first: Vector, second: Vector) -> float:
    """Of two vectors; 0 if one of them is empty."""
    common = sum(weight * second[word] for word, weight in first.items() if word in second)
    lengths = [math.sqrt(sum(w * w for w in vector.values())) for vector in (first, second)]
    return common / math.prod(lengths) if all(lengths) else 0.0


def shares(first: Vector, second: Vector) -> Vector:
    """What each word that both have adds to their cosine."""
    lengths = [math.sqrt(sum(w * w for w in vector.values())) for vector in (first, second)]
    scale = math.prod(lengths)
    return {word: first[word] * second[word] / scale for word in first.keys() & second.keys()}


def table(rows: Sequence[tuple[str, str]]) -> str:
    """Names and texts as a file has them."""
    return "".join(f"{name}\t{text}\n" for name, text in rows)
