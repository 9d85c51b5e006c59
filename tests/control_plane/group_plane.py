"""A real API server with the gates of pod groups on, as a stage for scenarios; and what its release calls things."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.peer.control_plane import ASSETS
from tests.control_plane.real_cluster import NAMESPACE, RealCluster
from tests.group_scenarios.stage import ALPHA, BETA, Json, Stage
from tests.integration.live_cluster import wait_until

from kubesched.api.kinds import BUILT_IN, POD_GROUPS_BY_VERSION, PODS, WORKLOADS_BY_VERSION, Resource
from kubesched.api.release import V1_36, Release, release_of

OLDER_GATES = {
    "GenericWorkload": True,
    "GangScheduling": True,
    "TopologyAwareWorkloadScheduling": True,
    "WorkloadAwarePreemption": True,
    "DRAWorkloadResourceClaims": True,
}
NEWER_GATES = dict.fromkeys(("GenericWorkload", "TopologyAwareWorkloadScheduling", "DRAWorkloadResourceClaims"), True)
"""Those that are left of them in v1.37."""
OLDER_FLAG, NEWER_FLAG = (
    "--feature-gates=" + ",".join(f"{gate}=true" for gate in gates) for gates in (OLDER_GATES, NEWER_GATES)
)


def _release() -> Release:
    """That of the API server among the binaries; v1.36 where there are none."""
    program = Path(os.environ.get(ASSETS, ""), "kube-apiserver")
    if not program.is_file():
        return V1_36
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return release_of(said.split()[-1]) or V1_36


RELEASE = _release()
_IS_NEWER = RELEASE is not V1_36
API, GATES, FLAG = (BETA, NEWER_GATES, NEWER_FLAG) if _IS_NEWER else (ALPHA, OLDER_GATES, OLDER_FLAG)
POD_GROUPS, WORKLOADS = (each[0 if _IS_NEWER else -1] for each in (POD_GROUPS_BY_VERSION, WORKLOADS_BY_VERSION))
AS_ONE: Any = {"all": {}} if _IS_NEWER else "PodGroup"
"""The disruption mode of a group that goes as a whole."""
_WITHIN = 90.0
_WITH_STATUS = ("PodDisruptionBudget", "PersistentVolumeClaim")


class RealStage(Stage):
    """Whoever schedules there is started by the test."""

    def __init__(self, cluster: RealCluster, api: str = ALPHA) -> None:
        self.cluster = cluster
        self.api = api

    def create(self, api_version: str, kind: str, body: Json) -> None:
        fields = dict(body)
        name = fields["metadata"]["name"]
        self.cluster.create(api_version, kind, name, resource=self._resource(api_version, kind), **fields)
        if kind in _WITH_STATUS and "status" in fields:
            self.cluster.patch(self._resource(api_version, kind), name, {"status": fields["status"]}, "status")

    def change_group(self, name: str, spec: Json) -> None:
        self.cluster.patch(self._resource(self.api, "PodGroup"), name, {"spec": spec})

    def remove(self, kind: str, name: str) -> None:
        if kind == "PodGroup":
            groups = self._resource(self.api, kind)
            self.cluster.delete(groups, name)
            self.cluster.patch(groups, name, {"metadata": {"finalizers": None}})
            wait_until(lambda: not self._is_there(groups, name), f"{name} gone", within=30)
        else:
            self.cluster.delete(BUILT_IN["v1", kind], name)

    def open_gates(self, pod: str) -> None:
        self.cluster.patch(PODS, pod, {"spec": {"schedulingGates": None}})

    def pods(self) -> list[Json]:
        return self.cluster.list(PODS)

    def expect(self, is_met: Callable[[], bool], what: str) -> None:
        wait_until(is_met, what, within=_WITHIN)

    def _is_there(self, resource: Resource, name: str) -> bool:
        path = resource.path_of(namespace=NAMESPACE)
        return any(each["metadata"]["name"] == name for each in self.cluster.ask("GET", path)["items"])

    @staticmethod
    def _resource(api_version: str, kind: str) -> Resource:
        if api_version != BETA:
            return BUILT_IN[api_version, kind]
        known = BUILT_IN[ALPHA, kind]
        return Resource(**{**{name: getattr(known, name) for name in known.__struct_fields__}, "version": "v1beta1"})


def local_volumes(cluster: RealCluster, **nodes: str) -> None:
    """A volume for each name, on the node given with it, in a class that waits for pods."""
    provisioner = "kubernetes.io/no-provisioner"
    late: dict[str, Any] = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    cluster.create("storage.k8s.io/v1", "StorageClass", "local", **late)
    for name, node in nodes.items():
        here = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [here]}},
        }
        cluster.create("v1", "PersistentVolume", name, spec=spec)


def volume_claims(cluster: RealCluster, *names: str) -> None:
    for name in names:
        requests = {"requests": {"storage": "1Gi"}}
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local", "resources": requests}
        cluster.create("v1", "PersistentVolumeClaim", name, spec=spec)
