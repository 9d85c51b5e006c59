from __future__ import annotations

from collections.abc import Sequence

import pytest

from kubesched.api.pod import Pod
from kubesched.api.storage import PersistentVolumeClaim
from kubesched.api.workloads import ReplicaSet
from kubesched.simulate.manifests import ManifestError, loads
from kubesched.simulate.workloads import Expansion, expand

NODES = "".join(
    f"---\n{{apiVersion: v1, kind: Node, metadata: {{name: n{i}, labels: {{disk: {disk}}}}},"
    f" spec: {{taints: {taints}}}, status: {{capacity: {{cpu: 4}}}}}}\n"
    for i, (disk, taints) in enumerate(
        [("ssd", "[]"), ("ssd", "[{key: gpu, effect: NoSchedule}]"), ("hdd", "[]"), ("ssd", "[]")]
    )
)
CONTAINER = "containers: [{resources: {limits: {cpu: 1}}}]"


def workload(kind: str, spec: str, *, pod: str = "", labels: str = "{app: web}") -> str:
    version = "batch/v1" if kind == "Job" else "apps/v1"
    template = f"template: {{metadata: {{labels: {labels}}}, spec: {{{CONTAINER}{pod and ', ' + pod}}}}}"
    return f"---\n{{apiVersion: {version}, kind: {kind}, metadata: {{name: web}}, spec: {{{spec}{template}}}}}\n"


def expanded(*manifests: str) -> Expansion:
    return expand(loads("".join(manifests), workloads=True).objects)


def pods_of(expansion: Expansion) -> list[Pod]:
    return [pod for series in expansion.series for pod in series.pods]


def names_of(pods: Sequence[Pod]) -> list[str]:
    return [pod.name for pod in pods]


def test_deployment_becomes_a_replica_set_that_selects_its_pods() -> None:
    found = expanded(workload("Deployment", "replicas: 2, selector: {matchLabels: {app: web}}, "))
    (owner,) = [obj for obj in found.objects if isinstance(obj, ReplicaSet)]
    pods = pods_of(found)
    assert names_of(pods) == [f"{owner.name}-0", f"{owner.name}-1"]
    assert owner.spec.selector is not None
    assert owner.spec.selector.match_labels.items() <= pods[0].metadata.labels.items()
    assert pods[0].metadata.controller is not None
    assert (pods[0].metadata.controller.kind, pods[0].metadata.controller.name) == ("ReplicaSet", owner.name)


def test_template_is_completed_as_the_server_would() -> None:
    (pod,) = pods_of(expanded(workload("ReplicaSet", "")))
    assert pod.spec.containers[0].resources.requests == {"cpu": 1}
    assert pod.spec.priority == 0


def test_deployment_whose_replica_set_is_there_makes_no_other() -> None:
    owned = (
        "---\n{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, ownerReferences:"
        f" [{{kind: Deployment, name: web, controller: true}}]}}, spec: {{template: {{spec: {{{CONTAINER}}}}}}}}}\n"
    )
    assert names_of(pods_of(expanded(workload("Deployment", "replicas: 5, "), owned))) == ["web-1-0"]


def test_pods_that_exist_already_are_not_made_again() -> None:
    existing = (
        "---\n{apiVersion: v1, kind: Pod, metadata: {name: web-0, ownerReferences:"
        " [{kind: ReplicaSet, name: web, controller: true}]}, spec: {nodeName: n0}}\n"
    )
    assert names_of(pods_of(expanded(workload("ReplicaSet", "replicas: 3, "), existing))) == ["web-1", "web-2"]


def test_stateful_set_makes_numbered_pods_one_after_another_each_with_its_claim() -> None:
    claims = "volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}}], "
    found = expanded(workload("StatefulSet", f"replicas: 2, {claims}"))
    (series,) = found.series
    assert (names_of(series.pods), series.at_once, series.after) == (["web-0", "web-1"], 1, "bound")
    made = [obj.name for obj in found.objects if isinstance(obj, PersistentVolumeClaim)]
    assert made == ["data-web-0", "data-web-1"]
    claim = series.pods[1].spec.volumes[0].persistent_volume_claim
    assert claim is not None
    assert claim.claim_name == "data-web-1"


@pytest.mark.parametrize("comes_first", ["pod", "set"])
def test_stateful_set_makes_no_pod_before_the_one_that_waits_has_its_node(comes_first: str) -> None:
    waiting = (
        "---\n{apiVersion: v1, kind: Pod, metadata: {name: web-0, ownerReferences:"
        f" [{{kind: StatefulSet, name: web, controller: true}}]}}, spec: {{{CONTAINER}}}}}\n"
    )
    manifests = [waiting, workload("StatefulSet", "replicas: 3, ")]
    (series,) = expanded(*(manifests if comes_first == "pod" else reversed(manifests))).series
    assert (names_of(series.pods), series.at_once, series.after) == (["web-0", "web-1", "web-2"], 1, "bound")


def test_parallel_stateful_set_makes_all_pods_at_once() -> None:
    (series,) = expanded(workload("StatefulSet", "replicas: 3, podManagementPolicy: Parallel, ")).series
    assert series.at_once == 3


def test_daemon_set_has_a_pod_for_every_node_that_suits() -> None:
    pods = pods_of(expanded(NODES, workload("DaemonSet", "", pod="nodeSelector: {disk: ssd}")))
    assert names_of(pods) == ["web-n0", "web-n3"]
    affinity = pods[0].spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    assert required.node_selector_terms[0].match_fields[0].values == ("n0",)
    assert "node.kubernetes.io/unschedulable" in {toleration.key for toleration in pods[0].spec.tolerations}


def test_job_makes_as_many_pods_as_it_has_to_complete_a_few_at_a_time() -> None:
    (series,) = expanded(workload("Job", "parallelism: 2, completions: 5, ")).series
    assert (len(series.pods), series.at_once, series.after) == (5, 2, "finished")


def test_suspended_job_makes_nothing() -> None:
    assert not expanded(workload("Job", "suspend: true, ")).series


@pytest.mark.parametrize(
    ("manifest", "line"),
    [
        (
            workload("Deployment", "", pod="tolerations: [{effect: NoSchedule}]"),
            "<text>: document 1 (Deployment default/web): spec.template.spec.tolerations[0].operator: Invalid value",
        ),
        (workload("Deployment", "replicas: -1, "), "<text>: document 1 (Deployment default/web): spec.replicas: "),
        (
            workload("Job", "", pod="priorityClassName: vip"),
            "(Job default/web): spec.template.spec.priorityClassName: no PriorityClass with name vip was found",
        ),
        (
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}",
            "spec.template.spec.containers: Required value",
        ),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {kubesched.io/arrival: soon}}}",
            'metadata.annotations.kubesched.io/arrival: expected a duration such as "10s"',
        ),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {kubesched.io/duration: -5s}}}",
            "metadata.annotations.kubesched.io/duration: must not be negative",
        ),
    ],
)
def test_mistakes_in_templates_and_annotations_are_located(manifest: str, line: str) -> None:
    with pytest.raises(ManifestError) as caught:
        loads(manifest, workloads=True)
    assert line in caught.value.lines[0]
