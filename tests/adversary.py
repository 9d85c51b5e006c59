"""Extreme but acceptable objects, each as a recipe that makes it at any size."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st
from tests.device_builders import DRIVER, device, make_claim, make_class, make_slice, request, with_claims

from kubesched.api.affinity import PodAffinityTerm, TopologySpreadConstraint
from kubesched.api.device_claims import DeviceConstraint, ResourceClaim
from kubesched.api.devices import ResourceSlice
from kubesched.api.meta import KubeObject, LabelSelector, LabelSelectorRequirement
from kubesched.api.node import Node
from kubesched.api.pod import (
    Container,
    ContainerPort,
    PersistentVolumeClaimSource,
    Pod,
    ResourceRequirements,
    Toleration,
    Volume,
)
from kubesched.testing import HOSTNAME, ZONE, PodBuilder, make_node, make_pod, node_term

Grow = Callable[[PodBuilder, int], PodBuilder]

DEVICES_PER_SLICE = 128
REQUESTS_PER_CLAIM = 32
"""The limits of the API."""


class Trait(NamedTuple):
    """One part of a pod that can be made as long as the API server lets it be."""

    name: str
    grow: Grow
    may_reject: bool = False
    """Whether nodes may be rejected because of it: then what is looked at later costs nothing."""

    def __repr__(self) -> str:
        return self.name


def _each(add: Callable[[PodBuilder, int], PodBuilder]) -> Grow:
    def grow(pod: PodBuilder, size: int) -> PodBuilder:
        for i in range(size):
            pod = add(pod, i)
        return pod

    return grow


def _spread(*, soft: bool, known: bool) -> Grow:
    """A constraint per topology; the first is one that nodes have, if so wished."""
    when: Any = "ScheduleAnyway" if soft else "DoNotSchedule"

    def grow(pod: PodBuilder, size: int) -> PodBuilder:
        keys = [ZONE if known and i == 0 else f"example.com/topology-{i}" for i in range(size)]
        constraints = tuple(
            TopologySpreadConstraint(
                max_skew=1,
                topology_key=key,
                when_unsatisfiable=when,
                label_selector=LabelSelector(match_labels={"app": f"app-{i}"}),
                node_taints_policy="Honor" if i % 2 else None,
            )
            for i, key in enumerate(keys)
        )
        return pod.spec(topology_spread_constraints=constraints)

    return grow


def _selector_of_many(pod: PodBuilder, size: int) -> PodBuilder:
    """One constraint with a selector of very many requirements."""
    requirements = tuple(LabelSelectorRequirement(key=f"key-{i}", operator="DoesNotExist") for i in range(size))
    constraint = TopologySpreadConstraint(
        max_skew=1,
        topology_key=ZONE,
        when_unsatisfiable="ScheduleAnyway",
        label_selector=LabelSelector(match_expressions=requirements),
    )
    return pod.spec(topology_spread_constraints=(constraint,))


def _terms(operator: Any, *, anti: bool, weight: int, namespaces: bool = False) -> Grow:
    def add(pod: PodBuilder, i: int) -> PodBuilder:
        values = (f"app-{i}",) if operator in ("In", "NotIn") else ()
        key = "app" if values else f"app-{i}"
        term = PodAffinityTerm(
            topology_key=(HOSTNAME, ZONE, f"example.com/topology-{i}")[i % 3],
            label_selector=LabelSelector(
                match_expressions=(LabelSelectorRequirement(key=key, operator=operator, values=values),)
            ),
            namespace_selector=LabelSelector(match_labels={"team": f"team-{i}"}) if namespaces else None,
        )
        return pod.pod_anti_affinity_term(term, weight=weight) if anti else pod.pod_affinity_term(term, weight=weight)

    return _each(add)


def _long_term(pod: PodBuilder, size: int) -> PodBuilder:
    """One term with very many values, in very many namespaces."""
    values = tuple(f"app-{i}" for i in range(size))
    selector = LabelSelector(match_expressions=(LabelSelectorRequirement(key="app", operator="In", values=values),))
    namespaces = tuple(f"ns{i}" for i in range(size))
    return pod.pod_anti_affinity_term(
        PodAffinityTerm(topology_key=ZONE, label_selector=selector, namespaces=namespaces), weight=7
    )


def _ports(pod: PodBuilder, size: int) -> PodBuilder:
    protocols: Any = ("TCP", "UDP", "SCTP")
    ports = tuple(
        ContainerPort(container_port=1, host_port=1 + i % 65_535, protocol=protocols[i // 65_535]) for i in range(size)
    )
    return pod.spec(containers=(*pod.pod.spec.containers, Container(name="ports", ports=ports)))


def _containers(size: int) -> tuple[Container, ...]:
    asked = ResourceRequirements(requests={"cpu": "1m"})
    return tuple(Container(name=f"c{i}", resources=asked) for i in range(size))


def _sidecars(size: int) -> tuple[Container, ...]:
    """Each with resources of its own."""
    return tuple(
        Container(
            name=f"s{i}",
            restart_policy="Always",
            resources=ResourceRequirements(requests={f"example.com/s{i}-{j}": 1 for j in range(2)}),
        )
        for i in range(size)
    )


TRAITS = (
    Trait("soft spread", _spread(soft=True, known=False)),
    Trait("hard spread", _spread(soft=False, known=False), may_reject=True),
    Trait("hard spread that begins well", _spread(soft=False, known=True), may_reject=True),
    Trait("long spread selector", _selector_of_many),
    Trait("resources", lambda pod, size: pod.requests({f"example.com/r{i}": 1 for i in range(size)}), may_reject=True),
    Trait(
        "node selector",
        lambda pod, size: pod.node_selector({f"example.com/k{i}": "yes" for i in range(size)}),
        may_reject=True,
    ),
    Trait(
        "required nodes",
        lambda pod, size: pod.requires_node(*(node_term(HOSTNAME, "In", f"absent-{i}") for i in range(size))),
        may_reject=True,
    ),
    Trait(
        "nodes by name",
        lambda pod, size: pod.requires_node(node_term(HOSTNAME, "NotIn", *(f"absent-{i:040}" for i in range(size)))),
    ),
    Trait(
        "preferred nodes",
        _each(lambda pod, i: pod.prefers_node(node_term(HOSTNAME, "Gt", str(i)), weight=1 + i % 100)),
    ),
    Trait("affinity", _terms("In", anti=False, weight=0), may_reject=True),
    Trait("anti-affinity", _terms("In", anti=True, weight=0), may_reject=True),
    Trait("preferred affinity", _terms("NotIn", anti=False, weight=7)),
    Trait("preferred anti-affinity", _terms("Exists", anti=True, weight=7)),
    Trait("affinity across namespaces", _terms("DoesNotExist", anti=True, weight=1, namespaces=True)),
    Trait("long anti-affinity term", _long_term),
    Trait("labels", lambda pod, size: pod.label({f"example.com/l{i}": "yes" for i in range(size)})),
    Trait(
        "tolerations",
        lambda pod, size: pod.spec(tolerations=tuple(Toleration(key=f"t{i}", operator="Exists") for i in range(size))),
    ),
    Trait("ports", _ports),
    Trait(
        "claims",
        lambda pod, size: pod.spec(
            volumes=tuple(
                Volume(name=f"v{i}", persistent_volume_claim=PersistentVolumeClaimSource(claim_name=f"c{i}"))
                for i in range(size)
            )
        ),
        may_reject=True,
    ),
    Trait("containers", lambda pod, size: pod.spec(containers=(*pod.pod.spec.containers, *_containers(size)))),
    Trait("init containers", lambda pod, size: pod.spec(init_containers=_containers(size))),
    Trait("sidecars", lambda pod, size: pod.spec(init_containers=_sidecars(size)), may_reject=True),
)


class HostilePod(NamedTuple):
    """A pod with some of these parts, all as long as asked for."""

    traits: tuple[Trait, ...]

    def build(self, size: int, name: str) -> Pod:
        pod = make_pod(name)
        for trait in self.traits:
            pod = trait.grow(pod, size)
        return pod.build()


hostile_pods = st.lists(st.sampled_from(TRAITS), min_size=1, max_size=3, unique_by=lambda trait: trait.name).map(
    lambda traits: HostilePod(tuple(traits))
)


def hostile_node(size: int) -> Node:
    """A node that says more of itself than any other."""
    node = make_node("hostile").capacity({f"example.com/n{i}": 1 for i in range(size)})
    node = node.label({f"example.com/k{i}": "yes" for i in range(size)})
    for i in range(size):
        node = node.taint(f"t{i}", effect="PreferNoSchedule").image(f"image-{i}", size=1 << 20)
    return node.build()


def hostile_devices(size: int) -> tuple[list[KubeObject], Pod]:
    """So many full slices and a class, and a pod whose claim asks for as much as a claim may."""
    names = [f"d{i}" for i in range(DEVICES_PER_SLICE)]
    slices: list[KubeObject] = [
        make_slice(f"n{i}", *(device(name, model=f"m-{i}") for name in names)) for i in range(size)
    ]
    wanted = (request(f"r{i}", count=1) for i in range(REQUESTS_PER_CLAIM))
    claim = make_claim("hostile", *wanted)
    return [*slices, make_class("gpu"), claim], with_claims(make_pod("hostile"), "hostile").build()


SERIAL = f'device.attributes["{DRIVER}"].serial'
"""No two devices have the same."""

HostileClaim = Callable[[int, str], ResourceClaim]


def _own_number(name: str) -> int:
    """By which no claim asks what another asks: nothing that is found out for one serves the next."""
    return 1_000_000 + zlib.crc32(name.encode())


def _serial_selectors(size: int, name: str) -> ResourceClaim:
    """Selectors by which no device is like another; the last holds for none."""
    first = _own_number(name)
    return make_claim(name, request("r", 1, *(f"{SERIAL} != {first + i}" for i in range(size)), f"{SERIAL} < 0"))


def _own_expressions(size: int, name: str) -> ResourceClaim:
    """Expressions that no other claim has, as long as they may be together."""
    written = (" && ".join(f'{SERIAL} != {i} && "{name}" != "{j}"' for j in range(10)) for i in range(size))
    return make_claim(name, request("r", 1, *written))


def _many_requests(size: int, name: str) -> ResourceClaim:
    """One device more than a node has, each asked for by itself."""
    least = f"{SERIAL} >= -{_own_number(name)}"
    return make_claim(name, *(request(f"r{i}", 1, least) for i in range(min(size, REQUESTS_PER_CLAIM))))


def _same_serial(size: int, name: str) -> ResourceClaim:
    same = (DeviceConstraint(match_attribute=f"{DRIVER}/serial"),)
    last = request("x", 1, f"{SERIAL} >= -{_own_number(name)}")
    return make_claim(name, *(request(f"r{i}") for i in range(2, 3 + size % 3)), last, constraints=same)


HOSTILE_CLAIMS: dict[str, HostileClaim] = {
    "serial selectors": _serial_selectors,
    "own expressions": _own_expressions,
    "many requests": _many_requests,
    "same serial": _same_serial,
}


def different_devices(node: str, number: int, first: int = 0) -> ResourceSlice:
    """A slice of which no device is like another of the cluster."""
    return make_slice(node, *(device(f"d{i}", model="m", serial=first + i) for i in range(number)))


WAITING: dict[str, Grow] = {
    "selector keys": lambda pod, size: pod.node_selector(
        {f"example.com/k{i}-{pod.pod.name}": "x" for i in range(size)}
    ),
    "a label that changes": lambda pod, size: pod.node_selector({pod.pod.name: "x", "generation": "x"}),
    "spread keys": _each(lambda pod, i: pod.spread(f"example.com/t{i}-{pod.pod.name}", app="x")),
    "affinity": _each(lambda pod, i: pod.pod_affinity(f"example.com/t{i}-{pod.pod.name}", app="x")),
    "terms": lambda pod, size: pod.node_selector({f"example.com/k-{pod.pod.name}": "x"}).requires_node(
        *(node_term(HOSTNAME, "NotIn", f"absent-{i}") for i in range(size))
    ),
    "resources": lambda pod, size: pod.requests({f"example.com/r{i}-{pod.pod.name}": 1 for i in range(size)}),
}
"""Pods that wait for nodes, each for one of its own, that never come."""
