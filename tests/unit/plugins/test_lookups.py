"""Plugins that name what pods wait for miss none: whom a hint would wake waits for what the event brings."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_cluster
from tests.unit.plugins.volume_builders import claim, pod

from kubesched.api.affinity import (
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from kubesched.api.meta import KubeObject, LabelSelector, LabelSelectorRequirement
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.framework.events import Hint, Kind
from kubesched.framework.plugin import Plugin
from kubesched.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.plugins.node_affinity import NodeAffinityPlugin
from kubesched.plugins.node_resources.fit import NodeResourcesFit
from kubesched.plugins.node_volume_limits import NodeVolumeLimits
from kubesched.plugins.pod_topology_spread import PodTopologySpread
from kubesched.plugins.volume_binding import VolumeBinding
from kubesched.plugins.volume_restrictions import VolumeRestrictions
from kubesched.plugins.volume_zone import VolumeZone
from kubesched.testing import HOSTNAME, ZONE, PodBuilder, make_node, make_pod, node_term

APPS = ("web", "db", "cache")
requirements = st.one_of(
    st.builds(
        LabelSelectorRequirement,
        key=st.sampled_from(("app", "tier")),
        operator=st.sampled_from(("In", "NotIn")),
        values=st.lists(st.sampled_from(APPS), min_size=1, max_size=2, unique=True).map(tuple),
    ),
    st.builds(
        LabelSelectorRequirement,
        key=st.sampled_from(("app", "tier")),
        operator=st.sampled_from(("Exists", "DoesNotExist")),
    ),
)
selectors = st.none() | st.lists(requirements, max_size=2).map(
    lambda found: LabelSelector(match_expressions=tuple(found))
)
terms = st.builds(PodAffinityTerm, topology_key=st.just(ZONE), label_selector=selectors)
labels = st.dictionaries(st.sampled_from(("app", "tier")), st.sampled_from(APPS))


@st.composite
def pods(draw: st.DrawFn, name: str) -> PodBuilder:
    pod = make_pod(name, namespace=draw(st.sampled_from(("default", "other")))).label(draw(labels))
    for term in draw(st.lists(terms, max_size=2)):
        pod = pod.pod_affinity_term(term)
    for term in draw(st.lists(terms, max_size=2)):
        pod = pod.pod_anti_affinity_term(term)
    selector = draw(selectors)
    if draw(st.booleans()):
        constraint = TopologySpreadConstraint(
            max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule", label_selector=selector
        )
        pod = pod.spread_constraint(constraint)
    return pod


@st.composite
def changes(draw: st.DrawFn) -> tuple[Pod | None, Pod | None]:
    pod = draw(pods("other")).on("n1")
    relabelled = pod.label(draw(labels))
    return draw(st.sampled_from([(None, pod.build()), (pod.build(), None), (pod.build(), relabelled.build())]))


@given(waiting=pods("waiting"), change=changes(), plugin=st.sampled_from([InterPodAffinity(), PodTopologySpread()]))
@settings(max_examples=400, deadline=None)
def test_whom_a_hint_would_wake_waits_for_something_that_the_event_brings(
    waiting: PodBuilder, change: tuple[Pod | None, Pod | None], plugin: Plugin
) -> None:
    assert whom_the_hint_wakes_is_found(plugin, Kind.POD, waiting.build(), change)


disks = st.sampled_from(
    [
        {"gcePersistentDisk": {"pdName": "disk"}},
        {"rbd": {"monitors": ["m"], "image": "i", "pool": "p"}},
        {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ]
)
pods_with_volumes = st.builds(
    lambda volumes, claims: pod("p", *volumes, claims=tuple(claims)),
    st.lists(disks, max_size=2),
    st.lists(st.sampled_from(("x", "y")), max_size=2, unique=True),
)


@given(waiting=pods_with_volumes, left=pods_with_volumes)
@settings(deadline=None)
def test_pods_that_want_a_disk_or_claim_are_found_when_another_pod_that_had_it_left(waiting: Pod, left: Pod) -> None:
    assert whom_the_hint_wakes_is_found(VolumeRestrictions(), Kind.POD, waiting, (left, None))


@given(
    waiting=pods_with_volumes,
    name=st.sampled_from(("x", "z", "p-v0", "p-v1")),
    plugin=st.sampled_from([VolumeRestrictions(), VolumeZone(), VolumeBinding(), NodeVolumeLimits()]),
)
@settings(deadline=None)
def test_pods_that_use_a_claim_are_found_when_it_comes(waiting: Pod, name: str, plugin: Plugin) -> None:
    assert whom_the_hint_wakes_is_found(plugin, Kind.PERSISTENT_VOLUME_CLAIM, waiting, (None, claim(name)))


sizes = st.tuples(st.integers(0, 1 << 12), st.integers(0, 1 << 34))


@given(wanted=sizes, before=st.none() | sizes, offered=sizes)
@settings(max_examples=400, deadline=None)
def test_pods_that_fit_into_a_node_are_found_when_it_comes_or_grows(
    wanted: tuple[int, int], before: tuple[int, int] | None, offered: tuple[int, int]
) -> None:
    cpu, memory = wanted
    waiting = make_pod("waiting").requests(cpu=f"{cpu}m", memory=str(memory))
    old, new = (
        None if size is None else make_node("n1").capacity(cpu=f"{size[0]}m", memory=str(size[1])).build()
        for size in (before, offered)
    )
    assert whom_the_hint_wakes_is_found(NodeResourcesFit(), Kind.NODE, waiting.build(), (old, new))


def test_pods_that_are_larger_than_a_node_are_not_asked_about() -> None:
    [interest] = [one for one in NodeResourcesFit().events_to_register() if one.event.kind is Kind.NODE]
    assert interest.lookup is not None
    state, waiting = make_cluster(), make_pod("waiting").requests(cpu="64").build()
    brought = interest.lookup.brings(None, make_node("n1").capacity(cpu="16", pods=10).build(), state)
    assert set(brought or ()).isdisjoint(interest.lookup.waits(waiting, state))


KEYS = (ZONE, HOSTNAME, "disk", "absent")
VALUES = ("a", "b", "n1", "7")
node_requirements = st.builds(
    NodeSelectorRequirement,
    key=st.sampled_from((*KEYS, "no key!")),
    operator=st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")),
    values=st.lists(st.sampled_from(VALUES), max_size=2, unique=True).map(tuple),
)
named = st.builds(
    NodeSelectorRequirement,
    key=st.just("metadata.name"),
    operator=st.sampled_from(("In", "NotIn")),
    values=st.sampled_from(("n1", "n2")).map(lambda name: (name,)),
)
node_terms = st.builds(
    NodeSelectorTerm,
    match_expressions=st.lists(node_requirements, max_size=2).map(tuple),
    match_fields=st.lists(named, max_size=1).map(tuple),
)
topology_keys = st.lists(st.sampled_from(KEYS), max_size=2, unique=True)
node_labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))


@st.composite
def pods_for_some_nodes(draw: st.DrawFn) -> Pod:
    waiting = make_pod("waiting").node_selector(
        draw(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=2))
    )
    if required := draw(st.lists(node_terms, max_size=2)):
        waiting = waiting.requires_node(*required)
    for key in draw(topology_keys):
        waiting = waiting.pod_affinity_term(PodAffinityTerm(topology_key=key))
    for key in draw(topology_keys):
        waiting = waiting.pod_anti_affinity_term(PodAffinityTerm(topology_key=key))
    for key in draw(topology_keys):
        waiting = waiting.spread_constraint(
            TopologySpreadConstraint(max_skew=1, topology_key=key, when_unsatisfiable="DoNotSchedule")
        )
    return waiting.build()


@st.composite
def node_changes(draw: st.DrawFn) -> tuple[Node | None, Node | None]:
    """A node that comes, or changes its labels or taints; or goes."""
    old, new = (make_node("n2").label(draw(node_labels)) for _ in range(2))
    new = new.taint("t") if draw(st.booleans()) else new
    return draw(st.sampled_from([(None, new.build()), (old.build(), new.build()), (old.build(), None)]))


@given(
    waiting=pods_for_some_nodes(),
    change=node_changes(),
    plugin=st.sampled_from([NodeAffinityPlugin(), InterPodAffinity(), PodTopologySpread()]),
)
@settings(max_examples=600, deadline=None)
def test_pods_that_a_node_suits_now_are_found_by_its_labels(
    waiting: Pod, change: tuple[Node | None, Node | None], plugin: Plugin
) -> None:
    if change[1] is None and not isinstance(plugin, PodTopologySpread):
        return  # they do not wait for nodes that go
    assert whom_the_hint_wakes_is_found(plugin, Kind.NODE, waiting, change)


@pytest.mark.parametrize(
    ("plugin", "waiting"),
    [
        (NodeAffinityPlugin(), make_pod("p").node_selector({ZONE: "a", "absent": "x", "generation": "2"})),
        (NodeAffinityPlugin(), make_pod("p").requires_node(node_term("absent", "In", "x"))),
        (PodTopologySpread(), make_pod("p").spread("generation", app="x").spread("absent", app="x")),
        (InterPodAffinity(), make_pod("p").pod_affinity_term(PodAffinityTerm(topology_key="absent"))),
    ],
)
def test_no_hint_is_asked_about_pods_that_need_a_label_which_no_node_has(plugin: Plugin, waiting: PodBuilder) -> None:
    state = make_cluster(make_node("n1").zone("a").label(generation="1"))
    [interest] = [one for one in plugin.events_to_register() or () if one.event.kind is Kind.NODE]
    assert interest.lookup is not None
    old, new = (make_node("n1").zone("a").label(generation=value).build() for value in ("1", "3"))
    waits = set(interest.lookup.waits(waiting.build(), state))
    assert waits.isdisjoint(interest.lookup.brings(old, new, state) or ())
    assert waits.isdisjoint(interest.lookup.brings(None, new, state) or ())
    gets_it = make_node("n1").zone("a").label(generation="2", absent="x").build()
    assert not waits.isdisjoint(interest.lookup.brings(old, gets_it, state) or ())


def whom_the_hint_wakes_is_found(
    plugin: Plugin, kind: Kind, waiting: Pod, change: tuple[KubeObject | None, KubeObject | None]
) -> bool:
    """Whether the hint would wake nobody, or a pod that waits for something which the event brings."""
    state = make_cluster(make_node("n1").zone("a"))
    [interest] = [one for one in plugin.events_to_register() or () if one.event.kind is kind]
    assert interest.hint is not None
    assert interest.lookup is not None
    brought = interest.lookup.brings(*change, state)
    assert brought is not None
    wakes = interest.hint(waiting, *change, state) is Hint.QUEUE
    return not wakes or not set(brought).isdisjoint(interest.lookup.waits(waiting, state))
