"""Deployments: rolling updates within maxSurge and maxUnavailable, scaling, and their status."""

from __future__ import annotations

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import DEPLOYMENTS, PODS, REPLICA_SETS, Object
from kubesched.controllers import rollout
from kubesched.controllers.pod_templates import is_same_template
from kubesched.controllers.rollout import DESIRED, MAXIMUM, REVISION, new_replica_set, size
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.api.conditions import (
    condition,
    condition_of,
    is_finished,
    is_terminating,
    with_condition,
    without_condition,
)
from kubesched_sandbox.api.stamps import seconds_of
from kubesched_sandbox.reconcilers.events import Recorder
from kubesched_sandbox.reconcilers.ownership import Owned, is_terminating_namespace
from kubesched_sandbox.reconcilers.reconciler import MANAGER, ObjectReconciler, key_of, owner_key

_FOREVER = 2**31 - 1


class RolloutProgress:
    """What one step of a rollout did, for the Progressing condition."""

    reason = ""
    message = ""

    def note(self, reason: str, message: str) -> None:
        self.reason, self.message = reason, message


def is_complete(deployment: Object) -> bool:
    """Whether every pod is of the newest template and available, and no other is left."""
    status, replicas = deployment.get("status") or {}, deployment["spec"]["replicas"]
    counts = (status.get(key, 0) for key in ("updatedReplicas", "replicas", "availableReplicas"))
    return all(count == replicas for count in counts) and _is_observed(deployment)


def _is_observed(deployment: Object) -> bool:
    observed: int = (deployment.get("status") or {}).get("observedGeneration", 0)
    return bool(observed >= deployment["metadata"]["generation"])


def status_of(
    deployment: Object, newest: Object | None, olds: list[Object], progress: RolloutProgress, now: float, stamp: str
) -> Object:
    """The status that the ReplicaSets add up to."""
    old = deployment.get("status") or {}
    every = [*olds, *([newest] if newest is not None else [])]
    counts = {
        "replicas": _sum(every, "replicas"),
        "updatedReplicas": _sum([newest] if newest is not None else [], "replicas"),
        "readyReplicas": _sum(every, "readyReplicas"),
        "availableReplicas": _sum(every, "availableReplicas"),
        "unavailableReplicas": max(0, rollout.total(every) - _sum(every, "availableReplicas")),
    }
    status = {
        "observedGeneration": deployment["metadata"]["generation"],
        **{key: count for key, count in counts.items() if count},
    }
    if old.get("collisionCount"):
        status["collisionCount"] = old["collisionCount"]
    conditions = old.get("conditions") or []
    conditions = with_condition(conditions, _availability(deployment, counts["availableReplicas"]), stamp)
    failed = next((replica_set for replica_set in every if condition_of(replica_set, "ReplicaFailure")), None)
    conditions = without_condition(conditions, "ReplicaFailure")
    if failed is not None:
        conditions = with_condition(conditions, condition_of(failed, "ReplicaFailure") or {}, stamp)
    changed = any(old.get(key, 0) != counts[key] for key in counts if key != "unavailableReplicas")
    news = _progress({**deployment, "status": {**status, "conditions": conditions}}, newest, progress, changed, now)
    if news is not None:
        conditions = with_condition(conditions, {**news, "lastUpdateTime": stamp}, stamp)
    status["conditions"] = [_timed(condition, stamp) for condition in conditions]
    return status


def _timed(condition: Object, stamp: str) -> Object:
    timed = {key: value for key, value in condition.items() if key != "lastProbeTime"}
    timed.setdefault("lastUpdateTime", condition.get("lastTransitionTime", stamp))
    return timed


def _sum(replica_sets: list[Object], key: str) -> int:
    return sum((replica_set.get("status") or {}).get(key, 0) for replica_set in replica_sets)


def _availability(deployment: Object, available: int) -> Object:
    kept: Object = condition_of(deployment, "Available") or {}
    if available >= deployment["spec"]["replicas"] - rollout.max_unavailable(deployment):
        message = "Deployment has minimum availability."
        available_now = condition("Available", "True", "MinimumReplicasAvailable", message)
    else:
        reason, message = "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
        available_now = condition("Available", "False", reason, message)
    if kept.get("status") == available_now["status"] and "lastUpdateTime" in kept:
        available_now["lastUpdateTime"] = kept["lastUpdateTime"]
    return available_now


def _progress(
    deployment: Object, newest: Object | None, progress: RolloutProgress, changed: bool, now: float
) -> Object | None:
    """The new Progressing condition; None where the one that is there still holds."""
    current = condition_of(deployment, "Progressing")
    reason = (current or {}).get("reason")
    if _deadline(deployment) is None:
        return None
    if deployment["spec"].get("paused"):
        paused = _progressing("Unknown", "DeploymentPaused", "Deployment is paused")
        return None if reason == paused["reason"] else paused
    if reason == "DeploymentPaused":
        return _progressing("Unknown", "DeploymentResumed", "Deployment is resumed")
    if progress.reason == "ReplicaSetCreateError":
        return _progressing("False", progress.reason, progress.message)
    name = f'ReplicaSet "{newest["metadata"]["name"]}"' if newest is not None else "Deployment"
    if is_complete(deployment) and newest is not None:
        done = _progressing("True", "NewReplicaSetAvailable", f"{name} has successfully progressed.")
        return None if current and all(current.get(key) == done[key] for key in ("reason", "message")) else done
    if progress.reason == "NewReplicaSetCreated":
        return _progressing("True", progress.reason, progress.message)
    if changed and current is not None:
        return _progressing("True", "ReplicaSetUpdated", f"{name} is progressing.")
    if current is None:
        return _progressing("True", progress.reason, progress.message) if progress.reason else None
    due = next_deadline(deployment, float("-inf"))
    if due is not None and due <= now:
        return _progressing("False", "ProgressDeadlineExceeded", f"{name} has timed out progressing.")
    return None


def _progressing(status: str, reason: str, message: str) -> Object:
    return condition("Progressing", status, reason, message)


def _deadline(deployment: Object) -> int | None:
    deadline: int | None = deployment["spec"].get("progressDeadlineSeconds")
    return None if deadline in (None, _FOREVER) else deadline


def next_deadline(deployment: Object, now: float) -> float | None:
    """When a rollout that is under way counts as stuck."""
    current, deadline = condition_of(deployment, "Progressing"), _deadline(deployment)
    if current is None or deadline is None or current["status"] != "True" or is_complete(deployment):
        return None
    if current["reason"] == "NewReplicaSetAvailable":
        return None
    due = seconds_of(current["lastUpdateTime"]) + deadline
    return due if due > now else None


# -- steps ------------------------------------------------------------------------------------------------------------


_HISTORY = "deployment.kubernetes.io/revision-history"
_OWN_ANNOTATIONS = frozenset((REVISION, DESIRED, MAXIMUM, _HISTORY, "kubectl.kubernetes.io/last-applied-configuration"))


class Deployments(ObjectReconciler):
    """Steers the ReplicaSets of every Deployment."""

    def __init__(self, api: Api, pods: Owned, replica_sets: Owned) -> None:
        super().__init__(api, DEPLOYMENTS, REPLICA_SETS, PODS)
        self._pods, self._replica_sets = pods, replica_sets
        self._recorder = Recorder(api, "deployment-controller")

    def observe(self, event: ApiEvent) -> None:
        if event.resource.path != PODS.path:
            super().observe(event)
        elif event.type == "DELETED":
            self._observe_end(event.object)

    def _observe_end(self, pod: Object) -> None:
        """Before new pods replace all old ones at once, the last old one must be gone."""
        key = owner_key(pod, REPLICA_SETS)
        replica_set = None if key is None else self.api.find(REPLICA_SETS, *key)
        if replica_set is not None and (owner := owner_key(replica_set, DEPLOYMENTS)) is not None:
            self.queue.add(owner)

    def sync_object(self, deployment: Object, now: float) -> float | None:
        self._replica_sets.claim(DEPLOYMENTS, deployment, deployment["spec"]["selector"])
        progress = RolloutProgress()
        if not is_terminating(deployment):
            deployment = self._step(deployment, progress)
        return self._report(deployment, progress, now)

    # -- one step of a rollout ----------------------------------------------------------------------------------------

    def _step(self, deployment: Object, progress: RolloutProgress) -> Object:
        newest, olds = self._sets(deployment)
        if deployment["spec"].get("paused") or (rollout.is_rolling(deployment) and self._was_scaled(deployment)):
            if newest is not None:
                newest, deployment = self._annotated(deployment, newest, olds)
            self._scale(deployment, newest, olds)
        elif not self._is_settled((*olds, *([newest] if newest else []))):
            # The counts of a ReplicaSet that was just scaled are not yet those of its new size.
            return deployment
        elif rollout.is_rolling(deployment):
            deployment = self._roll(deployment, newest, olds, progress)
        else:
            deployment = self._recreate(deployment, newest, olds, progress)
        self._forget_history(deployment)
        return deployment

    def _is_settled(self, replica_sets: tuple[Object, ...]) -> bool:
        return all(
            (replica_set.get("status") or {}).get("observedGeneration", 0) >= replica_set["metadata"]["generation"]
            for replica_set in replica_sets
        )

    def _roll(self, deployment: Object, newest: Object | None, olds: list[Object], progress: RolloutProgress) -> Object:
        if newest is None:
            return self._create(deployment, olds, rollout.first_size(deployment, olds), progress)
        newest, deployment = self._annotated(deployment, newest, olds)
        progress.note("FoundNewReplicaSet", f'Found new replica set "{newest["metadata"]["name"]}"')
        wanted = rollout.next_new_size(deployment, newest, olds)
        if wanted != size(newest):
            self._resize(deployment, newest, wanted)
            return deployment
        sizes = rollout.next_old_sizes(deployment, newest, olds)
        for replica_set in olds:
            if replica_set["metadata"]["name"] in sizes:
                self._resize(deployment, replica_set, sizes[replica_set["metadata"]["name"]])
        return deployment

    def _recreate(
        self, deployment: Object, newest: Object | None, olds: list[Object], progress: RolloutProgress
    ) -> Object:
        busy = [replica_set for replica_set in olds if size(replica_set)]
        for replica_set in busy:
            self._resize(deployment, replica_set, 0)
        remaining = (pod for replica_set in olds for pod in self._pods.owned_by(replica_set))
        if busy or any(not is_finished(pod) for pod in remaining):
            return deployment
        if newest is None:
            return self._create(deployment, olds, deployment["spec"]["replicas"], progress)
        newest, deployment = self._annotated(deployment, newest, olds)
        progress.note("FoundNewReplicaSet", f'Found new replica set "{newest["metadata"]["name"]}"')
        if size(newest) != deployment["spec"]["replicas"]:
            self._resize(deployment, newest, deployment["spec"]["replicas"])
        return deployment

    # -- scaling ------------------------------------------------------------------------------------------------------

    def _was_scaled(self, deployment: Object) -> bool:
        wanted = str(deployment["spec"]["replicas"])
        active = [replica_set for replica_set in self._replica_sets.owned_by(deployment) if size(replica_set)]
        return any(
            (replica_set["metadata"].get("annotations") or {}).get(DESIRED, wanted) != wanted for replica_set in active
        )

    def _scale(self, deployment: Object, newest: Object | None, olds: list[Object]) -> None:
        every = [*olds, *([newest] if newest is not None else [])]
        active = [replica_set for replica_set in every if size(replica_set)]
        wanted: int = deployment["spec"]["replicas"]
        if len(active) <= 1:
            only = active[0] if active else newest or (max(every, key=_revision) if every else None)
            if only is not None:
                self._resize(deployment, only, wanted)
            return
        if newest is not None and size(newest) == wanted == rollout.available(newest):
            for replica_set in active:
                self._resize(deployment, replica_set, wanted if replica_set is newest else 0)
        elif rollout.is_rolling(deployment):
            sizes = rollout.proportional_sizes(deployment, active)
            for replica_set in active:
                self._resize(deployment, replica_set, sizes.get(replica_set["metadata"]["name"], size(replica_set)))

    def _resize(self, deployment: Object, replica_set: Object, replicas: int) -> None:
        """Set the size of a ReplicaSet, and what it should know of its Deployment."""
        before = size(replica_set)
        metadata = replica_set["metadata"]
        annotations = {**(metadata.get("annotations") or {}), **_sizes_of(deployment)}
        if before == replicas and annotations == metadata.get("annotations"):
            return
        spec = {**replica_set["spec"], "replicas": replicas}
        changed = {**replica_set, "metadata": {**metadata, "annotations": annotations}, "spec": spec}
        self.api.update(REPLICA_SETS, metadata["namespace"], metadata["name"], changed, manager=MANAGER)
        if before != replicas:
            self._record_scaling(deployment, metadata["name"], before, replicas)

    def _record_scaling(self, deployment: Object, name: str, before: int, replicas: int) -> None:
        way = "up" if replicas > before else "down"
        message = f"Scaled {way} replica set {name} from {before} to {replicas}"
        self._recorder.normal(DEPLOYMENTS, deployment, "ScalingReplicaSet", message)

    # -- ReplicaSets of revisions -------------------------------------------------------------------------------------

    def _sets(self, deployment: Object) -> tuple[Object | None, list[Object]]:
        """The ReplicaSet of the template that is wanted, if there is one, and the others from oldest to newest."""
        every = sorted(self._replica_sets.owned_by(deployment), key=_age)
        template = deployment["spec"]["template"]
        newest = next(
            (replica_set for replica_set in every if is_same_template(replica_set["spec"]["template"], template)), None
        )
        return newest, [replica_set for replica_set in every if replica_set is not newest]

    def _create(self, deployment: Object, olds: list[Object], replicas: int, progress: RolloutProgress) -> Object:
        revision = str(max(map(_revision, olds), default=0) + 1)
        annotations = {**_inherited(deployment), **_sizes_of(deployment), REVISION: revision}
        replica_set = new_replica_set(deployment, replicas, annotations)
        try:
            created = self.api.create(REPLICA_SETS, deployment["metadata"]["namespace"], replica_set, manager=MANAGER)
        except ApiError as error:
            return self._not_created(deployment, error, progress)
        name = created["metadata"]["name"]
        progress.note("NewReplicaSetCreated", f'Created new replica set "{name}"')
        if replicas:
            self._record_scaling(deployment, name, 0, replicas)
        return self._with_revision(deployment, revision)

    def _not_created(self, deployment: Object, error: ApiError, progress: RolloutProgress) -> Object:
        if is_terminating_namespace(error):
            return deployment
        if error.reason == "AlreadyExists":
            # Another template has this hash, or another object the name: the next hash counts one more.
            status = deployment.get("status") or {}
            counted = {**status, "collisionCount": status.get("collisionCount", 0) + 1}
            return self.write_status(DEPLOYMENTS, deployment, counted)
        progress.note("ReplicaSetCreateError", error.message)
        self._recorder.warning(DEPLOYMENTS, deployment, "ReplicaSetCreateError", error.message)
        return deployment

    def _annotated(self, deployment: Object, newest: Object, olds: list[Object]) -> tuple[Object, Object]:
        """The newest ReplicaSet with the annotations and the revision it should have; the Deployment likewise."""
        metadata = newest["metadata"]
        annotations = dict(metadata.get("annotations") or {})
        revision = max(map(_revision, olds), default=0) + 1
        if _revision(newest) < revision:
            if REVISION in annotations:
                annotations[_HISTORY] = ",".join(filter(None, (annotations.get(_HISTORY), annotations[REVISION])))
            annotations[REVISION] = str(revision)
        annotations |= _inherited(deployment)
        spec = {**newest["spec"], "minReadySeconds": deployment["spec"].get("minReadySeconds") or 0}
        if annotations != metadata.get("annotations") or spec != {"minReadySeconds": 0, **newest["spec"]}:
            changed = {**newest, "metadata": {**metadata, "annotations": annotations}, "spec": spec}
            newest = self.api.update(REPLICA_SETS, metadata["namespace"], metadata["name"], changed, manager=MANAGER)
        return newest, self._with_revision(deployment, annotations[REVISION])

    def _with_revision(self, deployment: Object, revision: str) -> Object:
        metadata = deployment["metadata"]
        if (metadata.get("annotations") or {}).get(REVISION) == revision:
            return deployment
        annotations = {**(metadata.get("annotations") or {}), REVISION: revision}
        return self.write_metadata(DEPLOYMENTS, deployment, annotations=annotations)

    def _forget_history(self, deployment: Object) -> None:
        limit = deployment["spec"].get("revisionHistoryLimit")
        newest, olds = self._sets(deployment)
        if limit is None or newest is None or not is_complete(deployment):
            return
        idle = [
            replica_set
            for replica_set in olds
            if not size(replica_set) and not (replica_set.get("status") or {}).get("replicas")
        ]
        for replica_set in sorted(idle, key=_revision)[: max(0, len(idle) - limit)]:
            if not is_terminating(replica_set):
                self.api.delete(
                    REPLICA_SETS, *key_of(replica_set), propagation="Background", uid=replica_set["metadata"]["uid"]
                )

    def _report(self, deployment: Object, progress: RolloutProgress, now: float) -> float | None:
        newest, olds = self._sets(deployment)
        status = status_of(deployment, newest, olds, progress, now, self.api.stamps.now())
        deployment = self.write_status(DEPLOYMENTS, deployment, status)
        return next_deadline(deployment, now)


def _revision(replica_set: Object) -> int:
    text = (replica_set["metadata"].get("annotations") or {}).get(REVISION, "")
    return int(text) if text.isdigit() else 0


def _age(replica_set: Object) -> tuple[float, int, str]:
    metadata = replica_set["metadata"]
    return seconds_of(metadata["creationTimestamp"]), _revision(replica_set), metadata["name"]


def _sizes_of(deployment: Object) -> dict[str, str]:
    replicas = deployment["spec"]["replicas"]
    return {DESIRED: str(replicas), MAXIMUM: str(replicas + rollout.max_surge(deployment))}


def _inherited(deployment: Object) -> dict[str, str]:
    annotations = deployment["metadata"].get("annotations") or {}
    return {key: value for key, value in annotations.items() if key not in _OWN_ANNOTATIONS}
