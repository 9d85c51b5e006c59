from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.living_sandbox import START, LivingSandbox, pod
from tests.sandbox_server import fresh_api

from kubesched.api.kinds import CORE_EVENTS, CSI_NODES, LEASES, NODES, PODS, Object
from kubesched_sandbox.api import bootstrap
from kubesched_sandbox.api.conditions import condition_of, is_ready, is_true
from kubesched_sandbox.nodes import HollowNodes, node_manifests
from kubesched_sandbox.nodes.accounts import requests_of
from kubesched_sandbox.nodes.manifests import DURATION, EXIT_CODE, STARTUP, node_manifest
from kubesched_sandbox.reconcilers import Dispatch
from kubesched_sandbox.reconcilers.reconciler import Timers


def placed(name: str = "first", *, annotations: dict[str, str] | None = None, cpu: str = "", **spec: object) -> Object:
    made = pod(name, nodeName="node-0", **spec)
    made["metadata"]["annotations"] = annotations or {}
    if cpu:
        made["spec"]["containers"] = [{"name": "app", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}]
    return made


def test_node_registers_with_capacity_labels_and_addresses() -> None:
    cluster = LivingSandbox(nodes=4)
    node = cluster.get(NODES, "node-3")
    assert node["status"]["allocatable"]["cpu"] == "8"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "node-3"
    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "zone-a"
    assert is_true(node, "Ready")
    addresses = [each["status"]["addresses"][0]["address"] for each in cluster.api.select(NODES)]
    assert len(set(addresses)) == 4
    assert cluster.api.find(CSI_NODES, "", "node-3") is not None


def test_templates_say_what_is_unusual() -> None:
    big = {"metadata": {"name": "big", "labels": {"size": "xl"}}, "status": {"capacity": {"cpu": "64"}}, "count": 2}
    special = {"metadata": {"name": "special"}, "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}
    first, second, third = node_manifests([big, special])
    assert [each["metadata"]["name"] for each in (first, second, third)] == ["big-0", "big-1", "special"]
    assert (first["status"]["allocatable"]["cpu"], first["metadata"]["labels"]["size"]) == ("64", "xl")
    assert third["status"]["capacity"]["cpu"] == "8"
    assert third["spec"]["taints"][0]["key"] == "gpu"


def test_pod_goes_from_pending_to_creating_to_running() -> None:
    cluster = LivingSandbox()
    cluster.create(PODS, placed(annotations={STARTUP: "3s"}))
    creating = cluster.get(PODS, "first")["status"]
    assert creating["phase"] == "Pending"
    assert creating["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert creating["hostIP"] == cluster.get(NODES, "node-0")["status"]["addresses"][0]["address"]
    cluster.run(2.9)
    assert cluster.get(PODS, "first")["status"]["phase"] == "Pending"
    cluster.run(0.2)
    running = cluster.get(PODS, "first")
    assert running["status"]["phase"] == "Running"
    assert running["status"]["podIP"].startswith("10.64.0.")
    for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled"):
        assert is_true(running, kind)
    assert cluster.reasons("first") == ["Pulled", "Created", "Started"]


def test_pods_of_a_node_have_different_addresses() -> None:
    cluster = LivingSandbox(nodes=1)
    for number in range(20):
        cluster.create(PODS, placed(f"pod-{number}"))
    cluster.run(10)
    assert len({each["status"]["podIP"] for each in cluster.running()}) == 20


@pytest.mark.parametrize(("exit_code", "phase"), [("0", "Succeeded"), ("3", "Failed")])
def test_pod_with_a_duration_ends_with_its_exit_code(exit_code: str, phase: str) -> None:
    cluster = LivingSandbox()
    annotations = {STARTUP: "1s", DURATION: "1m", EXIT_CODE: exit_code}
    cluster.create(PODS, placed(annotations=annotations, restartPolicy="Never"))
    cluster.run(60.5)
    assert cluster.get(PODS, "first")["status"]["phase"] == "Running"
    cluster.run(1)
    ended = cluster.get(PODS, "first")["status"]
    assert ended["phase"] == phase
    assert ended["containerStatuses"][0]["state"]["terminated"]["exitCode"] == int(exit_code)


def test_deleted_pod_ends_within_its_grace_and_is_gone() -> None:
    cluster = LivingSandbox()
    cluster.create(PODS, placed())
    cluster.run(5)
    cluster.delete(PODS, "first")
    assert "deletionTimestamp" in cluster.get(PODS, "first")["metadata"]
    cluster.run(1)
    assert cluster.pods() == []
    assert "Killing" in cluster.reasons("first")


def test_pod_that_does_not_fit_is_refused_as_a_kubelet_does() -> None:
    cluster = LivingSandbox(nodes=1)
    cluster.create(PODS, placed("fits", cpu="6"))
    cluster.create(PODS, placed("does-not", cpu="3"))
    cluster.run(5)
    assert is_ready(cluster.get(PODS, "fits"))
    status = cluster.get(PODS, "does-not")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "OutOfcpu")
    told = "Node didn't have enough resource: cpu, requested: 3000, used: 6000, capacity: 8000"
    assert status["message"] == f"Pod was rejected: {told}"


def test_what_a_pod_took_is_free_again_when_it_has_ended_or_gone() -> None:
    cluster = LivingSandbox(nodes=1)
    cluster.create(PODS, placed("short", cpu="8", annotations={DURATION: "5s"}, restartPolicy="Never"))
    cluster.run(20)
    cluster.create(PODS, placed("second", cpu="8"))
    cluster.run(5)
    assert is_ready(cluster.get(PODS, "second"))
    cluster.delete(PODS, "second")
    cluster.run(5)
    cluster.create(PODS, placed("third", cpu="8"))
    cluster.run(5)
    assert is_ready(cluster.get(PODS, "third"))


def test_pod_is_refused_where_its_own_node_selector_does_not_allow_it() -> None:
    cluster = LivingSandbox(nodes=1)
    cluster.create(PODS, placed(nodeSelector={"disk": "ssd"}))
    assert cluster.get(PODS, "first")["status"]["reason"] == "NodeAffinity"


@pytest.mark.parametrize(("address", "reason"), [("10.0.0.1", "NodePorts"), ("10.0.0.2", None)])
def test_pod_is_refused_where_its_host_port_is_taken(address: str, reason: str | None) -> None:
    def listening(name: str, host: str) -> Object:
        ports = [{"containerPort": 80, "hostPort": 80, "hostIP": host}]
        return placed(name, containers=[{"name": "app", "image": "nginx", "ports": ports}])

    cluster = LivingSandbox(nodes=1)
    cluster.create(PODS, listening("first", "10.0.0.1"))
    cluster.create(PODS, listening("second", address))
    assert cluster.get(PODS, "second")["status"].get("reason") == reason


def test_more_pods_than_a_node_takes_are_refused() -> None:
    small = {"metadata": {"name": "node-0"}, "status": {"capacity": {"pods": "1"}}}
    cluster = LivingSandbox(nodes=[small])
    for name in ("first", "second"):
        cluster.create(PODS, placed(name))
    cluster.run(5)
    assert cluster.get(PODS, "second")["status"]["reason"] == "OutOfpods"


def test_failed_node_leaves_its_pods_as_they_are() -> None:
    cluster = LivingSandbox()
    cluster.create(PODS, placed(annotations={DURATION: "10s"}, restartPolicy="Never"))
    cluster.create(PODS, placed("going"))
    cluster.run(5)
    cluster.hollow.fail("node-0")
    cluster.delete(PODS, "going")
    cluster.run(40)
    assert cluster.get(PODS, "first")["status"]["phase"] == "Running"
    assert cluster.api.find(PODS, "default", "going") is not None
    cluster.hollow.recover("node-0")
    cluster.run(5)
    assert cluster.get(PODS, "first")["status"]["phase"] == "Succeeded"
    assert cluster.api.find(PODS, "default", "going") is None


def test_renewals_are_spread_over_the_period() -> None:
    cluster = LivingSandbox(nodes=50)
    cluster.run(20)
    renewed = [each["spec"]["renewTime"] for each in cluster.api.select(LEASES, "kube-node-lease")]
    seconds = [each[:19] for each in renewed]
    assert max(seconds.count(each) for each in seconds) < 20
    assert all(each["spec"]["leaseDurationSeconds"] == 40 for each in cluster.api.select(LEASES, "kube-node-lease"))


def test_with_thousands_of_nodes_leases_are_longer_and_renewed_less_often() -> None:
    api = fresh_api(clock=lambda: START)
    hollow = HollowNodes(api, random.Random(1))
    hollow.add(node_manifests(3000))
    dispatch = Dispatch(api, [hollow])
    dispatch.settle(START)
    assert hollow.lease_period == 30
    assert api.get(LEASES, "kube-node-lease", "node-2999")["spec"]["leaseDurationSeconds"] == 120


def test_events_can_be_switched_off() -> None:
    now = START
    api = fresh_api(clock=lambda: now)
    hollow = HollowNodes(api, random.Random(1), events=False)
    hollow.add([node_manifest("node-0")])
    dispatch = Dispatch(api, [hollow])
    api.create(PODS, "default", placed())
    dispatch.settle(now)
    now += 10
    dispatch.settle(now)
    assert is_ready(api.get(PODS, "default", "first"))
    assert api.select(CORE_EVENTS) == []


def test_restarted_process_takes_over_the_nodes_and_pods_it_finds() -> None:
    cluster = LivingSandbox(nodes=1)
    cluster.create(PODS, placed("running", cpu="6", annotations={DURATION: "60s"}, restartPolicy="Never"))
    cluster.create(PODS, placed("starting", annotations={STARTUP: "30s"}))
    cluster.run(5)
    cluster.dispatch.stop()
    bootstrap(cluster.api)
    hollow = HollowNodes(cluster.api, random.Random(2))
    cluster.dispatch = Dispatch(cluster.api, [hollow])
    cluster.create(PODS, placed("too-much", cpu="6"))
    cluster.run(35)
    assert hollow.names == ["node-0"]
    assert is_ready(cluster.get(PODS, "starting"))
    assert cluster.get(PODS, "too-much")["status"]["reason"] == "OutOfcpu"
    cluster.run(60)
    assert cluster.get(PODS, "running")["status"]["phase"] == "Succeeded"


def test_pod_with_a_readiness_gate_is_not_ready_before_it_opens() -> None:
    cluster = LivingSandbox()
    cluster.create(PODS, placed(readinessGates=[{"conditionType": "example.com/open"}]))
    cluster.run(5)
    ready = condition_of(cluster.get(PODS, "first"), "Ready") or {}
    assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 30), st.booleans()), max_size=30))
def test_timers_keep_the_earliest_time_unless_it_is_replaced(entries: list[tuple[str, int, bool]]) -> None:
    timers: Timers[str] = Timers()
    expected: dict[str, float] = {}
    for name, when, replace in entries:
        timers.at(when, name, replace=replace)
        expected[name] = when if replace else min(when, expected.get(name, when))
    assert timers.next == min(expected.values(), default=None)
    found = timers.due(15, most=100)
    assert set(found) == {name for name, when in expected.items() if when <= 15}
    assert [expected[name] for name in found] == sorted(expected[name] for name in found)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("bind"), st.integers(100, 5000)),
            st.tuples(st.just("delete"), st.integers(0, 20)),
            st.tuples(st.just("wait"), st.integers(0, 3)),
        ),
        max_size=15,
    )
)
def test_node_never_runs_more_than_it_has_whatever_is_bound_to_it(steps: list[tuple[str, int]]) -> None:
    cluster = LivingSandbox(nodes=1)
    for turn, (kind, number) in enumerate(steps):
        if kind == "bind":
            cluster.create(PODS, placed(f"pod-{turn}", cpu=f"{number}m"))
        elif kind == "delete" and cluster.pods():
            pods = cluster.pods()
            cluster.delete(PODS, pods[number % len(pods)]["metadata"]["name"])
        else:
            cluster.run(number)
        taken = [each for each in cluster.pods() if each["status"]["phase"] != "Failed"]
        assert sum(requests_of(each)["cpu"] for each in taken) <= 8000
    cluster.run(10)
    assert len(cluster.running()) == len([each for each in cluster.pods() if each["status"]["phase"] != "Failed"])
