from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.builders import make_cluster, make_engine

from kubesched.api.pod import Container, ContainerPort
from kubesched.testing import PodBuilder, make_node, make_pod


def fits_beside(holder: PodBuilder, pod: PodBuilder) -> bool:
    decision = make_engine(make_cluster(make_node("n1"), holder.on("n1"))).decide(pod.build())
    assert bool(decision.node) != ("didn't have free ports for the requested pod ports" in decision.message)
    return bool(decision.node)


@pytest.mark.parametrize(
    ("held", "wanted", "fits"),
    [
        ("10.0.0.1", "10.0.0.1", False),
        ("10.0.0.1", "10.0.0.2", True),
        ("", "10.0.0.1", False),
        ("10.0.0.1", "0.0.0.0", False),
        # To kube-scheduler this is an address like any other.
        ("::", "10.0.0.1", True),
    ],
)
def test_a_port_is_held_on_an_address_and_no_address_means_all_of_them(held: str, wanted: str, fits: bool) -> None:
    assert fits_beside(make_pod("a").host_port(80, ip=held), make_pod("b").host_port(80, ip=wanted)) is fits


def test_protocols_have_ports_of_their_own() -> None:
    assert fits_beside(make_pod("a").host_port(53), make_pod("b").host_port(53, protocol="UDP"))


@pytest.mark.parametrize("sidecar", [True, False])
def test_ports_of_sidecars_are_held_and_those_of_plain_init_containers_are_not(sidecar: bool) -> None:
    ports = (ContainerPort(host_port=80),)
    init = replace(Container(ports=ports), restart_policy="Always" if sidecar else "")
    assert fits_beside(make_pod("a").spec(init_containers=(init,)), make_pod("b").host_port(80)) is not sidecar


def test_a_port_is_free_again_when_its_holder_is_gone() -> None:
    holder = make_pod("a").host_port(80).on("n1").build()
    state = make_cluster(make_node("n1"), holder)
    engine = make_engine(state)
    assert not engine.decide(make_pod("b").host_port(80).build()).node
    state.delete(holder)
    assert engine.decide(make_pod("b").host_port(80).build()).node == "n1"
