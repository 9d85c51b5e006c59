"""EndpointSlices of Services: where the pods behind a service are found, and which of them are ready."""

from __future__ import annotations

from kubesched.api.kinds import ENDPOINT_SLICES, NODES, PODS, SERVICES, Object
from kubesched.api.well_known import ZONE
from kubesched.controllers.pod_templates import owner_reference
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.api.conditions import is_finished, is_ready, is_terminating
from kubesched_sandbox.reconcilers.ownership import Owned
from kubesched_sandbox.reconcilers.reconciler import MANAGER, Key, ObjectReconciler, key_of

_MANAGED_BY, _MANAGER = "endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io"
_SERVICE_NAME = "kubernetes.io/service-name"
_MOST_ENDPOINTS = 100
"""In one slice, as upstream."""
_REST_PER_POD, _LONGEST_REST = 200e-6, 1.0


class EndpointSlices(ObjectReconciler):
    """Keeps the slices of every service that has a selector; they go with their service."""

    def __init__(self, api: Api) -> None:
        super().__init__(api, SERVICES, PODS)
        self._slices = Owned(api, ENDPOINT_SLICES)
        self._selectors: dict[str, dict[Key, Object]] = {}
        """By namespace and key, of the services that have any."""

    def observe(self, event: ApiEvent) -> None:
        obj, key = event.object, key_of(event.object)
        if event.resource.path == SERVICES.path:
            selector = obj["spec"].get("selector")
            if event.type == "DELETED" or not selector:
                self._selectors.get(key[0], {}).pop(key, None)
            else:
                self._selectors.setdefault(key[0], {})[key] = selector
                self.queue.add(key)
            return
        for service, selector in self._selectors.get(key[0], {}).items():
            if _selects(selector, obj) or (event.old is not None and _selects(selector, event.old)):
                self.queue.add(service)

    def sync_object(self, service: Object, now: float) -> float | None:
        key, selector = key_of(service), service["spec"].get("selector")
        if not selector:
            return None
        wanted = ",".join(f"{name}={value}" for name, value in selector.items())
        pods = [pod for pod in self.api.select(PODS, key[0], labels=wanted) if _address(pod) and not is_finished(pod)]
        self.queue.rest(key, now, min(_LONGEST_REST, _REST_PER_POD * len(pods)))
        endpoints = [self._endpoint(pod) for pod in pods]
        parts = [endpoints[i : i + _MOST_ENDPOINTS] for i in range(0, len(endpoints), _MOST_ENDPOINTS)] or [[]]
        slices = sorted(self._slices.owned_by(service), key=key_of)
        for i, part in enumerate(parts):
            self._write(service, slices[i] if i < len(slices) else None, part, _ports(service, pods))
        for slice_ in slices[len(parts) :]:
            self.api.delete(ENDPOINT_SLICES, *key_of(slice_))
        return None

    def _endpoint(self, pod: Object) -> Object:
        node = self.api.find(NODES, "", pod["spec"]["nodeName"])
        zone = ((node or {}).get("metadata", {}).get("labels") or {}).get(ZONE)
        ready, leaving = is_ready(pod), is_terminating(pod)
        reference = {"kind": "Pod", "namespace": pod["metadata"]["namespace"], "name": pod["metadata"]["name"]}
        return {
            "addresses": [_address(pod)],
            "conditions": {"ready": ready and not leaving, "serving": ready, "terminating": leaving},
            "nodeName": pod["spec"]["nodeName"],
            **({"zone": zone} if zone else {}),
            "targetRef": {**reference, "uid": pod["metadata"]["uid"]},
        }

    def _write(self, service: Object, known: Object | None, endpoints: list[Object], ports: list[Object]) -> None:
        namespace, name = key_of(service)
        if known is not None:
            if known.get("endpoints") != endpoints or known.get("ports") != ports:
                changed = {**known, "endpoints": endpoints, "ports": ports}
                self.api.update(ENDPOINT_SLICES, *key_of(known), changed, manager=MANAGER)
            return
        metadata = {
            "generateName": f"{name}-",
            "labels": {**(service["metadata"].get("labels") or {}), _SERVICE_NAME: name, _MANAGED_BY: _MANAGER},
            "ownerReferences": [owner_reference(SERVICES, service)],
        }
        made = {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": ports}
        self.api.create(ENDPOINT_SLICES, namespace, made, manager=MANAGER)


def _selects(selector: Object, pod: Object) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return all(labels.get(name) == value for name, value in selector.items())


def _address(pod: Object) -> str:
    return (pod.get("status") or {}).get("podIP") or ""


def _ports(service: Object, pods: list[Object]) -> list[Object]:
    """The ports of the pods; a target by name is looked up in the first pod."""
    found = []
    for port in service["spec"].get("ports") or ():
        number = _target(port, pods)
        if number is not None:
            said = {key: port[key] for key in ("appProtocol",) if key in port}
            found.append(
                {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP"), **said}
            )
    return found


def _target(port: Object, pods: list[Object]) -> int | None:
    target = port.get("targetPort") or port["port"]
    if isinstance(target, int):
        return target
    for container in pods[0]["spec"]["containers"] if pods else ():
        for port in container.get("ports") or ():
            if port.get("name") == target:
                return int(port["containerPort"])
    return None
