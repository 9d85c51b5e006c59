"""The scheduler inside the sandbox, on the real API, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from tests import virtual_time
from tests.builders import Json
from tests.sandbox_server import fresh_api
from tests.unit.extenders.extender_server import ExtenderServer, filtering

from kubesched import config
from kubesched.api.custom import custom_kind
from kubesched.api.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEVICE_CLASSES,
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
    Object,
)
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Action, ClusterEvent, Interest
from kubesched.framework.plugin import Plugin, PreFilterPlugin
from kubesched.framework.registry import Registry
from kubesched.framework.status import Status, unschedulable
from kubesched.plugins.registry import IN_TREE
from kubesched_sandbox.api import Api, PatchKind
from kubesched_sandbox.scheduling import SandboxScheduler


class Cluster:
    """An API with a scheduler at work on it."""

    def __init__(self, plugins: Sequence[type[Plugin]] = (), extenders: Sequence[Json] = ()) -> None:
        self.api: Api = fresh_api(clock=virtual_time.now)
        enabled = [{"name": plugin.name} for plugin in plugins]
        plain = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
            "extenders": list(extenders),
        }
        registry = Registry((*IN_TREE, *plugins))
        self.inside = SandboxScheduler(self.api, config.from_plain(plain), plugins=registry, draw=lambda among: 0)

    def node(self, name: str, cpu: str = "4") -> None:
        offered = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
        labels = {"kubernetes.io/hostname": name}
        status = {"capacity": offered, "allocatable": offered}
        self.api.create(NODES, "", {"metadata": {"name": name, "labels": labels}, "status": status})

    def pod(self, name: str, cpu: str = "1", **spec: Any) -> None:
        container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
        self.api.create(PODS, "default", {"metadata": {"name": name}, "spec": {"containers": [container], **spec}})

    def shown(self, name: str) -> Object:
        return self.api.get(PODS, "default", name)

    def node_of(self, name: str) -> str:
        return str(self.shown(name)["spec"].get("nodeName", ""))

    def why(self, name: str) -> str:
        conditions = self.shown(name)["status"]["conditions"]
        return next(str(c["message"]) for c in conditions if c["type"] == "PodScheduled")

    def events(self, reason: str) -> list[Object]:
        return [event for event in self.api.select(EVENTS) if event["reason"] == reason]


@contextlib.asynccontextmanager
async def living(plugins: Sequence[type[Plugin]] = (), extenders: Sequence[Json] = ()) -> AsyncIterator[Cluster]:
    cluster = Cluster(plugins, extenders)
    running = asyncio.create_task(cluster.inside.run())
    try:
        yield cluster
    finally:
        await cluster.inside.stop()
        await running


def test_pod_is_bound_and_people_are_told() -> None:
    async def story() -> None:
        async with living() as cluster:
            cluster.node("n1")
            cluster.pod("a")
            await asyncio.sleep(0.1)
            assert cluster.node_of("a") == "n1"
            [event] = cluster.events("Scheduled")
            assert event["note"] == "Successfully assigned default/a to n1"
            assert event["regarding"]["uid"] == cluster.shown("a")["metadata"]["uid"]

    virtual_time.run(story())


def test_pod_of_the_longest_name_has_its_event_too() -> None:
    async def story() -> None:
        async with living() as cluster:
            cluster.node("n1")
            cluster.pod("a" * 253)
            await asyncio.sleep(0.1)
            [event] = cluster.events("Scheduled")
            assert event["regarding"]["name"] == "a" * 253

    virtual_time.run(story())


def test_pod_that_fits_nowhere_says_so_until_a_node_comes() -> None:
    async def story() -> None:
        async with living() as cluster:
            cluster.node("small", cpu="1")
            cluster.pod("a", cpu="2")
            await asyncio.sleep(0.1)
            assert cluster.why("a").startswith("0/1 nodes are available: 1 Insufficient cpu.")
            cluster.node("large")
            await asyncio.sleep(0.1)
            assert cluster.node_of("a") == "large"

    virtual_time.run(story())


def test_repeated_failure_is_one_event_with_a_count() -> None:
    async def story() -> None:
        async with living() as cluster:
            cluster.node("small", cpu="1")
            cluster.pod("a", cpu="2")
            await asyncio.sleep(0.1)
            cluster.inside.scheduler.queue.activate(cluster.inside.scheduler.pods["default/a"])
            await asyncio.sleep(2)
            [event] = cluster.events("FailedScheduling")
            assert event["series"]["count"] >= 2

    virtual_time.run(story())


def test_more_important_pod_takes_the_place_of_a_lesser_one() -> None:
    async def story() -> None:
        async with living() as cluster:
            cluster.api.create(PRIORITY_CLASSES, "", {"metadata": {"name": "urgent"}, "value": 1000})
            cluster.node("n1")
            cluster.pod("lesser", cpu="3")
            await asyncio.sleep(0.1)
            cluster.pod("urgent", cpu="3", priorityClassName="urgent")
            await asyncio.sleep(0.1)
            lesser = cluster.shown("lesser")
            assert lesser["metadata"]["deletionTimestamp"]
            assert {"DisruptionTarget"} <= {each["type"] for each in lesser["status"]["conditions"]}
            assert cluster.shown("urgent")["status"]["nominatedNodeName"] == "n1"
            cluster.api.delete(PODS, "default", "lesser", grace=0)  # as a kubelet does in the end
            await asyncio.sleep(0.1)
            assert cluster.node_of("urgent") == "n1"

    virtual_time.run(story())


def test_pod_waits_for_its_volume_to_be_bound() -> None:
    async def story() -> None:
        async with living() as cluster:
            late = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": "kubernetes.io/no-provisioner"}
            cluster.api.create(STORAGE_CLASSES, "", {"metadata": {"name": "local"}, **late})
            spec = {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "local": {"path": "/disk"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}]}]}},
            }  # fmt: skip
            cluster.api.create(PERSISTENT_VOLUMES, "", {"metadata": {"name": "disk"}, "spec": spec})
            available = {"status": {"phase": "Available"}}  # as the controller of volumes would say
            cluster.api.patch(PERSISTENT_VOLUMES, "", "disk", available, subresource="status")
            asked = {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "resources": {"requests": {"storage": "1Gi"}},
            }
            cluster.api.create(PERSISTENT_VOLUME_CLAIMS, "default", {"metadata": {"name": "data"}, "spec": asked})
            cluster.node("n1")
            cluster.node("n2")
            cluster.pod("a", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
            await asyncio.sleep(0.5)
            volume = cluster.api.get(PERSISTENT_VOLUMES, "", "disk")
            assert volume["spec"]["claimRef"]["name"] == "data"
            assert cluster.node_of("a") == ""
            done = {
                "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
                "spec": {"volumeName": "disk"},
            }
            cluster.api.patch(PERSISTENT_VOLUME_CLAIMS, "default", "data", done)
            await asyncio.sleep(2)
            assert cluster.node_of("a") == "n1"

    virtual_time.run(story())


def test_device_of_a_claim_is_allocated_and_reserved() -> None:
    async def story() -> None:
        async with living() as cluster:
            cluster.node("n1")
            cluster.api.create(DEVICE_CLASSES, "", {"metadata": {"name": "gpu"}, "spec": {}})
            pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": "gpu.example.com", "nodeName": "n1", "pool": pool, "devices": [{"name": "gpu-0"}]}
            cluster.api.create(RESOURCE_SLICES, "", {"metadata": {"name": "n1-gpus"}, "spec": spec})
            request = {"name": "one", "exactly": {"deviceClassName": "gpu"}}
            claim = {"metadata": {"name": "mine"}, "spec": {"devices": {"requests": [request]}}}
            cluster.api.create(RESOURCE_CLAIMS, "default", claim)
            cluster.pod("a", resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}])
            await asyncio.sleep(0.5)
            status = cluster.api.get(RESOURCE_CLAIMS, "default", "mine")["status"]
            assert [each["device"] for each in status["allocation"]["devices"]["results"]] == ["gpu-0"]
            assert [each["name"] for each in status["reservedFor"]] == ["a"]
            assert cluster.node_of("a") == "n1"

    virtual_time.run(story())


RACKS = "racks.v1.example.com"


class NeedsRack(PreFilterPlugin):
    """Rejects all pods until there is a Rack."""

    name = "NeedsRack"

    def events_to_register(self) -> Sequence[Interest]:
        return (Interest(ClusterEvent(RACKS, Action.ADD)),)

    def pre_filter(self, cycle: Cycle) -> Status | None:
        return None if cycle.state.objects.all(custom_kind(RACKS)) else unschedulable("no rack yet")


def test_custom_resource_that_a_plugin_waits_for_wakes_its_pods() -> None:
    async def story() -> None:
        async with living([NeedsRack]) as cluster:
            cluster.node("n1")
            cluster.pod("a")
            await asyncio.sleep(0.1)
            assert "no rack yet" in cluster.why("a")
            names = {"plural": "racks", "singular": "rack", "kind": "Rack", "listKind": "RackList"}
            schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
            version = {"name": "v1", "served": True, "storage": True, "schema": schema}
            spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
            cluster.api.create(
                CUSTOM_RESOURCE_DEFINITIONS, "", {"metadata": {"name": "racks.example.com"}, "spec": spec}
            )
            racks = cluster.api.catalog.lookup("example.com", "v1", "racks")
            assert racks is not None
            cluster.api.create(racks, "", {"metadata": {"name": "first"}, "spec": {"height": 42}})
            await asyncio.sleep(0.1)
            assert cluster.node_of("a") == "n1"
            [rack] = cluster.inside.scheduler.state.objects.all(custom_kind(RACKS))
            assert rack.content["spec"] == {"height": 42}

    virtual_time.run(story())


def test_extender_sees_objects_whole() -> None:
    extender = ExtenderServer()
    extender.answers["filter"] = lambda question: {"Nodes": question["Nodes"]}
    extender.start()

    async def story() -> None:
        async with living(extenders=[filtering(extender, nodeCacheCapable=False)]) as cluster:
            cluster.node("n1")
            cluster.pod("a", containers=[{"name": "main", "image": "app", "env": [{"name": "X", "value": "1"}]}])
            label = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"app": "a"}}}
            cluster.api.patch(PODS, "default", "a", label, kind=PatchKind.APPLY, manager="kubectl")
            assert cluster.shown("a")["metadata"]["managedFields"]
            expected = [cluster.shown("a"), cluster.api.get(NODES, "", "n1")]
            async with asyncio.timeout(10):
                while cluster.node_of("a") != "n1":
                    await asyncio.sleep(0.01)
            assert cluster.inside.originals is not None
            assert len(cluster.inside.originals) == 1  # that of the node
            sent = extender.asked[0][1]
            assert [sent["Pod"], *sent["Nodes"]["items"]] == [_without_managed_fields(obj) for obj in expected]

    try:
        asyncio.run(story())  # the extender answers in real time
    finally:
        extender.stop()


def _without_managed_fields(obj: Object) -> Object:
    return {**obj, "metadata": {name: value for name, value in obj["metadata"].items() if name != "managedFields"}}
