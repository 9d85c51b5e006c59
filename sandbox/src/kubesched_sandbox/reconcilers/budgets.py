"""PodDisruptionBudgets, how many pods of each may be evicted now, and ResourceQuotas, how much of each is used."""

from __future__ import annotations

from kubesched.admission import SERVED
from kubesched.admission.limits import quota_usage
from kubesched.admission.selectors import compile_label_selector
from kubesched.api import kinds
from kubesched.api.kinds import Object, Resource
from kubesched.controllers.pod_templates import share_of
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.api.conditions import condition, is_finished, is_ready, is_terminating, with_condition
from kubesched_sandbox.api.stamps import seconds_of
from kubesched_sandbox.reconcilers.events import Recorder
from kubesched_sandbox.reconcilers.reconciler import Key, ObjectReconciler, controller_of, key_of

_PATIENCE = 120.0
"""Seconds after which a pod that should have been evicted and is still there counts again."""
_SCALES = {
    resource.kind: resource for resource in (kinds.REPLICA_SETS, kinds.REPLICATION_CONTROLLERS, kinds.STATEFUL_SETS)
}


class UncountableError(Exception):
    """The number of pods that should be there cannot be known."""


class DisruptionBudgets(ObjectReconciler):
    """Keeps the status of every budget. An index of the pods of each is updated by events."""

    def __init__(self, api: Api) -> None:
        super().__init__(api, kinds.POD_DISRUPTION_BUDGETS, kinds.PODS, kinds.DEPLOYMENTS, *_SCALES.values())
        self._recorder = Recorder(api, "controllermanager")
        self._members: dict[str, dict[Key, dict[str, Object]]] = {}
        """Pods by uid of each budget, by namespace and key."""

    def observe(self, event: ApiEvent) -> None:
        obj, namespace = event.object, event.object["metadata"]["namespace"]
        if event.resource.path == kinds.POD_DISRUPTION_BUDGETS.path:
            self._observe_budget(event)
        elif event.resource.path == kinds.PODS.path:
            if namespace in self._members:
                self._observe_pod(event)
        elif namespace in self._members and (event.old is None or _replicas(event.old) != _replicas(obj)):
            for key in self._members[namespace]:
                self.queue.add(key)

    def _observe_budget(self, event: ApiEvent) -> None:
        budget, key = event.object, key_of(event.object)
        budgets = self._members.setdefault(key[0], {})
        self.queue.add(key)
        if event.type == "DELETED":
            budgets.pop(key, None)
            if not budgets:
                del self._members[key[0]]
        elif event.old is None or key not in budgets or event.old["spec"] != budget["spec"]:
            pods = self.api.select(kinds.PODS, key[0])
            budgets[key] = {pod["metadata"]["uid"]: pod for pod in pods if _covers(budget, pod)}

    def _observe_pod(self, event: ApiEvent) -> None:
        pod = event.object
        uid = pod["metadata"]["uid"]
        for key, members in self._members[pod["metadata"]["namespace"]].items():
            budget = self.api.find(kinds.POD_DISRUPTION_BUDGETS, *key)
            if event.type != "DELETED" and budget is not None and _covers(budget, pod):
                members[uid] = pod
            elif members.pop(uid, None) is None:
                continue
            self.queue.add(key)

    def sync_object(self, budget: Object, now: float) -> float | None:
        key = key_of(budget)
        if key not in self._members.get(key[0], {}):
            return None
        pods = [pod for pod in self._members[key[0]][key].values() if not is_finished(pod)]
        try:
            expected, desired = self._expectation(budget, pods)
        except UncountableError as error:
            self._report_failure(budget, str(error))
            return None
        old = budget.get("status") or {}
        disrupted = _still_disrupted(old.get("disruptedPods") or {}, pods, now)
        healthy = sum(
            is_ready(pod) and not is_terminating(pod) and pod["metadata"]["name"] not in disrupted for pod in pods
        )
        allowed = max(0, healthy - desired) if expected > 0 else 0
        state = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
        counts = {"disruptionsAllowed": allowed, "currentHealthy": healthy}
        counts |= {"desiredHealthy": desired, "expectedPods": expected}
        self._write(budget, condition("DisruptionAllowed", *state), counts, disrupted)
        return min((seconds_of(since) + _PATIENCE for since in disrupted.values()), default=None)

    def _write(self, budget: Object, allowed: Object, counts: dict[str, int], disrupted: dict[str, str]) -> None:
        generation = budget["metadata"]["generation"]
        conditions = (budget.get("status") or {}).get("conditions") or []
        conditions = with_condition(conditions, {**allowed, "observedGeneration": generation}, self.api.stamps.now())
        status: Object = {
            **counts,
            "observedGeneration": generation,
            "conditions": [{k: v for k, v in condition.items() if k != "lastProbeTime"} for condition in conditions],
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        self.write_status(kinds.POD_DISRUPTION_BUDGETS, budget, status)

    def _report_failure(self, budget: Object, why: str) -> None:
        """Without knowing how many pods there should be, none may go."""
        self._recorder.warning(kinds.POD_DISRUPTION_BUDGETS, budget, "CalculateExpectedPodCountFailed", why)
        failed = condition("DisruptionAllowed", "False", "SyncFailed", why)
        old = budget.get("status") or {}
        known = {key: old.get(key, 0) for key in ("currentHealthy", "desiredHealthy", "expectedPods")}
        self._write(budget, failed, {"disruptionsAllowed": 0, **known}, old.get("disruptedPods") or {})

    def _expectation(self, budget: Object, pods: list[Object]) -> tuple[int, int]:
        """How many pods there should be, and how many of them healthy."""
        spec = budget["spec"]
        if (unavailable := spec.get("maxUnavailable")) is not None:
            expected = self._intended(pods)
            return expected, max(0, expected - share_of(unavailable, expected, round_up=True))
        available = spec.get("minAvailable")
        if isinstance(available, str):
            expected = self._intended(pods)
            return expected, share_of(available, expected, round_up=True)
        return len(pods), available or 0

    def _intended(self, pods: list[Object]) -> int:
        """What the controllers of the pods want: each is counted once."""
        scales: dict[str, int] = {}
        for pod in pods:
            reference = controller_of(pod)
            if reference is None:
                name = pod["metadata"]["name"]
                raise UncountableError(f"found no controller ref for pod {name!r}".replace("'", '"'))
            if reference["uid"] not in scales:
                uid, replicas = self._scale(pod, reference)
                scales[reference["uid"]] = 0
                scales[uid] = replicas
        return sum(scales.values())

    def _scale(self, pod: Object, reference: Object) -> tuple[str, int]:
        namespace, resource = pod["metadata"]["namespace"], _SCALES.get(reference["kind"])
        owner = None if resource is None else self.api.find(resource, namespace, reference["name"])
        if owner is None or owner["metadata"]["uid"] != reference["uid"]:
            name, kind = pod["metadata"]["name"], reference["kind"]
            raise UncountableError(f'found no controllers for pod "{name}" of kind {kind} with a scale')
        above = controller_of(owner)
        if above is not None and above["kind"] == kinds.DEPLOYMENTS.kind:
            deployment = self.api.find(kinds.DEPLOYMENTS, namespace, above["name"])
            if deployment is not None and deployment["metadata"]["uid"] == above["uid"]:
                return above["uid"], int(deployment["spec"]["replicas"])
        return reference["uid"], int(owner["spec"]["replicas"])


def _covers(budget: Object, pod: Object) -> bool:
    selector = budget["spec"].get("selector")
    return selector is not None and compile_label_selector(selector).matches(pod["metadata"].get("labels") or {})


def _replicas(workload: Object) -> int | None:
    replicas: int | None = workload["spec"].get("replicas")
    return replicas


def _still_disrupted(disrupted: dict[str, str], pods: list[Object], now: float) -> dict[str, str]:
    """Pods whose eviction was allowed and that are not terminating yet; after `_PATIENCE` they count again."""
    staying = {pod["metadata"]["name"] for pod in pods if not is_terminating(pod)}
    return {name: at for name, at in disrupted.items() if name in staying and seconds_of(at) + _PATIENCE > now}


# -- quotas: counted anew when something goes; what comes is charged when it is admitted ------------------------------


_COUNTED = tuple(
    resource
    for resource in SERVED
    if resource.namespaced
    and "delete" in resource.verbs
    and resource not in (kinds.CORE_EVENTS, kinds.EVENTS, kinds.LEASES, kinds.OLDER_AUTOSCALERS)
)
_CHANGING = (kinds.PERSISTENT_VOLUME_CLAIMS, kinds.SERVICES)
"""Kinds whose share may change with an update."""
_REST_PER_POD, _LONGEST_REST = 200e-6, 1.0
_CORE = frozenset(resource.plural for resource in _COUNTED if not resource.group)


class ResourceQuotas(ObjectReconciler):
    """Keeps `status.used` of every quota."""

    def __init__(self, api: Api) -> None:
        super().__init__(api, kinds.RESOURCE_QUOTAS)
        self.watches = _COUNTED
        self._quotas: dict[str, set[str]] = {}
        """The names of the quotas of each namespace that has any."""

    def observe(self, event: ApiEvent) -> None:
        namespace, name = key_of(event.object)
        if event.resource is kinds.RESOURCE_QUOTAS:
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
        self.queue.rest(key, now, min(_LONGEST_REST, _REST_PER_POD * len(objects.get(kinds.PODS, ()))))
        self.write_status(kinds.RESOURCE_QUOTAS, quota, {"hard": hard, "used": quota_usage(quota, objects)})
        return None


def _gives_back(event: ApiEvent) -> bool:
    if event.type == "DELETED" or event.resource in _CHANGING:
        return True
    return event.resource is kinds.PODS and is_finished(event.object)


def _concerned(hard: Object) -> list[Resource]:
    """The resources that a quota with these limits counts."""
    counted = {name.removeprefix("count/") for name in hard if name.startswith("count/")}
    counted |= {name.rpartition("/")[2] for name in hard} & _CORE
    counted |= {"services"} if any(name.startswith("services") for name in hard) else set()
    counted |= {"persistentvolumeclaims"} if any(name.endswith("requests.storage") for name in hard) else set()
    return [resource for resource in _COUNTED if resource.qualified in counted or resource is kinds.PODS]
