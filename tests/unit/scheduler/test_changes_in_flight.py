"""A pod that changes while it is its turn: filters saw it as it was, whoever makes room for it sees it as it is."""

from __future__ import annotations

import pytest
from tests.unit.scheduler.world import World, pop_pod

from kubesched.api.pod import PersistentVolumeClaimSource, PodCondition, Volume
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.testing import PodBuilder, make_node, make_pod, node_term

VIP = make_pod("vip").requests(cpu="4").priority(10)
NOT_FOUND = 'preemption: pod "vip" not found'


def decided_after(change: PodBuilder | None, *, pod: PodBuilder = VIP, nodes: int = 1) -> tuple[World, Attempt]:
    """An attempt at a pod that was changed, or deleted, after its turn had come. Every node is full."""
    names = [f"n{i}" for i in range(nodes)]
    world = World(*map(make_node, names), *(make_pod(f"on-{n}").requests(cpu="4").priority(5).on(n) for n in names))
    world.see(pod)
    attempt = pop_pod(world.scheduler)
    assert attempt is not None
    if change is None:
        world.lose(pod)
    else:
        world.see(change)
    world.scheduler.decide(attempt)
    return world, attempt


def test_pod_that_has_become_less_important_preempts_nobody() -> None:
    _, attempt = decided_after(VIP.priority(5))
    assert attempt.victims == ()


def test_pod_that_has_become_more_important_preempts() -> None:
    _, attempt = decided_after(VIP, pod=VIP.priority(5))
    assert [victim.pod.name for victim in attempt.victims] == ["on-n0"]


def test_pod_that_must_not_preempt_any_more_does_not() -> None:
    _, attempt = decided_after(VIP.never_preempting())
    assert attempt.failure is not None
    assert attempt.failure.message.endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_pod_waits_for_victims_on_the_node_that_it_has_been_promised_meanwhile() -> None:
    leaving = make_pod("leaving").on("n0").terminating()
    evicted = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    world = World(make_node("n0"), make_pod("other").requests(cpu="4").on("n0"), leaving.status(conditions=(evicted,)))
    world.see(VIP)
    attempt = pop_pod(world.scheduler)
    assert attempt is not None
    world.see(VIP.nominated("n0"))
    world.scheduler.decide(attempt)
    assert attempt.failure is not None
    assert "terminating pod on the nominated node" in attempt.failure.message


def test_nobody_is_evicted_for_a_pod_that_is_gone() -> None:
    world, attempt = decided_after(None)
    assert attempt.failure is not None
    assert attempt.failure.message.endswith(f"Insufficient cpu. {NOT_FOUND}")
    world.finish(attempt)
    assert world.cluster.evicted == []


def test_pod_that_is_gone_and_was_ruled_out_before_devices_were_asked_about_never_comes_to_preemption() -> None:
    source = PersistentVolumeClaimSource(claim_name="missing")
    _, attempt = decided_after(None, pod=VIP.spec(volumes=(Volume(name="data", persistent_volume_claim=source),)))
    assert attempt.failure is not None
    assert attempt.failure.message.endswith('persistentvolumeclaim "missing" not found. not found')


@pytest.mark.parametrize("claim", ["missing", ""])
def test_who_kept_a_pod_to_some_nodes_is_not_to_blame_once_another_rules_it_out(claim: str) -> None:
    source = PersistentVolumeClaimSource(claim_name=claim)
    volumes = (Volume(name="data", persistent_volume_claim=source),) if claim else ()
    here = node_term("metadata.name", "In", "n0")
    pod = VIP.requires_node(here).spec(volumes=volumes)
    _, attempt = decided_after(pod, pod=pod, nodes=2)
    assert attempt.failure is not None
    expected = {"VolumeRestrictions"} if claim else {"NodeAffinity", "NodeResourcesFit"}
    assert attempt.failure.unschedulable_plugins == expected
