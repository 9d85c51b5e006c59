from __future__ import annotations

import pytest

from kubesched.api.pod import ContainerStatus, PodCondition, ResourceList, ResourceRequirements
from kubesched.api.requests import is_countable, is_extended, placed_requests, pod_requests, sets_pod_level, whole
from kubesched.testing import PodBuilder, make_pod

INFEASIBLE = PodCondition(type="PodResizePending", status="True", reason="Infeasible")
DEFERRED = PodCondition(type="PodResizePending", status="True", reason="Deferred")


def requested(pod: PodBuilder, *, placed: bool = False) -> dict[str, int]:
    """What is counted: cpu in thousandths, all else in units."""
    amounts = pod_requests(pod.build(), from_status=placed)
    return {name: whole(name, amount) for name, amount in amounts.items()}


def scored(pod: PodBuilder) -> dict[str, int]:
    _, amounts = placed_requests(pod.build())
    return {name: whole(name, amount) for name, amount in amounts.items()}


def holding(name: str = "main", *, actual: ResourceList, allocated: ResourceList | None = None) -> ContainerStatus:
    resources = ResourceRequirements(requests=actual)
    return ContainerStatus(name=name, resources=resources, allocated_resources=allocated or {})


def test_containers_add_up() -> None:
    pod = make_pod("p").requests(cpu="500m", memory="1Ki").container(cpu="1", memory="1Ki")
    assert requested(pod) == {"cpu": 1500, "memory": 2048}


def test_fractions_are_added_before_they_are_rounded() -> None:
    pod = make_pod("p").requests(memory="100m").container(memory="100m")
    assert requested(pod) == {"memory": 1}


def test_init_containers_run_one_by_one_so_the_largest_counts() -> None:
    pod = make_pod("p").requests(cpu="1").init_container(cpu="3").init_container(cpu="2")
    assert requested(pod) == {"cpu": 3000}


def test_small_init_containers_cost_nothing() -> None:
    pod = make_pod("p").requests(cpu="2").init_container(cpu="1")
    assert requested(pod) == {"cpu": 2000}


def test_a_sidecar_runs_beside_the_containers() -> None:
    pod = make_pod("p").requests(cpu="2").init_container(sidecar=True, cpu="1")
    assert requested(pod) == {"cpu": 3000}


def test_an_init_container_shares_the_node_with_sidecars_started_before_it_only() -> None:
    early = make_pod("p").init_container(sidecar=True, cpu="1").init_container(cpu="4")
    late = make_pod("p").init_container(cpu="4").init_container(sidecar=True, cpu="1")
    assert requested(early) == {"cpu": 5000}
    assert requested(late) == {"cpu": 4000}


def test_overhead_comes_on_top_of_everything() -> None:
    pod = make_pod("p").requests(cpu="1").init_container(cpu="3").overhead(cpu="250m", memory="1")
    assert requested(pod) == {"cpu": 3250, "memory": 1}


def test_pod_level_requests_replace_the_sum_of_the_containers() -> None:
    pod = make_pod("p").requests(cpu="1", memory="2").pod_level(cpu="3").overhead(cpu="1")
    assert requested(pod) == {"cpu": 4000, "memory": 2}
    assert sets_pod_level(pod.build())


def test_only_cpu_memory_and_huge_pages_count_at_pod_level() -> None:
    pod = make_pod("p").requests({"a.b/gpu": 1}).pod_level({"a.b/gpu": 7, "hugepages-2Mi": "4Mi"})
    assert requested(pod) == {"a.b/gpu": 1, "hugepages-2Mi": 4 * 2**20}


def test_pod_level_limits_alone_set_nothing() -> None:
    pod = make_pod("p").spec(resources=ResourceRequirements(limits={"cpu": 1}))
    assert not sets_pod_level(pod.build())


@pytest.mark.parametrize(
    ("actual", "allocated", "counted"),
    [({"cpu": "1"}, {}, 2000), ({"cpu": "3"}, {}, 3000), ({"cpu": "1"}, {"cpu": "4"}, 4000)],
)
def test_a_resize_counts_as_the_largest_of_wanted_held_and_granted(
    actual: ResourceList, allocated: ResourceList, counted: int
) -> None:
    pod = make_pod("p").requests(cpu="2").status(container_statuses=(holding(actual=actual, allocated=allocated),))
    assert requested(pod, placed=True) == {"cpu": counted}


def test_a_pending_pod_goes_by_its_spec() -> None:
    pod = make_pod("p").requests(cpu="2").status(container_statuses=(holding(actual={"cpu": "3"}),))
    assert requested(pod) == {"cpu": 2000}


def test_a_resize_that_can_never_happen_does_not_count() -> None:
    pod = make_pod("p").requests(cpu="9").status(container_statuses=(holding(actual={"cpu": "1"}),))
    assert requested(pod.status(conditions=(INFEASIBLE,)), placed=True) == {"cpu": 1000}
    assert requested(pod.status(conditions=(DEFERRED,)), placed=True) == {"cpu": 9000}


def test_sidecars_may_be_resized_but_plain_init_containers_are_over() -> None:
    statuses = (holding("side", actual={"cpu": "3"}), holding("init", actual={"cpu": "9"}))
    pod = make_pod("p").init_container("side", sidecar=True, cpu="1").init_container("init", cpu="1")
    assert requested(pod.status(init_container_statuses=statuses), placed=True) == {"cpu": 4000}


def test_pod_level_requests_are_resized_too() -> None:
    resized = make_pod("p").pod_level(cpu="2").status(resources=ResourceRequirements(requests={"cpu": "3"}))
    assert requested(resized, placed=True) == {"cpu": 3000}
    assert requested(resized.status(allocated_resources={"cpu": "4"}), placed=True) == {"cpu": 4000}
    assert requested(resized.pod_level(cpu="9").status(conditions=(INFEASIBLE,)), placed=True) == {"cpu": 3000}


def test_scoring_assumes_something_of_every_container_that_does_not_say() -> None:
    pod = make_pod("p").requests(cpu="1").container()
    assert scored(pod) == {"cpu": 1100, "memory": 400 * 2**20}


def test_an_explicit_zero_is_believed() -> None:
    assert scored(make_pod("p").requests(cpu="0", memory="0")) == {"cpu": 0, "memory": 0}


def test_what_is_said_at_pod_level_needs_no_assumption() -> None:
    pod = make_pod("p").pod_level(cpu="2")
    assert scored(pod) == {"cpu": 2000, "memory": 200 * 2**20}


@pytest.mark.parametrize("name", ["cpu", "memory", "ephemeral-storage", "hugepages-1Gi", "a.b/gpu", "kubernetes.io/x"])
def test_these_resources_are_accounted_for(name: str) -> None:
    assert is_countable(name)


@pytest.mark.parametrize("name", ["storage", "pods", "gpu", "requests.cpu/x", "a b/gpu"])
def test_these_are_not(name: str) -> None:
    assert not is_countable(name)


def test_extended_resources_belong_to_a_vendor() -> None:
    assert is_extended("nvidia.com/gpu")
    assert not is_extended("kubernetes.io/gpu")
    assert not is_extended("hugepages-2Mi")
