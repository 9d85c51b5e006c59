"""Waiting until the claims of a pod have their volumes, which others bring about, or will not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from kubesched.api.pod import Pod
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.api.well_known import BIND_COMPLETED
from kubesched.config import SchedulerConfiguration
from kubesched.plugins.volume_binding.writes import SELECTED_NODE, VolumeWrites
from kubesched.scheduler.writer import WriteError
from kubesched.state.objects import ObjectStore

_LOOK_EVERY = 1.0
_BIND_WITHIN = 600.0


def volume_timeouts(configuration: SchedulerConfiguration) -> dict[str, float]:
    """Seconds that pods of each scheduler name wait for their volumes, as the arguments of VolumeBinding say."""
    found = {}
    for profile in configuration.profiles:
        args = profile.plugin_config.get("VolumeBinding")
        found[profile.scheduler_name] = float(getattr(args, "bind_timeout_seconds", _BIND_WITHIN))
    return found


async def volumes_bound(
    pod: Pod,
    writes: VolumeWrites,
    objects: ObjectStore,
    *,
    timeouts: Mapping[str, float],
    is_wanted: Callable[[], bool] = lambda: True,
) -> None:
    """Return when all claims of the writes are bound; WriteError if that cannot or does not happen.

    `timeouts` are by scheduler name. `objects` are what the watch has shown; `is_wanted` tells whether the pod is still
    there to wait for.
    """
    awaited = [(v.spec.claim_ref.namespace, v.spec.claim_ref.name) for v in writes.volumes if v.spec.claim_ref]
    promised = {(claim.namespace, claim.name) for claim in writes.claims}
    timeout = timeouts.get(pod.spec.scheduler_name, _BIND_WITHIN)
    try:
        async with asyncio.timeout(timeout):
            while not all(_is_bound(writes, key, objects, key in promised) for key in (*awaited, *promised)):
                if not is_wanted():
                    raise WriteError("NotFound", f'pods "{pod.name}" not found')
                await asyncio.sleep(_LOOK_EVERY)
    except TimeoutError:
        raise WriteError(
            "Timeout", f"binding volumes: timed out waiting for the condition after {timeout:g}s"
        ) from None


def _is_bound(writes: VolumeWrites, key: tuple[str, str], objects: ObjectStore, promised: bool) -> bool:
    namespace, name = key
    claim = objects.get(PersistentVolumeClaim, name, namespace)
    if claim is None:
        raise WriteError("NotFound", f'binding volumes: persistentvolumeclaim "{name}" not found')
    if claim.spec.volume_name:
        volume = objects.get(PersistentVolume, claim.spec.volume_name)
        return volume is not None and BIND_COMPLETED in claim.metadata.annotations
    if promised and claim.metadata.annotations.get(SELECTED_NODE) != writes.node_name:
        # The provisioner takes its mark away when it cannot make the volume there: another node must be found.
        text = f'binding volumes: provisioning failed for PVC "{name}"'
        raise WriteError("ProvisioningFailed", text)
    return False
