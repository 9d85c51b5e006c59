"""What `what-if` says of a drain, a loss, a scaled workload or an upgrade is what then happens in the sandbox."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import virtual_time
from tests.sandbox_server import fresh_api

from kubesched import config
from kubesched.api.kinds import DEPLOYMENTS, NODES, PODS, REPLICA_SETS, STATEFUL_SETS, Object
from kubesched.ask.edits import DrainNodes, Edit, FailNodes, ScaleWorkload, UpgradeNodes
from kubesched.ask.what_if.what_if import what_if
from kubesched.simulate.kinds import Deployment
from kubesched.simulate.manifests import loads
from kubesched_sandbox.api import Api
from kubesched_sandbox.nodes import HollowNodes, node_manifests
from kubesched_sandbox.reconcilers import Runner, standard_reconcilers
from kubesched_sandbox.scheduling import SandboxScheduler

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SPREAD = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
LABELS = {"matchLabels": {"app": "web"}}
Placed = Counter[tuple[str, bool]]
"""How many pods of a workload have a node that takes care of them, and how many do not."""


def container(cpu: str) -> list[Object]:
    return [{"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}]


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Object], list[Object]]:
    """Nodes in three zones, and a Deployment with constraints beside a small StatefulSet."""
    offers = [draw(st.integers(2, 5)) for _ in range(draw(st.integers(3, 7)))]
    nodes = [
        {"metadata": {"name": f"n{i}"}, "status": {"capacity": {"cpu": str(cpu), "memory": "8Gi", "pods": "110"}}}
        for i, cpu in enumerate(offers)
    ]
    spec: Object = {"containers": container("1")}
    kind = draw(st.sampled_from(("", "spread", "apart")))
    if kind == "spread":
        spec["topologySpreadConstraints"] = [{**SPREAD, "labelSelector": LABELS}]
    elif kind == "apart":
        term = {"topologyKey": HOST, "labelSelector": LABELS}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    web = {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": draw(st.integers(1, 12)),
            "selector": LABELS,
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec},
        },
    }
    db = {
        "metadata": {"name": "db"},
        "spec": {
            "replicas": draw(st.integers(0, 2)),
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": container("10m")}},
        },
    }
    return nodes, [web, db]


class Living:
    """A sandbox with the real scheduler, in virtual time."""

    def __init__(self, nodes: list[Object]) -> None:
        self.api: Api = fresh_api(clock=virtual_time.now)
        self.nodes = HollowNodes(self.api, random.Random(1))
        self.nodes.add(node_manifests(nodes))
        self.controllers = Runner(self.api, (*standard_reconcilers(self.api), self.nodes))
        self.inside = SandboxScheduler(self.api, config.default(), draw=random.Random(1).randrange)

    def objects(self) -> str:
        """As `kubectl get -o json` prints them."""
        kinds = (NODES, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, PODS)
        items = [{**obj, **_typed(kind)} for kind in kinds for obj in self.api.select(kind)]
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})

    def placed(self) -> Placed:
        """A pod on its way out has been replaced, but for one of a StatefulSet."""
        found: Placed = Counter()
        for pod in self.api.select(PODS):
            is_leaving, app = "deletionTimestamp" in pod["metadata"], pod["metadata"]["labels"]["app"]
            if not is_leaving or app == "db":
                found[app, bool(pod["spec"].get("nodeName")) and not is_leaving] += 1
        return found

    def zones(self) -> Counter[str]:
        """Pods of the Deployment by zone."""
        nodes = {node["metadata"]["name"]: node["metadata"]["labels"][ZONE] for node in self.api.select(NODES)}
        pods = [pod for pod in self.api.select(PODS, labels="app=web") if pod["spec"].get("nodeName")]
        found = Counter(dict.fromkeys(nodes.values(), 0))
        found.update(nodes[pod["spec"]["nodeName"]] for pod in pods)
        return found

    def drain(self, name: str) -> None:
        self.api.patch(NODES, "", name, {"spec": {"unschedulable": True}})
        for pod in self.api.select(PODS):
            if pod["spec"].get("nodeName") == name:
                self.api.delete(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])

    async def upgrade(self, names: list[str]) -> None:
        for name in names:
            node = self.api.get(NODES, "", name)
            again = {
                "metadata": {"name": f"{name}-again", "labels": {**node["metadata"]["labels"], HOST: f"{name}-again"}}
            }
            self.nodes.add(node_manifests([{**again, "status": {"capacity": node["status"]["capacity"]}}]))
            await asyncio.sleep(20)
            self.drain(name)
            await asyncio.sleep(60)
            self.api.delete(NODES, "", name)


def _typed(kind: object) -> Object:
    return {"apiVersion": kind.api_version, "kind": kind.kind}  # type: ignore[attr-defined]


Change = tuple[Edit, Callable[[Living], Awaitable[None]]]


def changes(living: Living, verb: str, number: int) -> Change:
    """The edit, and what somebody does to the sandbox."""
    names = living.nodes.names
    name, zone = (
        names[number % len(names)],
        living.api.get(NODES, "", names[number % len(names)])["metadata"]["labels"][ZONE],
    )

    async def drained(living: Living) -> None:
        living.drain(name)

    async def lost(living: Living) -> None:
        for node in living.api.select(NODES, labels=f"{ZONE}={zone}"):
            living.nodes.fail(node["metadata"]["name"])
        await asyncio.sleep(400)

    async def scaled(living: Living) -> None:
        living.api.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": number}})

    async def upgraded(living: Living) -> None:
        await living.upgrade(names)

    known: dict[str, Change] = {
        "drain": (DrainNodes((name,)), drained),
        "lose": (FailNodes((f"{ZONE}={zone}",)), lost),
        "scale": (ScaleWorkload(Deployment, "web", number), scaled),
        "upgrade": (UpgradeNodes(tuple(names)), upgraded),
    }
    return known[verb]


class Outcomes(NamedTuple):
    foretold: Placed
    real: Placed
    is_even: bool
    """Whether all zones had as many pods of the Deployment before."""


async def foretold_and_real(nodes: list[Object], workloads: list[Object], verb: str, number: int) -> Outcomes:
    living = Living(nodes)
    scheduling = asyncio.create_task(living.inside.run())
    living.controllers.start()
    for resource, workload in zip((DEPLOYMENTS, STATEFUL_SETS), workloads):
        living.api.create(resource, "default", workload)
    await asyncio.sleep(60)
    edit, act = changes(living, verb, number)
    found = what_if(loads(living.objects(), workloads=True).objects, config.default(), [edit])
    zones = living.zones()
    await act(living)
    await asyncio.sleep(120)
    await living.inside.stop()
    await scheduling
    await living.controllers.stop()
    foretold: Placed = Counter()
    for pod, _ in found.after.pods.values():
        foretold[pod.metadata.labels["app"], bool(pod.spec.node_name)] += 1
    return Outcomes(foretold, living.placed(), len(set(zones.values())) == 1)


@pytest.mark.parametrize("verb", ["drain", "lose", "scale", "upgrade"])
@settings(max_examples=30, deadline=None)
@given(clusters(), st.integers(0, 20))
def test_what_is_foretold_happens(verb: str, cluster: tuple[list[Object], list[Object]], number: int) -> None:
    found = virtual_time.run(foretold_and_real(*cluster, verb, number))
    is_spread = "topologySpreadConstraints" in cluster[1][0]["spec"]["template"]["spec"]
    if verb == "lose" and is_spread and not found.is_even:
        # Pods leave a zone one after another: while it still has as many as others, some find a place elsewhere.
        assert found.foretold["web", False] >= found.real["web", False]
        assert found.foretold["web", False] <= found.real["web", False] + 1
    else:
        assert found.foretold == found.real
