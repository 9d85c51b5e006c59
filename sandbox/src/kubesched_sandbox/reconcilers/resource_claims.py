"""ResourceClaims: made from templates for pods, released and deallocated when their pods have ended."""

from __future__ import annotations

from kubesched.api.kinds import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Object
from kubesched.controllers.volumes import POD_CLAIM_NAME, resource_claim
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.api.conditions import is_finished, is_terminating
from kubesched_sandbox.reconcilers.events import Recorder
from kubesched_sandbox.reconcilers.ownership import Owned
from kubesched_sandbox.reconcilers.reconciler import MANAGER, Key, KeyedReconciler, key_of

_FINALIZER = "resource.kubernetes.io/delete-protection"
_POD, _CLAIM = "pod/", "claim/"


class ResourceClaims(KeyedReconciler):
    """Makes claims for pods, and releases those of ended pods; keys of pods and of claims differ by a prefix."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.watches = (PODS, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES)
        self._claims = Owned(api, RESOURCE_CLAIMS)
        self._recorder = Recorder(api, "resource_claim")
        self._waiting: dict[Key, set[Key]] = {}
        """Pods that wait for a template."""

    def observe(self, event: ApiEvent) -> None:
        namespace, name = key_of(event.object)
        match event.resource.path:
            case RESOURCE_CLAIMS.path:
                self.queue.add((_CLAIM + namespace, name))
            case RESOURCE_CLAIM_TEMPLATES.path:
                for key in self._waiting.pop((namespace, name), ()):
                    self.queue.add((_POD + key[0], key[1]))
            case _:
                if event.object["spec"].get("resourceClaims") or _extended(event.object):
                    self._observe_pod(event)

    def _observe_pod(self, event: ApiEvent) -> None:
        namespace, name = key_of(event.object)
        if event.type == "DELETED" or is_finished(event.object):
            for claim in claims_of(event.object):
                self.queue.add((_CLAIM + namespace, claim))
        else:
            self.queue.add((_POD + namespace, name))

    def sync(self, key: Key, now: float) -> float | None:
        if key[0].startswith(_POD):
            self._serve(key[0].removeprefix(_POD), key[1])
        else:
            self._release(key[0].removeprefix(_CLAIM), key[1])
        return None

    # -- pods ---------------------------------------------------------------------------------------------------------

    def _serve(self, namespace: str, name: str) -> None:
        """Create the claims that a pod has templates for, and write down their names."""
        pod = self.api.find(PODS, namespace, name)
        if pod is None or is_finished(pod) or is_terminating(pod):
            return
        status = pod.get("status") or {}
        known = {entry["name"]: entry for entry in status.get("resourceClaimStatuses") or ()}
        wanted = dict(known)
        for entry in pod["spec"].get("resourceClaims") or ():
            if entry.get("resourceClaimTemplateName") and entry["name"] not in known:
                claim = self._claim_for(pod, entry)
                if claim is not None:
                    wanted[entry["name"]] = {"name": entry["name"], "resourceClaimName": claim["metadata"]["name"]}
        if wanted != known:
            self.write_status(PODS, pod, {**status, "resourceClaimStatuses": list(wanted.values())})

    def _claim_for(self, pod: Object, entry: Object) -> Object | None:
        for claim in self._claims.owned_by(pod):
            if (claim["metadata"].get("annotations") or {}).get(POD_CLAIM_NAME) == entry["name"]:
                return claim
        namespace, template_name = pod["metadata"]["namespace"], entry["resourceClaimTemplateName"]
        template = self.api.find(RESOURCE_CLAIM_TEMPLATES, namespace, template_name)
        if template is None:
            self._waiting.setdefault((namespace, template_name), set()).add(key_of(pod))
            message = f'PodResourceClaim {entry["name"]}: resource claim template "{template_name}": not found'
            self._recorder.warning(PODS, pod, "FailedResourceClaimCreation", message)
            return None
        claim = resource_claim(pod, entry, template)
        return self.api.create(RESOURCE_CLAIMS, namespace, claim, manager=MANAGER)

    # -- claims -------------------------------------------------------------------------------------------------------

    def _release(self, namespace: str, name: str) -> None:
        """Remove the pods that no longer use a claim; without any, its devices are deallocated."""
        claim = self.api.find(RESOURCE_CLAIMS, namespace, name)
        if claim is None:
            return
        status = dict(claim.get("status") or {})
        reserved = status.get("reservedFor") or []
        users = [user for user in reserved if self._is_using(namespace, user)]
        of_pod = any(owner["kind"] == PODS.kind for owner in claim["metadata"].get("ownerReferences") or ())
        if not users and status.get("allocation") and (is_terminating(claim) or reserved):
            status.pop("allocation", None)
            status.pop("devices", None)
        if users:
            status["reservedFor"] = users
        else:
            status.pop("reservedFor", None)
        claim = self.write_status(RESOURCE_CLAIMS, claim, status)
        finalizers = claim["metadata"].get("finalizers") or []
        # A scheduler adds the finalizer in a write of its own, just before it allocates: that one must stay.
        if not status.get("allocation") and _FINALIZER in finalizers and (reserved or is_terminating(claim)):
            self.drop_finalizer(RESOURCE_CLAIMS, claim, _FINALIZER)
        if of_pod and not is_terminating(claim) and self._has_ended(claim):
            self.api.delete(RESOURCE_CLAIMS, namespace, name, uid=claim["metadata"]["uid"])

    def _is_using(self, namespace: str, consumer: Object) -> bool:
        if consumer.get("resource") != PODS.plural or consumer.get("apiGroup"):
            return True  # not ours to judge
        pod = self.api.find(PODS, namespace, consumer["name"])
        if pod is None or pod["metadata"]["uid"] != consumer["uid"]:
            return False
        # A pod that was never placed and goes will not use anything any more.
        return not is_finished(pod) and not (is_terminating(pod) and not pod["spec"].get("nodeName"))

    def _has_ended(self, claim: Object) -> bool:
        """Whether the pod that a claim was made for has done its work: such a claim need not wait for the pod to go."""
        for owner in claim["metadata"]["ownerReferences"]:
            pod = self.api.find(PODS, claim["metadata"]["namespace"], owner["name"]) if owner["kind"] == "Pod" else None
            if pod is not None and pod["metadata"]["uid"] == owner["uid"] and not is_finished(pod):
                return False
        return True


def claims_of(pod: Object) -> list[str]:
    """The names of all claims of a pod: its own, those made from templates, and that of its extended resources."""
    named = [
        entry["resourceClaimName"]
        for entry in pod["spec"].get("resourceClaims") or ()
        if entry.get("resourceClaimName")
    ]
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    made = [status["resourceClaimName"] for status in statuses if status.get("resourceClaimName")]
    return [*named, *made, *_extended(pod)]


def _extended(pod: Object) -> list[str]:
    status = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    return [status["resourceClaimName"]] if status.get("resourceClaimName") else []
