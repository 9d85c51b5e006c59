"""A simulation expands workloads to the pods that the sandbox's controllers create, but for what a server generates."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml
from tests.living_sandbox import LivingSandbox, template

from kubesched.api.kinds import DAEMON_SETS, DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS, Object, Resource
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.release import RELEASES, V1_36, Release
from kubesched.controllers.pod_templates import Eligibility, daemon_tolerations, target_of
from kubesched.simulate.manifests import loads
from kubesched.simulate.workloads import expand

SELECTOR = {"matchLabels": {"app": "web"}}
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
REQUIRED = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]}
ON_SSD = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": REQUIRED}}
SHORT = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
NODES = [
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {"disk": "ssd"}}},
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b", "labels": {"disk": "ssd"}}},
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "c"}},
]
MADE_BY_A_SERVER = ("controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name")
ADDED_BY_ADMISSION = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
HASHES = ("pod-template-hash", "controller-revision-hash")


def with_template(pod: Object | None = None, **spec: Any) -> Object:
    return {"template": pod or template("web"), **spec}


WORKLOADS: list[tuple[Resource, Object]] = [
    (DEPLOYMENTS, with_template(replicas=3, selector=SELECTOR)),
    (REPLICA_SETS, with_template(replicas=2, selector=SELECTOR)),
    (
        STATEFUL_SETS,
        with_template(
            template("web", volumes=[{"name": "scratch", "emptyDir": {}}]),
            replicas=3,
            selector=SELECTOR,
            ordinals={"start": 4},
            podManagementPolicy="Parallel",
            volumeClaimTemplates=[CLAIM],
        ),
    ),
    (DAEMON_SETS, with_template(template("web", affinity=ON_SSD, tolerations=[SHORT]), selector=SELECTOR)),
    (JOBS, with_template(template("web", restartPolicy="Never"), parallelism=2, completions=2)),
    (
        JOBS,
        with_template(template("web", restartPolicy="Never"), parallelism=3, completions=3, completionMode="Indexed"),
    ),
    (
        JOBS,
        with_template(
            template("web", restartPolicy="Never"),
            parallelism=3,
            completions=3,
            scheduling={"schedulingPolicy": {"gang": {}}},
        ),
    ),
]


def in_the_sandbox(resource: Resource, workload: Object, release: Release) -> list[Pod]:
    cluster = LivingSandbox(nodes=NODES, binder=False, job_groups=True, release=release)
    cluster.create(resource, workload)
    cluster.run(1)
    return [msgspec.convert(pod, Pod) for pod in cluster.pods()]


def in_a_simulation(resource: Resource, workload: Object, release: Release) -> list[Pod]:
    document = {"apiVersion": resource.api_version, "kind": resource.kind, **workload}
    objects = loads(yaml.safe_dump_all([*NODES, document]), workloads=True).objects
    return [pod for series in expand(objects, job_groups=True, release=release).series for pod in series.pods]


def told_apart(pod: Pod) -> tuple[object, ...]:
    """What controllers decide about a pod, without hashes and names that a server generates."""
    labels = {key: value for key, value in pod.metadata.labels.items() if key not in (*HASHES, *MADE_BY_A_SERVER)}
    hashes = [key for key in HASHES if pod.metadata.labels.get(key)]
    owner = pod.metadata.controller
    assert owner is not None
    tolerations = {toleration.key for toleration in pod.spec.tolerations} - ADDED_BY_ADMISSION
    claims = [
        volume.persistent_volume_claim and volume.persistent_volume_claim.claim_name for volume in pod.spec.volumes
    ]
    return (
        sorted(labels.items()),
        hashes,
        owner.kind,
        pod.spec.affinity,
        sorted(tolerations),
        claims,
        target_of_record(pod),
        bool(pod.spec.scheduling_group),
    )


def target_of_record(pod: Pod) -> str | None:
    return target_of(msgspec.to_builtins(pod))


@pytest.mark.parametrize("release", RELEASES.values(), ids=list(RELEASES))
@pytest.mark.parametrize(("resource", "spec"), WORKLOADS, ids=[resource.kind for resource, _ in WORKLOADS])
def test_simulation_and_sandbox_make_the_same_pods(resource: Resource, spec: Object, release: Release) -> None:
    workload = {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}
    live, simulated = (make(resource, workload, release) for make in (in_the_sandbox, in_a_simulation))
    assert simulated
    shown = [sorted(map(repr, map(told_apart, pods))) for pods in (live, simulated)]
    assert shown[0] == shown[1]


def test_daemon_pod_is_bound_to_its_node_alone_whatever_its_template_requires() -> None:
    resource, spec = WORKLOADS[3]
    pods = in_the_sandbox(resource, {"metadata": {"name": "web"}, "spec": spec}, V1_36)
    assert {target_of_record(pod) for pod in pods} == {"a", "b"}
    for pod in pods:
        assert pod.spec.affinity is not None
        assert pod.spec.affinity.node_affinity is not None
        required = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
        assert required is not None
        assert [term.match_expressions for term in required.node_selector_terms] == [()]


def test_toleration_of_daemon_pods_takes_the_place_of_one_that_matches_alike() -> None:
    tolerations = daemon_tolerations({"tolerations": [SHORT, {"key": "gpu", "operator": "Exists"}]})
    assert [each for each in tolerations if each["key"] == SHORT["key"]] == [
        {"key": SHORT["key"], "operator": "Exists", "effect": "NoExecute"}
    ]
    assert tolerations[0] == {"key": "gpu", "operator": "Exists"}


def test_daemon_set_whose_template_names_a_node_is_for_that_node() -> None:
    eligible = Eligibility({"spec": with_template(template("web", nodeName="b"))})
    assert [eligible.of(msgspec.convert(node, Node)) for node in NODES] == [
        (False, False),
        (True, True),
        (False, False),
    ]
