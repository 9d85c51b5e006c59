"""DeviceTaintRules, which kube-scheduler reads since v1.37: decisions, and lives in which rules come and go."""

from __future__ import annotations

from collections.abc import Callable

from tools.recorder.generators import lives, supplied_lives, usage
from tools.recorder.generators.drawing import Draw, Json, new_object

DRIVER = "gpu.example.com"
_KEYS = ("example.com/broken", "example.com/old")
_EFFECTS = ("NoSchedule", "NoExecute", "None")


def rule(draw: Draw, name: str, nodes: list[str]) -> Json:
    """For a device, a pool, a driver, or all there are."""
    taint = {"key": draw.one(_KEYS), "effect": draw.one(_EFFECTS)}
    if draw.chance(0.5):
        taint["value"] = draw.one(("x", "y"))
    selector: Json = {}
    if draw.chance(0.6):
        selector["pool"] = draw.one(nodes)
    if draw.chance(0.5):
        selector["driver"] = draw.one((DRIVER, DRIVER, "other.example.com"))
    if draw.chance(0.5):
        selector["device"] = f"d{draw.number(0, 3)}"
    spec: Json = {"taint": taint}
    if selector or draw.chance(0.5):
        spec["deviceSelector"] = selector
    return {**new_object("resource.k8s.io/v1", "DeviceTaintRule", name), "spec": spec}


def tolerations(draw: Draw) -> list[Json]:
    made: list[Json] = []
    for key in draw.some(_KEYS, 2):
        given: Json = {"key": key, "operator": draw.one(("Exists", "Equal"))}
        if given["operator"] == "Equal":
            given["value"] = draw.one(("x", "y"))
        if draw.chance(0.4):
            given["effect"] = draw.one(_EFFECTS)
        made.append(given)
    return [{"operator": "Exists"}] if draw.chance(0.1) else made


def taint_rules(draw: Draw) -> Json:
    """Devices of several nodes, some with taints of their own, and rules for some of them."""
    names = [f"n{i:02}" for i in range(draw.number(2, 6))]
    objects: list[Json] = [*usage.device_classes(), *(_node(name) for name in names)]
    for name in names:
        made = usage.device_slice(draw, name)
        for device in made["spec"]["devices"]:
            if draw.chance(0.2):
                device["taints"] = [{"key": draw.one(_KEYS), "effect": draw.one(_EFFECTS)}]
        objects.append(made)
    objects += [rule(draw, f"rule{i}", names) for i in range(draw.number(0, 4))]
    pending = []
    for i in range(draw.number(2, 6)):
        claim = usage.device_claim(draw, f"c{i}", "default")
        asked = claim["spec"]["devices"]["requests"][0]
        if draw.chance(0.15):
            asked["exactly"].update(allocationMode="All")
            asked["exactly"].pop("count")
        if draw.chance(0.4):
            asked["exactly"]["tolerations"] = tolerations(draw)
        if draw.chance(0.2):
            other = {"name": "s1", **asked["exactly"], "tolerations": tolerations(draw)}
            claim["spec"]["devices"]["requests"] = [
                {"name": "r", "firstAvailable": [{"name": "s0", **asked["exactly"]}, other]}
            ]
        objects += [claim, _pod(f"p{i}", f"c{i}")]
        pending.append(f"default/p{i}")
    return {"mode": draw.one(("evaluate", "sequence", "sequence-bind")), "objects": objects, "pending": pending}


def _node(name: str) -> Json:
    node = new_object("v1", "Node", name, labels={"kubernetes.io/hostname": name})
    offered = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    return {**node, "spec": {}, "status": {"allocatable": offered, "capacity": offered}}


def _pod(name: str, claim: str) -> Json:
    container = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}
    spec = {
        "schedulerName": "default-scheduler",
        "containers": [container],
        "resourceClaims": [{"name": "x", "resourceClaimName": claim}],
    }
    return {**new_object("v1", "Pod", name, namespace="default"), "spec": spec, "status": {"phase": "Pending"}}


class TaintedHistory(supplied_lives.SuppliedHistory):
    """A history in which rules come, change and go as well."""

    def __init__(self, draw: Draw, *, nodes: int, placed: int, modes: tuple[str, ...]) -> None:
        super().__init__(draw, nodes=nodes, placed=placed, modes=modes)
        self._rules: list[str] = []
        self.objects += [self._new_rule() for _ in range(draw.number(0, 2))]

    def add_rule(self) -> None:
        self.steps.append({"op": "create", "object": self._new_rule()})

    def change_rule(self) -> None:
        if self._rules:
            name = self.draw.one(self._rules)
            spec = rule(self.draw, name, self.nodes)["spec"]
            self.steps.append({"op": "update", "kind": "DeviceTaintRule", "name": name, "patch": {"spec": spec}})

    def delete_rule(self) -> None:
        self._delete("DeviceTaintRule", self._rules)

    def _new_rule(self) -> Json:
        name = f"rule{self._number()}"
        self._rules.append(name)
        return rule(self.draw, name, self.nodes)


_RULES: tuple[Callable[[TaintedHistory], None], ...] = (
    TaintedHistory.add_rule,
    TaintedHistory.change_rule,
    TaintedHistory.delete_rule,
    TaintedHistory.add_slice,
    TaintedHistory.replace_slice,
    TaintedHistory.release_devices,
)


def tainted(draw: Draw) -> Json:
    """Pods that use devices, whose taints change by rules, through some dozen steps."""
    told = TaintedHistory(draw, nodes=draw.number(1, 4), placed=draw.number(0, 3), modes=("ReadWriteOnce",))
    steps = draw.number(30, 100)
    while len(told.steps) < steps:
        if draw.chance(0.3):
            draw.one(_RULES)(told)
        else:
            draw.one(lives.OFTEN if draw.chance(0.8) else lives.SELDOM)(told)
    return lives.case_of(told)


DECISIONS = {"taint-rules": taint_rules}
LIVES = {"tainted": tainted}
