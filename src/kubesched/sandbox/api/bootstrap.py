"""What a cluster has from the start."""

from __future__ import annotations

from kubesched.api.kinds import CONFIG_MAPS, NAMESPACES, PRIORITY_CLASSES, SERVICE_ACCOUNTS, SERVICES, Object, Resource
from kubesched.api.well_known import SYSTEM_PRIORITY_CLASSES
from kubesched.sandbox.api.core import Api
from kubesched.sandbox.api.reading import Event

SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_DESCRIPTIONS = {
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."
    ),
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
}


def bootstrap(api: Api, *, authority: str = "", port: int = 443) -> None:
    """Create what is missing, and from now on give every namespace its service account and the cluster's CA.

    A server that was restarted finds its objects and creates only what was deleted.
    """
    _follow_namespaces(api, authority)
    for name in SYSTEM_NAMESPACES:
        _ensure(api, NAMESPACES, "", {"metadata": {"name": name}})
    for name, value in SYSTEM_PRIORITY_CLASSES.items():
        named = {"metadata": {"name": name}, "value": value, "description": _DESCRIPTIONS[name]}
        _ensure(api, PRIORITY_CLASSES, "", named)
    _ensure(api, SERVICES, "default", _kubernetes_service(port))
    # What components with delegated authentication read first.
    authentication = {"metadata": {"name": "extension-apiserver-authentication"}, "data": {"client-ca-file": authority}}
    _ensure(api, CONFIG_MAPS, "kube-system", authentication)


def _kubernetes_service(port: int) -> Object:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}]
    spec = {"type": "ClusterIP", "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "ports": ports}
    return {"metadata": {"name": "kubernetes", "labels": labels}, "spec": spec}


def _follow_namespaces(api: Api, authority: str) -> None:
    def furnish(event: Event) -> None:
        metadata = event.object["metadata"]
        if event.type != "ADDED" or "deletionTimestamp" in metadata:
            return
        _ensure(api, SERVICE_ACCOUNTS, metadata["name"], {"metadata": {"name": "default"}})
        if authority:
            certificate = {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": authority}}
            _ensure(api, CONFIG_MAPS, metadata["name"], certificate)

    api.subscribe((NAMESPACES,), furnish)


def _ensure(api: Api, resource: Resource, namespace: str, obj: Object) -> None:
    if api.find(resource, namespace, obj["metadata"]["name"]) is None:
        api.create(resource, namespace, obj, manager="kube-apiserver")
