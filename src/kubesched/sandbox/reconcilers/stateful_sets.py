"""StatefulSets: pods with names that last, each with its own claims, one after the other."""

from __future__ import annotations

import re

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, Object
from kubesched.controllers.pod_templates import owner_reference, share_of
from kubesched.controllers.stateful_sets import claim_name, claim_of, claim_templates, ordinals_of, stateful_pod
from kubesched.sandbox.api import Api, ApiEvent
from kubesched.sandbox.reconcilers.conditions import (
    available_at,
    is_available,
    is_finished,
    is_ready,
    is_terminating,
    next_available,
)
from kubesched.sandbox.reconcilers.events import Recorder
from kubesched.sandbox.reconcilers.ownership import (
    Owned,
    Revisions,
    is_controlled_by,
    is_terminating_namespace,
    owner_key,
    revision_of,
)
from kubesched.sandbox.reconcilers.reconciler import MANAGER, Key, ObjectReconciler, key_of

_ORDINAL = re.compile(r"(.*)-([0-9]+)")


class StatefulSets(ObjectReconciler):
    """Keeps the pods of every StatefulSet, in their order."""

    def __init__(self, api: Api, pods: Owned, revisions: Owned) -> None:
        super().__init__(api, STATEFUL_SETS, PODS)
        self._pods = pods
        self._revisions = Revisions(api, STATEFUL_SETS, revisions)
        self._recorder = Recorder(api, "statefulset-controller")

    def observe(self, event: ApiEvent) -> None:
        if event.resource.path == STATEFUL_SETS.path:
            self.queue.add(key_of(event.object))
        elif (key := owner_key(event.object, STATEFUL_SETS)) is not None:
            self.queue.add(key)

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
        for pod in self._pods.of(stateful_set):
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
