"""PodGroups that are deleted stay for as long as a pod that has not ended names them."""

from __future__ import annotations

from kubesched.admission.pod_groups import PROTECTION
from kubesched.api.kinds import POD_GROUPS, PODS, Object
from kubesched.sandbox.api import Api, WatchEvent
from kubesched.sandbox.reconcilers.conditions import is_finished, is_terminating
from kubesched.sandbox.reconcilers.ownership import Grouped
from kubesched.sandbox.reconcilers.reconciler import Key, KeyedReconciler, key_of


class PodGroupProtection(KeyedReconciler):
    """Drops the finalizer, which every new group gets, once nobody needs the group."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.watches = (POD_GROUPS, PODS)
        self._members = Grouped(api, PODS, _group_of)

    def observe(self, event: WatchEvent) -> None:
        if event.resource.path == POD_GROUPS.path:
            if is_terminating(event.object):
                self.queue.add(key_of(event.object))
        elif event.type == "DELETED" or is_finished(event.object):
            for group in _group_of(event.object):
                namespace, _, name = group.partition("/")
                self.queue.add((namespace, name))

    def sync(self, key: Key, now: float) -> float | None:
        group = self.api.find(POD_GROUPS, *key)
        if group is None or not is_terminating(group):
            return None
        is_held = PROTECTION in (group["metadata"].get("finalizers") or ())
        if is_held and all(map(is_finished, self._members.of("/".join(key)))):
            self.drop_finalizer(POD_GROUPS, group, PROTECTION)
        return None


def _group_of(pod: Object) -> tuple[str, ...]:
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    return (f"{pod['metadata']['namespace']}/{name}",) if name else ()
