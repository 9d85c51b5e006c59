"""A web shop that must survive the loss of a zone: spread, affinity, and a pod that waits for the right node."""

from __future__ import annotations

from kubesched.sandbox.scenarios.props import (
    HOSTNAME,
    ZONE,
    apart,
    budget,
    cordon,
    deployment,
    label,
    namespace,
    near,
    scale,
    service,
    spread,
    zones,
)
from kubesched.sandbox.scenarios.scenario import Scenario, Stage, Step

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
        Step(10, "Somebody finds the ssd in node-b2 and labels it: only now is search tried again.", _disk),
        Step(
            13,
            "Zone c is cordoned, and 6 more web servers are wanted: the spread allows no zone to run ahead.",
            _maintenance,
        ),
        Step(17, "Zone c is back, and may take its share: so what waited finds room in all zones.", _over),
    ),
    seconds=21,
)
