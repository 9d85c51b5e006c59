from __future__ import annotations

from tests.living_sandbox import LivingSandbox, deployment, is_live, pod

from kubesched.api.kinds import LEASES, NODES, PODS, Object
from kubesched_sandbox.api.conditions import condition_of, is_ready
from kubesched_sandbox.nodes.manifests import HOLLOW


def taints(cluster: LivingSandbox, name: str = "node-0") -> set[tuple[str, str]]:
    node = cluster.get(NODES, name)
    return {(taint["key"], taint["effect"]) for taint in node["spec"].get("taints") or ()}


def placed(name: str, node: str = "node-0", **spec: object) -> Object:
    return pod(name, nodeName=node, **spec)


UNREACHABLE = {("node.kubernetes.io/unreachable", "NoSchedule"), ("node.kubernetes.io/unreachable", "NoExecute")}


def test_silent_node_becomes_unknown_and_is_tainted_until_it_is_back() -> None:
    cluster = LivingSandbox()
    cluster.hollow.fail("node-0")
    cluster.run(61)
    ready = condition_of(cluster.get(NODES, "node-0"), "Ready") or {}
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
    assert taints(cluster) == UNREACHABLE
    assert "NodeNotReady" in cluster.reasons("node-0")
    cluster.hollow.recover("node-0")
    cluster.run(1)
    assert (condition_of(cluster.get(NODES, "node-0"), "Ready") or {})["status"] == "True"
    assert taints(cluster) == set()


def test_nodes_that_renew_their_leases_stay_ready_for_an_hour() -> None:
    cluster = LivingSandbox(nodes=2)
    cluster.run(3600)
    assert all((condition_of(node, "Ready") or {})["status"] == "True" for node in cluster.api.select(NODES))
    assert taints(cluster) == set()


def test_node_without_a_kubelet_is_not_ready_at_once_and_lost_after_its_grace() -> None:
    cluster = LivingSandbox(nodes=0)
    cluster.create(NODES, {"metadata": {"name": "node-0"}})
    assert ("node.kubernetes.io/not-ready", "NoSchedule") in taints(cluster)
    cluster.run(51)
    ready = condition_of(cluster.get(NODES, "node-0"), "Ready") or {}
    assert ready["reason"] == "NodeStatusNeverUpdated"
    assert taints(cluster) == UNREACHABLE


def test_cordoned_node_is_tainted() -> None:
    cluster = LivingSandbox()
    cluster.change(NODES, "node-0", {"spec": {"unschedulable": True}})
    assert taints(cluster) == {("node.kubernetes.io/unschedulable", "NoSchedule")}
    cluster.change(NODES, "node-0", {"spec": {"unschedulable": None}})
    assert taints(cluster) == set()


def test_taints_of_others_are_left_alone() -> None:
    cluster = LivingSandbox()
    cluster.change(NODES, "node-0", {"spec": {"taints": [{"key": "mine", "effect": "NoSchedule"}]}})
    cluster.hollow.fail("node-0")
    cluster.run(61)
    assert taints(cluster) == {("mine", "NoSchedule"), *UNREACHABLE}


def test_pods_of_a_lost_node_are_not_ready_and_leave_when_their_patience_ends() -> None:
    cluster = LivingSandbox()
    deployment(cluster, replicas=3)
    cluster.run(10)
    cluster.hollow.fail("node-0")
    cluster.run(61)
    (lost,) = (each for each in cluster.pods() if each["spec"]["nodeName"] == "node-0")
    assert not is_ready(lost)
    assert is_live(lost)
    cluster.run(310)
    left = cluster.get(PODS, lost["metadata"]["name"])
    assert not is_live(left)
    assert (condition_of(left, "DisruptionTarget") or {})["reason"] == "DeletionByTaintManager"
    assert len([each for each in cluster.running() if is_ready(each)]) == 3
    cluster.hollow.recover("node-0")
    cluster.run(60)
    assert cluster.api.find(PODS, "default", lost["metadata"]["name"]) is None


def test_pods_of_a_node_that_comes_back_in_time_stay_and_are_ready_again() -> None:
    cluster = LivingSandbox()
    cluster.create(PODS, placed("stays"))
    cluster.run(10)
    cluster.hollow.fail("node-0")
    cluster.run(100)
    assert not is_ready(cluster.get(PODS, "stays"))
    cluster.hollow.recover("node-0")
    cluster.run(10)
    assert is_ready(cluster.get(PODS, "stays"))


def test_no_execute_taint_evicts_who_does_not_tolerate_it_and_the_patient_later() -> None:
    cluster = LivingSandbox()
    tolerating = {"key": "out", "operator": "Exists", "effect": "NoExecute"}
    cluster.create(PODS, placed("intolerant"))
    cluster.create(PODS, placed("patient", tolerations=[{**tolerating, "tolerationSeconds": 60}]))
    cluster.create(PODS, placed("tolerant", tolerations=[tolerating]))
    cluster.run(10)
    cluster.change(NODES, "node-0", {"spec": {"taints": [{"key": "out", "effect": "NoExecute"}]}})
    cluster.run(30)
    assert [each["metadata"]["name"] for each in cluster.pods()] == ["patient", "tolerant"]
    cluster.run(60)
    assert [each["metadata"]["name"] for each in cluster.pods()] == ["tolerant"]
    assert "TaintManagerEviction" in cluster.reasons("patient")


def test_taint_that_goes_in_time_evicts_nobody() -> None:
    cluster = LivingSandbox()
    patient = {"key": "out", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    cluster.create(PODS, placed("patient", tolerations=[patient]))
    cluster.run(10)
    cluster.change(NODES, "node-0", {"spec": {"taints": [{"key": "out", "effect": "NoExecute"}]}})
    cluster.run(30)
    cluster.change(NODES, "node-0", {"spec": {"taints": None}})
    cluster.run(120)
    assert is_live(cluster.get(PODS, "patient"))


def test_pods_on_a_node_that_is_gone_are_collected_after_a_while() -> None:
    cluster = LivingSandbox()
    cluster.create(PODS, placed("left-behind"))
    cluster.run(10)
    cluster.delete(NODES, "node-0")
    cluster.run(30)
    assert is_live(cluster.get(PODS, "left-behind"))
    cluster.run(30)
    assert cluster.pods() == []
    assert cluster.api.find(LEASES, "kube-node-lease", "node-0") is None


def test_node_that_a_user_creates_with_the_annotation_comes_alive() -> None:
    cluster = LivingSandbox(nodes=0)
    status = {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    cluster.create(NODES, {"metadata": {"name": "mine", "annotations": {HOLLOW: "true"}}, "status": status})
    cluster.run(5)
    cluster.create(PODS, placed("first", "mine"))
    cluster.run(10)
    assert taints(cluster, "mine") == set()
    assert is_ready(cluster.get(PODS, "first"))
