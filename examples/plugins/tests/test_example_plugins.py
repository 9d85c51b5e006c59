"""A decision is a function call, so testing a plugin takes no cluster and no time."""

from __future__ import annotations

from pathlib import Path

from example_plugins.cheap_nodes import CheapNodes
from example_plugins.quiet_neighbours import QuietNeighbours

from kubesched import config
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.node import Node, NodeStatus
from kubesched.api.pod import Container, Pod, PodSpec
from kubesched.framework.decision import Decision
from kubesched.framework.registry import Registry
from kubesched.plugins.registry import IN_TREE
from kubesched.simulate.cluster import SimulatedCluster

CONFIG = Path(__file__).parents[1] / "scheduler.yaml"


def node(name: str, **labels: str) -> Node:
    room = NodeStatus(allocatable={"cpu": "4", "memory": "8Gi", "pods": 10})
    return Node(metadata=ObjectMeta(name=name, labels=labels), status=room)


def pod(name: str, on: str = "", **labels: str) -> Pod:
    spec = PodSpec(containers=(Container(name="main"),), node_name=on)
    return Pod(metadata=ObjectMeta(name=name, namespace="default", labels=labels), spec=spec)


def decide(incoming: Pod, *objects: KubeObject) -> Decision:
    plugins = Registry((*IN_TREE, QuietNeighbours, CheapNodes))
    cluster = SimulatedCluster(objects, config.load(CONFIG.read_text()), plugins=plugins)
    return cluster.engine.decide(incoming)


def test_a_critical_pod_keeps_away_from_noisy_ones() -> None:
    drummer = pod("drummer", on="n1", noise="loud")
    assert decide(pod("p", latency="critical"), node("n1"), node("n2"), drummer).node == "n2"
    told = decide(pod("p", latency="critical"), node("n1"), drummer).message
    assert told.startswith("0/1 nodes are available: 1 node(s) had noisy neighbours.")


def test_cheap_nodes_are_preferred_and_expensive_ones_refused() -> None:
    cheap, dear, absurd = (node(name, **{"example.com/price": name[1:]}) for name in ("n20", "n250", "n900"))
    assert decide(pod("p"), dear, cheap, absurd).node == "n20"
    assert "1 node(s) were too expensive" in decide(pod("p"), absurd).message
