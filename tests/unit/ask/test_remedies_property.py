"""Every remedy helps; and where a single change helps, found by trying them all on JSON, there is such a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.applied_remedies import Json, as_json, cluster_of, schedules

from kubesched.api.well_known import is_owned_label
from kubesched.ask.remedies import RemedyKind, remedies
from kubesched.framework.decision import Outcome
from kubesched.simulate.placement import schedule
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod, node_term

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
PENDING = "default/p"
WORDS = st.sampled_from(("x", "y"))


@st.composite
def nodes(draw: st.DrawFn, i: int) -> NodeBuilder:
    made = make_node(f"n{i}").capacity(cpu=draw(st.integers(1, 4)), memory="4Gi", pods=draw(st.integers(1, 4)))
    made = made.label({"pool": draw(WORDS), **({"disk": draw(WORDS)} if draw(st.booleans()) else {})})
    if draw(st.integers(0, 4)):
        made = made.zone(draw(st.sampled_from(("a", "b"))))
    for key in draw(st.sets(st.sampled_from(("t", "u")), max_size=2)) if draw(st.booleans()) else ():
        made = made.taint(key, draw(WORDS))
    return made.cordoned() if not draw(st.integers(0, 3)) else made


@st.composite
def wishes(draw: st.DrawFn, pod: PodBuilder) -> PodBuilder:
    """The pod with some requests and constraints."""
    pod = pod.label(app=draw(WORDS)).requests(cpu=draw(st.integers(0, 5)), memory=f"{draw(st.integers(0, 5))}Gi")
    if not draw(st.integers(0, 3)):
        pod = pod.node_selector(pool=draw(WORDS))
    if not draw(st.integers(0, 3)):
        pod = pod.requires_node(node_term("disk", draw(st.sampled_from(("In", "NotIn"))), draw(WORDS)))
    if not draw(st.integers(0, 3)):
        pod = pod.pod_anti_affinity(draw(st.sampled_from((ZONE, HOST))), app=draw(WORDS))
    if not draw(st.integers(0, 5)):
        pod = pod.pod_affinity(ZONE, app=draw(WORDS))
    if not draw(st.integers(0, 2)):
        pod = pod.spread(draw(st.sampled_from((ZONE, HOST))), max_skew=draw(st.integers(1, 2)), app=draw(WORDS))
    if not draw(st.integers(0, 4)):
        pod = pod.host_port(draw(st.sampled_from((80, 81))))
    if draw(st.booleans()):
        pod = pod.toleration("t", draw(WORDS))
    return pod


@st.composite
def clusters(draw: st.DrawFn) -> list[Json]:
    """Up to four nodes, some pods on them, and a pod that waits."""
    count = draw(st.integers(1, 4))
    there = [draw(nodes(i)) for i in range(count)]
    placed: list[PodBuilder] = [
        make_pod(f"q{i}")
        .label(app=draw(WORDS))
        .priority(draw(st.integers(0, 2)))
        .requests(cpu=draw(st.integers(0, 2)), memory="1Gi")
        .on(f"n{draw(st.integers(0, count - 1))}")
        for i in range(draw(st.integers(0, 5)))
    ]
    has_port, has_anti_affinity = draw(st.booleans()), draw(st.booleans())
    if placed and has_port:
        placed[0] = placed[0].host_port(80)
    if placed and has_anti_affinity:
        placed[-1] = placed[-1].pod_anti_affinity(ZONE, app=draw(WORDS))
    pending = draw(wishes(make_pod("p"))).priority(draw(st.integers(0, 2)))
    return as_json([*(node.build() for node in there), *(pod.build() for pod in placed), pending.build()])


def fits(objects: list[Json]) -> bool:
    cluster = cluster_of(objects)
    return schedule(cluster, cluster.pods[PENDING]).outcome is Outcome.SCHEDULED


REQUESTS = frozenset((RemedyKind.REQUEST_LESS, RemedyKind.REQUEST_NONE))
SPREAD = frozenset((RemedyKind.RELAX_SPREAD, RemedyKind.DROP_SPREAD))
LEAVING = frozenset((RemedyKind.EVICT, RemedyKind.PREEMPTION, RemedyKind.WAIT_FOR_PODS))
Changed = tuple[frozenset[RemedyKind], list[Json]]


def changed_pod(objects: list[Json]) -> Iterator[tuple[frozenset[RemedyKind], Json]]:
    """The waiting pod after each single change of it."""
    pod = next(obj for obj in objects if obj["metadata"]["name"] == "p")

    def again() -> Json:
        return deepcopy(pod)

    for i, container in enumerate(pod["spec"]["containers"]):
        for resource in container.get("resources", {}).get("requests", {}):
            other = again()
            del other["spec"]["containers"][i]["resources"]["requests"][resource]
            yield REQUESTS, other
        if container.get("ports"):
            other = again()
            del other["spec"]["containers"][i]["ports"]
            yield frozenset((RemedyKind.DROP_HOST_PORT,)), other
    for taint in (taint for obj in objects for taint in obj.get("spec", {}).get("taints", ())):
        other = again()
        other["spec"].setdefault("tolerations", []).append({"key": taint["key"], "value": taint["value"]})
        yield frozenset((RemedyKind.TOLERATE,)), other
    for key in pod["spec"].get("nodeSelector", {}):
        other = again()
        del other["spec"]["nodeSelector"][key]
        yield frozenset((RemedyKind.DROP_NODE_SELECTOR,)), other
    for part, sort in (
        ("nodeAffinity", RemedyKind.DROP_NODE_AFFINITY),
        ("podAffinity", RemedyKind.DROP_AFFINITY),
        ("podAntiAffinity", RemedyKind.DROP_ANTI_AFFINITY),
    ):
        if part in pod["spec"].get("affinity", {}):
            other = again()
            del other["spec"]["affinity"][part]
            yield frozenset((sort,)), other
    for i in range(len(pod["spec"].get("topologySpreadConstraints", ()))):
        other = again()
        other["spec"]["topologySpreadConstraints"][i]["whenUnsatisfiable"] = "ScheduleAnyway"
        yield SPREAD, other


def changed_nodes(objects: list[Json]) -> Iterator[Changed]:
    """The objects after each single change of a node, and with one more."""
    pod = next(obj for obj in objects if obj["metadata"]["name"] == "p")
    for i, obj in enumerate(objects):
        if obj["kind"] != "Node":
            continue

        def with_node(node: Json, i: int = i) -> list[Json]:
            return [*objects[:i], node, *objects[i + 1 :]]

        if obj["spec"].get("unschedulable") if "spec" in obj else False:
            yield frozenset((RemedyKind.UNCORDON,)), with_node({**obj, "spec": {**obj["spec"], "unschedulable": False}})
        for taint in obj.get("spec", {}).get("taints", ()):
            left = [other for other in obj["spec"]["taints"] if other != taint]
            yield frozenset((RemedyKind.REMOVE_TAINT,)), with_node({**obj, "spec": {**obj["spec"], "taints": left}})
        for key, value in pod["spec"].get("nodeSelector", {}).items():
            if is_owned_label(key):
                continue
            labels = {**obj["metadata"]["labels"], key: value}
            yield (
                frozenset((RemedyKind.LABEL_NODE,)),
                with_node({**obj, "metadata": {**obj["metadata"], "labels": labels}}),
            )
        name = f"{obj['metadata']['name']}-more"
        labels = {**obj["metadata"]["labels"], HOST: name}
        spec = {**obj.get("spec", {}), "unschedulable": False}
        more = {**obj, "metadata": {"name": name, "labels": labels}, "spec": spec}
        yield frozenset((RemedyKind.ADD_NODE,)), [*objects, more]


def single_changes(objects: list[Json]) -> Iterator[Changed]:
    others = [obj for obj in objects if obj["metadata"]["name"] != "p"]
    for sorts, pod in changed_pod(objects):
        yield sorts, [*others, pod]
    yield from changed_nodes(objects)
    priority = next(obj for obj in objects if obj["metadata"]["name"] == "p")["spec"].get("priority", 0)
    for obj in others:
        if obj["kind"] == "Pod" and obj["spec"].get("priority", 0) <= priority:
            yield LEAVING, [each for each in objects if each is not obj]


@settings(max_examples=150)
@given(clusters())
def test_every_remedy_helps_and_none_is_missed(objects: list[Json]) -> None:
    if fits(objects):
        return
    cluster = cluster_of(objects)
    found = remedies(cluster, cluster.pods[PENDING])
    for remedy in found.found:
        assert schedules(objects, PENDING, remedy), remedy.text
        assert not (remedy.text.startswith("Label") and "kubernetes.io/" in remedy.text), remedy.text
    suggested = {remedy.steps[0].sort for remedy in found.found if len(remedy.steps) == 1}
    for sorts, changed in single_changes(objects):
        assert not fits(changed) or sorts & suggested, (sorted(sort.value for sort in sorts), found)


@settings(max_examples=100)
@given(clusters())
def test_what_is_left_to_request_is_all_that_can_be(objects: list[Json]) -> None:
    """One unit more of the resource that is to be cut, and the pod fits nowhere again."""
    cluster = cluster_of(objects)
    if cluster.engine.decide(cluster.pods[PENDING]).node:
        return
    for remedy in remedies(cluster, cluster.pods[PENDING]).found:
        if [step.sort for step in remedy.steps] != [RemedyKind.REQUEST_LESS] or len(remedy.changes[0].patch or ()) != 1:
            continue
        (operation,) = remedy.changes[0].patch or ()
        value = str(operation.value)
        if not operation.path.endswith("/cpu"):
            continue
        milli = int(value[:-1]) if value.endswith("m") else int(value) * 1000
        others = [obj for obj in objects if obj["metadata"]["name"] != "p"]
        pod = deepcopy(next(obj for obj in objects if obj["metadata"]["name"] == "p"))
        index = int(operation.path.split("/")[3])
        pod["spec"]["containers"][index]["resources"]["requests"]["cpu"] = f"{milli + 1}m"
        assert not fits([*others, pod]), remedy.text
