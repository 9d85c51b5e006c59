"""Cases of other families under feature gates that are not at their default in v1.37, one at a time."""

from __future__ import annotations

from collections.abc import Callable

from tools.recorder.generators import capacities, decisions, lives, novelties, supplied_lives, tainted_devices
from tools.recorder.generators.drawing import Draw, Json

Make = Callable[[Draw], Json]

_LEVEL = "example.com/level"
_TAINTS, _TOLERATED = ("5", "-3", "0", "007", "x", "9223372036854775808"), ("4", "6", "-4", "05", "0x1", "")
_EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")


def levels(draw: Draw) -> Json:
    """Taints with numbers, and tolerations that compare with them."""
    case = decisions.everything(draw)
    for obj in case["objects"]:
        if obj["kind"] == "Node" and draw.chance(0.5):
            taint = {"key": _LEVEL, "value": draw.one(_TAINTS), "effect": draw.one(_EFFECTS)}
            obj.setdefault("spec", {}).setdefault("taints", []).append(taint)
        if obj["kind"] == "Pod" and draw.chance(0.6):
            toleration = {"key": _LEVEL, "operator": draw.one(("Lt", "Gt")), "value": draw.one(_TOLERATED)}
            if draw.chance(0.5):
                toleration["effect"] = draw.one(_EFFECTS)
            obj["spec"].setdefault("tolerations", []).append(toleration)
    return case


_DEVICES: tuple[Make, ...] = (novelties.devices, tainted_devices.taint_rules)
_ANY: tuple[Make, ...] = (decisions.everything, decisions.crowded)
_DECISIONS: dict[str, tuple[Make, ...]] = {
    "DRAConsumableCapacity=false": _DEVICES,
    "DRADeviceBindingConditions=false": _DEVICES,
    "DRADeviceTaintRules=false": _DEVICES,
    "DRADeviceTaints=false,DRADeviceTaintRules=false": _DEVICES,
    "DRAFractionalCapacityRange=true": _DEVICES,
    "DRAPartitionableDevices=false": _DEVICES,
    "MatchLabelKeysInPodTopologySpread=false,MatchLabelKeysInPodTopologySpreadSelectorMerge=false": _ANY,
    "PodLevelResources=false,PodLevelResourcesFixKubeletQOSClass=false,PodLevelResourcesFixDefaulting=false,"
    "InPlacePodLevelResourcesVerticalScaling=false": (*_ANY, novelties.pods),
    "InPlacePodLevelResourcesVerticalScaling=false": (novelties.pods,),
    "StorageCapacityScoring=false": (capacities.storage,),
    "TaintTolerationComparisonOperators=true": (levels,),
    "VolumeLimitScaling=false": (decisions.limits, capacities.storage),
}
_LIVES: dict[str, tuple[Make, ...]] = {
    "InterPodAffinityHostnameFastPath=true": (lives.history,),
    "NominatedNodeNameForExpectation=false": (lives.history, supplied_lives.supplied),
    "SchedulerPopFromBackoffQ=false": (lives.history, lives.moments),
    "SchedulerPreQueueingHints=true": (lives.history, supplied_lives.supplied),
}


def _gated(gates: dict[str, tuple[Make, ...]]) -> Make:
    def draw_one(draw: Draw) -> Json:
        chosen = draw.one(tuple(gates))
        given = dict(each.split("=") for each in chosen.split(","))
        features = {gate: value == "true" for gate, value in given.items()}
        return {"featureGates": features, **draw.one(gates[chosen])(draw)}

    return draw_one


DECISION_FAMILIES, LIFE_FAMILIES = {"gated": _gated(_DECISIONS)}, {"gated": _gated(_LIVES)}
