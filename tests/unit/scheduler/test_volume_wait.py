"""How long a pod waits for its volumes, and what ends the wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests import virtual_time

from kubesched import config
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec
from kubesched.plugins.volume_binding.writes import VolumeWrites, made_for
from kubesched.scheduler.volume_wait import volume_timeouts, volumes_bound
from kubesched.scheduler.writer import WriteError
from kubesched.state.objects import ObjectStore
from kubesched.testing import make_pod

POD = make_pod("p").build()
CLAIM = PersistentVolumeClaim(metadata=ObjectMeta(name="data", namespace="default", uid="1"))
ASKED = made_for(CLAIM, "n1")
BOUND = PersistentVolumeClaim(
    metadata=ObjectMeta(name="data", namespace="default", annotations={"pv.kubernetes.io/bind-completed": "yes"}),
    spec=PersistentVolumeClaimSpec(volume_name="disk"),
)
DISK = PersistentVolume(metadata=ObjectMeta(name="disk"))


def waited(
    *later: KubeObject, objects: tuple[KubeObject, ...] = (ASKED,), is_wanted: Callable[[], bool] = lambda: True
) -> float:
    """Seconds until the volumes were bound; `later` is what the watch shows after five."""

    async def story() -> float:
        store = ObjectStore()
        for obj in objects:
            store.put(obj)

        def show() -> None:
            for obj in later:
                store.put(obj)

        asyncio.get_running_loop().call_later(5, show)
        writes = VolumeWrites("n1", claims=(ASKED,))
        await volumes_bound(POD, writes, store, timeouts={"default-scheduler": 30.0}, is_wanted=is_wanted)
        return virtual_time.now()

    return virtual_time.run(story())


def test_pod_waits_until_its_claim_is_bound() -> None:
    assert 5 <= waited(BOUND, DISK) <= 7


def test_claim_that_is_bound_already_is_not_waited_for() -> None:
    assert waited(objects=(BOUND, DISK)) < 0.1


def test_wait_ends_after_the_time_of_the_profile() -> None:
    with pytest.raises(WriteError, match="timed out waiting for the condition after 30s"):
        waited()


def test_provisioner_that_takes_its_mark_away_ends_the_wait() -> None:
    with pytest.raises(WriteError, match='provisioning failed for PVC "data"'):
        waited(CLAIM)


def test_claim_that_is_gone_ends_the_wait() -> None:
    with pytest.raises(WriteError, match='persistentvolumeclaim "data" not found'):
        waited(objects=())


def test_pod_that_is_gone_is_not_waited_for() -> None:
    with pytest.raises(WriteError, match='pods "p" not found'):
        waited(is_wanted=lambda: False)


def test_times_are_those_of_the_arguments_of_each_profile() -> None:
    args = {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 60}}
    configuration = config.from_plain(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "quick", "pluginConfig": [args]}, {"schedulerName": "plain"}],
        }
    )
    assert volume_timeouts(configuration) == {"quick": 60.0, "plain": 600.0}
