"""DeviceTaintRules: devices have the taints of rules, and pods are woken where a rule that kept them away goes."""

from __future__ import annotations

import pytest
from tests.device_builders import device, make_claim, make_class, make_slice, request, with_claims
from tests.unit.scheduler.world import World

from kubesched.api.device_claims import ResourceClaim
from kubesched.api.devices import DeviceTaint, DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.release import V1_36, V1_37
from kubesched.config import Features
from kubesched.testing import make_node, make_pod

KEY = "example.com/broken"


def rule(*, effect: str = "NoSchedule", **selected: str) -> DeviceTaintRule:
    spec = DeviceTaintRuleSpec(
        device_selector=DeviceTaintSelector(**selected) if selected else None,
        taint=DeviceTaint(key=KEY, effect=effect),
    )
    return DeviceTaintRule(metadata=ObjectMeta(name="rule", uid="uid-of-rule"), spec=spec)


NEW = Features.of({}, V1_37)


def world(*more: KubeObject, tolerates: str = "", features: Features = NEW) -> World:
    """A node with two devices, and a pod that asks for one."""
    devices = make_slice("n", device("d0"), device("d1"), pool="pool")
    claim = make_claim("claim", request(tolerates=tolerates))
    pod = with_claims(make_pod("p"), "claim")
    return World(make_node("n"), make_class(), devices, claim, *more, pod, features=features)


@pytest.mark.parametrize(
    ("made", "outcome"),
    [
        (rule(), "unschedulable"),
        (rule(effect="NoExecute"), "unschedulable"),
        (rule(effect="None"), "bound"),
        (rule(driver="gpu.example.com", pool="pool"), "unschedulable"),
        (rule(driver="other.example.com"), "bound"),
        (rule(pool="other"), "bound"),
        (rule(device="d0"), "bound"),
    ],
)
def test_devices_that_a_rule_taints_are_for_nobody_who_does_not_tolerate_it(
    made: DeviceTaintRule, outcome: str
) -> None:
    assert world(made).tried().outcome == outcome


def test_the_device_that_the_rule_does_not_name_is_taken() -> None:
    it = world(rule(device="d0"))
    it.tried()
    claim = it.scheduler.state.objects.get(ResourceClaim, "claim", "default")
    assert claim is not None
    assert claim.status.allocation is not None
    assert claim.status.allocation.devices.results[0].device == "d1"


def test_a_request_that_tolerates_the_taint_of_a_rule_gets_the_device() -> None:
    assert world(rule(), tolerates=KEY).tried().outcome == "bound"


def test_rules_do_not_count_where_the_gate_is_off() -> None:
    assert world(rule(), features=Features.of({}, V1_36)).tried().outcome == "bound"
    assert world(rule(), features=Features.of({"DRADeviceTaintRules": False}, V1_37)).tried().outcome == "bound"


def test_a_pod_is_woken_when_the_rule_goes() -> None:
    it = world(rule())
    assert it.tried().outcome == "unschedulable"
    it.cluster.remove(rule())
    it.cluster.tell(it.scheduler)
    it.pass_seconds(10)
    assert it.tried().outcome == "bound"


def test_a_rule_that_taints_nothing_wakes_nobody() -> None:
    it = world(rule())
    it.tried()
    elsewhere = rule(pool="other")
    it.see(DeviceTaintRule(metadata=ObjectMeta(name="elsewhere", uid="e"), spec=elsewhere.spec))
    it.pass_seconds(10)
    assert it.scheduler.pop() is None


def test_a_rule_that_comes_counts_for_the_next_pod() -> None:
    it = world()
    it.see(rule())
    assert it.tried().outcome == "unschedulable"
    it.see(rule(device="d0"))
    it.pass_seconds(10)
    assert it.tried().outcome == "bound"
