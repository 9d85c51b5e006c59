"""What if, with pod groups: they run whole or wait whole, and are told as groups."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from click.testing import CliRunner
from tests.unit.scheduler.group_world import ALL_GATES, ALPHA, make_gang, members

from kubesched import config
from kubesched.api.meta import KubeObject
from kubesched.ask.edits import AddNodes, DrainNodes, Edit, RemoveNodes
from kubesched.ask.html import what_if_page
from kubesched.ask.what_if.answer import GroupOutcome, WhatIfAnswer
from kubesched.ask.what_if.what_if import what_if
from kubesched.cli.main import main
from kubesched.config.features import DEFAULT_FEATURES, Features
from kubesched.testing import make_node

NODES = [make_node(f"{zone}{i}").zone(zone).capacity(cpu="2").build() for zone in "ab" for i in range(2)]


def gang(name: str, size: int, *nodes: str) -> list[KubeObject]:
    """A gang whose first pods run on these nodes."""
    pods = members(name, size)
    placed = [pod.on(node) for pod, node in zip(pods, nodes)]
    return [make_gang(name, size, api=ALPHA), *(pod.build() for pod in (*placed, *pods[len(placed) :]))]


def asked(objects: Sequence[KubeObject], *changes: Edit, features: Features = ALL_GATES) -> WhatIfAnswer:
    return what_if([*NODES, *objects], config.default(features), changes).difference


def test_gang_of_a_drained_zone_moves_whole_if_there_is_room() -> None:
    found = asked(gang("g", 4, "a0", "a0", "a1", "a1"), DrainNodes(("zone=a",)))
    assert found.groups == (GroupOutcome("default/g", 4, 4, 4, 4, 4, True, ""),)


def test_of_two_gangs_in_too_small_a_cluster_one_runs_whole_and_one_waits_whole() -> None:
    running = [*gang("g", 3, "a0", "a0", "a1"), *gang("h", 3, "b0", "b0", "b1")]
    found = asked(running, RemoveNodes(("zone=a",)))
    [waits] = found.groups
    assert (waits.group, waits.before, waits.after, waits.runs) == ("default/g", 3, 0, False)
    assert "pod group is unschedulable" in waits.reason
    assert {each.pod for each in found.waiting} == {"default/g-0", "default/g-1", "default/g-2"}
    assert "default/g" in what_if_page(found)


def test_gang_that_loses_some_of_its_pods_runs_with_too_few() -> None:
    full = gang("h", 4, "b0", "b0", "b1", "b1")
    found = asked([*gang("g", 3, "a0", "a0", "a1"), *full], RemoveNodes(("a0",)))
    [short] = found.groups
    assert (short.needed, short.before, short.after, short.runs) == (3, 3, 1, False)


def test_gang_that_waited_runs_with_another_node() -> None:
    full = gang("h", 8, *(node for node in ("a0", "a1", "b0", "b1") for _ in range(2)))
    found = asked([*full, *gang("g", 2)], AddNodes("a0", 1))
    [runs] = found.groups
    assert (runs.group, runs.before, runs.after, runs.runs, runs.moved) == ("default/g", 0, 2, True, 0)


def test_without_the_gates_there_are_no_groups() -> None:
    assert asked(gang("g", 3, "a0", "a0", "a1"), RemoveNodes(("zone=a",)), features=DEFAULT_FEATURES).groups == ()


def test_groups_are_shown_as_such(tmp_path: Path) -> None:
    gates = "--feature-gates=GenericWorkload=true"
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    shown = CliRunner().invoke(main, ["what-if", "-f", str(file), gates, "--lose", "zone=b"]).output
    [line] = [line for line in shown.splitlines() if line.startswith("default/train ")]
    assert line.split()[:5] == ["default/train", "3", "3", "0", "0"]
    assert "waits as a whole" in line


CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: a0, labels: {topology.kubernetes.io/zone: a}}
status: {allocatable: {cpu: "2", memory: 8Gi, pods: "9"}}
---
apiVersion: v1
kind: Node
metadata: {name: b0, labels: {topology.kubernetes.io/zone: b}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "9"}}
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: train}
spec: {schedulingPolicy: {gang: {minCount: 3}}}
""" + "".join(
    f"""---
apiVersion: v1
kind: Pod
metadata: {{name: train-{i}}}
spec:
  nodeName: b0
  schedulingGroup: {{podGroupName: train}}
  containers: [{{name: main, image: train, resources: {{requests: {{cpu: "1"}}}}}}]
"""
    for i in range(3)
)
