"""Of equal pods that fail again and again one is told so each second; the others know that they have to wait."""

from __future__ import annotations

import tracemalloc

from tests.unit.scheduler.world import World, pop_pod

from kubesched.api.pod import PersistentVolumeClaimSource, PodCondition, Volume
from kubesched.framework.status import unschedulable
from kubesched.scheduler.attempt.attempt import Failure
from kubesched.scheduler.attempt.failures import FailureReporter
from kubesched.scheduler.queue.unschedulable_classes import UnschedulableClasses
from kubesched.state.cluster import ClusterState
from kubesched.testing import PodBuilder, make_node, make_pod

FITS_NOWHERE = Failure(unschedulable("full"), "full", is_unschedulable_class=True)


class Told:
    """Asks about pods at a time of its own."""

    def __init__(self) -> None:
        self.now = 0.0
        world = World()
        self.classes = UnschedulableClasses(ClusterState(), world.scheduler.profiles, lambda: self.now)
        self._reporter = FailureReporter(world.queue, world.scheduler.pods.get, world.cluster, self.classes)

    def __call__(self, pod: PodBuilder, failure: Failure = FITS_NOWHERE) -> bool:
        return not self._reporter._is_redundant(pod.build(), failure)


def waiting(name: str, reason: str = "Unschedulable") -> PodBuilder:
    """It was told once that it fits nowhere."""
    return make_pod(name).status(conditions=(PodCondition(type="PodScheduled", status="False", reason=reason),))


def with_claim(name: str) -> PodBuilder:
    claim = PersistentVolumeClaimSource(claim_name=f"data-{name}")
    return waiting(name).spec(volumes=(Volume(name="data", persistent_volume_claim=claim),))


def test_first_failure_is_told_to_every_pod() -> None:
    told = Told()
    assert [told(make_pod(name)) for name in "abc"] == [True, True, True]


def test_of_pods_that_wait_one_is_told_each_second() -> None:
    told = Told()
    assert [told(waiting(name)) for name in "abc"] == [True, False, False]
    told.now = 0.9
    assert not told(waiting("d"))
    told.now = 1.0
    assert told(waiting("e"))


def test_pods_of_another_kind_are_told_by_themselves() -> None:
    told = Told()
    assert told(waiting("a"))
    assert told(waiting("b").label(app="other"))


def test_pods_that_differ_only_in_their_claims_are_of_one_kind() -> None:
    told = Told()
    assert told(with_claim("a"))
    assert not told(with_claim("b"))
    assert told(waiting("c"))


def test_pod_whose_last_attempt_ended_with_an_error_is_told() -> None:
    told = Told()
    assert told(waiting("a"))
    assert told(waiting("b", reason="SchedulerError"))


def test_error_and_nomination_are_told() -> None:
    told = Told()
    assert told(waiting("a"))
    assert told(waiting("b"), Failure(unschedulable("broken"), "broken"))
    assert told(waiting("c"), Failure(unschedulable("full"), "full", nominated="n1", is_unschedulable_class=True))
    assert told(waiting("d").nominated("n1"))


def test_what_is_remembered_is_forgotten_in_time() -> None:
    told = Told()
    for number in range(1200):
        told.now = float(number)
        told(waiting("a").label(number=str(number)))
    assert len(told.classes._reported) <= 1000


def told_again(*, spares: bool) -> int:
    """How often one of five equal pods is told that it fits nowhere while two others leave one after the other."""
    world = World(make_node("n1").capacity(cpu="2", pods=10), batched=spares)
    world.see(*(make_pod(name).requests(cpu="1").on("n1") for name in "xy"))
    world.see(*(make_pod(name).requests(cpu="1") for name in "abcde"))
    try_all(world)
    world.pass_seconds(20)
    world.cluster.notes.clear()
    for name in "xy":
        world.lose(make_pod(name).requests(cpu="1").on("n1"))
        try_all(world)
    return sum(note.startswith("FailedScheduling") for note in world.cluster.notes)


def try_all(world: World) -> None:
    while (attempt := pop_pod(world.scheduler)) is not None:
        world.scheduler.decide(attempt)
        world.finish(attempt)


def test_batched_scheduler_tells_one_of_those_that_fail_again() -> None:
    assert told_again(spares=True) == 1


def test_all_are_told_where_vain_attempts_are_not_spared() -> None:
    assert told_again(spares=False) == 7


def test_little_is_remembered_of_however_many_and_large_pods() -> None:
    told = Told()
    tracemalloc.start()
    try:
        for i in range(3000):
            assert told(waiting("a").label(app="x" * 5000 + str(i)))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2 << 20
    assert told(waiting("a").label(app="x" * 5000 + "0"))  # forgotten by now
    assert not told(waiting("a").label(app="x" * 5000 + "2999"))
