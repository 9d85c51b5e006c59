from __future__ import annotations

from kubesched.plugins.priority_sort import PrioritySort
from kubesched.testing import make_pod


def test_important_pods_go_first_and_among_equals_those_that_waited_longer() -> None:
    waiting = [("late", 0, 3.0), ("early", 0, 1.0), ("important", 10, 9.0), ("modest", -5, 0.0)]
    sort = PrioritySort()
    keys = {name: sort.sort_key(make_pod(name).priority(priority).build(), at) for name, priority, at in waiting}
    assert sorted(keys, key=keys.__getitem__) == ["important", "early", "late", "modest"]


def test_a_pod_that_names_no_priority_has_priority_0() -> None:
    sort = PrioritySort()
    assert sort.sort_key(make_pod("a").build(), 1.0) == sort.sort_key(make_pod("b").priority(0).build(), 1.0)
