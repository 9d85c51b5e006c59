"""Replays a recorded case through the engine, and writes the result in the format of the recordings."""

from __future__ import annotations

import copy
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
from tests.parity.claims_adapter import (
    ClaimApi,
    attempt_of,
    deallocatable,
    in_use,
    node_allocations,
)

from kubesched import config
from kubesched.admission.pods import RULES as POD_RULES
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.api.release import RELEASES
from kubesched.api.schema import convert
from kubesched.framework.cycle import Cycle, CycleStateMissingError
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.engine import Engine
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import (
    EXTENSION_POINTS,
    FilterPlugin,
    Plugin,
    PluginContext,
    PostFilterPlugin,
    PreBindPlugin,
    QueueSortPlugin,
    ReservePlugin,
)
from kubesched.framework.profile import Profile, ProfileError
from kubesched.framework.status import Status, error
from kubesched.plugins.default_preemption.plugin import DefaultPreemption, PreemptionDetails, why_not_eligible
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.dynamic_resources.writes import ClaimWrite, DeallocateClaim, DeleteClaim, UnreserveClaim
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.run_now import run_now
from kubesched.state.cluster import ClusterState
from kubesched.state.pods import PlacedPod

Json = dict[str, Any]

_FIRST_BINDING = datetime(2026, 3, 1, tzinfo=UTC)


def as_stored(obj: Json) -> Json:
    """The object; a pod that no API server has seen, since it names no scheduler, with the API's defaults."""
    if obj["kind"] != "Pod" or obj["spec"].get("schedulerName"):
        return obj
    stored = copy.deepcopy(obj)
    POD_RULES.defaults(stored)
    return stored


def record_of(obj: Json) -> KubeObject | None:
    """The record of an object, read as from an API server: null is absent. None if the scheduler reads no such."""
    kind = KINDS.get(obj["kind"])
    if kind is None:
        return None
    try:
        return msgspec.convert(obj, kind.record)
    except msgspec.ValidationError:
        record, mistakes = convert(obj, kind.record, shape_only=True)
        assert record is not None, mistakes
        return record


def features_of(release: str, case: Json | None = None) -> config.Features:
    """The feature gates of a release, by its name: at their defaults, but for those that a case names."""
    return config.Features.of((case or {}).get("featureGates", {}), RELEASES[release])


def evaluate(case: Json, release: str = "1.36") -> Json:
    """What the engine makes of a case under a release, as a RESULT of the recordings."""
    try:
        return _Replay(case, features_of(release, case)).result()
    except (config.ConfigError, ProfileError) as problem:
        return {"id": case["id"], "configError": str(problem)}


class _Replay:
    def __init__(self, case: Json, features: config.Features) -> None:
        self.case = case
        given = case.get("config")
        configuration = config.default(features) if given is None else config.from_plain(given, features=features)
        self.state = ClusterState(features)
        context = PluginContext(features, now=_FIRST_BINDING.timestamp, client=ClaimApi(self.state))
        self.profiles = {
            profile.scheduler_name: Profile(profile, in_tree(), context) for profile in configuration.profiles
        }
        # The recordings take the smallest name among equals; rows are in the order of names, so that is the first.
        self.engine = Engine(self.state, self.profiles.values(), draw=lambda _: 0)
        self.quick_engine = Engine(self.state, self.profiles.values(), draw=lambda _: 0)
        self.pending: dict[str, Pod] = {}
        self.gone: set[str] = set()
        self.bindings = 0
        self._load(case["objects"])

    def result(self) -> Json:
        result: Json = {"id": self.case["id"]}
        if "config" in self.case:
            result["plugins"] = {name: _plugins(profile) for name, profile in self.profiles.items()}
        result["nodeOrder"] = self.state.nodes.order.names()
        result["queueOrder"] = self._queue_order()
        step = self._evaluate if self.case["mode"] == "evaluate" else self._in_sequence
        result["pods"] = [step(key) for key in self.case["pending"]]
        return result

    # -- the cluster --------------------------------------------------------------------------------------------------

    def _load(self, objects: list[Json]) -> None:
        objects = [as_stored(obj) for obj in objects]
        records = [record for record in map(record_of, objects) if record is not None]
        for obj in sorted(records, key=_informer_order):
            if not isinstance(obj, Pod):
                self.state.apply(obj)
                continue
            self.state.apply(obj)
            if not obj.spec.node_name and not obj.is_finished:
                self.pending[obj.key] = obj
        for key in dict.fromkeys(self.case["pending"]):
            pod = self.pending.get(key)
            if pod is not None and pod.status.nominated_node_name and self._is_queued(pod):
                self.state.nominated.add(pod, pod.status.nominated_node_name)

    def _is_queued(self, pod: Pod) -> bool:
        """Pods of other schedulers do not count as nominated, nor, in v1.36, those that PreEnqueue keeps out."""
        return self.engine.knows(pod.spec.scheduler_name) and (
            self.state.features.release.nominated_when_added or self.engine.pre_enqueue(pod) is None
        )

    def _queue_order(self) -> list[str]:
        sorter = next(iter(self.profiles.values())).at("queue_sort", QueueSortPlugin)[0]
        waiting = [key for key in dict.fromkeys(self.case["pending"]) if key in self.pending]
        keys = {key: sorter.sort_key(self.pending[key], float(i)) for i, key in enumerate(waiting)}
        return sorted(waiting, key=keys.__getitem__)

    # -- one pod ------------------------------------------------------------------------------------------------------

    def _evaluate(self, key: str) -> Json:
        pod = self.pending.get(key)
        skipped = self._why_skipped(key, pod)
        if skipped or pod is None:
            return {"pod": key, "outcome": "skipped", "skipped": skipped}
        entry: Json = {"pod": key, "profile": pod.spec.scheduler_name}
        gate = self.engine.pre_enqueue(pod)
        if gate is not None:
            return {**entry, "outcome": "gated", "preEnqueue": _status(gate)}
        if pod.is_terminating:
            return {**entry, "outcome": "skipped", "skipped": "pod is being deleted"}
        self._decision = self.engine.decide(pod, explain=True)
        # Without an explanation shortcuts are taken. They must lead to the same place, also the second time.
        for _ in range(2 if self.profiles[pod.spec.scheduler_name].scores else 1):
            _check_same(self.quick_engine.decide(pod), self._decision)
        return {**entry, **self._describe(self._decision)}

    def _why_skipped(self, key: str, pod: Pod | None) -> str:
        if pod is None:
            bound = any(o["kind"] == "Pod" and _key(o) == key for o in self.case["objects"])
            return "already bound" if bound and key not in self.gone else "pod not found"
        if self.state.placed(pod) is not None:
            return "already bound"
        return "" if self.engine.knows(pod.spec.scheduler_name) else "no profile for schedulerName"

    def _describe(self, decision: Decision) -> Json:
        entry: Json = {"outcome": decision.outcome.value}
        trace = decision.trace
        if trace.pre_filter is not None:
            entry["preFilter"] = self._pre_filter(decision)
        if trace.filter_outcome is not None:
            entry.update(self._filters(decision))
            names = self.state.nodes.names
            entry["feasible"] = sorted(names[row] for row in np.flatnonzero(trace.filter_outcome.feasible))
            entry["nodeAllocations"] = node_allocations(
                decision, self._dynamic_resources(decision), entry["feasible"], self.state
            )
        if trace.scores is not None:
            entry.update(self._scores(decision))
        if decision.node:
            entry.setdefault("best", entry["feasible"])
            # Without scores the real scheduler takes the first node that fits; the recordings name the smallest.
            entry["chosen"] = decision.node if self._scores_at_all(decision) else entry["best"][0]
            entry["schedule"] = {"evaluatedNodes": decision.evaluated, "feasibleNodes": decision.feasible}
            chosen = entry["nodeAllocations"].get(entry["chosen"], {})
            entry["allocations"] = {claim: allocation["devices"] for claim, allocation in chosen.items()}
        if decision.outcome is Outcome.ERROR and decision.status is not None:
            entry["schedule"] = {"error": decision.status.message}
        if decision.diagnosis is not None:
            entry.update(self._failure(decision))
        return entry

    def _scores_at_all(self, decision: Decision) -> bool:
        nominated = decision.pod.status.nominated_node_name
        return decision.node == nominated or bool(self.profiles[decision.profile].scores)

    def _pre_filter(self, decision: Decision) -> Json:
        outcome = decision.trace.pre_filter
        assert outcome is not None
        entry: Json = {"code": "Success", "skip": sorted(decision.cycle.skipped_filters)}
        if outcome.rejected is not None:
            entry.update(_status(outcome.rejected))
        if outcome.names is not None:
            entry["nodes"] = sorted(outcome.names)
        return entry

    def _filters(self, decision: Decision) -> Json:
        outcome = decision.trace.filter_outcome
        assert outcome is not None
        names = self.state.nodes.names
        rows = np.flatnonzero(outcome.considered).tolist()
        first = {row: outcome.status_of(row) for row in rows}
        others: Json = {}
        for plugin in self.profiles[decision.profile].at("filter", FilterPlugin):
            if plugin.name in decision.cycle.skipped_filters:
                continue
            column = plugin.filter(decision.cycle, Nodes(self.state, np.array(rows, dtype=np.intp)))
            for row, rejection_id in zip(rows, column.tolist()):
                status = plugin.rejections.statuses[rejection_id]
                said = first[row]
                if status is None or said is None or said == status.by(plugin.name):
                    continue
                others.setdefault(names[row], {})[plugin.name] = _status(status)
        entry: Json = {"filter": {names[row]: _status(status) if status else None for row, status in first.items()}}
        if others:
            entry["filterAll"] = others
        return entry

    def _scores(self, decision: Decision) -> Json:
        scores = decision.trace.scores
        assert scores is not None
        names = [self.state.nodes.names[row] for row in scores.nodes.row_ids.tolist()]
        entry: Json = {"skipScore": sorted(scores.skipped)}
        if not self.profiles[decision.profile].scores or (scores.broken and not scores.parts):
            return {**entry, "scoreError": scores.broken.message} if scores.broken else entry
        entry["raw"] = {part.plugin: _by_name(names, part.raw) for part in scores.parts}
        if scores.broken:
            return {**entry, "scoreError": scores.broken.message}
        entry["scores"] = {part.plugin: _by_name(names, part.weighted) for part in scores.parts}
        entry["total"] = total = _by_name(names, scores.total)
        entry["best"] = sorted(name for name in names if total[name] == max(total.values()))
        return entry

    def _failure(self, decision: Decision) -> Json:
        assert decision.diagnosis is not None
        entry: Json = {
            "fitError": decision.diagnosis.message(),
            "message": decision.message,
            "unschedulablePlugins": sorted(decision.diagnosis.unschedulable_plugins),
        }
        idle = deallocatable(decision, self._dynamic_resources(decision))
        attempt = attempt_of(decision)
        if idle:
            entry["deallocatable"] = idle
        if attempt is not None and attempt.writes and len(idle) <= 1:
            entry["claimWrites"] = [_written(write) for write in attempt.writes]
        result, status = decision.post_filter, decision.post_filter_status
        if result is None and status is None:
            return entry
        post: Json = {"code": "Success"}
        if status is not None:
            said = {**_status(status), "message": status.message}
            post = {key: value for key, value in said.items() if value}
        if result is not None and result.nominated is not None:
            post["nominating"] = result.nominated
        if result is not None and result.victims:
            post["victims"] = [victim.pod.key for victim in result.victims]
        entry["postFilter"] = post
        if any(plugin.name == DefaultPreemption.name for plugin in self._post_filters(decision)):
            entry["preemption"] = self._preemption(decision)
        return entry

    def _dynamic_resources(self, decision: Decision) -> Plugin | None:
        return self.profiles[decision.profile].plugins.get("DynamicResources")

    def _post_filters(self, decision: Decision) -> tuple[PostFilterPlugin, ...]:
        return self.profiles[decision.profile].at("post_filter", PostFilterPlugin)

    def _preemption(self, decision: Decision) -> Json:
        assert decision.diagnosis is not None
        ineligible = why_not_eligible(decision.cycle, decision.diagnosis)
        if ineligible:
            return {"eligible": False, "reason": ineligible}
        entry: Json = {"eligible": True}
        details = decision.post_filter.details if decision.post_filter else None
        run = details.run if isinstance(details, PreemptionDetails) else None
        if run is None:
            return entry
        names = self.state.nodes.names
        if len(run.potential):
            entry["potential"] = sorted(names[row] for row in run.potential)
        if run.has_candidates:
            entry["candidates"] = {names[c.row]: _candidate(c.victims, c.violations) for c in run.candidates()}
            assert isinstance(details, PreemptionDetails)
            entry["best"] = [names[row] for row in details.best]
            entry["chosen"] = entry["best"][0]
            entry["victims"] = [victim.pod.key for victim in run.candidate(details.best[0]).victims]
        statuses = {names[row]: _status(status) for status, rows in run.failures for row in rows.tolist()}
        if statuses:
            entry["statuses"] = statuses
        return entry

    # -- one after another --------------------------------------------------------------------------------------------

    def _in_sequence(self, key: str) -> Json:
        entry = self._evaluate(key)
        pod = self.pending.get(key)
        if entry["outcome"] == "scheduled":
            assert pod is not None
            self._bind(entry, pod)
        elif entry["outcome"] == "unschedulable":
            assert pod is not None
            self._carry_out(pod, self._decision)
        if entry["outcome"] not in ("skipped", "gated"):
            entry["inUse"] = in_use(self.state)
        return entry

    def _bind(self, entry: Json, pod: Pod) -> None:
        cycle = self._decision.cycle
        self.state.assume(pod, entry["chosen"])
        done: list[ReservePlugin] = []
        for plugin in self.profiles[entry["profile"]].at("reserve", ReservePlugin):
            done.append(plugin)
            try:
                status = plugin.reserve(cycle, pod, entry["chosen"])
                failure = status.by(plugin.name) if status is not None else None
            except CycleStateMissingError:
                failure = error(f'running Reserve plugin "{plugin.name}": not found')
            if failure is not None:
                for reserved in reversed(done):
                    reserved.unreserve(cycle, pod, entry["chosen"])
                self.state.forget(pod)
                entry["outcome"], entry["reserve"] = "reserve-failed", _status(failure)
                return
        broken = self._write_claims(entry, pod, cycle) if self.case["mode"] == "sequence-bind" else None
        if broken is not None:
            for reserved in reversed(done):
                reserved.unreserve(cycle, pod, entry["chosen"])
            attempt = attempt_of(self._decision)
            entry["claimWrites"] = [] if attempt is None else [_written(write) for write in attempt.writes]
            self._run_deferred(cycle)
            self.state.forget(pod)
            entry["outcome"], entry["reserve"] = "prebind-failed", _status(broken.by("PreBind"))
            return
        self.state.apply(bound_pod(pod, entry["chosen"], self.bindings))
        self.bindings += 1
        del self.pending[pod.key]

    def _write_claims(self, entry: Json, pod: Pod, cycle: Cycle) -> Status | None:
        """What DynamicResources does before a pod is bound, if it has anything to do; other plugins are left out."""
        about = (cycle, pod, entry["chosen"])
        for plugin in self.profiles[entry["profile"]].at("pre_bind", PreBindPlugin):
            if isinstance(plugin, DynamicResources) and plugin.pre_bind_pre_flight(*about) is None:
                status: Status | None = _now(plugin.pre_bind(*about))
                return status
        return None

    def _run_deferred(self, cycle: Cycle) -> None:
        for work in cycle.deferred:
            assert _now(work()) is None  # type: ignore[arg-type]
        cycle.deferred = ()

    def _carry_out(self, pod: Pod, decision: Decision) -> None:
        if self.case["mode"] == "sequence-bind":
            self._run_deferred(decision.cycle)
        result = decision.post_filter
        if result is None or result.nominated is None:
            return
        evicted = [victim for victim in result.victims if not victim.pod.is_terminating]
        for victim in evicted:
            self.state.delete(victim.pod)
            self.gone.add(victim.pod.key)
        if evicted:
            for other in self.state.nominated.on_node(result.nominated):
                if other.priority < pod.priority:
                    self._nominate(other, "")
        self._nominate(pod, result.nominated)

    def _nominate(self, pod: Pod, node_name: str) -> None:
        status = msgspec.structs.replace(pod.status, nominated_node_name=node_name)
        pod = self.pending[pod.key] = msgspec.structs.replace(pod, status=status)
        self.state.nominated.remove(pod)
        if node_name:
            self.state.nominated.add(pod, node_name)


def _now(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that has nothing to wait for."""
    results: list[Any] = []

    async def keep() -> None:
        results.append(await coroutine)

    run_now(keep())
    return results[0]


def _check_same(quick: Decision, explained: Decision) -> None:
    for field in ("outcome", "node", "evaluated", "feasible", "message"):
        ours, theirs = getattr(quick, field), getattr(explained, field)
        assert ours == theirs, f"{quick.pod.key}: {field} is {ours!r} in short, {theirs!r} explained"


def bound_pod(pod: Pod, node_name: str, number: int) -> Pod:
    """The pod as the API server would show it after the number-th binding of a recording."""
    started = (_FIRST_BINDING + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%SZ")
    spec = msgspec.structs.replace(pod.spec, node_name=node_name)
    status = msgspec.structs.replace(pod.status, nominated_node_name="", start_time=started)
    return msgspec.structs.replace(pod, spec=spec, status=status)


def _informer_order(obj: KubeObject) -> tuple[bool, str, str]:
    return isinstance(obj, Pod), obj.namespace, obj.name


def _key(obj: Json) -> str:
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}"


def _plugins(profile: Profile) -> Json:
    points: Json = {}
    for point, kind in EXTENSION_POINTS.items():
        head, *rest = point.split("_")
        entries: list[Json] = [{"name": plugin.name} for plugin in profile.at(point, kind)]
        if point == "score":
            for entry in entries:
                entry["weight"] = profile.weights[entry["name"]]
        points[head + "".join(word.title() for word in rest)] = entries or None
    return points


def _status(status: Status) -> Json:
    entry: Json = {"code": str(status.code), "reasons": list(status.reasons)}
    return {"plugin": status.plugin, **entry} if status.plugin else entry


def _by_name(names: list[str], scores: Any) -> dict[str, int]:
    values = [scores] * len(names) if isinstance(scores, int) else scores.tolist()
    return dict(zip(names, values))


def _candidate(victims: tuple[PlacedPod, ...], violations: int) -> Json:
    entry: Json = {"victims": [victim.pod.key for victim in victims]}
    return {**entry, "pdbViolations": violations} if violations else entry


def _written(write: ClaimWrite) -> str:
    """In short: `deallocate gpu`."""
    verbs = {UnreserveClaim: "unreserve", DeallocateClaim: "deallocate", DeleteClaim: "delete"}
    return f"{verbs[type(write)]} {write.claim.name}"
