"""Every recorded decision of kube-scheduler, of each release, replayed: the engine must say the same, to the word."""

from __future__ import annotations

import copy

import pytest
from tests.parity.adapter import evaluate
from tests.parity.comparing import differences
from tests.parity.recordings import PARTS, assert_replayed, cases, families

FAMILIES = families("decisions")
NEWER = families("decisions", "1.37")


def test_recordings_of_all_families_are_here() -> None:
    assert len(FAMILIES) == 31
    assert set(NEWER) - set(FAMILIES) == {"dra-novelties", "gated", "novelties", "storage", "taint-rules"}
    assert set(FAMILIES) < set(NEWER)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("family", FAMILIES)
def test_decisions_are_those_of_kube_scheduler(family: str, part: int) -> None:
    assert_replayed("decisions", family, part, evaluate, differences)


@pytest.mark.parametrize("family", NEWER)
def test_decisions_are_those_of_kube_scheduler_1_37(family: str) -> None:
    assert_replayed("decisions", family, 0, evaluate, differences, "1.37", parts=1)


def test_a_pod_without_a_scheduler_is_given_the_defaults_of_the_api() -> None:
    recording = next(cases("decisions", "basics"))
    case = copy.deepcopy(recording["case"])
    for obj in case["objects"]:
        if obj["kind"] == "Pod":
            assert obj["spec"].pop("schedulerName") == "default-scheduler"
    assert not differences(evaluate(case), recording["result"])


def test_a_wrong_result_is_noticed() -> None:
    recording = next(cases("decisions", "basics"))
    result = evaluate(recording["case"])
    scored = next(pod for pod in result["pods"] if pod.get("total"))
    node = next(iter(scored["total"]))
    scored["total"][node] += 1
    assert differences(result, recording["result"])
