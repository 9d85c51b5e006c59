"""ReplicaSets, ReplicationControllers and StatefulSets: the number of pods that each asks for."""

from __future__ import annotations

import re
from collections import Counter

from kubesched.admission.selectors import matches
from kubesched.api.api_error import ApiError
from kubesched.api.kinds import (
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Object,
    Resource,
)
from kubesched.controllers.pod_templates import (
    claim_name,
    claim_of,
    claim_templates,
    ordinals_of,
    owner_reference,
    pod_from,
    share_of,
    stateful_pod,
)
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.api.conditions import (
    available_at,
    condition,
    condition_of,
    is_active,
    is_available,
    is_finished,
    is_ready,
    is_terminating,
    next_available,
    with_condition,
    without_condition,
)
from kubesched_sandbox.reconcilers.events import Recorder
from kubesched_sandbox.reconcilers.ownership import Owned, PodControl, Revisions, is_terminating_namespace, revision_of
from kubesched_sandbox.reconcilers.reconciler import (
    MANAGER,
    Key,
    ObjectReconciler,
    controller_of,
    is_controlled_by,
    key_of,
    owner_key,
)

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
        for replica_set in self.api.select(self.resource, orphan["metadata"]["namespace"]) if labels else ():
            if matches(self._selector(replica_set), labels):
                self.queue.add(key_of(replica_set))

    def _selector(self, replica_set: Object) -> Object:
        selector: Object = replica_set["spec"].get("selector") or {}
        return {"matchLabels": selector} if self.resource.path == REPLICATION_CONTROLLERS.path else selector

    def sync_object(self, replica_set: Object, now: float) -> float | None:
        key = key_of(replica_set)
        self._pods.claim(self.resource, replica_set, self._selector(replica_set))
        self.queue.rest(key, now, min(_LONGEST_REST, _REST_PER_POD * len(self._pods.owned_by(replica_set))))
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
        active = [pod for pod in self._pods.owned_by(replica_set) if is_active(pod)]
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
        active = [pod for pod in self._pods.owned_by(replica_set) if is_active(pod)]
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
        times = [available_at(pod, spec.get("minReadySeconds") or 0) for pod in active]
        conditions = old.get("conditions") or []
        if failure is None:
            conditions = without_condition(conditions, "ReplicaFailure")
        elif condition_of(replica_set, "ReplicaFailure") is None:
            # The first message stays: others name other pods, and each write would be a reason to try again at once.
            failed = condition("ReplicaFailure", "True", "FailedCreate", failure.message)
            conditions = with_condition(conditions, failed, self.api.stamps.now())
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
    """The pods in the order in which a scale-down deletes them: without a node first, then pending, unready ones."""
    beside = Counter(pod["spec"].get("nodeName") for pod in pods)

    def rank(pod: Object) -> tuple[object, ...]:
        metadata, status, node = pod["metadata"], pod.get("status") or {}, pod["spec"].get("nodeName")
        restarts = max((entry.get("restartCount", 0) for entry in status.get("containerStatuses") or ()), default=0)
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


# -- StatefulSets: pods with names that last, each with its own claims, one after the other ---------------------------


_ORDINAL = re.compile(r"(.*)-([0-9]+)")


class StatefulSets(ObjectReconciler):
    """Keeps the pods of every StatefulSet, in their order."""

    def __init__(self, api: Api, pods: Owned, revisions: Owned) -> None:
        super().__init__(api, STATEFUL_SETS, PODS)
        self._pods = pods
        self._revisions = Revisions(api, STATEFUL_SETS, revisions)
        self._recorder = Recorder(api, "statefulset-controller")

    def sync_object(self, stateful_set: Object, now: float) -> float | None:
        key = key_of(stateful_set)
        self._pods.claim(STATEFUL_SETS, stateful_set, stateful_set["spec"]["selector"])
        revision = self._revisions.current(stateful_set)["metadata"]["name"]
        if not is_terminating(stateful_set):
            self._step(stateful_set, revision, now)
        return self._report(key, revision, now)

    # -- one step -----------------------------------------------------------------------------------------------------

    def _by_ordinal(self, stateful_set: Object) -> dict[int, Object]:
        found = {}
        for pod in self._pods.owned_by(stateful_set):
            match = _ORDINAL.fullmatch(pod["metadata"]["name"])
            if match and match[1] == stateful_set["metadata"]["name"]:
                found[int(match[2])] = pod
        return dict(sorted(found.items()))

    def _step(self, stateful_set: Object, revision: str, now: float) -> None:
        spec, wanted = stateful_set["spec"], ordinals_of(stateful_set)
        in_turn = spec["podManagementPolicy"] == "OrderedReady"
        pods = self._by_ordinal(stateful_set)
        for ordinal in wanted:
            if not self._is_up(stateful_set, pods.get(ordinal), ordinal, revision, now) and in_turn:
                return
        for ordinal in sorted(set(pods) - set(wanted), reverse=True):
            if not is_terminating(pods[ordinal]):
                self._delete(stateful_set, pods[ordinal])
            self._drop_claims(stateful_set, ordinal)
            if in_turn:
                return
        self._update(stateful_set, {o: pod for o, pod in pods.items() if o in wanted}, revision, now)

    def _is_up(self, stateful_set: Object, pod: Object | None, ordinal: int, revision: str, now: float) -> bool:
        """Whether the pod of an ordinal runs; where there is none it is created, where it has ended it is replaced."""
        if pod is None:
            self._create(stateful_set, ordinal, revision)
            return False
        if is_finished(pod) and not is_terminating(pod):
            reason = "RecreatingFailedPod" if pod["status"]["phase"] == "Failed" else "RecreatingTerminatedPod"
            name = pod["metadata"]["name"]
            self._recorder.warning(STATEFUL_SETS, stateful_set, reason, f"StatefulSet is recreating pod {name}")
            self._delete(stateful_set, pod)
            return False
        return not is_terminating(pod) and is_available(pod, _patience(stateful_set), now)

    def _update(self, stateful_set: Object, pods: dict[int, Object], revision: str, now: float) -> None:
        """Replace pods of an older template from the last to the first, while few enough are unavailable."""
        strategy = stateful_set["spec"]["updateStrategy"]
        if strategy["type"] != "RollingUpdate":
            return
        rolling = strategy.get("rollingUpdate") or {}
        allowed = max(1, share_of(rolling.get("maxUnavailable", 1), stateful_set["spec"]["replicas"], round_up=True))
        missing = stateful_set["spec"]["replicas"] - sum(
            not is_terminating(pod) and is_available(pod, _patience(stateful_set), now) for pod in pods.values()
        )
        for ordinal in sorted(pods, reverse=True):
            if ordinal < rolling.get("partition", 0):
                return
            pod = pods[ordinal]
            if revision_of(pod) == revision or is_terminating(pod):
                continue
            if is_available(pod, _patience(stateful_set), now):
                if missing >= allowed:
                    return
                missing += 1
            self._delete(stateful_set, pod)

    # -- pods and claims ----------------------------------------------------------------------------------------------

    def _create(self, stateful_set: Object, ordinal: int, newest: str) -> None:
        """Create the pod of an ordinal: of the newest revision, or below the partition of the current one."""
        metadata, spec = stateful_set["metadata"], stateful_set["spec"]
        revision, template = newest, spec["template"]
        partition = ((spec["updateStrategy"].get("rollingUpdate")) or {}).get("partition", 0)
        current = (stateful_set.get("status") or {}).get("currentRevision")
        if ordinal < partition and current and (older := self._revisions.template(stateful_set, current)) is not None:
            revision, template = current, older
        pod = stateful_pod(stateful_set, ordinal, template, revision)
        name = pod["metadata"]["name"]
        try:
            created = self._make(stateful_set, ordinal, pod)
        except ApiError as error:
            if is_terminating_namespace(error):
                return
            message = f"create Pod {name} in StatefulSet {metadata['name']} failed error: {error.message}"
            self._recorder.warning(STATEFUL_SETS, stateful_set, "FailedCreate", message)
            raise
        message = f"create Pod {created['metadata']['name']} in StatefulSet {metadata['name']} successful"
        self._recorder.normal(STATEFUL_SETS, stateful_set, "SuccessfulCreate", message)

    def _make(self, stateful_set: Object, ordinal: int, pod: Object) -> Object:
        namespace = stateful_set["metadata"]["namespace"]
        for template in claim_templates(stateful_set):
            self._ensure_claim(stateful_set, template, ordinal)
        owned = {**pod["metadata"], "ownerReferences": [owner_reference(STATEFUL_SETS, stateful_set)]}
        return self.api.create(PODS, namespace, {**pod, "metadata": owned}, manager=MANAGER)

    def _delete(self, stateful_set: Object, pod: Object) -> None:
        name = pod["metadata"]["name"]
        self.api.delete(PODS, pod["metadata"]["namespace"], name, uid=pod["metadata"]["uid"])
        message = f"delete Pod {name} in StatefulSet {stateful_set['metadata']['name']} successful"
        self._recorder.normal(STATEFUL_SETS, stateful_set, "SuccessfulDelete", message)

    def _ensure_claim(self, stateful_set: Object, template: Object, ordinal: int) -> None:
        owner, namespace = stateful_set["metadata"]["name"], stateful_set["metadata"]["namespace"]
        name = claim_name(stateful_set, template, ordinal)
        if self.api.find(PERSISTENT_VOLUME_CLAIMS, namespace, name) is None:
            claim = claim_of(stateful_set, template, ordinal)
            self.api.create(PERSISTENT_VOLUME_CLAIMS, namespace, claim, manager=MANAGER)
            message = f"create Claim {name} Pod {owner}-{ordinal} in StatefulSet {owner} success"
            self._recorder.normal(STATEFUL_SETS, stateful_set, "SuccessfulCreate", message)

    def _drop_claims(self, stateful_set: Object, ordinal: int) -> None:
        retention = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
        if retention.get("whenScaled") != "Delete":
            return
        namespace = stateful_set["metadata"]["namespace"]
        for template in claim_templates(stateful_set):
            name = claim_name(stateful_set, template, ordinal)
            if self.api.find(PERSISTENT_VOLUME_CLAIMS, namespace, name) is not None:
                self.api.delete(PERSISTENT_VOLUME_CLAIMS, namespace, name)

    def _report(self, key: Key, newest: str, now: float) -> float | None:
        stateful_set = self.api.find(STATEFUL_SETS, *key)
        if stateful_set is None:
            return None
        spec, old = stateful_set["spec"], stateful_set.get("status") or {}
        pods = [pod for pod in self._by_ordinal(stateful_set).values() if is_controlled_by(pod, stateful_set)]
        alive = [pod for pod in pods if not is_terminating(pod)]
        times = [available_at(pod, _patience(stateful_set)) for pod in alive]
        current = old.get("currentRevision") or newest
        updated = sum(revision_of(pod) == newest for pod in alive)
        if updated == spec["replicas"] == len(pods) and all(is_ready(pod) for pod in alive):
            current = newest
        status = {
            "replicas": len(pods),
            "readyReplicas": sum(map(is_ready, alive)),
            "availableReplicas": sum(time is not None and time <= now for time in times),
            "currentReplicas": sum(revision_of(pod) == current for pod in alive),
            "updatedReplicas": updated,
            "currentRevision": current,
            "updateRevision": newest,
            "observedGeneration": stateful_set["metadata"]["generation"],
            "collisionCount": 0,
        }
        always = ("replicas", "availableReplicas", "collisionCount")
        self.write_counts(STATEFUL_SETS, stateful_set, status, always=always)
        self._revisions.forget(stateful_set, {current, newest, *map(revision_of, pods)})
        return next_available(times, now)


def _patience(stateful_set: Object) -> int:
    return stateful_set["spec"].get("minReadySeconds") or 0
