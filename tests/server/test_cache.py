"""Answers that were given are the same bytes again, and no more of them than there is room for."""

from cocite.server.cache import AnswerCache, AnswerKey


def _key(query: bytes, generation: str = "0") -> AnswerKey:
    return AnswerKey("related", "web", generation, None, query, None)


def test_cache_drops_what_was_not_asked_for_longest() -> None:
    cache = AnswerCache(3000)
    for query in (b"a", b"b"):
        cache.add(_key(query), (bytes(1000), None, False))
    assert cache.find(_key(b"a")) == (bytes(1000), None, False)
    cache.add(_key(b"c"), (bytes(1000), None, False))
    assert cache.find(_key(b"b")) is None
    assert cache.find(_key(b"a")) is not None
    assert len(cache) == 2
    assert cache.size <= cache.most


def test_cache_refuses_what_is_large_and_other_generations() -> None:
    cache = AnswerCache()
    cache.add(_key(b"a"), (bytes(1 << 17), None, False))
    assert len(cache) == 0
    assert cache.size == 0
    cache.add(_key(b"a"), (b"old", None, False))
    cache.add(_key(b"a"), (b"old", None, False))
    assert cache.find(_key(b"a", "1")) is None
    assert len(cache) == 1
