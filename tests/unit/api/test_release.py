"""Releases as values: what each does differently, and that nothing asks for a release by its number."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kubesched.api.release import BEHAVIOURS, NEWEST, RELEASES, V1_36, V1_37
from kubesched.config.features import Features
from kubesched.config.gates import gates_of

SOURCE = Path(__file__).parents[3] / "src/kubesched"


def test_the_newest_release_has_every_behaviour_and_the_oldest_none() -> None:
    assert list(RELEASES) == ["1.36", "1.37"]
    assert NEWEST is V1_37
    assert not any(getattr(V1_36, one.name) for one in BEHAVIOURS)
    assert all(getattr(V1_37, one.name) for one in BEHAVIOURS)


def test_every_behaviour_is_in_words_and_names_the_change_that_brought_it() -> None:
    assert len(BEHAVIOURS) > 20
    for one in BEHAVIOURS:
        assert len(one.words) > 20
        assert re.fullmatch(r"https://github\.com/kubernetes/kubernetes/pull/1[34]\d{4}", one.reference)


@pytest.mark.parametrize("behaviour", [one.name for one in BEHAVIOURS])
def test_every_behaviour_is_read_where_something_depends_on_it(behaviour: str) -> None:
    read = [path for path in SOURCE.rglob("*.py") if f"release.{behaviour}" in path.read_text()]
    assert 1 <= len(read) <= 4


def test_nothing_compares_versions_of_releases() -> None:
    compares = re.compile(r"release\.(name|version)\s*(==|!=|<=|>=|<|>)|release is V1|release == V1")
    found = [path.name for path in SOURCE.rglob("*.py") if compares.search(path.read_text())]
    assert found == []


def test_gates_are_at_the_defaults_of_their_release() -> None:
    old, new = Features.of({}), Features.of({}, V1_37)
    assert old == Features()
    assert (old.storage_capacity_scoring, new.storage_capacity_scoring) == (False, True)
    assert (old.missing_volume_drivers, new.missing_volume_drivers) == (False, True)
    assert not new.fractional_capacity, "which is on only in a binary that gets on with nothing older"
    assert new.changed == {}


def test_a_gate_that_became_part_of_another_follows_it() -> None:
    assert "GangScheduling" not in gates_of(V1_37)
    assert Features.of({"GenericWorkload": True}, V1_37).gang_scheduling
    assert not Features.of({"GenericWorkload": True}, V1_36).gang_scheduling


def test_one_behaviour_can_be_turned_on_alone() -> None:
    alone = replace(V1_36, node_name_first=True)
    assert [one.name for one in BEHAVIOURS if getattr(alone, one.name)] == ["node_name_first"]


def test_versions_that_a_binary_gets_on_with_follow_from_its_own() -> None:
    assert V1_36.compatible_versions == ("1.36.4", "1.36", "1.35")
    assert V1_37.compatible_versions == ("1.37.0-rc.1", "1.37", "1.36")
