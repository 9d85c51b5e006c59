"""Cases of decisions: families of clusters, each with pods to decide about."""

from __future__ import annotations

from collections.abc import Callable

from tools.recorder.generators import clusters, usage
from tools.recorder.generators.drawing import GONE, NAMESPACES, Draw, Json


def wide(draw: Draw) -> Json:
    """200 to 500 nodes, every kind of pod, one decision each."""
    nodes = draw.number(200, 500)
    return _case(draw, nodes=nodes, placed=draw.number(0, 2 * nodes), pending=draw.number(4, 8), sequence=0.2)


def everything(draw: Draw) -> Json:
    """Storage, devices, budgets, owners and nominations, all mixed with all."""
    nodes = draw.number(4, 40)
    made = _case(draw, nodes=nodes, placed=draw.number(0, 4 * nodes), pending=draw.number(4, 12), sequence=0.5)
    usage.add_storage(draw, made["objects"])
    usage.add_devices(draw, made["objects"])
    usage.add_workloads(draw, made["objects"])
    return made


def crowded(draw: Draw) -> Json:
    """Few nodes that are full, and pods of all priorities that want in."""
    nodes = draw.number(2, 12)
    made = _case(draw, nodes=nodes, placed=draw.number(4 * nodes, 10 * nodes), pending=12, sequence=0.7)
    usage.add_workloads(draw, made["objects"])
    for each in made["objects"]:
        if each["kind"] == "Node":
            each["status"]["allocatable"].update(
                cpu=draw.one(("1", "2", "4")), memory="4Gi", pods=draw.one(("4", "110"))
            )
    return made


def limits(draw: Draw) -> Json:
    """Numbers and names at the limits of the API."""
    made = _case(draw, nodes=draw.number(2, 8), placed=draw.number(0, 10), pending=8, sequence=0.3)
    for each in made["objects"]:
        if each["kind"] == "Node":
            usage.to_the_limit_of_nodes(draw, each)
        elif each["kind"] == "Pod":
            usage.to_the_limit_of_pods(draw, each)
    return made


FAMILIES: dict[str, Callable[[Draw], Json]] = {
    "wide": wide,
    "everything": everything,
    "crowded": crowded,
    "limits": limits,
}


def _case(draw: Draw, *, nodes: int, placed: int, pending: int, sequence: float) -> Json:
    names = [f"n{i:03}" for i in range(nodes)]
    objects = [*clusters.namespaces(), *(clusters.node(draw, name) for name in names)]
    for i in range(placed):
        where = draw.one(names) if draw.chance(0.98) else GONE
        objects.append(clusters.placed(draw, f"b{i:04}", draw.one(NAMESPACES), where))
    waiting = [clusters.pod(draw, f"p{i:02}", draw.one(NAMESPACES)) for i in range(pending)]
    for pod in waiting:
        if draw.chance(0.08):
            pod["status"] = {"nominatedNodeName": draw.one(names)}
        if draw.chance(0.02):
            pod["metadata"]["deletionTimestamp"] = "2026-02-01T00:00:00Z"
        if draw.chance(0.02):
            pod["spec"]["schedulerName"] = "another"
    asked = [f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in waiting]
    mode = "sequence" if draw.chance(sequence) else "evaluate"
    if mode == "sequence":
        asked += draw.some(asked, 3)
    return {"objects": [*objects, *waiting], "pending": asked, "mode": mode}
