from __future__ import annotations

from typing import Any

import pytest
from tests.builders import make_cluster
from tests.unit.plugins.volume_builders import ask, claim, make, node, pod, rejections

from kubesched.framework.cycle import Cycle
from kubesched.framework.status import SKIP, unresolvable
from kubesched.plugins.volume_restrictions import CLAIM_IN_USE, DISK_TAKEN, VolumeRestrictions
from kubesched.state.pods import PlacedPod

GCE = "gcePersistentDisk"


def rbd(*monitors: str, image: str = "img") -> dict[str, Any]:
    return {"rbd": {"monitors": list(monitors), "pool": "rbd", "image": image}}


def test_pod_without_volumes_is_of_no_concern() -> None:
    assert ask(VolumeRestrictions(), make_cluster(node("a")), pod()) is SKIP


def test_missing_claim_is_reported_before_any_node_is_looked_at() -> None:
    answer = ask(VolumeRestrictions(), make_cluster(node("a")), pod(claims=("data",)))
    assert answer == unresolvable('persistentvolumeclaim "data" not found')


@pytest.mark.parametrize(
    ("mine", "theirs", "collide"),
    [
        ({GCE: {"pdName": "d"}}, {GCE: {"pdName": "d"}}, True),
        ({GCE: {"pdName": "d"}}, {GCE: {"pdName": "e"}}, False),
        ({GCE: {"pdName": "d", "readOnly": True}}, {GCE: {"pdName": "d", "readOnly": True}}, False),
        ({GCE: {"pdName": "d", "readOnly": True}}, {GCE: {"pdName": "d"}}, True),
        (
            {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}},
            {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}},
            True,
        ),
        ({"iscsi": {"iqn": "i", "lun": 1}}, {"iscsi": {"iqn": "i", "lun": 2}}, True),
        (rbd("m1", "m2"), rbd("m2", "m3"), True),
        (rbd("m1"), rbd("m2"), False),
        (rbd("m1"), rbd("m1", image="other"), False),
        ({GCE: {"pdName": "d"}}, {"awsElasticBlockStore": {"volumeID": "d"}}, False),
    ],
)
def test_disk_is_rejected_where_it_is_mounted_in_a_way_that_excludes_others(
    mine: dict[str, Any], theirs: dict[str, Any], collide: bool
) -> None:
    state = make_cluster(node("a"), node("b"), pod("other", theirs, on="a"))
    assert ask(VolumeRestrictions(), state, pod("p", mine)) == ({"a": DISK_TAKEN.reasons} if collide else {})


def test_claim_for_one_pod_in_use_anywhere_rejects_all_nodes() -> None:
    one_pod = claim("data", accessModes=["ReadWriteOncePod"])
    state = make_cluster(node("a"), node("b"), one_pod, pod("user", claims=("data",), on="a"))
    assert ask(VolumeRestrictions(), state, pod("p", claims=("data",))) == {
        "a": CLAIM_IN_USE.reasons,
        "b": CLAIM_IN_USE.reasons,
    }


def test_claim_for_one_pod_that_nobody_uses_is_of_no_concern() -> None:
    state = make_cluster(node("a"), claim("data", accessModes=["ReadWriteOncePod"]))
    assert ask(VolumeRestrictions(), state, pod("p", claims=("data",))) is SKIP


def test_preempting_the_user_of_a_claim_frees_it_and_putting_it_back_takes_it_again() -> None:
    user = pod("user", claims=("data",), on="a")
    state = make_cluster(node("a"), claim("data", accessModes=["ReadWriteOncePod"]), user)
    plugin, cycle = VolumeRestrictions(), Cycle(pod("p", claims=("data",)), state)
    assert plugin.pre_filter(cycle) is None
    placed = state.placed(user)
    assert placed is not None
    plugin.remove_pod(cycle, placed, placed.row)
    assert rejections(plugin, cycle) == {}
    plugin.add_pod(cycle, placed, placed.row)
    assert rejections(plugin, cycle) == {"a": CLAIM_IN_USE.reasons}


def test_claims_of_other_namespaces_with_the_same_name_count_when_pods_are_added() -> None:
    user = pod("user", claims=("data",), on="a")
    state = make_cluster(node("a"), claim("data", accessModes=["ReadWriteOncePod"]), user)
    elsewhere = make("Pod", "x", namespace="other", spec={"volumes": list(_named("data"))})
    plugin, cycle = VolumeRestrictions(), Cycle(pod("p", claims=("data",)), state)
    assert plugin.pre_filter(cycle) is None
    plugin.remove_pod(cycle, PlacedPod(elsewhere, state.facts(elsewhere), 0, assumed=True), 0)
    assert rejections(plugin, cycle) == {}


def _named(*claims: str) -> list[dict[str, Any]]:
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
