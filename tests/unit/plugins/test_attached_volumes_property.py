"""However a cluster came to be what it is, the volumes on its nodes are those found by looking at it afresh."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_cluster
from tests.unit.plugins.volume_builders import claim, csi_volume, make, node, pod, storage_class

from kubesched.api.meta import KubeObject
from kubesched.plugins.shared.attached_volumes import AttachedVolumes
from kubesched.plugins.shared.volume_attachments import AttachedVolume
from kubesched.state.cluster import ClusterState

DRIVERS = ("csi.example.com", "other.example.com")
NODES = ("a", "b")
CLAIMS = ("x", "y", "z")
VOLUMES = ("pv-1", "pv-2")


def attachment(name: str, volume: str, on: str) -> KubeObject:
    made: KubeObject = make(
        "VolumeAttachment",
        name,
        spec={"attacher": DRIVERS[0], "nodeName": on, "source": {"persistentVolumeName": volume}},
    )
    return made


def ephemeral(name: str, on: str) -> KubeObject:
    return pod(name, {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, on=on)


def with_disk(name: str, disk: str, on: str) -> KubeObject:
    """Which no claim stands for."""
    return pod(name, {"awsElasticBlockStore": {"volumeID": disk}}, on=on)


objects = st.one_of(
    st.builds(node, st.sampled_from(NODES)),
    st.builds(
        lambda name, claims, on: pod(name, claims=tuple(claims), on=on),
        st.sampled_from(("p", "q", "r")),
        st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=2, unique=True),
        st.sampled_from(NODES),
    ),
    st.builds(ephemeral, st.just("e"), st.sampled_from(NODES)),
    st.builds(with_disk, st.just("d"), st.sampled_from(("vol-1", "vol-2")), st.sampled_from(NODES)),
    st.builds(
        lambda name, volume: claim(name, volume=volume, storageClassName="fast"),
        st.sampled_from((*CLAIMS, "e-v0")),
        st.sampled_from(("", *VOLUMES)),
    ),
    st.builds(csi_volume, st.sampled_from(VOLUMES), driver=st.sampled_from(DRIVERS)),
    st.builds(storage_class, st.just("fast"), provisioner=st.sampled_from(DRIVERS)),
    st.builds(attachment, st.sampled_from(("one", "two")), st.sampled_from(VOLUMES), st.sampled_from(NODES)),
)


def found(state: ClusterState, attached: AttachedVolumes) -> dict[str, object]:
    attached.refresh()
    known = [
        AttachedVolume(driver, handle, key)
        for driver in DRIVERS
        for handle, key in (*((f"handle-{v}", "") for v in VOLUMES), *(("", f"default/{c}") for c in CLAIMS))
    ]
    by_pods = {
        placed.pod.identity: attached.of_pod(placed)
        for row in range(state.nodes.size)
        for placed in state.pods.pods_on(row)
    }
    known += {volume for volumes in by_pods.values() for volume in volumes}
    return {
        "counts": {driver: attached.count(driver).tolist() for driver in DRIVERS},
        "users": {volume: attached.in_use_already([volume]).tolist() for volume in known},
        "by pods": by_pods,
    }


@settings(max_examples=150, deadline=None)
@given(history=st.lists(st.tuples(st.sampled_from(("apply", "apply", "delete")), objects), max_size=20))
def test_what_was_repaired_is_what_is_found_afresh(history: list[tuple[str, KubeObject]]) -> None:
    claims = (claim("x", volume="pv-1"), claim("y", storageClassName="fast"), claim("z", volume="pv-2"))
    pods = (pod("p", claims=("x", "y"), on="a"), pod("q", claims=("z",), on="b"), ephemeral("e", "b"))
    state = make_cluster(node("a"), node("b"), *claims, csi_volume("pv-1"), storage_class("fast"), *pods)
    lived = state.companion(AttachedVolumes)
    for what, obj in history:
        getattr(state, what)(obj)
        assert found(state, lived) == found(state, AttachedVolumes(state))
