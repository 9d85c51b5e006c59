"""The list of guards says where each of them is; `make mutants` takes them away one by one."""

from __future__ import annotations

from tools.mutants import guards, mistakes_in


def test_every_guard_is_where_the_list_says() -> None:
    listed = guards()
    assert listed
    assert not list(mistakes_in(listed))


def test_taking_a_guard_away_changes_something() -> None:
    assert not [guard.promise for guard in guards() if guard.guarded == guard.unguarded]


def test_every_guard_has_a_promise_of_its_own() -> None:
    promises = [guard.promise for guard in guards()]
    assert len(promises) == len(set(promises))
