from __future__ import annotations

import pytest

from kubesched.api.release import V1_37
from kubesched.config.features import DEFAULT_FEATURES, GATES_BY_FIELD, Features
from kubesched.config.gates import FeatureStage
from kubesched.daemon.feature_gates import GATES, FeatureGates, GateError


def parse(*texts: str) -> FeatureGates:
    return FeatureGates.parse({"": texts})


def test_gates_have_upstreams_defaults() -> None:
    gates = FeatureGates()
    on = ["SchedulerQueueingHints", "SchedulerAsyncPreemption", "DynamicResourceAllocation", "WatchListClient"]
    off = ["SchedulerAsyncAPICalls", "GangScheduling", "GenericWorkload", "AllAlpha", "AllBeta", "GitRepoVolumeDriver"]
    assert all(gates[name] for name in on)
    assert not any(gates[name] for name in off)
    assert len(GATES) == 241


def test_every_alpha_gate_is_off_and_every_stable_one_on() -> None:
    assert not any(gate.default for gate in GATES.values() if gate.stage is FeatureStage.ALPHA)
    assert all(gate.default for gate in GATES.values() if gate.stage is FeatureStage.GA)


def test_gate_can_be_switched() -> None:
    gates = parse("SchedulerAsyncAPICalls=true", "OpportunisticBatching=F")
    assert gates["SchedulerAsyncAPICalls"]
    assert not gates["OpportunisticBatching"]


def test_gate_by_name_goes_before_all_of_its_stage() -> None:
    gates = parse("GangScheduling=false", "WorkloadAwarePreemption=false", "AllAlpha=true")
    assert gates["GenericWorkload"]
    assert not gates["GangScheduling"]


def test_all_beta_switches_off_beta_gates_only() -> None:
    gates = parse("AllBeta=false")
    assert not gates["OpportunisticBatching"]
    assert gates["SchedulerQueueingHints"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("Nonsense=true", "unrecognized feature gate: Nonsense"),
        ("OpportunisticBatching", "missing bool value for OpportunisticBatching"),
        (
            "OpportunisticBatching=x",
            'invalid value of OpportunisticBatching=x, err: strconv.ParseBool: parsing "x": invalid syntax',
        ),
        (
            "SchedulerQueueingHints=false",
            "cannot set feature gate SchedulerQueueingHints to false, feature is locked to true",
        ),
        (
            "DynamicResourceAllocation=false",
            "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true",
        ),
        (
            "DRAResourceClaimDeviceStatus=false,DRAResourceClaimGranularStatusAuthorization=false",
            "DRADeviceBindingConditions is enabled, but depends on features that are disabled: "
            "[DRAResourceClaimDeviceStatus]",
        ),
        (
            "GangScheduling=true",
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
    ],
)
def test_gates_that_cannot_be_set_are_refused_in_upstreams_words(text: str, complaint: str) -> None:
    with pytest.raises(GateError) as caught:
        parse(*text.split(","))
    assert str(caught.value) == complaint


def test_component_may_be_named_but_not_both_ways() -> None:
    assert FeatureGates.parse({"kube": ("GenericWorkload=true",)})["GenericWorkload"]
    with pytest.raises(GateError, match="do not mix use"):
        FeatureGates.parse({"": ("GenericWorkload=true",), "kube": ("GangScheduling=true",)})


def test_setting_a_stable_gate_draws_a_warning() -> None:
    assert parse("SchedulerQueueingHints=true").warnings == (
        "setting GA feature gate SchedulerQueueingHints: it will be removed in a future release",
    )


def test_turning_on_what_only_kube_scheduler_does_is_remarked_upon_once() -> None:
    assert parse("DRAListTypeAttributes=true", "CoordinatedLeaderElection=true").warnings == (
        "feature gates that kube-scheduler follows, but kubesched does not: "
        "CoordinatedLeaderElection, DRAListTypeAttributes",
    )
    assert parse("DRADeviceTaintRules=true").warnings == ()
    assert parse("GenericWorkload=true", "OpportunisticBatching=false", "SchedulerAsyncAPICalls=true").warnings == ()


def test_all_that_plugins_know_as_features_are_gates_with_the_same_defaults() -> None:
    gates = {gate: getattr(DEFAULT_FEATURES, name) for name, gate in GATES_BY_FIELD.items() if gate in GATES}
    new = {"DRAFractionalCapacityRange", "PodGroupPreemptionPolicy"}
    assert set(GATES_BY_FIELD.values()) - set(gates) == new, "which came with v1.37"
    assert gates == {gate: GATES[gate].default for gate in gates}
    assert not any(GATES[gate].locked for gate in gates)


def test_a_release_has_gates_of_its_own() -> None:
    assert FeatureGates.parse({}, V1_37)["StorageCapacityScoring"]
    with pytest.raises(GateError, match="unrecognized feature gate: SidecarContainers"):
        FeatureGates.parse({"": ("SidecarContainers=true",)}, V1_37)
    with pytest.raises(GateError, match="cannot set feature gate NodeDeclaredFeatures to false, feature is locked"):
        FeatureGates.parse({"": ("NodeDeclaredFeatures=false",)}, V1_37)


def test_all_beta_turns_off_exactly_the_features_that_are_beta() -> None:
    features = Features.of(parse("AllBeta=false"))
    assert features.device_alternatives
    assert not features.async_preemption
    assert features.changed.keys() == {
        gate
        for gate in GATES_BY_FIELD.values()
        if gate in GATES and GATES[gate].stage is FeatureStage.BETA and GATES[gate].default
    }
