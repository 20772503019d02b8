"""TF-IDF from its definition (``measures/tfidf.py``), in plain Python, a dictionary per text.

Words are runs of two or more letters, digits or underscores, in lower case.
"""

import math
from collections.abc import Mapping, Sequence

Vector = dict[str, float]


def words_in(text: str) -> list[str]:
    """The words of a text, in order."""
    found, word = [], ""
    for character in text.lower() + " ":
        if character.isalnum() or character == "_":
            word += character
            continue
        if len(word) >= 2:
            found.append(word)
        word = ""
    return found


def vectors(
    texts: Mapping[int, str], words: int, min_df: int, max_df: float
) -> tuple[dict[int, Vector], set[str]]:
    """The truncated, unnormalized vectors t_v of the texts, and the words that they may contain."""
    words_by_node = {node: words_in(text) for node, text in texts.items()}
    document_counts: dict[str, int] = {}
    for text_words in words_by_node.values():
        for word in set(text_words):
            document_counts[word] = document_counts.get(word, 0) + 1
    kept = {word for word, d in document_counts.items() if min_df <= d <= max_df * len(texts)}
    found = {}
    for node, text_words in words_by_node.items():
        weights = {
            word: (1 + math.log(text_words.count(word)))
            * (1 + math.log((1 + len(texts)) / (1 + document_counts[word])))
            for word in set(text_words) & kept
        }
        # Equal weights may differ by rounding of logarithms.
        best = sorted(weights, key=lambda word: (-round(weights[word], 9), word))[:words]
        found[node] = {word: weights[word] for word in best}
    return found, kept


def cosine(first: Vector, second: Vector) -> float:
    """The cosine of two vectors; 0 if one is empty."""
    common = sum(weight * second[word] for word, weight in first.items() if word in second)
    lengths = [math.sqrt(sum(w * w for w in vector.values())) for vector in (first, second)]
    return common / math.prod(lengths) if all(lengths) else 0.0


def shares(first: Vector, second: Vector) -> Vector:
    """The contribution of each common word to the cosine."""
    lengths = [math.sqrt(sum(w * w for w in vector.values())) for vector in (first, second)]
    scale = math.prod(lengths)
    return {word: first[word] * second[word] / scale for word in first.keys() & second.keys()}


def table(rows: Sequence[tuple[str, str]]) -> str:
    """A file of names and texts."""
    return "".join(f"{name}\t{text}\n" for name, text in rows)
