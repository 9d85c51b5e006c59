"""Scenarios to watch: small stories that play in a sandbox, each about one thing a scheduler does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from kubesched.api.kinds import Object
from kubesched.api.well_known import HOSTNAME, ZONE
from kubesched.sandbox.api import Api
from kubesched.sandbox.scenario_props import (
    apart,
    budget,
    cordon,
    deployment,
    job,
    label,
    namespace,
    near,
    priority_class,
    scale,
    service,
    spread,
    zones,
)


class Machines(Protocol):
    """The nodes, as far as a story can do something to them."""

    def fail(self, name: str) -> None: ...

    def recover(self, name: str) -> None: ...


@dataclass(frozen=True)
class Stage:
    """What a story plays on."""

    api: Api
    machines: Machines


@dataclass(frozen=True)
class Step:
    """At this second, say this and do that."""

    at: float
    says: str
    do: Callable[[Stage], None]


@dataclass(frozen=True)
class Scenario:
    """Steps in order of time; after `seconds` the story is over."""

    name: str
    about: str
    nodes: tuple[Object, ...]
    steps: tuple[Step, ...]
    seconds: float


async def play(scenario: Scenario, stage: Stage, say: Callable[[str], None]) -> None:
    """Say and do everything at its time, and return when the story is over."""
    running = asyncio.get_running_loop()
    began = running.time()
    for step in scenario.steps:
        await asyncio.sleep(began + step.at - running.time())
        say(step.says)
        step.do(stage)
    await asyncio.sleep(began + scenario.seconds - running.time())


_SPACE = "shop"


def _open(stage: Stage) -> None:
    api = stage.api
    namespace(api, _SPACE)
    service(api, _SPACE, "web")
    deployment(
        api,
        _SPACE,
        "cache",
        3,
        cpu="1",
        memory="4Gi",
        affinity=apart("cache", HOSTNAME),
        topologySpreadConstraints=[spread("cache", ZONE, hard=True)],
    )
    deployment(
        api,
        _SPACE,
        "web",
        6,
        cpu="500m",
        memory="1Gi",
        affinity=near("cache", ZONE),
        topologySpreadConstraints=[spread("web", ZONE, hard=True), spread("web", HOSTNAME, hard=False)],
    )
    budget(api, _SPACE, "web", min_available="50%")


def _rush(stage: Stage) -> None:
    scale(stage.api, _SPACE, "web", 18)


def _search(stage: Stage) -> None:
    deployment(
        stage.api,
        _SPACE,
        "search",
        1,
        cpu="2",
        memory="8Gi",
        nodeSelector={"disk": "ssd"},
    )


def _disk(stage: Stage) -> None:
    label(stage.api, "node-b2", disk="ssd")


def _maintenance(stage: Stage) -> None:
    for name in ("node-c1", "node-c2", "node-c3"):
        cordon(stage.api, name)
    scale(stage.api, _SPACE, "web", 24)


def _over(stage: Stage) -> None:
    for name in ("node-c1", "node-c2", "node-c3"):
        cordon(stage.api, name, on=False)


SHOP = Scenario(
    "shop",
    "a web shop: spread over zones, near to its cache, and a pod that waits for the right node",
    zones("a", "b", "c", nodes=3),
    (
        Step(0.5, "The shop opens: three caches on nodes of their own, six web servers over three zones.", _open),
        Step(4, "A rush of customers: 18 web servers.", _rush),
        Step(7, "Search wants a node with an ssd, and there is none: the pod waits, and says why.", _search),
        Step(10, "node-b2 gets the label disk=ssd: only now is search tried again.", _disk),
        Step(
            13,
            "Zone c is cordoned, and 6 more web servers are wanted: the spread allows no zone to run ahead.",
            _maintenance,
        ),
        Step(17, "Zone c is back, and may take its share: so what waited finds room in all zones.", _over),
    ),
    seconds=21,
)


def _night(stage: Stage) -> None:
    api = stage.api
    namespace(api, "batch")
    priority_class(api, "patient", 10, preempts=False)
    priority_class(api, "urgent", 1000)
    job(api, "batch", "render", 36, seconds=12, cpu="2", memory="4Gi", priorityClassName="patient")


def _customers(stage: Stage) -> None:
    namespace(stage.api, "web")
    deployment(stage.api, "web", "checkout", 4, cpu="3", memory="4Gi", priorityClassName="urgent")


def _too_large(stage: Stage) -> None:
    deployment(stage.api, "batch", "giant", 1, cpu="16", memory="16Gi", priorityClassName="urgent")


BATCH = Scenario(
    "batch",
    "a burst of batch work fills the cluster, and urgent pods make themselves room",
    zones("a", "b", "c", nodes=2),
    (
        Step(0.5, "A job of 36 patient pods: 24 fit on six nodes, the others wait their turn.", _night),
        Step(5, "Checkout is urgent and finds no room: for each of its pods, two patient ones have to go.", _customers),
        Step(9, "A giant asks for more than any node has: no eviction could help, so no pod is evicted.", _too_large),
    ),
    seconds=28,
)


_LOST = "node-b1"


def _tolerates_for(seconds: int) -> list[dict[str, Any]]:
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    return [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds} for key in keys]


def _start(stage: Stage) -> None:
    namespace(stage.api, "app")
    deployment(
        stage.api,
        "app",
        "orders",
        12,
        cpu="1",
        memory="2Gi",
        tolerations=_tolerates_for(4),
        topologySpreadConstraints=[spread("orders", ZONE, hard=False), spread("orders", HOSTNAME, hard=False)],
    )


def _fail(stage: Stage) -> None:
    stage.machines.fail(_LOST)


def _recover(stage: Stage) -> None:
    stage.machines.recover(_LOST)


FAILURE = Scenario(
    "failure",
    "a node fails: it is tainted, its pods are given up and placed elsewhere, and it comes back",
    zones("a", "b", "c", nodes=2),
    (
        Step(0.5, "Twelve pods of orders, spread over six nodes.", _start),
        Step(4, f"{_LOST} fails: no more signs of life.", _fail),
        Step(20, f"{_LOST} is back.", _recover),
    ),
    seconds=26,
)

SCENARIOS = {scenario.name: scenario for scenario in (SHOP, BATCH, FAILURE)}
