"""What caches keep is limited by number, and for large keys by what the keys hold on to."""

from __future__ import annotations

from kubesched.framework.recently_used import RecentlyUsed

LARGE = 10_000


def test_the_least_recently_used_is_forgotten_first() -> None:
    kept: RecentlyUsed[int] = RecentlyUsed(ordinary=1000, large=LARGE)
    for i, key in enumerate("abc"):
        kept.put(key, i, most=3)
    assert kept.get("a") == 0
    kept.put("d", 3, most=3)
    assert kept.get("b") is None
    assert [kept.get(key) for key in "acd"] == [0, 2, 3]


def test_large_keys_are_limited_in_bytes_and_take_no_place_from_ordinary_ones() -> None:
    kept: RecentlyUsed[int] = RecentlyUsed(ordinary=1000, large=LARGE)
    kept.put("ordinary", 0, most=3)
    large = [("x" * 4000, i) for i in range(5)]
    for i, key in enumerate(large):
        kept.put(key, i, most=3)
    assert [kept.get(key) for key in large] == [None, None, None, 3, 4]
    assert kept.get("ordinary") == 0
    kept.put(b"y" * LARGE, 9, most=3)
    assert kept.get(b"y" * LARGE) is None
    assert len(kept) == 3
