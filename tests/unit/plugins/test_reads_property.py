"""Every plugin keeps to what it declares to read of a pod: pods that differ only in other fields get equal answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.builders import make_engine, profile_of
from tests.device_builders import device, first_of, make_claim, make_class, make_slice, with_claims
from tests.unit.plugins.volume_builders import claim, csi_node, csi_volume, make, pod, storage_class, volume

from kubesched.api.meta import OwnerReference
from kubesched.api.pod import (
    ContainerStatus,
    Pod,
    PodCondition,
    PodResourceClaim,
    PodResourceClaimStatus,
    ResourceRequirements,
)
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision
from kubesched.framework.nodes import FeasibleNodes, Nodes
from kubesched.framework.plugin import (
    FilterPlugin,
    Plugin,
    PostFilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from kubesched.framework.reads import UNDECLARED, PodFields
from kubesched.framework.status import SKIP, Status
from kubesched.plugins.registry import IN_TREE
from kubesched.state.cluster import ClusterState
from kubesched.testing import HOSTNAME, ZONE, PodBuilder, make_node, make_pod, node_term

NAMES = ("n1", "n2", "n3")
GPU = "example.com/gpu"

POINTS: dict[str, type[Plugin]] = {
    "pre_filter": PreFilterPlugin,
    "filter": FilterPlugin,
    "pre_score": PreScorePlugin,
    "score": ScorePlugin,
    "post_filter": PostFilterPlugin,
}

ASKED = [
    pytest.param(plugin, point, id=f"{plugin.name}-{point}")
    for plugin in IN_TREE
    for point, kind in POINTS.items()
    if issubclass(plugin, kind) and getattr(plugin, point) is not getattr(PreScorePlugin, point, None)
]


@cache
def cluster() -> ClusterState:
    """Nodes, pods, volumes, claims and devices that make a difference to all plugins."""
    state = ClusterState()
    for i, name in enumerate(NAMES):
        built = make_node(name).capacity({"cpu": "4", "memory": "8Gi", "pods": 10, GPU: i}).zone(f"z{i % 2}")
        state.apply(built.label({HOSTNAME: name, "disk": "ssd" if i else "hdd"}).image("web:1", size=500 << 20).build())
    state.apply(make_node("n2").capacity(cpu="4", pods=10).zone("z1").taint("dedicated", "a").build())
    state.apply(make_node("n4").capacity(cpu="4", pods=10).cordoned().build())
    for i, name in enumerate(NAMES):
        other = make_pod(f"placed-{i}").label(app="web").requests(cpu="3").host_port(80).on(name)
        state.apply(other.pod_anti_affinity(ZONE, weight=3, app="web").build())
        state.apply(csi_node(name, {"csi.example.com": i}))
        state.apply(make_slice(name, device(f"gpu-{i}", model="a" if i else "b")))
    state.apply(pod("user", {"gcePersistentDisk": {"pdName": "disk"}}, claims=("own",), on="n1"))
    state.apply(storage_class("late"))
    state.apply(claim("own", volume="v-own", accessModes=["ReadWriteOncePod"]))
    state.apply(csi_volume("v-own", labels={ZONE: "z0"}, on={ZONE: ["z0"]}))
    state.apply(claim("other", volume="v-other"))
    state.apply(csi_volume("v-other", labels={ZONE: "z1"}, on={ZONE: ["z1"]}))
    state.apply(claim("first-scratch", storageClassName="late"))
    state.apply(volume("free", storageClassName="late", on={ZONE: ["z1"]}))
    state.apply(make("Service", "web", namespace="default", spec={"selector": {"app": "web"}}))
    state.apply(make_class())
    state.apply(make_claim("devices", first_of("r", ("a", 1, "true"), ("b", 1, "true"))))
    state.apply(make_claim("more-devices"))
    return state


TRAITS: tuple[Callable[[PodBuilder], PodBuilder], ...] = (
    lambda one: one.requests(cpu="2"),
    lambda one: one.requests({GPU: 1}),
    lambda one: one.priority(10),
    lambda one: one.toleration("dedicated", "a", effect="NoSchedule"),
    lambda one: one.host_port(80),
    lambda one: one.image("web:1"),
    lambda one: one.node_selector(disk="ssd"),
    lambda one: one.prefers_node(node_term("disk", "In", "ssd"), weight=4),
    lambda one: one.spread(ZONE, app="web"),
    lambda one: one.spread(HOSTNAME, soft=True, app="web"),
    lambda one: one.pod_affinity(ZONE, app="web"),
    lambda one: one.pod_anti_affinity(HOSTNAME, weight=5, app="web"),
    lambda one: one.requires_node(node_term("metadata.name", "In", "n1")),
    lambda one: one.spec(host_network=True, host_users=False),
    lambda one: one.spec(volumes=pod("x", claims=("own",)).spec.volumes),
    lambda one: one.spec(volumes=pod("x", {"gcePersistentDisk": {"pdName": "disk"}}, claims=("other",)).spec.volumes),
    lambda one: one.spec(volumes=pod("x", {"name": "scratch", "ephemeral": {}}).spec.volumes),
    lambda one: with_claims(one, "devices"),
    lambda one: one.spec(
        resource_claims=(PodResourceClaim(name="made", resource_claim_template_name="template"),)
    ).status(resource_claim_statuses=(PodResourceClaimStatus(name="made", resource_claim_name="devices"),)),
    lambda one: one.owned_by("ReplicaSet", "web-1"),
)


def _with_other_node_names(one: Pod) -> Pod:
    return PodBuilder(one).requires_node(node_term("metadata.name", "In", "n2")).build()


def _with_other_claims(one: Pod) -> Pod:
    def other(source: Any) -> Any:
        return None if source is None else replace(source, claim_name="other" if source.claim_name == "own" else "own")

    volumes = tuple(replace(v, persistent_volume_claim=other(v.persistent_volume_claim)) for v in one.spec.volumes)
    return replace(one, spec=replace(one.spec, volumes=volumes))


def _with_meta(one: Pod, **fields: Any) -> Pod:
    return replace(one, metadata=replace(one.metadata, **fields))


def _with_status(one: Pod, **fields: Any) -> Pod:
    return replace(one, status=replace(one.status, **fields))


MUTATIONS: dict[PodFields, Callable[[Pod], Pod]] = {
    PodFields.SPEC: lambda one: PodBuilder(one).requests(cpu="1").toleration(operator="Exists").priority(3).build(),
    PodFields.NODE_NAMES: _with_other_node_names,
    PodFields.CLAIM_NAMES: _with_other_claims,
    PodFields.LABELS: lambda one: _with_meta(one, labels={"app": "db", "index": "1"}),
    PodFields.NAMESPACE: lambda one: _with_meta(one, namespace="elsewhere"),
    PodFields.OWNER: lambda one: _with_meta(
        one,
        owner_references=(OwnerReference(api_version="apps/v1", kind="StatefulSet", name="other", controller=True),),
    ),
    PodFields.RESIZE: lambda one: _with_status(
        one,
        container_statuses=(
            ContainerStatus(name=one.spec.containers[0].name, resources=ResourceRequirements(requests={"cpu": "3"})),
        ),
    ),
    PodFields.RESOURCE_CLAIMS: lambda one: _with_status(
        one, resource_claim_statuses=(PodResourceClaimStatus(name="made", resource_claim_name="more-devices"),)
    ),
    PodFields.ANNOTATIONS: lambda one: _with_meta(one, annotations={"a": "b"}),
    PodFields.STATUS: lambda one: _with_status(
        one, phase="Pending", conditions=(PodCondition(type="PodScheduled", status="False"),)
    ),
    PodFields.NAME: lambda one: _with_meta(one, name="second", uid="uid-second"),
}
"""By field, the same pod but for that field."""


def test_there_is_a_mutation_of_every_field() -> None:
    assert set(MUTATIONS) == set(PodFields) - {PodFields.NONE, PodFields.ALL}


@pytest.mark.parametrize(("plugin", "point"), ASKED)
def test_plugin_declares_what_it_reads(plugin: type[Plugin], point: str) -> None:
    assert getattr(plugin, f"{point}_reads") != UNDECLARED


@pytest.mark.parametrize(("plugin", "point"), ASKED)
@given(data=st.data())
@settings(max_examples=40)
def test_pods_that_differ_in_nothing_that_is_declared_get_the_same_answer(
    plugin: type[Plugin], point: str, data: st.DataObject
) -> None:
    declared = getattr(plugin, f"{point}_reads").pod
    builder = make_pod("first", uid="uid-first").label(app="web")
    for trait in data.draw(st.lists(st.sampled_from(TRAITS), max_size=4, unique_by=id)):
        builder = trait(builder)
    first = second = builder.build()
    others = [field for field in MUTATIONS if not field & declared]
    for field in data.draw(st.lists(st.sampled_from(others), min_size=1, unique=True)) if others else ():
        if field is PodFields.NODE_NAMES and not _names_nodes(first):
            continue
        if field is PodFields.NAME and declared & (PodFields.CLAIM_NAMES | PodFields.RESOURCE_CLAIMS):
            continue  # by which claims are found that belong to the pod
        second = MUTATIONS[field](second)
    state = cluster()
    if point == "post_filter":
        assert _post_filter(plugin, first, state) == _post_filter(plugin, second, state)
        return
    asked = plugin()
    one, other = (dict(_answers(asked, replaced, state)) for replaced in (first, second))
    if point in one and point in other and one[point] != "unsigned":
        assert one[point] == other[point]


def _names_nodes(one: Pod) -> bool:
    affinity = one.spec.affinity
    return (
        affinity is not None
        and affinity.node_affinity is not None
        and (affinity.node_affinity.required_during_scheduling_ignored_during_execution is not None)
    )


def _answers(plugin: Plugin, one: Pod, state: ClusterState) -> Iterator[tuple[str, Any]]:
    """What a plugin says of a pod, point by point, as far as it is asked."""
    cycle, nodes = Cycle(one, state), Nodes(state)
    if isinstance(plugin, PreFilterPlugin):
        answer = plugin.pre_filter(cycle)
        yield "pre_filter", _plain(answer)
        if isinstance(answer, Status) and answer is not SKIP:
            return
        if answer is SKIP:
            cycle.skipped_filters = frozenset((plugin.name,))
    if isinstance(plugin, FilterPlugin) and plugin.name not in cycle.skipped_filters:
        live = state.nodes.live[: state.nodes.size]
        ids = plugin.filter(cycle, nodes)
        yield "filter", [_plain(plugin.rejections.statuses[rejection]) for rejection in ids[live].tolist()]
    live = state.nodes.live[: state.nodes.size]
    fitting = FeasibleNodes(state, live, int(np.count_nonzero(live)))
    if isinstance(plugin, PreScorePlugin):
        status = plugin.pre_score(cycle, fitting)
        yield "pre_score", _plain(status)
        if status is not None:
            return
    if isinstance(plugin, ScorePlugin):
        if plugin.signs and plugin.sign(cycle) is None:
            yield "score", "unsigned"
            return
        scores = plugin.score(cycle, fitting)
        normal = plugin.normalize(cycle, scores if isinstance(scores, int) else scores.copy(), fitting)
        yield "score", (np.broadcast_to(scores, len(fitting)).tolist(), np.broadcast_to(normal, len(fitting)).tolist())


def _post_filter(plugin: type[Plugin], one: Pod, state: ClusterState) -> Any:
    config = profile_of(*dict.fromkeys(("NodeResourcesFit", plugin.name)))
    decision: Decision = make_engine(state, config=config).decide(one)
    result = decision.post_filter
    found = None if result is None else (result.nominated, [victim.pod.key for victim in result.victims])
    return decision.outcome, found, _plain(decision.post_filter_status)


def _plain(answer: Any) -> Any:
    return (answer.code, answer.reasons) if isinstance(answer, Status) else answer
