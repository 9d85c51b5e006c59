from __future__ import annotations

import pytest
from tests.builders import make_cluster
from tests.unit.plugins.volume_builders import ask, claim, make, node, pod, rejections, storage_class, volume

from kubesched.framework.cycle import Cycle
from kubesched.framework.status import SKIP, unresolvable
from kubesched.plugins.volume_zone import ELSEWHERE, VolumeZone
from kubesched.state.cluster import ClusterState
from kubesched.testing import ZONE

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
POD = pod("p", claims=("data",))


def zonal(volume_labels: dict[str, str], *nodes: dict[str, str]) -> ClusterState:
    named = [node(f"n{i}", labels) for i, labels in enumerate(nodes)]
    return make_cluster(*named, claim("data", volume="v"), volume("v", labels=volume_labels))


def test_volume_can_be_used_only_in_its_zone() -> None:
    state = zonal({ZONE: "a"}, {ZONE: "a"}, {ZONE: "b"})
    assert ask(VolumeZone(), state, POD) == {"n1": ELSEWHERE.reasons}


def test_volume_in_several_zones_can_be_used_in_each() -> None:
    state = zonal({ZONE: "a__b"}, {ZONE: "a"}, {ZONE: "b"}, {ZONE: "c"})
    assert ask(VolumeZone(), state, POD) == {"n2": ELSEWHERE.reasons}


def test_node_without_zone_or_region_takes_any_volume() -> None:
    region = "topology.kubernetes.io/region"
    state = zonal({ZONE: "a"}, {}, {region: "r"})
    assert ask(VolumeZone(), state, POD) == {"n1": ELSEWHERE.reasons}


def test_old_label_of_a_volume_matches_new_label_of_a_node_but_not_the_reverse() -> None:
    assert ask(VolumeZone(), zonal({BETA_ZONE: "a"}, {ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}), POD) == {
        "n1": ELSEWHERE.reasons
    }
    assert ask(VolumeZone(), zonal({ZONE: "a"}, {BETA_ZONE: "a"}), POD) == {"n0": ELSEWHERE.reasons}


def test_list_of_zones_with_an_empty_entry_is_ignored() -> None:
    assert ask(VolumeZone(), zonal({ZONE: "a____b"}, {ZONE: "c"}), POD) is SKIP


def test_volume_without_labels_and_pod_without_claims_are_of_no_concern() -> None:
    assert ask(VolumeZone(), zonal({}, {ZONE: "a"}), POD) is SKIP
    assert ask(VolumeZone(), zonal({}, {ZONE: "a"}), pod()) is SKIP


def test_claim_that_waits_for_its_first_consumer_is_of_no_concern() -> None:
    state = make_cluster(node("a"), claim("data", storageClassName="slow"), storage_class("slow"))
    assert ask(VolumeZone(), state, POD) is SKIP


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([], 'persistentvolumeclaim "data" not found'),
        ([claim("data", volume="v")], 'persistentvolume "v" not found'),
        ([claim("data")], "PersistentVolumeClaim had no pv name and storageClass name"),
        ([claim("data", storageClassName="c")], 'storageclass.storage.k8s.io "c" not found'),
        ([claim("data", storageClassName="c"), storage_class("c", waits=False)], "PersistentVolume had no name"),
        (
            [claim("data", storageClassName="c"), make("StorageClass", "c", provisioner="x")],
            'VolumeBindingMode not set for StorageClass "c"',
        ),
    ],
)
def test_claim_without_a_usable_volume_rejects_the_pod(objects: list[object], reason: str) -> None:
    state = make_cluster(node("a"), *objects)  # type: ignore[arg-type]
    assert ask(VolumeZone(), state, POD) == unresolvable(reason)


def test_filter_works_without_pre_filter() -> None:
    assert rejections(VolumeZone(), Cycle(POD, zonal({ZONE: "a"}, {ZONE: "b"}))) == {"n0": ELSEWHERE.reasons}
