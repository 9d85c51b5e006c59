"""A cluster full of patient work, and then somebody who cannot wait: priorities and preemption."""

from __future__ import annotations

from kubesched.sandbox.scenarios.props import deployment, job, namespace, priority_class, zones
from kubesched.sandbox.scenarios.scenario import Scenario, Stage, Step


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
        Step(9, "A giant asks for more than any node has: no eviction could help, so nobody has to go.", _too_large),
    ),
    seconds=28,
)
