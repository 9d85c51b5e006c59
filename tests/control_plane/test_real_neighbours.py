"""Beside kube-scheduler: as its shadow, and for pods of its own with the rights that `deploy/` gives."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from bench.peer.control_plane import ControlPlane
from tests.control_plane.conftest import StartKubesched, StartKubeScheduler
from tests.control_plane.real_cluster import RealCluster
from tests.integration.live_cluster import wait_until

MANIFESTS = Path(__file__).parents[2] / "deploy/manifests/beside-kube-scheduler.yaml"
RIGHTS = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
EVERY_NODE = {"percentageOfNodesToScore": 100}
ZONE = "topology.kubernetes.io/zone"


def some_pod(number: int, dice: random.Random) -> dict[str, Any]:
    """The spec of a pod with one or none of the things that plugins look at."""
    mine = {"labelSelector": {"matchLabels": {"app": "pod"}}, "topologyKey": ZONE}
    wishes: list[dict[str, Any]] = [
        {},
        {"nodeSelector": {ZONE: f"zone-{number % 3}"}},
        {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
        {"topologySpreadConstraints": [mine | {"maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}]},
        {"topologySpreadConstraints": [mine | {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]},
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [mine]}}},
        {
            "affinity": {
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "podAffinityTerm": mine}]
                }
            }
        },
    ]
    return {"cpu": f"{dice.randrange(50, 900)}m", **dice.choice(wishes)}


@pytest.mark.parametrize("seed", [14, 15, 16])
def test_shadow_agrees_with_kube_scheduler_on_every_pod(
    cluster: RealCluster, start_kubesched: StartKubesched, start_kube_scheduler: StartKubeScheduler, seed: int
) -> None:
    dice = random.Random(seed)
    for number in range(30):
        taints = [{"key": "dedicated", "effect": dice.choice(["NoSchedule", "PreferNoSchedule"])}]
        cluster.add_node(
            f"node-{number}",
            cpu=dice.choice(["2", "4", "8"]),
            labels={ZONE: f"zone-{number % 3}"},
            taints=taints if number % 5 == 0 else [],
        )
    start_kube_scheduler(**EVERY_NODE)
    shadow = start_kubesched("--shadow", **EVERY_NODE)
    shadow.wait_for_log("Watching, and binding nothing")
    assert shadow.log_lines("Starting Kubernetes Scheduler", 'releaseSource="server"')
    pods = 60
    for number in range(pods):
        cluster.add_pod(f"pod-{number}", **some_pod(number, dice))
        # One after the other: the order in which bindings are seen must be that in which they were decided.
        cluster.wait_bound(f"pod-{number}")
        wait_until(lambda number=number: judged(shadow) == number + 1, "a judgement")  # type: ignore[misc]
    shown = json.loads(shadow.get("/debug/shadow").text)
    assert not shown["differing"]
    assert set(shown["counts"]) <= {"same", "tie"}
    assert sum(shown["counts"].values()) == pods


def judged(shadow: Any) -> int:
    return int(shadow.metric("kubesched_shadow_decisions_total"))


def test_rights_that_the_manifests_give_are_enough(
    cluster: RealCluster, plane: ControlPlane, start_kubesched: StartKubesched
) -> None:
    for obj in yaml.safe_load_all(MANIFESTS.read_text()):
        if obj["kind"] in RIGHTS:
            fields = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
            cluster.create(obj["apiVersion"], obj["kind"], obj["metadata"]["name"], metadata=obj["metadata"], **fields)
    path = "/api/v1/namespaces/kube-system/serviceaccounts/kubesched/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = cluster.ask("POST", path, request)["status"]["token"]
    daemon = start_kubesched(
        kubeconfig=plane.kubeconfig(token, "kubesched-account"),
        leaderElection={"resourceName": "kubesched", "resourceNamespace": "kube-system"},
        profiles=[{"schedulerName": "kubesched"}],
    )
    cluster.add_node("node-1", cpu="1")
    cluster.add_pod("low", cpu="800m", priority=1, schedulerName="kubesched")
    cluster.add_pod("of-another", cpu="10m")
    assert cluster.wait_bound("low") == "node-1"
    cluster.add_pod("high", cpu="800m", priority=2, schedulerName="kubesched")
    assert cluster.wait_bound("high") == "node-1"
    assert cluster.node_of("of-another") == ""
    wait_until(lambda: "Scheduled" in cluster.reasons("high"), "an Event", within=30)
    assert daemon.metric("kubesched_shadow_decisions_total") == 0
    assert daemon.stop() == 0
    assert not daemon.log_lines("forbidden")
