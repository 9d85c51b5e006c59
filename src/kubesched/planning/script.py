"""A plan as a shell script for kubectl: cordon, nominate, evict, wait, wave by wave. It stops when a step fails."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from importlib.resources import files

from kubesched.api.pod import Pod
from kubesched.planning.plan import NodeFate, Plan, by_wave
from kubesched.simulate.cluster import ClusterModel


def script_of(plan: Plan, cluster: ClusterModel) -> str:
    """The script. It uses kubectl with the kubeconfig of the user who runs it."""
    return "\n".join(
        [*_head(plan), files("kubesched.planning").joinpath("plan.sh").read_text(), *_body(plan, cluster), ""]
    )


def _head(plan: Plan) -> Iterator[str]:
    yield "#!/bin/sh"
    yield f"# {plan.goal}: {len(plan.moves)} moves in {plan.waves} waves, for the cluster as of {plan.observed_at}."
    if plan.check is not None and plan.check.needs_nominations:
        yield "# Pods must land on the nodes that were planned: the script nominates them, and stops if one does not."


def _body(plan: Plan, cluster: ClusterModel) -> Iterator[str]:
    needs = plan.check is not None and plan.check.needs_nominations
    yield f"STRICT={'yes' if needs else 'no'}"
    targets = {move.to_node for move in plan.moves} | {placement.node for placement in plan.placements}
    if new := sorted(targets - set(cluster.state.nodes.row_of)):
        types = ", ".join(f"{node.count} x {node.type or node.name}" for node in plan.nodes_that_are(NodeFate.ADDED))
        yield shlex.join(["added", types, *new])
    leaving = [node.name for node in plan.nodes if node.fate is not NodeFate.ADDED]
    for node in leaving:
        yield f"$KUBECTL cordon {shlex.quote(node)}"
    for number, moves in enumerate(by_wave(plan.moves), 1):
        yield f"echo 'Wave {number} of {plan.waves}'"
        for move in moves:
            pod = cluster.pods[move.pod]
            yield shlex.join(["evict", pod.namespace, pod.name, pod.uid, _owner(pod), move.from_node])
            yield shlex.join(["follow", pod.namespace, _owner(pod), move.to_node])
        yield "settle"
    for placement in plan.placements:
        pod = cluster.pods[placement.pod]
        yield shlex.join(["place", pod.namespace, pod.name, _owner(pod), placement.node])
    if plan.placements:
        yield "settle"
    for node in leaving:
        yield f"echo {shlex.quote(f'{node} is free')}"


def _owner(pod: Pod) -> str:
    owner = pod.metadata.controller
    return f"{owner.kind}/{owner.name}" if owner is not None else "-"
