"""The page as it is served: of a sandbox with a story playing in it, and of large clusters that stand still."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import random
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

import msgspec
from tests.unit.scheduler.memory_cluster import MemoryCluster

from kubesched import config
from kubesched.api.change import Change
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.node import Node, NodeStatus
from kubesched.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from kubesched.ask.sources.following import following
from kubesched.daemon.shadow import Shadow
from kubesched.kube.connection import as_kubectl
from kubesched.plugins.registry import all_plugins, in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.simulation import Simulation
from kubesched.simulate.workloads import ARRIVAL, DURATION
from kubesched.testing import make_node, make_pod
from kubesched.ui.model.decisions import SeenDecisions
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.server import PageServer
from kubesched.ui.sources import observe_following, observe_manifests, observe_scheduler
from kubesched.ui.travel import TimeTravel
from kubesched_sandbox.box import Sandbox, SandboxSettings
from kubesched_sandbox.nodes import node_manifests
from kubesched_sandbox.page import usage_in, wanted_in
from kubesched_sandbox.scenarios import SCENARIOS, ScenarioCluster, play

TOKEN = "a-token-for-tests"


@contextlib.asynccontextmanager
async def page_of(objects: Iterable[KubeObject], port: int = 0) -> AsyncIterator[PageServer]:
    """The page of a cluster that stands still."""
    cluster = ClusterModel(objects, config.default())
    server = PageServer(observe_manifests(cluster, "cluster.yaml"), port=port, token=TOKEN)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def page_of_sandbox(
    scenario: str = "", nodes: int = 4, gpus: int = 0
) -> AsyncIterator[tuple[PageServer, Sandbox]]:
    """The page of a sandbox, with a story playing in it if one is named."""
    story = SCENARIOS[scenario] if scenario else None
    made = node_manifests(story.nodes if story else nodes)
    settings = SandboxSettings(
        nodes=made,
        gpus={node["metadata"]["name"]: gpus for node in made},
        seed=1,
        node_grace=5.0 if story else SandboxSettings.node_grace,
    )
    box = Sandbox(settings)
    await box.start()
    said = [""]
    clock = asyncio.get_running_loop().time
    observed = observe_scheduler(
        box.scheduler,
        settings.configuration,
        kind="sandbox",
        title="sandbox",
        clock=clock,
        saying=lambda: said[0],
        wanted=lambda: wanted_in(box.api),
        usage=lambda: usage_in(box.api),
    )
    server = PageServer(observed, token=TOKEN)
    await server.start()

    def say(text: str) -> None:
        said[0] = text

    playing = asyncio.create_task(play(story, ScenarioCluster(box.api, box.nodes), say)) if story else None
    try:
        yield server, box
    finally:
        if playing is not None:
            playing.cancel()
        await server.stop()
        await box.stop()


@contextlib.asynccontextmanager
async def followed_page(kubeconfig: Path) -> AsyncIterator[PageServer]:
    """The page of a live cluster that is followed by watches, as `kubesched ui` serves it."""
    cluster = ClusterModel((), config.default())
    settings = as_kubectl(str(kubeconfig), "", os.environ)
    async with following(cluster, settings, os.environ, origin="a cluster") as followed:
        await followed.wait_synced()
        server = PageServer(observe_following(cluster, followed, "a cluster"), token=TOKEN)
        await server.start()
        try:
            yield server
        finally:
            await server.stop()


@contextlib.asynccontextmanager
async def page_of_shadow(bindings: int = 400) -> AsyncIterator[PageServer]:
    """A shadow beside a scheduler that takes the first node which will do: mostly they agree, and often not."""
    watched = ShadowedCluster(bindings)
    server = PageServer(watched.observed, token=TOKEN)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


class ShadowedCluster:
    """Nodes of three kinds, and pods that somebody binds without looking at labels, loads or devices."""

    def __init__(self, bindings: int) -> None:
        scheduler = build_scheduler(
            SchedulerSettings(clock=time.time, draw=lambda among: 0, now=time.time),
            config.default(),
            MemoryCluster(),
            in_tree(),
        )
        shadow = Shadow(scheduler.engine, clock=lambda: self._at)
        self._at = time.time() - 3_600
        scheduler.listeners.append(shadow)
        rng = random.Random(3)
        for i in range(60):
            kind = ("ssd", "ssd", "hdd")[i % 3]
            node = (
                make_node(f"{kind}-{i:02}")
                .zone(f"zone-{i % 3}")
                .label({"disk": kind})
                .capacity(cpu="16", memory="64Gi")
            )
            scheduler.handle(Change(new=node.build()))
        for i in range(bindings):
            self._at = time.time() - 3_600 + 3_600 * i / bindings
            pod = make_pod(f"{rng.choice(('web', 'cart', 'batch', 'db'))}-{i:03}").requests(cpu="2", memory="4Gi")
            pod = pod.node_selector(disk="ssd") if i % 5 == 0 else pod
            pod = pod.requests(cpu="40") if i % 97 == 50 else pod
            built = pod.build()
            scheduler.handle(Change(new=built))
            ours = scheduler.engine.decide(built).node or "ssd-00"
            theirs = ours if rng.random() < 0.9 else f"{('ssd', 'ssd', 'hdd')[(n := rng.randrange(60)) % 3]}-{n:02}"
            scheduler.handle(Change(built, msgspec.structs.replace(built, spec=_placed(built.spec, theirs))))
        self._at = time.time()
        seen = SeenDecisions(time.time, scheduler.pods.values())
        self.observed = ObservedCluster(
            kind="shadow",
            title="kubesched run --shadow",
            cluster=ClusterModel.of_scheduler(scheduler.state, scheduler.pods, config.default()),
            clock=time.time,
            live=True,
            pods_without_node=seen.without_node,
            log=seen,
            shadow=shadow,
            experiments=False,
        )


def _placed(spec: PodSpec, node: str) -> PodSpec:
    return msgspec.structs.replace(spec, node_name=node)


def large_cluster(nodes: int, pods: int, waiting: int = 200) -> list[KubeObject]:
    """Nodes of 32 cpus in ten zones, pods of a hundred workloads on them, and pods that fit nowhere."""
    rng = random.Random(1)
    found: list[KubeObject] = [_node(i) for i in range(nodes)]
    free = [32_000] * nodes
    for i in range(pods):
        cpu, memory = rng.choice((500, 1000, 2000, 4000)), rng.choice(("1Gi", "4Gi", "16Gi"))
        row = int(nodes * rng.random() ** 1.2)
        while free[row] < cpu:
            row = rng.randrange(nodes)
        free[row] -= cpu
        where = f"node-{row:05d}"
        found.append(_pod(f"app{i % 100}-{i}", f"{cpu}m", memory, node_name=where, priority=i % 3))
    found += [_pod(f"wants-much-{i}", "40", "1Gi") for i in range(waiting)]
    return found


def _node(i: int) -> Node:
    name = f"node-{i:05d}"
    offered: dict[str, str | int | float] = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{i % 10}"}
    return Node(metadata=ObjectMeta(name=name, labels=labels), status=NodeStatus(allocatable=offered))


def _pod(name: str, cpu: str, memory: str, *, node_name: str = "", priority: int = 0) -> Pod:
    requests = ResourceRequirements(requests={"cpu": cpu, "memory": memory})
    container = Container(name="c", image="registry.example/app:1", resources=requests)
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=name, labels={"app": name.rpartition("-")[0]}),
        spec=PodSpec(containers=(container,), node_name=node_name, priority=priority),
        status=PodStatus(phase="Running" if node_name else "Pending"),
    )


@contextlib.asynccontextmanager
async def page_of_recording(lines: Sequence[str]) -> AsyncIterator[PageServer]:
    """The page of a recording, at its beginning."""
    server = PageServer(TimeTravel(lines, "recording.jsonl", all_plugins()), token=TOKEN)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def short_recording() -> list[str]:
    """A simulation of 60 seconds: web is there from the start, huge fits nowhere, late comes after 20 seconds."""
    stream = io.StringIO()
    objects = [
        make_node("node-1").zone("a").capacity(cpu="4").build(),
        _annotated(make_pod("web").requests(cpu="2").build(), DURATION, "60s"),
        make_pod("huge").requests(cpu="30").build(),
        _annotated(make_pod("late").requests(cpu="1").build(), ARRIVAL, "20s"),
    ]
    Simulation(objects, config.default(), record=stream).run()
    return stream.getvalue().splitlines()


def _annotated(pod: Pod, key: str, value: str) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, annotations={key: value})
    return msgspec.structs.replace(pod, metadata=metadata)
