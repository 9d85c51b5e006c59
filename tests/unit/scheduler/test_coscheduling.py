"""Gangs by the label and the custom resource of the scheduler-plugins project, with no feature gate on."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.scheduler.group_world import GroupWorld, nodes
from tests.unit.scheduler.memory_cluster import MemoryCluster

from kubesched import config
from kubesched.api.custom import CustomObject, read_custom
from kubesched.api.kinds import WATCHED
from kubesched.plugins.coscheduling import LABEL, RESOURCE
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.attempt.attempt import AttemptOutcome
from kubesched.testing import PodBuilder, make_node, make_pod

ENABLED: dict[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}}}],
}


class LabelledWorld(GroupWorld):
    """A scheduler whose profile enables the plugin; no gate is on."""

    def __init__(self, *objects: Any) -> None:
        self.now = 0.0
        self.cluster = MemoryCluster()
        self.scheduler = build_scheduler(
            SchedulerSettings(clock=lambda: self.now, draw=lambda among: 0),
            config.from_plain(ENABLED),
            self.cluster,
            in_tree(),
        )
        self.see(*objects)


def group(name: str, min_member: object) -> CustomObject:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    spec = {"minMember": min_member, "scheduleTimeoutSeconds": 10}
    return read_custom(RESOURCE, {"metadata": metadata, "spec": spec})


def labelled(name: str, count: int, first: int = 0) -> list[PodBuilder]:
    return [make_pod(f"{name}-{i}").label({LABEL: name}).requests(cpu="1") for i in range(first, first + count)]


def test_pods_with_the_label_are_a_gang() -> None:
    world = LabelledWorld(*nodes(2), group("g", 3), *labelled("g", 3))
    world.try_all()
    assert world.bound() == []
    world.see(make_node("n2").capacity(cpu="1"))
    world.pass_seconds(3)
    world.try_all()
    assert world.bound() == ["g-0", "g-1", "g-2"]


def test_gang_waits_for_its_members_and_for_its_group() -> None:
    world = LabelledWorld(*nodes(3), *labelled("g", 2))
    assert world.try_all() == []
    world.see(group("g", 3))
    assert world.try_all() == []
    world.see(*labelled("g", 1, first=2))
    world.try_all()
    assert len(world.bound()) == 3


def test_group_that_says_nothing_sensible_places_what_fits() -> None:
    world = LabelledWorld(*nodes(1), group("g", "many"), *labelled("g", 2))
    world.try_all()
    assert len(world.bound()) == 1


def test_group_that_is_deleted_leaves_its_pods_waiting_for_another() -> None:
    gone = group("g", 3)
    world = LabelledWorld(*nodes(2), gone, *labelled("g", 2))
    world.cluster.remove(gone)
    world.cluster.tell(world.scheduler)
    assert len(world.groups.incomplete()) == 2


def test_only_the_custom_resource_is_watched_besides_what_always_is() -> None:
    scheduler = LabelledWorld().scheduler
    assert scheduler.kinds == WATCHED
    assert scheduler.custom_resources == {RESOURCE}


def test_a_timeout_for_pods_that_wait_on_nodes_is_remarked_upon_once_since_none_does(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = LabelledWorld(*nodes(2), group("g", 3), group("h", 3), *labelled("g", 3))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "scheduleTimeoutSeconds of a PodGroup has no effect" in caplog.text
    [attempt, *_] = world.try_all()
    assert attempt.outcome is AttemptOutcome.UNSCHEDULABLE
    assert [world.pods_on("n0"), world.pods_on("n1")] == [0, 0], "nothing is held while the gang backs off"
    assert len(world.queue.error_backoff()) == 3


def test_without_the_plugin_the_label_means_nothing() -> None:
    world = GroupWorld(*nodes(1), *labelled("g", 2), features=config.Features())
    world.try_all()
    assert len(world.bound()) == 1
