"""ReplicaSets and their elders, ReplicationControllers: as many pods as asked for."""

from __future__ import annotations

from collections import Counter

from kubesched.admission.selectors import matches
from kubesched.api.api_error import ApiError
from kubesched.api.kinds import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Object, Resource
from kubesched.controllers.pod_templates import pod_from
from kubesched.sandbox.api import Api, ApiEvent
from kubesched.sandbox.api.subresources import with_condition
from kubesched.sandbox.reconcilers.conditions import (
    available_at,
    condition,
    is_active,
    is_ready,
    is_terminating,
    next_available,
    without_condition,
)
from kubesched.sandbox.reconcilers.events import Recorder
from kubesched.sandbox.reconcilers.ownership import Owned, PodControl, controller_of, owner_key
from kubesched.sandbox.reconcilers.reconciler import Key, ObjectReconciler, key_of

_BATCH = 25
"""Pods created or deleted in one go: the rest waits for the next slice."""
_REST_PER_POD, _LONGEST_REST = 100e-6, 1.0
"""Looking at a large set takes a while, so changes of its pods are gathered: seconds per pod, and at most."""
_COMPONENTS = {REPLICA_SETS.path: "replicaset-controller", REPLICATION_CONTROLLERS.path: "replication-controller"}
_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSets(ObjectReconciler):
    """Keeps the number of pods of every ReplicaSet, or with its resource of every ReplicationController."""

    def __init__(self, api: Api, pods: Owned, resource: Resource = REPLICA_SETS) -> None:
        super().__init__(api, resource, PODS)
        self._pods = pods
        self._control = PodControl(api, resource, Recorder(api, _COMPONENTS[resource.path]))

    def observe(self, event: ApiEvent) -> None:
        if event.resource.path == self.resource.path:
            self.queue.add(key_of(event.object))
            return
        for pod in (event.object, event.old):
            if pod is not None and (key := owner_key(pod, self.resource)) is not None:
                self.queue.add(key)
        if event.type != "DELETED" and controller_of(event.object) is None:
            self._offer(event.object)

    def _offer(self, orphan: Object) -> None:
        """Queue the owners that may adopt the pod."""
        labels = orphan["metadata"].get("labels")
        for each in self.api.select(self.resource, orphan["metadata"]["namespace"]) if labels else ():
            if matches(self._selector(each), labels):
                self.queue.add(key_of(each))

    def _selector(self, replica_set: Object) -> Object:
        selector: Object = replica_set["spec"].get("selector") or {}
        return {"matchLabels": selector} if self.resource.path == REPLICATION_CONTROLLERS.path else selector

    def sync_object(self, replica_set: Object, now: float) -> float | None:
        key = key_of(replica_set)
        self._pods.claim(self.resource, replica_set, self._selector(replica_set))
        self.queue.rest(key, now, min(_LONGEST_REST, _REST_PER_POD * len(self._pods.of(replica_set))))
        failure: ApiError | None = None
        if not is_terminating(replica_set):
            try:
                if self._scale(replica_set):
                    self.queue.hurry(key)
                    return None
            except ApiError as error:
                failure = error
        again = self._report(key, failure, now)
        if failure is not None:
            raise failure
        return again

    def _scale(self, replica_set: Object) -> bool:
        """Create or delete some of the pods that are missing or too many; False when nothing could be done."""
        active = [pod for pod in self._pods.of(replica_set) if is_active(pod)]
        missing = replica_set["spec"]["replicas"] - len(active)
        if missing > 0:
            pod = pod_from(replica_set["spec"]["template"], prefix=replica_set["metadata"]["name"])
            made = (self._control.create(replica_set, pod) for _ in range(min(missing, _BATCH)))
            return None not in [*made]
        if missing < 0:
            for victim in in_order_of_deletion(active)[: min(-missing, _BATCH)]:
                self._control.delete(replica_set, victim)
        return bool(missing)

    def _report(self, key: Key, failure: ApiError | None, now: float) -> float | None:
        replica_set = self.api.find(self.resource, *key)
        if replica_set is None:
            return None
        spec, old = replica_set["spec"], replica_set.get("status") or {}
        active = [pod for pod in self._pods.of(replica_set) if is_active(pod)]
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
        times = [available_at(pod, spec.get("minReadySeconds") or 0) for pod in active]
        conditions = without_condition(old.get("conditions") or [], "ReplicaFailure")
        if failure is not None:
            failed = condition("ReplicaFailure", "True", "FailedCreate", failure.message)
            conditions = with_condition(old.get("conditions") or [], failed, self.api.stamps.now())
        status = {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(
                labels.items() <= (pod["metadata"].get("labels") or {}).items() for pod in active
            ),
            "readyReplicas": len(times) - times.count(None),
            "availableReplicas": sum(time is not None and time <= now for time in times),
            "observedGeneration": replica_set["metadata"]["generation"],
            "conditions": conditions,
        }
        if len(active) > spec["replicas"] and not is_terminating(replica_set):
            # A rollout must not count on pods that are still to be deleted.
            status["observedGeneration"] = old.get("observedGeneration", 0)
        self.write_counts(self.resource, replica_set, status, always=("replicas",))
        return next_available(times, now)


def in_order_of_deletion(pods: list[Object]) -> list[Object]:
    """The pods that a scale down takes first come first: those that do least good where they are."""
    beside = Counter(pod["spec"].get("nodeName") for pod in pods)

    def rank(pod: Object) -> tuple[object, ...]:
        metadata, status, node = pod["metadata"], pod.get("status") or {}, pod["spec"].get("nodeName")
        restarts = max((each.get("restartCount", 0) for each in status.get("containerStatuses") or ()), default=0)
        return (
            bool(node),
            _PHASES.get(status.get("phase") or "", 1),
            is_ready(pod),
            _cost(metadata.get("annotations") or {}),
            -beside[node],
            -restarts,
        )

    newest_first = sorted(pods, key=lambda pod: pod["metadata"]["creationTimestamp"], reverse=True)
    return sorted(newest_first, key=rank)


def _cost(annotations: Object) -> int:
    try:
        return int(annotations.get(_COST, "0"))
    except ValueError:
        return 0
