"""PersistentVolumes and claims: created for ephemeral volumes, bound, provisioned, protected and reclaimed."""

from __future__ import annotations

from kubesched.admission.storage import choose_class
from kubesched.api.kinds import (
    CSI_NODES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Object,
    Resource,
)
from kubesched.api.quantity import parse_quantity
from kubesched.api.well_known import BIND_COMPLETED, BOUND_BY_CONTROLLER, NO_PROVISIONER, SELECTED_NODE
from kubesched.controllers.volumes import (
    best_volume,
    class_of,
    ephemeral_claim,
    ephemeral_claim_name,
    is_claimed_by,
    provisioned_volume,
)
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.api.conditions import is_active, is_finished, is_terminating
from kubesched_sandbox.reconcilers.events import Recorder
from kubesched_sandbox.reconcilers.ownership import Grouped
from kubesched_sandbox.reconcilers.reconciler import MANAGER, Key, KeyedReconciler, is_controlled_by, key_of

_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
_CLAIM_PROTECTION, _VOLUME_PROTECTION = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"


def claims_of(pod: Object) -> tuple[str, ...]:
    """The claims that a pod uses, as namespace/name."""
    namespace, found = pod["metadata"]["namespace"], []
    for volume in pod["spec"].get("volumes") or ():
        if source := volume.get("persistentVolumeClaim"):
            found.append(f"{namespace}/{source['claimName']}")
        elif volume.get("ephemeral"):
            found.append(f"{namespace}/{ephemeral_claim_name(pod, volume)}")
    return tuple(found)


class PersistentVolumes(KeyedReconciler):
    """Binds, provisions, protects and reclaims. Keys of claims have a namespace, those of volumes have none."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.watches = (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES)
        self._users = Grouped(api, PODS, claims_of)
        self._by_class = Grouped(api, PERSISTENT_VOLUMES, lambda volume: (class_of(volume),))
        self._recorder = Recorder(api, "persistentvolume-controller")
        self._pending: dict[str, set[Key]] = {}
        """Claims that wait for a volume, by class."""

    def observe(self, event: ApiEvent) -> None:
        match event.resource.path:
            case PERSISTENT_VOLUME_CLAIMS.path:
                self.queue.add(key_of(event.object))
                if volume := (event.object["spec"].get("volumeName")):
                    self.queue.add(("", volume))
            case PERSISTENT_VOLUMES.path:
                self.queue.add(("", event.object["metadata"]["name"]))
                if reference := event.object["spec"].get("claimRef"):
                    self.queue.add((reference["namespace"], reference["name"]))
                elif event.type != "DELETED":
                    self._wake(class_of(event.object))
            case STORAGE_CLASSES.path:
                self._wake(event.object["metadata"]["name"])
                self._wake("")  # it may be the default one now
            case _:
                # A pod that ends or goes may be the last user of a claim that is to go.
                if event.type == "DELETED" or is_finished(event.object):
                    for claim in claims_of(event.object):
                        namespace, _, name = claim.partition("/")
                        self.queue.add((namespace, name))

    def _wake(self, storage_class: str) -> None:
        for key in self._pending.get(storage_class, ()):
            self.queue.add(key)

    def sync(self, key: Key, now: float) -> float | None:
        if not key[0]:
            self._sync_volume(key[1])
            return None
        claim = self.api.find(PERSISTENT_VOLUME_CLAIMS, *key)
        if claim is None:
            for waiting in self._pending.values():
                waiting.discard(key)
            return None
        claim = self._protect_claim(claim)
        if claim is not None and not is_terminating(claim):
            self._sync_claim(claim)
        return None

    # -- claims -------------------------------------------------------------------------------------------------------

    def _protect_claim(self, claim: Object) -> Object | None:
        """Protect a claim with a finalizer while a pod uses it. None if removing the finalizer removed the claim."""
        metadata = claim["metadata"]
        finalizers = metadata.get("finalizers") or []
        if not is_terminating(claim):
            if _CLAIM_PROTECTION in finalizers:
                return claim
            return self.write_metadata(PERSISTENT_VOLUME_CLAIMS, claim, finalizers=[*finalizers, _CLAIM_PROTECTION])
        users = self._users.of("/".join(key_of(claim)))
        if _CLAIM_PROTECTION in finalizers and not any(not is_finished(pod) for pod in users):
            self.drop_finalizer(PERSISTENT_VOLUME_CLAIMS, claim, _CLAIM_PROTECTION)
            return None
        return claim

    def _sync_claim(self, claim: Object) -> None:
        self._pending.get(class_of(claim), set()).discard(key_of(claim))
        if name := claim["spec"].get("volumeName"):
            self._check_bound(claim, self.api.find(PERSISTENT_VOLUMES, "", name))
            return
        claim = self._with_default_class(claim)
        volume = self._find_volume(claim)
        if volume is not None:
            self._bind(claim, volume)
            return
        self._pending.setdefault(class_of(claim), set()).add(key_of(claim))
        self._provision(claim)

    def _with_default_class(self, claim: Object) -> Object:
        """A claim that was there before any default class gets the one that came later."""
        chosen = {**claim, "spec": dict(claim["spec"])}
        choose_class(chosen, self.api)
        if chosen["spec"] == claim["spec"]:
            return claim
        return self.api.update(PERSISTENT_VOLUME_CLAIMS, *key_of(claim), chosen, manager=MANAGER)

    def _check_bound(self, claim: Object, volume: Object | None) -> None:
        """A claim that names its volume is bound once the volume agrees, and lost when the volume is."""
        was_bound = BIND_COMPLETED in (claim["metadata"].get("annotations") or {})
        if volume is None:
            if was_bound:
                lost = {**(claim.get("status") or {}), "phase": "Lost"}
                message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
                self._recorder.warning(PERSISTENT_VOLUME_CLAIMS, claim, "ClaimLost", message)
                self.write_status(PERSISTENT_VOLUME_CLAIMS, claim, lost)
        elif "claimRef" not in volume["spec"] or is_claimed_by(volume, claim):
            self._bind(claim, self._grown(claim, volume))

    def _grown(self, claim: Object, volume: Object) -> Object:
        """The volume of a claim that asks for more now, which the API refuses unless its class allows it."""
        storage = claim["spec"]["resources"]["requests"]["storage"]
        is_provisioned = _PROVISIONER in (claim["metadata"].get("annotations") or {})
        has = parse_quantity(volume["spec"]["capacity"]["storage"])
        if not is_provisioned or not parse_quantity(storage).exceeds(has):
            return volume
        larger = {**volume, "spec": {**volume["spec"], "capacity": {"storage": storage}}}
        return self.api.update(PERSISTENT_VOLUMES, *key_of(volume), larger, manager=MANAGER)

    def _find_volume(self, claim: Object) -> Object | None:
        volumes = [volume for volume in self._by_class.of(class_of(claim)) if not is_terminating(volume)]
        claimed = next((v for v in volumes if "claimRef" in v["spec"] and is_claimed_by(v, claim)), None)
        if claimed is not None:
            return claimed
        if self._waits_for_consumer(claim):
            # The scheduler chooses among existing volumes and says so on the volume.
            return None
        return best_volume(claim, volumes)

    def _waits_for_consumer(self, claim: Object) -> bool:
        storage_class = self.api.find(STORAGE_CLASSES, "", class_of(claim))
        return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"

    def _bind(self, claim: Object, volume: Object) -> None:
        """Each names the other; then both are bound."""
        metadata = claim["metadata"]
        if volume["spec"].get("claimRef", {}).get("uid") != metadata["uid"]:
            preset = "claimRef" in volume["spec"]
            reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": metadata["namespace"]}
            reference |= {"name": metadata["name"], "uid": metadata["uid"]}
            volume = {**volume, "spec": {**volume["spec"], "claimRef": reference}}
            volume = self._annotate(PERSISTENT_VOLUMES, volume, {} if preset else {BOUND_BY_CONTROLLER: "yes"})
        if (volume.get("status") or {}).get("phase") != "Bound":
            volume = self.write_status(PERSISTENT_VOLUMES, volume, {"phase": "Bound"})
        own = {BIND_COMPLETED: "yes"}
        if not claim["spec"].get("volumeName"):
            own[BOUND_BY_CONTROLLER] = "yes"
            claim = {**claim, "spec": {**claim["spec"], "volumeName": volume["metadata"]["name"]}}
        claim = self._annotate(PERSISTENT_VOLUME_CLAIMS, claim, own)
        status = {
            "phase": "Bound",
            "accessModes": volume["spec"]["accessModes"],
            "capacity": {"storage": volume["spec"]["capacity"]["storage"]},
        }
        self.write_status(PERSISTENT_VOLUME_CLAIMS, claim, {**(claim.get("status") or {}), **status})

    # -- provisioning -------------------------------------------------------------------------------------------------

    def _provision(self, claim: Object) -> None:
        """Make a volume for the claim, where its class has a provisioner; otherwise say what it waits for."""
        name = class_of(claim)
        storage_class = self.api.find(STORAGE_CLASSES, "", name) if name else None
        if storage_class is None:
            message = "no persistent volumes available for this claim and no storage class is set"
            if name:
                message = f'storageclass.storage.k8s.io "{name}" not found'
            reason = "ProvisioningFailed" if name else "FailedBinding"
            self._record(claim, reason, message, warn=bool(name))
            return
        node_name = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        if self._waits_for_consumer(claim) and not node_name:
            message = "waiting for first consumer to be created before binding"
            self._record(claim, "WaitForFirstConsumer", message)
            return
        provisioner = storage_class["provisioner"]
        if provisioner == NO_PROVISIONER:
            self._record(claim, "FailedBinding", "no persistent volumes available for this claim")
            return
        node = self.api.find(NODES, "", node_name) if node_name else None
        driver = self.api.find(CSI_NODES, "", node_name) if node_name else None
        volume = provisioned_volume(claim, storage_class, node, driver)
        if volume is None:
            # The node is not one that the class allows: the scheduler is to choose again.
            message = (
                f'failed to provision volume with StorageClass "{name}": node "{node_name}" is not in the topology'
            )
            self._recorder.warning(PERSISTENT_VOLUME_CLAIMS, claim, "ProvisioningFailed", f"{message} of the class")
            self._unselect(claim)
            return
        self._record(claim, "ExternalProvisioning", _waiting(provisioner))
        claim = self._annotate(PERSISTENT_VOLUME_CLAIMS, claim, {_PROVISIONER: provisioner})
        if self.api.find(PERSISTENT_VOLUMES, "", volume["metadata"]["name"]) is None:
            volume = self.api.create(PERSISTENT_VOLUMES, "", volume, manager=MANAGER)
            message = f"Successfully provisioned volume {volume['metadata']['name']}"
            self._recorder.normal(PERSISTENT_VOLUME_CLAIMS, claim, "ProvisioningSucceeded", message)

    def _record(self, claim: Object, reason: str, message: str, *, warn: bool = False) -> None:
        record = self._recorder.warning if warn else self._recorder.normal
        record(PERSISTENT_VOLUME_CLAIMS, claim, reason, message)

    def _unselect(self, claim: Object) -> None:
        annotations = dict(claim["metadata"].get("annotations") or {})
        annotations.pop(SELECTED_NODE, None)
        self.write_metadata(PERSISTENT_VOLUME_CLAIMS, claim, annotations=annotations)

    # -- volumes ------------------------------------------------------------------------------------------------------

    def _sync_volume(self, name: str) -> None:
        volume = self.api.find(PERSISTENT_VOLUMES, "", name)
        if volume is None:
            return
        finalizers = volume["metadata"].get("finalizers") or []
        reference = volume["spec"].get("claimRef")
        claim = None
        if reference is not None:
            claim = self.api.find(PERSISTENT_VOLUME_CLAIMS, reference["namespace"], reference["name"])
            if claim is not None and reference.get("uid") and claim["metadata"]["uid"] != reference["uid"]:
                claim = None
        if is_terminating(volume):
            if claim is None and _VOLUME_PROTECTION in finalizers:
                self.drop_finalizer(PERSISTENT_VOLUMES, volume, _VOLUME_PROTECTION)
            return
        if _VOLUME_PROTECTION not in finalizers:
            volume = self.write_metadata(PERSISTENT_VOLUMES, volume, finalizers=[*finalizers, _VOLUME_PROTECTION])
        if reference is None or (claim is None and not reference.get("uid")):
            self._set_phase(volume, "Available")
        elif claim is None:
            self._reclaim(volume)
        elif claim["spec"].get("volumeName") == name:
            self._set_phase(volume, "Bound")
        else:
            self.queue.add(key_of(claim))

    def _reclaim(self, volume: Object) -> None:
        self._set_phase(volume, "Released")
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self.api.delete(PERSISTENT_VOLUMES, "", volume["metadata"]["name"], uid=volume["metadata"]["uid"])

    def _set_phase(self, volume: Object, phase: str) -> None:
        status = volume.get("status") or {}
        if status.get("phase") != phase:
            changed = {**status, "phase": phase, "lastPhaseTransitionTime": self.api.stamps.now()}
            self.write_status(PERSISTENT_VOLUMES, volume, changed)

    # -- writing ------------------------------------------------------------------------------------------------------

    def _annotate(self, resource: Resource, obj: Object, annotations: dict[str, str]) -> Object:
        return self.write_metadata(
            resource, obj, annotations={**(obj["metadata"].get("annotations") or {}), **annotations}
        )


def _waiting(provisioner: str) -> str:
    return (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
        "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
        "correctly registered."
    )


class EphemeralVolumes(KeyedReconciler):
    """Creates the claims of ephemeral volumes."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.watches = (PODS,)
        self._recorder = Recorder(api, "ephemeral_volume")

    def observe(self, event: ApiEvent) -> None:
        if event.type == "ADDED" and any("ephemeral" in volume for volume in event.object["spec"].get("volumes") or ()):
            self.queue.add(key_of(event.object))

    def sync(self, key: Key, now: float) -> float | None:
        pod = self.api.find(PODS, *key)
        for volume in pod["spec"].get("volumes") or () if pod is not None and is_active(pod) else ():
            if "ephemeral" in volume and pod is not None:
                self._ensure(pod, volume)
        return None

    def _ensure(self, pod: Object, volume: Object) -> None:
        namespace, name = pod["metadata"]["namespace"], ephemeral_claim_name(pod, volume)
        claim = self.api.find(PERSISTENT_VOLUME_CLAIMS, namespace, name)
        if claim is None:
            self.api.create(PERSISTENT_VOLUME_CLAIMS, namespace, ephemeral_claim(pod, volume), manager=MANAGER)
        elif not is_controlled_by(claim, pod):
            message = f"ephemeral volume {volume['name']}: PVC {namespace}/{name} was not created for pod"
            message = f"{message} {namespace}/{pod['metadata']['name']} (pod is not owner)"
            self._recorder.warning(PODS, pod, "PVCNotOwned", message)
