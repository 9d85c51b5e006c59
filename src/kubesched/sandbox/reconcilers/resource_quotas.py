"""ResourceQuotas: what is used of them, counted anew when something goes. What comes is charged when it is admitted."""

from __future__ import annotations

from kubesched.admission.kinds import SERVED
from kubesched.admission.quotas import used
from kubesched.api.kinds import (
    CORE_EVENTS,
    EVENTS,
    LEASES,
    OLDER_AUTOSCALERS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_QUOTAS,
    SERVICES,
    Object,
    Resource,
)
from kubesched.sandbox.api import Api, ApiEvent
from kubesched.sandbox.reconcilers.conditions import is_finished
from kubesched.sandbox.reconcilers.reconciler import ObjectReconciler, key_of

_COUNTED = tuple(
    resource
    for resource in SERVED
    if resource.namespaced
    and "delete" in resource.verbs
    and resource not in (CORE_EVENTS, EVENTS, LEASES, OLDER_AUTOSCALERS)
)
_CHANGING = (PERSISTENT_VOLUME_CLAIMS, SERVICES)
"""Kinds whose share may change with an update."""
_REST_PER_POD, _LONGEST_REST = 200e-6, 1.0
_CORE = frozenset(resource.plural for resource in _COUNTED if not resource.group)


class ResourceQuotas(ObjectReconciler):
    """Keeps `status.used` of every quota."""

    def __init__(self, api: Api) -> None:
        super().__init__(api, RESOURCE_QUOTAS)
        self.watches = _COUNTED
        self._quotas: dict[str, set[str]] = {}
        """The names of the quotas of each namespace that has any."""

    def observe(self, event: ApiEvent) -> None:
        namespace, name = key_of(event.object)
        if event.resource is RESOURCE_QUOTAS:
            names = self._quotas.setdefault(namespace, set())
            (names.discard if event.type == "DELETED" else names.add)(name)
            if event.old is None or event.old["spec"] != event.object["spec"]:
                self.queue.add((namespace, name))
        elif namespace in self._quotas and _gives_back(event):
            for quota in self._quotas[namespace]:
                self.queue.add((namespace, quota))

    def sync_object(self, quota: Object, now: float) -> float | None:
        key = key_of(quota)
        hard = quota["spec"].get("hard") or {}
        objects = {resource: self.api.select(resource, key[0]) for resource in _concerned(hard)}
        self.queue.rest(key, now, min(_LONGEST_REST, _REST_PER_POD * len(objects.get(PODS, ()))))
        self.write_status(RESOURCE_QUOTAS, quota, {"hard": hard, "used": used(quota, objects)})
        return None


def _gives_back(event: ApiEvent) -> bool:
    if event.type == "DELETED" or event.resource in _CHANGING:
        return True
    return event.resource is PODS and is_finished(event.object)


def _concerned(hard: Object) -> list[Resource]:
    """The resources that a quota with these limits counts."""
    counted = {name.removeprefix("count/") for name in hard if name.startswith("count/")}
    counted |= {name.rpartition("/")[2] for name in hard} & _CORE
    counted |= {"services"} if any(name.startswith("services") for name in hard) else set()
    counted |= {"persistentvolumeclaims"} if any(name.endswith("requests.storage") for name in hard) else set()
    return [each for each in _COUNTED if each.qualified in counted or each is PODS]
