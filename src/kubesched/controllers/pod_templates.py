"""Pod templates: the pods of workloads, StatefulSets and DaemonSets among them, hashes, revisions, owner references."""

from __future__ import annotations

import hashlib

import msgspec

from kubesched.api.kinds import STATEFUL_SETS, Object, Resource
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.selectors import NodeRequirements
from kubesched.api.tolerations import has_untolerated

POD_TEMPLATE_HASH = "pod-template-hash"
REVISION_HASH = "controller-revision-hash"
NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LENGTH = 10
_LONGEST_PREFIX = 253 - 5
_encode = msgspec.json.Encoder(order="deterministic").encode


def owner_reference(resource: Resource, owner: Object, *, controller: bool = True) -> Object:
    metadata = owner["metadata"]
    reference = {"apiVersion": resource.api_version, "kind": resource.kind}
    reference |= {"name": metadata["name"], "uid": metadata.get("uid", "")}
    return {**reference, "controller": True, "blockOwnerDeletion": True} if controller else reference


def pod_from(template: Object, *, prefix: str = "", name: str = "") -> Object:
    """A pod as a template describes it, to be named by the server or by the caller."""
    source = template.get("metadata") or {}
    metadata = {key: source[key] for key in ("labels", "annotations", "finalizers") if source.get(key)}
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = f"{prefix[: _LONGEST_PREFIX - 1]}-"
    return {"metadata": metadata, "spec": dict(template.get("spec") or {})}


def hash_of(value: object, collisions: int = 0) -> str:
    """A short name for a value, the same for equal values; another one after a collision."""
    digest = hashlib.sha256(_encode([value, collisions] if collisions else value)).digest()
    return "".join(NAME_ALPHABET[byte % len(NAME_ALPHABET)] for byte in digest[:_LENGTH])


def is_same_template(one: Object, other: Object) -> bool:
    """Whether two templates differ at most in the hash that a Deployment adds."""
    return _without_hash(one) == _without_hash(other)


def _without_hash(template: Object) -> Object:
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != POD_TEMPLATE_HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def revision_data(owner: Object) -> Object:
    """What a ControllerRevision keeps of a StatefulSet or DaemonSet; its hash is the label of the pods."""
    return {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}


def share_of(value: int | str | None, total: int, *, round_up: bool) -> int:
    """A number of pods, or a percentage of all of them."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-total * percent // 100) if round_up else total * percent // 100


# -- StatefulSets: the ordinals they want, and the pod and the claims of each -----------------------------------------


_POD_NAME, _POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"


def ordinals_of(stateful_set: Object) -> range:
    spec = stateful_set["spec"]
    first = (spec.get("ordinals") or {}).get("start", 0)
    replicas = spec.get("replicas")
    return range(first, first + (1 if replicas is None else replicas))


def stateful_pod(stateful_set: Object, ordinal: int, template: Object, revision: str) -> Object:
    """The pod of an ordinal, made from a template of the set's history."""
    name = f"{stateful_set['metadata']['name']}-{ordinal}"
    pod = pod_from(template, name=name)
    own = {REVISION_HASH: revision, _POD_NAME: name, _POD_INDEX: str(ordinal)}
    pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **own}
    spec = pod["spec"]
    claims = {
        claim["metadata"]["name"]: claim_name(stateful_set, claim, ordinal) for claim in claim_templates(stateful_set)
    }
    if claims:
        volumes = [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()]
        spec["volumes"] = [*volumes, *(volume for volume in spec.get("volumes") or () if volume["name"] not in claims)]
    spec["hostname"] = name
    if service := stateful_set["spec"].get("serviceName"):
        spec["subdomain"] = service
    return pod


def claim_templates(stateful_set: Object) -> tuple[Object, ...]:
    return tuple(stateful_set["spec"].get("volumeClaimTemplates") or ())


def claim_name(stateful_set: Object, template: Object, ordinal: int) -> str:
    return f"{template['metadata']['name']}-{stateful_set['metadata']['name']}-{ordinal}"


def claim_of(stateful_set: Object, template: Object, ordinal: int) -> Object:
    """The claim of an ordinal: it goes with the set only if the set's retention policy says so."""
    template_metadata, spec = template.get("metadata") or {}, stateful_set["spec"]
    selector = (spec.get("selector") or {}).get("matchLabels") or {}
    metadata = {
        "name": claim_name(stateful_set, template, ordinal),
        "labels": {**(template_metadata.get("labels") or {}), **selector},
    }
    if template_metadata.get("annotations"):
        metadata["annotations"] = template_metadata["annotations"]
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    if retention.get("whenDeleted") == "Delete":
        metadata["ownerReferences"] = [owner_reference(STATEFUL_SETS, stateful_set, controller=False)]
    return {"metadata": metadata, "spec": template["spec"]}


# -- DaemonSets: which nodes get a pod, and the pod for each of them --------------------------------------------------


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
    matches = [_what_it_matches(toleration) for toleration in own]
    others = [other for other in spec.get("tolerations") or () if _what_it_matches(other) not in matches]
    return [*others, *own]


def _what_it_matches(toleration: Object) -> list[str]:
    return [toleration.get(field, "") for field in ("key", "operator", "effect", "value")]


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
