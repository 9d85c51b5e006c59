"""A node dies. Its pods are given up after a while and find new places; later the node comes back."""

from __future__ import annotations

from typing import Any

from kubesched.sandbox.scenarios.props import HOSTNAME, ZONE, deployment, namespace, spread, zones
from kubesched.sandbox.scenarios.scenario import Scenario, Stage, Step

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
