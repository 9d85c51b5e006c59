"""DaemonSets: which nodes get a pod, and the pod for each of them."""

from __future__ import annotations

import msgspec

from kubesched.api.kinds import Object
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.selectors import NodeRequirements
from kubesched.api.tolerations import has_untolerated
from kubesched.controllers.pod_templates import REVISION_HASH, pod_from

_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK = ("network-unavailable", "NoSchedule")
_NAME_FIELD = "metadata.name"


class Eligibility:
    """Which nodes a DaemonSet wants a pod on, and on which a pod may stay that is there."""

    def __init__(self, daemon_set: Object) -> None:
        spec = daemon_set["spec"]["template"]["spec"]
        self._pod = msgspec.convert({"spec": {**spec, "tolerations": daemon_tolerations(spec)}}, Pod)
        self._required = NodeRequirements(self._pod)

    def of(self, node: Node) -> tuple[bool, bool]:
        """Whether a pod should be created on the node, and whether a pod that is there may stay."""
        spec = self._pod.spec
        if spec.node_name not in ("", node.name) or not self._required.allow(node):
            return False, False
        taints = node.spec.taints
        lasting = [taint for taint in taints if taint.effect == "NoExecute"]
        return not has_untolerated(taints, spec.tolerations), not has_untolerated(lasting, spec.tolerations)


def daemon_tolerations(spec: Object) -> list[Object]:
    """The tolerations of a template, and those that pods of every DaemonSet have, instead of any that match alike."""
    pairs = [*_TOLERATED, *([_TOLERATED_ON_HOST_NETWORK] if spec.get("hostNetwork") else [])]
    own = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect} for key, effect in pairs]
    given = [each for each in spec.get("tolerations") or () if not any(_match_alike(each, other) for other in own)]
    return [*given, *own]


def _match_alike(one: Object, other: Object) -> bool:
    return all(one.get(field, "") == other.get(field, "") for field in ("key", "operator", "effect", "value"))


def daemon_pod(daemon_set: Object, node: str, revision_hash: str) -> Object:
    """The pod for one node: no other will do."""
    pod = pod_from(daemon_set["spec"]["template"], prefix=daemon_set["metadata"]["name"])
    generation = {"pod-template-generation": str(daemon_set["metadata"].get("generation", 1))}
    pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), REVISION_HASH: revision_hash, **generation}
    spec = pod["spec"]
    spec["tolerations"] = daemon_tolerations(spec)
    spec["affinity"] = affinity_to(node, spec.get("affinity") or {})
    return pod


def affinity_to(node: str, affinity: Object) -> Object:
    """The affinity with this node as the only one allowed: whether its required terms hold there was checked before."""
    fields = [{"key": _NAME_FIELD, "operator": "In", "values": [node]}]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    node_affinity = affinity.get("nodeAffinity") or {}
    return {**affinity, "nodeAffinity": {**node_affinity, "requiredDuringSchedulingIgnoredDuringExecution": required}}


def target_of(pod: Object) -> str | None:
    """The node that a daemon pod is on or meant for."""
    if node := pod["spec"].get("nodeName"):
        return str(node)
    node_affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == _NAME_FIELD and field["operator"] == "In" and len(field["values"]) == 1:
                return str(field["values"][0])
    return None
