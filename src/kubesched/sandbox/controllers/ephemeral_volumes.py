"""Claims for the ephemeral volumes of pods: made from the template in the pod, owned by it."""

from __future__ import annotations

from kubesched.api.kinds import PERSISTENT_VOLUME_CLAIMS, PODS, Object
from kubesched.sandbox.api import Api, Event
from kubesched.sandbox.controllers.conditions import is_active
from kubesched.sandbox.controllers.controller import MANAGER, KeyedController, key_of
from kubesched.sandbox.controllers.ownership import is_controlled_by, owner_reference
from kubesched.sandbox.controllers.recorder import Recorder
from kubesched.sandbox.controllers.work_queue import Key


class EphemeralVolumes(KeyedController):
    """Creates the claims of ephemeral volumes."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.watches = (PODS,)
        self._recorder = Recorder(api, "ephemeral_volume")

    def observe(self, event: Event) -> None:
        if event.type == "ADDED" and any("ephemeral" in each for each in event.object["spec"].get("volumes") or ()):
            self.queue.add(key_of(event.object))

    def sync(self, key: Key, now: float) -> float | None:
        pod = self.api.find(PODS, *key)
        for volume in pod["spec"].get("volumes") or () if pod is not None and is_active(pod) else ():
            if "ephemeral" in volume and pod is not None:
                self._ensure(pod, volume)
        return None

    def _ensure(self, pod: Object, volume: Object) -> None:
        namespace, name = pod["metadata"]["namespace"], f"{pod['metadata']['name']}-{volume['name']}"
        claim = self.api.find(PERSISTENT_VOLUME_CLAIMS, namespace, name)
        if claim is None:
            template = volume["ephemeral"]["volumeClaimTemplate"]
            metadata = {**(template.get("metadata") or {}), "name": name}
            metadata["ownerReferences"] = [owner_reference(PODS, pod)]
            made = {"metadata": metadata, "spec": template["spec"]}
            self.api.create(PERSISTENT_VOLUME_CLAIMS, namespace, made, manager=MANAGER)
        elif not is_controlled_by(claim, pod):
            told = f"ephemeral volume {volume['name']}: PVC {namespace}/{name} was not created for pod"
            told = f"{told} {namespace}/{pod['metadata']['name']} (pod is not owner)"
            self._recorder.warning(PODS, pod, "PVCNotOwned", told)
