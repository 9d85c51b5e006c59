"""A company's platform on nodes with names of a cloud: workloads of all kinds, special nodes, pods that wait."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from kubesched import config
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod, PodStatus
from kubesched.api.well_known import HOSTNAME, ZONE
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.manifests import loads
from kubesched.simulate.placement import place

GPU, INSTANCE_TYPE = "nvidia.com/gpu", "node.kubernetes.io/instance-type"
Manifest = dict[str, Any]


def platform(count: int) -> list[KubeObject]:
    """So many nodes, and what runs on them: about four pods for each."""
    manifests = [*(_node(i, count) for i in range(count)), *_objects(count)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    made = ClusterModel.with_missing_pods(loads(text, workloads=True).objects, config.default())
    place(made)
    pods = (made.state.placed(pod) or pod for pod in made.pods.values())
    return [*made.given, *(pod if isinstance(pod, Pod) else _running(pod.pod) for pod in pods)]


def node_name(i: int) -> str:
    return f"ip-10-{i // 250}-{i % 250}-{17 + i % 200}.eu-west-1.compute.internal"


def _running(pod: Pod) -> Pod:
    return replace(pod, status=PodStatus(phase="Running"))


def _node(i: int, count: int) -> Manifest:
    zones = 3 if count < 10_000 else 6
    has_gpus = count > 2 and i % 9 == 4
    labels = {ZONE: f"eu-west-1{'abcdef'[i % zones]}", HOSTNAME: node_name(i), "pool": "gpu" if has_gpus else "general"}
    labels[INSTANCE_TYPE] = "g5.12xlarge" if has_gpus else ("m6i.4xlarge", "m6i.8xlarge")[i % 4 == 0]
    offers = {"cpu": "32" if labels[INSTANCE_TYPE] == "m6i.8xlarge" else "16", "memory": "64Gi", "pods": "58"}
    spec: Manifest = {}
    if has_gpus:
        offers[GPU] = "4"
        spec["taints"] = [{"key": GPU, "value": "present", "effect": "NoSchedule"}]
    elif count > 2 and i % 13 == 7:
        spec["unschedulable"] = True
    elif count > 2 and i % 31 == 8:
        spec["taints"] = [{"key": "node.kubernetes.io/unreachable", "effect": e} for e in ("NoSchedule", "NoExecute")]
    status = {"allocatable": offers, "capacity": offers}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node_name(i), "labels": labels},
        "spec": spec,
        "status": status,
    }


def _objects(count: int) -> Iterator[Manifest]:
    """What the company has applied."""
    spread = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    for name, share, cpu, more in (
        ("frontend", 0.8, "500m", {"spread": spread}),
        ("recommendation-service-canary", 0.5, "1", {}),
        ("checkout", 0.4, "750m", {"apart": HOSTNAME}),
        ("search-index", 0.8 + min(0.4, 200 / count), "250m", {"apart": HOSTNAME}),
        ("payments", 0.6, "1500m", {}),
    ):
        yield _workload("Deployment", "store", name, max(1, round(count * share)), cpu, **more)
    yield _workload("StatefulSet", "data", "postgres", max(2, count // 20), "2", serviceName="postgres")
    yield _workload("StatefulSet", "data", "kafka", max(3, count // 30), "3", serviceName="kafka", apart=HOSTNAME)
    yield _workload("DaemonSet", "kube-system", "log-collector", 0, "100m")
    gpus = {"limits": {GPU: "2"}, "tolerations": [{"operator": "Exists"}], "nodeSelector": {"pool": "gpu"}}
    yield _workload("Job", "ml", "train", max(3, min(count // 4, count * 2 // 9 + 40)), "4", **gpus)
    yield _workload("Deployment", "ml", "vector-store", max(1, min(count // 100, 20)), "40")
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "frontend"}}}
    yield {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "frontend", "namespace": "store"},
        "spec": budget,
    }


def _workload(kind: str, namespace: str, name: str, replicas: int, cpu: str, **more: Any) -> Manifest:
    resources = {"requests": {"cpu": cpu, "memory": "512Mi"}, "limits": more.pop("limits", {})}
    labels = {"app": name}
    spec: Manifest = {"containers": [{"name": "main", "image": f"registry.example/{name}:1", "resources": resources}]}
    spec |= {key: more.pop(key) for key in ("tolerations", "nodeSelector") if key in more}
    if "spread" in more:
        spec["topologySpreadConstraints"] = [{**more.pop("spread"), "labelSelector": {"matchLabels": labels}}]
    if "apart" in more:
        term = {"topologyKey": more.pop("apart"), "labelSelector": {"matchLabels": labels}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    template = {"metadata": {"labels": labels}, "spec": spec}
    body: Manifest = {"template": template, **more}
    if kind == "Job":
        spec["restartPolicy"] = "Never"
        body |= {"completions": replicas, "parallelism": replicas}
    else:
        body["selector"] = {"matchLabels": labels}
        if kind != "DaemonSet":
            body["replicas"] = replicas
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": body}
