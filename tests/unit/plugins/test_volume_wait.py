"""How long a pod waits for its volumes, and what ends the wait."""

from __future__ import annotations

import asyncio

import pytest
from tests import virtual_time

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec
from kubesched.api.well_known import BIND_COMPLETED
from kubesched.config.args import VolumeBindingArgs
from kubesched.framework.client import ClientError, ClusterClient, Json
from kubesched.plugins.volume_binding import VolumeBinding
from kubesched.plugins.volume_binding.writes import VolumeWrites, bind_volumes, made_for
from kubesched.scheduler.handle import ObjectWaiter
from kubesched.state.cluster import ClusterState
from kubesched.testing import make_node, make_pod

POD = make_pod("p").build()


def claim(version: str, *, volume: str = "", **annotations: str) -> PersistentVolumeClaim:
    meta = ObjectMeta(name="data", namespace="default", uid="1", resource_version=version, annotations=annotations)
    return PersistentVolumeClaim(metadata=meta, spec=PersistentVolumeClaimSpec(volume_name=volume))


CLAIM = claim("1")
ASKED = made_for(CLAIM, "n1")
MARKED = made_for(claim("2"), "n1")
UNMARKED = claim("3")
BOUND = claim("4", volume="disk", **{BIND_COMPLETED: "yes"})
DISK = PersistentVolume(metadata=ObjectMeta(name="disk"))


class Patched(ClusterClient):
    """Takes patches, and waits for what the test shows."""

    def __init__(self, waiter: ObjectWaiter) -> None:
        self.wait = waiter.wait  # type: ignore[method-assign]

    async def patch(self, kind: str, name: str, patch: Json, *, namespace: str = "", subresource: str = "") -> Json:
        return patch


def waited(*later: KubeObject | None, objects: tuple[KubeObject, ...] = (MARKED,), within: float = 30.0) -> float:
    """Seconds until the volumes were bound; `later` is what the watch shows after five, None that the pod is gone."""

    async def story() -> float:
        state, waiter = ClusterState(), ObjectWaiter()
        for obj in (make_node("n1").build(), *objects):
            state.apply(obj)
        state.assume(POD, "n1")

        def show() -> None:
            for obj in later:
                if obj is None:
                    state.forget(POD)
                else:
                    state.apply(obj)
                waiter.handled(Change(old=obj or POD), (), 0.0)

        asyncio.get_running_loop().call_later(5, show)
        await bind_volumes(Patched(waiter), POD, VolumeWrites("n1", claims=(ASKED,)), state, within=within)
        return virtual_time.now()

    return virtual_time.run(story())


def test_pod_waits_until_its_claim_is_bound() -> None:
    assert 5 <= waited(DISK, BOUND) <= 7


def test_claim_that_the_watch_has_yet_to_show_is_waited_for() -> None:
    assert 5 <= waited(DISK, BOUND, objects=(CLAIM,)) <= 7


def test_claim_that_is_bound_already_is_not_waited_for() -> None:
    assert waited(objects=(BOUND, DISK)) < 0.1


def test_wait_ends_after_the_time_of_the_profile() -> None:
    with pytest.raises(ClientError, match="timed out waiting for the condition after 30s"):
        waited()


def test_provisioner_that_takes_its_mark_away_ends_the_wait() -> None:
    with pytest.raises(ClientError, match='provisioning failed for PVC "data"'):
        waited(UNMARKED)


def test_claim_that_is_gone_ends_the_wait() -> None:
    with pytest.raises(ClientError, match='persistentvolumeclaim "data" not found'):
        waited(objects=())


def test_pod_that_is_gone_is_not_waited_for() -> None:
    with pytest.raises(ClientError, match='pod does not exist any more: pod "p" not found'):
        waited(None)


@pytest.mark.parametrize(("args", "seconds"), [(VolumeBindingArgs(bind_timeout_seconds=60), 60), (None, 600)])
def test_time_is_that_of_the_arguments(args: VolumeBindingArgs | None, seconds: float) -> None:
    assert VolumeBinding(args).bind_within == seconds
