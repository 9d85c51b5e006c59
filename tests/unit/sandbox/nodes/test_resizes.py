"""Resizing pods in place, as kubelets of v1.36 show it: allocated first, in effect a moment later, or pending."""

from __future__ import annotations

import random
from typing import Any

from tests.living_sandbox import LivingSandbox

from kubesched.api.kinds import PODS, Object
from kubesched_sandbox.api import PatchKind
from kubesched_sandbox.api.conditions import condition_of
from kubesched_sandbox.nodes import HollowNodes
from kubesched_sandbox.reconcilers import Dispatch


def running(cluster: LivingSandbox, name: str, cpu: str, **container: Any) -> Object:
    """A pod of one container that runs on the only node, which has 8 cpus."""
    resources = {"requests": {"cpu": cpu}, "limits": {"cpu": "16"}}
    containers = [{"name": "app", "image": "nginx", "resources": resources, **container}]
    cluster.create(PODS, {"metadata": {"name": name}, "spec": {"nodeName": "node-0", "containers": containers}})
    cluster.run(5)
    return cluster.get(PODS, name)


def resize(cluster: LivingSandbox, name: str, cpu: str) -> None:
    patch = [{"op": "replace", "path": "/spec/containers/0/resources/requests/cpu", "value": cpu}]
    cluster.api.patch(PODS, "default", name, patch, kind=PatchKind.JSON, subresource="resize")
    cluster.settle()


def container_status(cluster: LivingSandbox, name: str) -> Object:
    status: Object = cluster.get(PODS, name)["status"]["containerStatuses"][0]
    return status


def cpus(cluster: LivingSandbox, name: str) -> tuple[str, str]:
    """What is allocated, and what the container has."""
    status = container_status(cluster, name)
    return status["allocatedResources"]["cpu"], status["resources"]["requests"]["cpu"]


def resize_conditions(cluster: LivingSandbox, name: str) -> list[tuple[str, str]]:
    conditions = cluster.get(PODS, name)["status"]["conditions"]
    return [(each["type"], each.get("reason", "")) for each in conditions if each["type"].startswith("PodResize")]


def test_a_container_that_runs_says_which_resources_it_has() -> None:
    cluster = LivingSandbox(nodes=1)
    running(cluster, "web", "1")
    status = container_status(cluster, "web")
    assert status["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "16"}}
    assert status["allocatedResources"] == {"cpu": "1"}


def test_a_resize_is_allocated_at_once_and_in_effect_a_moment_later() -> None:
    cluster = LivingSandbox(nodes=1)
    running(cluster, "web", "1")
    resize(cluster, "web", "2")
    assert cpus(cluster, "web") == ("2", "1")
    assert resize_conditions(cluster, "web") == [("PodResizeInProgress", "")]
    in_progress = condition_of(cluster.get(PODS, "web"), "PodResizeInProgress")
    assert in_progress is not None
    assert in_progress["observedGeneration"] == 2
    cluster.run(2)
    assert cpus(cluster, "web") == ("2", "2")
    assert resize_conditions(cluster, "web") == []
    assert container_status(cluster, "web")["restartCount"] == 0


def test_a_container_whose_policy_says_so_is_restarted_by_a_resize() -> None:
    cluster = LivingSandbox(nodes=1)
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    running(cluster, "web", "1", resizePolicy=policy)
    resize(cluster, "web", "2")
    cluster.run(2)
    assert container_status(cluster, "web")["restartCount"] == 1


def test_a_resize_for_which_there_is_no_room_is_deferred_until_there_is() -> None:
    cluster = LivingSandbox(nodes=1)
    running(cluster, "web", "1")
    running(cluster, "other", "5")
    resize(cluster, "web", "4")
    assert resize_conditions(cluster, "web") == [("PodResizePending", "Deferred")]
    assert cpus(cluster, "web") == ("1", "1")
    pending = condition_of(cluster.get(PODS, "web"), "PodResizePending")
    assert pending is not None
    told = "Node didn't have enough resource: cpu, requested: 4000, used: 5000, capacity: 8000"
    assert pending["message"] == told
    cluster.delete(PODS, "other")
    cluster.run(5)
    assert resize_conditions(cluster, "web") == []
    assert cpus(cluster, "web") == ("4", "4")


def test_a_smaller_neighbour_makes_room_for_a_deferred_resize() -> None:
    cluster = LivingSandbox(nodes=1)
    running(cluster, "web", "1")
    running(cluster, "other", "5")
    resize(cluster, "web", "4")
    resize(cluster, "other", "4")
    cluster.run(5)
    assert cpus(cluster, "web") == ("4", "4")


def test_a_resize_beyond_the_node_is_infeasible_until_it_is_taken_back() -> None:
    cluster = LivingSandbox(nodes=1)
    running(cluster, "web", "1")
    resize(cluster, "web", "9")
    assert resize_conditions(cluster, "web") == [("PodResizePending", "Infeasible")]
    resize(cluster, "web", "1")
    cluster.run(2)
    assert resize_conditions(cluster, "web") == []
    assert cpus(cluster, "web") == ("1", "1")


def test_what_a_resize_took_or_gave_back_counts_for_the_next_pod() -> None:
    cluster = LivingSandbox(nodes=1)
    running(cluster, "web", "1")
    resize(cluster, "web", "6")
    assert running(cluster, "late", "3")["status"]["reason"] == "OutOfcpu"
    resize(cluster, "web", "2")
    assert running(cluster, "later", "6")["status"]["phase"] == "Running"


def test_a_restarted_node_goes_by_what_it_has_allocated() -> None:
    cluster = LivingSandbox(nodes=1)
    running(cluster, "web", "1")
    running(cluster, "other", "5")
    resize(cluster, "web", "4")
    cluster.hollow = HollowNodes(cluster.api, random.Random(2))
    cluster.dispatch = Dispatch(cluster.api, [cluster.hollow])
    cluster.settle()
    assert running(cluster, "small", "2")["status"]["phase"] == "Running"
    assert resize_conditions(cluster, "web") == [("PodResizePending", "Deferred")]
