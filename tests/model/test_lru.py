"""The LRU cache: what it evicts, its limits, and invalidation."""

from __future__ import annotations

import threading

from omnigraph.model.lru import LruCache


def test_the_least_recently_used_entry_is_evicted() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_a_new_entry_stays_when_all_others_were_used() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert (cache.get("a"), cache.get("b")) == (1, 2)
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (None, 2, 3)


def test_sizes_are_weighed_against_the_limit() -> None:
    cache: LruCache[str, bytes] = LruCache(10)
    cache.put("a", b"1234", 4)
    cache.put("b", b"12345", 5)
    assert (len(cache), cache.used) == (2, 9)
    cache.put("c", b"12", 2)
    assert (cache.get("a"), len(cache), cache.used) == (None, 2, 7)
    cache.put("b", b"1", 1)
    assert (cache.get("b"), cache.used) == (b"1", 3)


def test_a_value_larger_than_the_limit_is_not_kept_and_evicts_nothing() -> None:
    cache: LruCache[str, bytes] = LruCache(10)
    cache.put("a", b"1", 1)
    removals = cache.removals
    cache.put("b", b"x" * 11, 11)
    assert (cache.get("a"), cache.get("b"), cache.used) == (b"1", None, 1)
    assert cache.removals > removals


def test_removals_stand_still_while_everything_stays() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    assert cache.removals == 0
    cache.put("c", 3)
    assert cache.removals == 1


def test_a_value_made_before_an_invalidation_is_not_stored() -> None:
    cache: LruCache[str, int] = LruCache(4)
    generation = cache.generation
    cache.put("other", 1)
    cache.invalidate(lambda key: key == "a")
    cache.put("a", 1, generation=generation)
    assert (cache.get("a"), cache.get("other")) == (None, 1)
    cache.put("a", 2, generation=cache.generation)
    assert cache.get("a") == 2
    cache.clear()
    assert (len(cache), cache.used) == (0, 0)


def test_threads_never_exceed_the_limit() -> None:
    cache: LruCache[int, int] = LruCache(50)
    seen: list[int] = []

    def work(start: int) -> None:
        for number in range(start, start + 2_000):
            cache.put(number % 97, number)
            cache.get((number * 7) % 97)
            seen.append(cache.used)

    threads = [threading.Thread(target=work, args=(at * 31,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(seen) <= 50
    assert cache.used == len(cache) <= 50
