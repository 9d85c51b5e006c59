from __future__ import annotations

import random

import pytest
from soak.churn import Churn
from soak.referee import Referee
from soak.verdict import Sample, cache_is_true, memory_is_flat
from tests.sandbox_server import fresh_api

from kubesched.api.kinds import NODES, PODS, RESOURCE_CLAIMS
from kubesched_sandbox.api import Api
from kubesched_sandbox.nodes import HollowNodes


def node(api: Api, name: str, cpu: str) -> None:
    offered = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    api.create(NODES, "", {"metadata": {"name": name}, "status": {"capacity": offered, "allocatable": offered}})


def bound_pod(api: Api, name: str, cpu: str, to: str) -> None:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    api.create(PODS, "default", {"metadata": {"name": name}, "spec": {"containers": [container]}})
    api.bind("default", name, {"metadata": {"name": name}, "target": {"kind": "Node", "name": to}})


def watching(api: Api) -> Referee:
    referee = Referee()
    api.subscribe((NODES, PODS, RESOURCE_CLAIMS), referee.see)
    return referee


@pytest.fixture
def api() -> Api:
    made = fresh_api()
    node(made, "node-1", cpu="1")
    return made


def test_a_node_that_holds_more_than_it_has_is_a_foul(api: Api) -> None:
    referee = watching(api)
    bound_pod(api, "first", "600m", "node-1")
    assert referee.fouls == []
    bound_pod(api, "second", "600m", "node-1")
    assert referee.fouls == ["node-1 has 1000 of cpu; since second was bound it holds 1200"]


def test_what_is_gone_or_done_holds_nothing(api: Api) -> None:
    referee = watching(api)
    bound_pod(api, "gone", "600m", "node-1")
    api.delete(PODS, "default", "gone", grace=0)
    bound_pod(api, "done", "600m", "node-1")
    api.patch(PODS, "default", "done", {"status": {"phase": "Succeeded"}}, subresource="status")
    bound_pod(api, "here", "600m", "node-1")
    assert referee.fouls == []
    requested = {"cpu": 600, "memory": 2**30, "pods": 1}
    assert referee.truth() == {"node-1": {"pods": ["default/here"], "requested": requested}}


def test_a_pod_that_changes_its_node_is_a_foul(api: Api) -> None:
    node(api, "node-2", cpu="1")
    referee = watching(api)
    bound_pod(api, "web", "100m", "node-1")
    pod = api.get(PODS, "default", "web")
    api.store.put("pods", {**pod, "spec": {**pod["spec"], "nodeName": "node-2"}})
    assert referee.fouls == ["pod web was on node-1, and then was bound to node-2"]


def test_a_device_that_two_claims_have_is_a_foul_until_one_gives_it_back(api: Api) -> None:
    referee = watching(api)
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
    status = {"allocation": {"devices": {"results": [result]}}}
    for name in ("first", "second", "third"):
        gpu = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}
        api.create(RESOURCE_CLAIMS, "default", {"metadata": {"name": name}, "spec": {"devices": gpu}})
    api.patch(RESOURCE_CLAIMS, "default", "first", {"status": status}, subresource="status")
    api.patch(RESOURCE_CLAIMS, "default", "first", {"status": {"allocation": None}}, subresource="status")
    api.patch(RESOURCE_CLAIMS, "default", "second", {"status": status}, subresource="status")
    assert referee.fouls == []
    api.patch(RESOURCE_CLAIMS, "default", "third", {"status": status}, subresource="status")
    assert referee.fouls == ["gpu.example.com/node-1/gpu-0 belongs to claim second, and was given to third"]


@pytest.mark.parametrize(("per_minute", "is_flat"), [(0.0, True), (0.3, True), (1.5, False)])
def test_memory_that_grows_steadily_is_not_flat(per_minute: float, is_flat: bool) -> None:
    samples = [Sample(60.0 * minute, 100 + per_minute * minute + minute % 2) for minute in range(20)]
    assert memory_is_flat(samples).holds == is_flat


def test_memory_may_grow_while_what_is_remembered_fills_up() -> None:
    assert memory_is_flat([Sample(60.0 * minute, 100 + 20 * min(minute, 8)) for minute in range(20)]).holds


def test_memory_is_not_judged_by_a_short_time() -> None:
    claim = memory_is_flat([Sample(60.0 * minute, 100 + 50 * minute) for minute in range(10)])
    assert "NOT JUDGED" in claim.what


def test_cache_is_held_against_truth_by_pods_and_by_amounts() -> None:
    truth = {"node-1": {"pods": ["default/web"], "requested": {"cpu": 100, "memory": 1, "pods": 1}}}
    right = {"node-1": {"pods": ["default/web"], "requested": {"cpu": 100, "memory": 1}}, "node-2": _nothing()}
    assert cache_is_true("one", right, 0, truth).holds
    assert not cache_is_true("one", right, 1, truth).holds
    assert not cache_is_true("one", {"node-1": _nothing()}, 0, truth).holds
    too_much = {"node-1": {"pods": ["default/web"], "requested": {"cpu": 200, "memory": 1}}}
    assert not cache_is_true("one", too_much, 0, truth).holds


def test_the_same_seed_makes_the_same_churn() -> None:
    def churned() -> list[str]:
        api = fresh_api()
        hollow = HollowNodes(api, random.Random(7))
        churn = Churn(api, lambda made: hollow.add([made]), random.Random(7))
        churn.begin()
        for _ in range(200):
            churn.step()
        return [obj["metadata"]["name"] for obj in (*api.select(NODES), *api.select(PODS))]

    assert churned() == churned()


def _nothing() -> dict[str, object]:
    return {"pods": [], "requested": {}}
