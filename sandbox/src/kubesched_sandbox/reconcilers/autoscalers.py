"""HorizontalPodAutoscalers: bring workloads to the size that the usage of their pods asks for."""

from __future__ import annotations

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import AUTOSCALERS, Object, Resource
from kubesched.controllers.autoscaling import (
    MetricError,
    PastScale,
    PodLoad,
    ScaleAdvice,
    limit_replicas,
    propose_replicas,
    window_of,
)
from kubesched_sandbox.api import Api, ApiEvent, selection
from kubesched_sandbox.api.conditions import condition, is_ready, with_condition
from kubesched_sandbox.api.usage import Usage, amount_of, requests_of
from kubesched_sandbox.reconcilers.events import Recorder
from kubesched_sandbox.reconcilers.reconciler import MANAGER, Key, ObjectReconciler, key_of

PERIOD = 15.0
_UNITS = {"cpu": "m", "memory": ""}
_LONGEST_PERIOD = 1800


class Autoscalers(ObjectReconciler):
    """Looks at each autoscaler every fifteen seconds."""

    def __init__(self, api: Api) -> None:
        super().__init__(api, AUTOSCALERS)
        self._recorder = Recorder(api, "horizontal-pod-autoscaler")
        self._advised: dict[Key, list[PastScale]] = {}
        self._changes: dict[Key, list[PastScale]] = {}

    def observe(self, event: ApiEvent) -> None:
        key = key_of(event.object)
        if event.type == "DELETED":
            self._advised.pop(key, None)
            self._changes.pop(key, None)
        elif event.old is None or event.old["spec"] != event.object["spec"]:
            self.queue.add(key)

    def sync_object(self, autoscaler: Object, now: float) -> float | None:
        key = key_of(autoscaler)
        status = {**(autoscaler.get("status") or {}), "observedGeneration": autoscaler["metadata"].get("generation", 1)}
        try:
            self._scale(key, autoscaler, status, now)
        except MetricError as error:
            self._explain(status, "ScalingActive", "False", error.reason, str(error))
            self._recorder.warning(AUTOSCALERS, autoscaler, error.reason, str(error))
        except ApiError as error:
            self._explain(status, "AbleToScale", "False", "FailedGetScale", error.message)
            self._recorder.warning(AUTOSCALERS, autoscaler, "FailedGetScale", error.message)
        self.write_status(AUTOSCALERS, autoscaler, status)
        return now + PERIOD

    def _scale(self, key: Key, autoscaler: Object, status: Object, now: float) -> None:
        target, namespace = autoscaler["spec"]["scaleTargetRef"], key[0]
        resource = self._target(target)
        scale = self.api.scale(resource, namespace, target["name"])
        current = scale["spec"]["replicas"]
        status["currentReplicas"] = scale["status"]["replicas"]
        self._explain(status, "AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size")
        if current == 0:
            words = "scaling is disabled since the replica count of the target is zero"
            self._explain(status, "ScalingActive", "False", "ScalingDisabled", words)
            status["desiredReplicas"] = 0
            return
        best = self._advice(autoscaler, scale, status, namespace)
        advised = self._advised.setdefault(key, [])
        oldest = now - max(window_of(autoscaler["spec"], "scaleUp"), window_of(autoscaler["spec"], "scaleDown"))
        advised[:] = [past for past in advised if past.at >= oldest]
        changes = self._changes.setdefault(key, [])
        changes[:] = [past for past in changes if past.at > now - _LONGEST_PERIOD]
        result = limit_replicas(autoscaler["spec"], current, best.replicas, advised, changes, now)
        advised.append(PastScale(now, best.replicas))
        is_limited = "False" if result.reason == "DesiredWithinRange" else "True"
        self._explain(status, "ScalingLimited", is_limited, result.reason, result.message)
        status["desiredReplicas"] = result.replicas
        if result.replicas != current:
            self._resize(autoscaler, status, resource, scale, result.replicas, best.text)
            changes.append(PastScale(now, result.replicas - current))

    def _resize(
        self, autoscaler: Object, status: Object, resource: Resource, scale: Object, replicas: int, words: str
    ) -> None:
        namespace, name = key_of(scale)
        changed = {**scale, "spec": {"replicas": replicas}}
        self.api.update_scale(resource, namespace, name, changed, manager=MANAGER)
        where = "above" if replicas > scale["spec"]["replicas"] else "below"
        reason = f"{words} {where} target" if where == "above" else "All metrics below target"
        self._recorder.normal(AUTOSCALERS, autoscaler, "SuccessfulRescale", f"New size: {replicas}; reason: {reason}")
        status["lastScaleTime"] = self.api.stamps.now()
        told = f"the HPA controller was able to update the target scale to {replicas}"
        self._explain(status, "AbleToScale", "True", "SucceededRescale", told)

    def _target(self, reference: Object) -> Resource:
        version = reference.get("apiVersion", "apps/v1")
        group = version.rpartition("/")[0]
        for resource in self.api.catalog.all():
            if (resource.group, resource.kind) == (group, reference["kind"]) and "scale" in resource.subresources:
                return resource
        raise MetricError("FailedGetScale", f'no matches for kind "{reference["kind"]}" in group "{group}"')

    def _advice(self, autoscaler: Object, scale: Object, status: Object, namespace: str) -> ScaleAdvice:
        """The most that a metric asks for; if one cannot be had, the others may only make it larger."""
        selector = scale["status"].get("selector")
        if not selector:
            raise MetricError("InvalidSelector", "the HPA target's scale is missing a selector")
        usage = Usage(self.api, namespace)
        wanted = selection(AUTOSCALERS, selector)
        pods = [pod for pod in usage.pods if wanted.matches(pod)]
        found: list[ScaleAdvice] = []
        current, missing = [], None
        for metric in autoscaler["spec"]["metrics"]:
            try:
                each = _by_metric(metric, pods, usage, scale["spec"]["replicas"])
            except MetricError as error:
                missing = error
                continue
            found.append(each)
            source = _SOURCES[metric["type"]]
            shown = {key: metric[source][key] for key in ("name", "container") if key in metric[source]}
            current.append({"type": metric["type"], source: {**shown, "current": each.current}})
        best = max(found, key=lambda each: each.replicas, default=None)
        if current:
            status["currentMetrics"] = current
        if best is None or (missing is not None and best.replicas < scale["spec"]["replicas"]):
            raise missing or MetricError("InvalidMetricSourceType", "there is no metric")
        words = f"the HPA was able to successfully calculate a replica count from {best.text}"
        self._explain(status, "ScalingActive", "True", "ValidMetricFound", words)
        return best

    def _explain(self, status: Object, kind: str, state: str, reason: str, message: str) -> None:
        explained = condition(kind, state, reason, message)
        status["conditions"] = with_condition(status.get("conditions") or [], explained, self.api.stamps.now())


_SOURCES = {"Resource": "resource", "ContainerResource": "containerResource"}


def _by_metric(metric: Object, pods: list[Object], usage: Usage, replicas: int) -> ScaleAdvice:
    source = metric.get(_SOURCES.get(metric["type"], ""))
    if source is None:
        kind = metric["type"]
        words = f"unable to fetch {kind} metrics: the sandbox measures cpu and memory of pods and nothing else"
        raise MetricError(f"FailedGet{kind}Metric", words)
    name = source["name"]
    if name not in _UNITS:
        raise MetricError("FailedGetResourceMetric", f"unable to get metrics for resource {name}: none is measured")
    loads = [_load(pod, name, usage, source.get("container")) for pod in pods]
    target = dict(source["target"])
    if "averageValue" in target:
        target["amount"] = amount_of(name, target["averageValue"])
    return propose_replicas(name, target, loads, replicas, _UNITS[name])


def _load(pod: Object, name: str, usage: Usage, container: str | None) -> PodLoad:
    used = usage.of(pod)
    chosen = [each for each in pod["spec"]["containers"] if container in (None, each["name"])]
    requested = [requests_of(each).get(name, 0) for each in chosen]
    # A request that one container lacks makes the share of the pod meaningless.
    together = sum(requested) if all(requested) else 0
    return PodLoad(sum(used[each["name"]][name] for each in chosen), together, is_ready(pod))
