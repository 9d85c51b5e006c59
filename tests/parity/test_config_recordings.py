"""Recorded readings of kube-scheduler, by release: kubesched accepts, completes and refuses the same files."""

from __future__ import annotations

from typing import Any

import pytest
from tests.parity.config_adapter import read
from tests.parity.recordings import cases, families


def recordings(release: str) -> list[dict[str, Any]]:
    return [each for family in families("config", release) for each in cases("config", family, release)]


def comparable(result: dict[str, Any]) -> Any:
    """What must be equal: all of an accepted configuration, field and kind of errors, the fact of being unreadable."""
    if "defaulted" in result:
        return result["defaulted"]
    if "errors" in result:
        return {tuple(error.split(": ")[:2]) for error in result["errors"]}
    return "unreadable"


@pytest.mark.parametrize("release", ["1.36", "1.37"])
@pytest.mark.parametrize("outcome", ["defaulted", "errors", "decodeError"])
def test_files_are_read_as_kube_scheduler_reads_them(outcome: str, release: str) -> None:
    expected = [each for each in recordings(release) if outcome in each["result"]]
    assert expected
    different = [
        each["case"]["id"]
        for each in expected
        if comparable(read(each["case"]["text"], release)) != comparable(each["result"])
    ]
    assert different == []


def test_a_field_of_a_later_release_is_not_known_to_an_earlier_one() -> None:
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {podGroupPostFilter: {disabled: [{name: DynamicResources}]}}}]\n"
    )
    assert "podGroupPostFilter" in read(text, "1.36")["decodeError"]
    assert "defaulted" in read(text, "1.37")
