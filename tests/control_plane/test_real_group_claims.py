"""Devices and volumes of pod groups, with the real controllers that make claims from templates and bind volumes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from bench.peer.control_plane import ASSETS, ControlPlane
from tests.control_plane.conftest import CONTROLLERS, StartKubesched
from tests.control_plane.group_plane import API, FLAG, GATES, RealStage, local_volumes, volume_claims
from tests.control_plane.real_cluster import RealCluster
from tests.group_scenarios.stage import HOSTNAME
from tests.integration.live_cluster import wait_until

from kubesched.api.kinds import PODS, RESOURCE_CLAIMS

DRIVER = "gpu.example.com"
WANTED = {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if not os.environ.get(ASSETS):
        pytest.skip(f"{ASSETS} is not set")
    folder = tmp_path_factory.mktemp("group-claims")
    with ControlPlane(folder, gates=GATES, served=(API,), controllers=CONTROLLERS) as plane:
        yield plane


@pytest.fixture
def stage(cluster: RealCluster, start_kubesched: StartKubesched) -> RealStage:
    """Two nodes, the first of which has two devices."""
    start_kubesched(FLAG)
    stage = RealStage(cluster, API)
    stage.nodes(2, cpu="64")
    spec = {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}
    cluster.create("resource.k8s.io/v1", "DeviceClass", "gpu", spec=spec)
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 1}
    offered = {"driver": DRIVER, "nodeName": "n0", "pool": pool, "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}]}
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "n0", spec=offered)
    return stage


def add_group(stage: RealStage, policy: dict[str, Any], **spec: Any) -> None:
    stage.create(API, "PodGroup", {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": policy, **spec}})


def reserved(cluster: RealCluster, name: str) -> list[tuple[str, str]]:
    status = cluster.get(RESOURCE_CLAIMS, name).get("status", {})
    return [(each["resource"], each["name"]) for each in status.get("reservedFor", [])]


@pytest.mark.parametrize(
    ("count", "policy"),
    [
        (2, {"gang": {"minCount": 2}}),
        (20, {"gang": {"minCount": 20}}),
        (5, {"gang": {"minCount": 2}}),
        (20, {"basic": {}}),
    ],
)
def test_claim_that_all_pods_name_is_allocated_once_and_all_are_scheduled(
    count: int, policy: dict[str, Any], stage: RealStage
) -> None:
    cluster = stage.cluster
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "shared", spec=WANTED)
    add_group(stage, policy)
    stage.members("g", count, cpu="1", resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}])
    stage.settles(g=count)
    assert set(stage.where("g").values()) == {"n0"}
    assert sorted(reserved(cluster, "shared")) == sorted(("pods", f"g-{i}") for i in range(count))


def test_claim_of_the_group_is_reserved_for_the_group_and_later_pods_use_it(stage: RealStage) -> None:
    cluster = stage.cluster
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "shared", spec=WANTED)
    entry = {"name": "gpu", "resourceClaimName": "shared"}
    add_group(stage, {"gang": {"minCount": 20}}, resourceClaims=[entry])
    stage.members("g", 20, resourceClaims=[entry])
    stage.settles(g=20)
    assert reserved(cluster, "shared") == [("podgroups", "g")]
    stage.members("g", 1, first=20, resourceClaims=[entry])
    stage.settles(g=21)
    for i in range(5):
        cluster.delete(PODS, f"g-{i}")
    assert reserved(cluster, "shared") == [("podgroups", "g")]


def test_claim_that_the_controller_makes_from_a_template_of_the_group_is_shared_by_its_pods(stage: RealStage) -> None:
    cluster = stage.cluster
    cluster.create("resource.k8s.io/v1", "ResourceClaimTemplate", "one-gpu", spec={"spec": WANTED})
    entry = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}
    own = {"name": "own", "resourceClaimTemplateName": "one-gpu"}
    add_group(stage, {"gang": {"minCount": 4}}, resourceClaims=[entry])
    stage.members("g", 3, resourceClaims=[entry])
    stage.members("g", 1, first=3, resourceClaims=[entry, own])
    stage.settles(g=4)
    claims = {each["metadata"]["name"]: each for each in cluster.list(RESOURCE_CLAIMS)}
    owners = {each["metadata"]["ownerReferences"][0]["kind"]: name for name, each in claims.items()}
    assert sorted(owners) == ["Pod", "PodGroup"]
    assert reserved(cluster, owners["PodGroup"]) == [("podgroups", "g")]
    assert reserved(cluster, owners["Pod"]) == [("pods", "g-3")]


def test_gang_of_which_not_all_can_have_a_device_takes_none(stage: RealStage) -> None:
    cluster = stage.cluster
    cluster.create("resource.k8s.io/v1", "ResourceClaimTemplate", "one-gpu", spec={"spec": WANTED})
    stage.group("g", 3)
    stage.members("g", 3, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}])
    stage.waits("g-0", g=0)
    assert not [each for each in cluster.list(RESOURCE_CLAIMS) if each.get("status", {}).get("allocation")]
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    more = {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": [{"name": "gpu-2"}]}
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "n1", spec=more)
    stage.settles(g=3)


# -- volumes -----------------------------------------------------------------------------------------------------------


def uses(name: str) -> list[dict[str, Any]]:
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def test_gang_whose_volumes_wait_for_its_pods_goes_where_each_can_have_one(stage: RealStage) -> None:
    cluster = stage.cluster
    local_volumes(cluster, v0="n0", v1="n1")
    volume_claims(cluster, "c0", "c1", "c2")
    stage.group("g", 3)
    for i in range(3):
        stage.members("g", 1, first=i, volumes=uses(f"c{i}"))
    stage.waits("g-0", g=0)
    cluster.create(
        "v1",
        "PersistentVolume",
        "v2",
        spec={
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/data"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["n1"]}]}]
                }
            },
        },
    )
    stage.settles(g=3)
    assert sorted(stage.where("g").values()) == ["n0", "n1", "n1"]


def test_pods_of_a_gang_that_share_a_volume_follow_it_to_its_node(stage: RealStage) -> None:
    """The first binds the claim; the others are decided with a claim that is not bound yet, to the same volume."""
    local_volumes(stage.cluster, v0="n1")
    volume_claims(stage.cluster, "shared")
    stage.group("g", 3)
    stage.members("g", 3, volumes=uses("shared"))
    stage.settles(g=3)
    assert set(stage.where("g").values()) == {"n1"}
    wait_until(lambda: all(pod["spec"].get("nodeName") for pod in stage.pods()), "all bound", within=10)
