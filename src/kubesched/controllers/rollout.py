"""Rollouts of Deployments: the ReplicaSet of a template, and how many replicas each ReplicaSet should have next."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.api.kinds import DEPLOYMENTS, Object
from kubesched.controllers.pod_templates import POD_TEMPLATE_HASH, hash_of, owner_reference, share_of

REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"

Sizes = dict[str, int]
"""Replicas by the name of the ReplicaSet; only those that change."""


def new_replica_set(deployment: Object, replicas: int, annotations: dict[str, str]) -> Object:
    """The ReplicaSet of the template that the Deployment has now, named and labelled by the template's hash."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    template_hash = hash_of(spec["template"], (deployment.get("status") or {}).get("collisionCount", 0))
    template_metadata = spec["template"].get("metadata") or {}
    labels = {**(template_metadata.get("labels") or {}), POD_TEMPLATE_HASH: template_hash}
    selector = spec.get("selector") or {}
    match_labels = {**(selector.get("matchLabels") or {}), POD_TEMPLATE_HASH: template_hash}
    return {
        "metadata": {
            "name": f"{metadata['name']}-{template_hash}",
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner_reference(DEPLOYMENTS, deployment)],
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": spec.get("minReadySeconds") or 0,
            "selector": {**selector, "matchLabels": match_labels},
            "template": {**spec["template"], "metadata": {**template_metadata, "labels": labels}},
        },
    }


def is_rolling(deployment: Object) -> bool:
    return bool(deployment["spec"]["strategy"]["type"] == "RollingUpdate")


def max_surge(deployment: Object) -> int:
    """How many pods there may be beyond those asked for."""
    if not is_rolling(deployment):
        return 0
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    return share_of(rolling.get("maxSurge"), deployment["spec"]["replicas"], round_up=True)


def max_unavailable(deployment: Object) -> int:
    """How many of the pods asked for may be missing. One, if neither this nor a surge would let anything happen."""
    replicas: int = deployment["spec"]["replicas"]
    if not is_rolling(deployment) or replicas == 0:
        return 0
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    allowed = share_of(rolling.get("maxUnavailable"), replicas, round_up=False)
    if allowed == 0 and max_surge(deployment) == 0:
        allowed = 1
    return min(allowed, replicas)


def size(replica_set: Object) -> int:
    return int(replica_set["spec"]["replicas"])


def available(replica_set: Object) -> int:
    return int((replica_set.get("status") or {}).get("availableReplicas", 0))


def total(replica_sets: Sequence[Object]) -> int:
    return sum(map(size, replica_sets))


def first_size(deployment: Object, others: Sequence[Object], current: int = 0) -> int:
    """How large the newest ReplicaSet may be, next to the others."""
    replicas: int = deployment["spec"]["replicas"]
    if not is_rolling(deployment):
        return replicas
    room = replicas + max_surge(deployment) - total(others) - current
    return current + max(0, min(room, replicas - current))


def next_new_size(deployment: Object, newest: Object, olds: Sequence[Object]) -> int:
    """The next size of the newest ReplicaSet in a rolling update."""
    replicas: int = deployment["spec"]["replicas"]
    if size(newest) > replicas:
        return replicas
    return first_size(deployment, olds, size(newest))


def next_old_sizes(deployment: Object, newest: Object, olds: Sequence[Object]) -> Sizes:
    """The next sizes of the older ReplicaSets: unavailable pods go first, then as many as maxUnavailable allows."""
    minimum = deployment["spec"]["replicas"] - max_unavailable(deployment)
    budget = total(olds) + size(newest) - minimum - (size(newest) - available(newest))
    if budget <= 0:
        return {}
    sizes = {_name(replica_set): size(replica_set) for replica_set in olds}
    spare = budget
    for replica_set in olds:
        removed = min(spare, max(0, size(replica_set) - available(replica_set)))
        sizes[_name(replica_set)] -= removed
        spare -= removed
    may_go = sum(map(available, olds)) + available(newest) - minimum
    for replica_set in olds:
        removed = max(0, min(may_go, spare, sizes[_name(replica_set)]))
        sizes[_name(replica_set)] -= removed
        may_go -= removed
        spare -= removed
    return _changes(sizes, olds)


def proportional_sizes(deployment: Object, replica_sets: Sequence[Object]) -> Sizes:
    """Sizes after the Deployment was scaled in the middle of a rollout: each ReplicaSet keeps its share."""
    replicas: int = deployment["spec"]["replicas"]
    allowed = replicas + max_surge(deployment) if replicas > 0 else 0
    change = allowed - total(replica_sets)
    by_age = sorted(replica_sets, key=lambda rs: rs["metadata"]["creationTimestamp"], reverse=change > 0)
    ordered = sorted(by_age, key=size, reverse=True)
    sizes, remaining = {_name(replica_set): size(replica_set) for replica_set in ordered}, change
    for replica_set in ordered:
        if remaining == 0:
            break
        share = _share(deployment, replica_set, allowed)
        step = max(0, min(share, remaining)) if change > 0 else min(0, max(share, remaining))
        sizes[_name(replica_set)] += step
        remaining -= step
    if ordered and remaining:
        # What rounding left over goes to the largest; it never shrinks below nothing.
        largest = _name(ordered[0])
        sizes[largest] = max(0, sizes[largest] + remaining)
    return _changes(sizes, ordered)


def _changes(sizes: Sizes, replica_sets: Sequence[Object]) -> Sizes:
    return {name: sizes[name] for rs in replica_sets if sizes[name := _name(rs)] != size(rs)}


def _name(replica_set: Object) -> str:
    return str(replica_set["metadata"]["name"])


def _share(deployment: Object, replica_set: Object, allowed: int) -> int:
    """The part of a change that falls to one ReplicaSet, by its part of the pods when it was last scaled."""
    if allowed == 0:
        return -size(replica_set)
    annotated = (replica_set["metadata"].get("annotations") or {}).get(MAXIMUM, "")
    before = int(annotated) if annotated.isdigit() else 0
    before = before or (deployment.get("status") or {}).get("replicas", 0) or allowed
    # Half away from zero, as upstream rounds.
    return int(size(replica_set) * allowed / before + 0.5) - size(replica_set)
