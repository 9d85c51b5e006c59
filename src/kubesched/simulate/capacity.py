"""How many more of a pod fit: copies are placed one after another until the next one finds no node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod, PodStatus
from kubesched.api.well_known import ZONE
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.kinds import PodWorkload
from kubesched.simulate.meter import NO_ZONE
from kubesched.simulate.placement import PodPlacement, UnplacedPod, place_one

replace = msgspec.structs.replace


@dataclass(frozen=True, slots=True)
class CapacityAnswer:
    """What was found. If `stopped_by` is empty, all that were asked for fit, and more might."""

    pod: str
    nodes: int
    fit: int
    stopped_by: str
    by_zone: dict[str, int]
    by_node: dict[str, int]
    """Only nodes that got at least one, those with most first."""


def model_of(obj: KubeObject) -> Pod | None:
    """The pod that is meant: a pod as it was before it was placed, or the template of a workload."""
    if isinstance(obj, Pod):
        return replace(obj, spec=replace(obj.spec, node_name=""), status=PodStatus())
    if isinstance(obj, PodWorkload) and obj.spec.template.spec.containers:
        template = obj.spec.template
        meta = replace(template.metadata, name=obj.name, namespace=obj.namespace)
        return Pod(api_version="v1", kind="Pod", metadata=meta, spec=template.spec)
    return None


def capacity(
    cluster: ClusterModel,
    model: Pod,
    *,
    most: int,
    progress: Callable[[int, int], None] | None = None,
    place: Callable[[Pod], PodPlacement | UnplacedPod] | None = None,
) -> CapacityAnswer:
    """Place copies of the pod, at most so many. No pod is evicted for them. The cluster holds them afterwards.

    `place` may place them in another way, such as for a while.
    """
    place = place or (lambda pod: place_one(cluster, cluster.with_claims(pod)))
    on: Counter[str] = Counter()
    stopped_by = ""
    for i in range(most):
        name = f"{model.name}-copy-{i}"
        meta = replace(model.metadata, name=name, uid=f"{model.namespace}/{name}")
        outcome = place(replace(model, metadata=meta))
        if isinstance(outcome, UnplacedPod):
            stopped_by = outcome.message
            break
        on[outcome.node] += 1
        if progress is not None:
            progress(i + 1, most)
    table = cluster.state.nodes
    zones: Counter[str] = Counter()
    for node, count in on.items():
        zones[table.node(table.row_of[node]).metadata.labels.get(ZONE, NO_ZONE)] += count
    by_node = dict(sorted(on.items(), key=lambda taken: (-taken[1], taken[0])))
    return CapacityAnswer(model.key, table.live_count, on.total(), stopped_by, dict(sorted(zones.items())), by_node)
