"""What may be expected of pods, each a check: is it so, and if not, which pods are elsewhere, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.ask.edits import FailNodes
from kubesched.ask.explain.explanation import explain_pod
from kubesched.ask.hypothetical import apply_hypothetical
from kubesched.ask.output import first_of
from kubesched.ask.placement_tests.case import AtMost, Expectation, Labels, SpreadOver
from kubesched.ask.what_if.answer import ClusterOutcome, outcome
from kubesched.config import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.nodes import label_of
from kubesched.simulate.placement import capacity, model_of

_NAMED = 5
_REASONS = 6
_NODES_NAMED = 3
_BEST = 3


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation, and whether it holds."""

    expected: str
    """In words."""
    holds: bool
    problems: tuple[str, ...] = ()
    """What is otherwise, a line each."""
    explanation: tuple[str, ...] = ()
    """The decision about one of the pods that are not where they should be."""


@dataclass(frozen=True)
class ScheduledCluster:
    """A cluster on which all pods have been scheduled."""

    outcome: ClusterOutcome
    settings: SchedulerConfiguration
    seed: int = 0
    plugins: Registry | None = None

    def pods(self, expectation: Expectation) -> dict[str, tuple[Pod, str]]:
        """The pods that are meant, by name, with the reasons of those that wait."""
        return {key: found for key, found in self.outcome.pods.items() if selects(found[0], expectation)}

    def node(self, pod: Pod) -> Node:
        return self.outcome.nodes[pod.spec.node_name]

    def model(self) -> ClusterModel:
        """A new one, to ask."""
        return ClusterModel(self.outcome.settled, self.settings, seed=self.seed, plugins=self.plugins)


def selects(pod: Pod, expectation: Expectation) -> bool:
    return (
        expectation.pods.items() <= pod.metadata.labels.items()
        and expectation.namespace in ("", pod.namespace)
        and (not expectation.name or fnmatchcase(pod.name, expectation.name))
    )


def checks(cluster: ScheduledCluster, expectation: Expectation) -> list[Check]:
    """Every check that the expectation asks for."""
    return list(_Checker(cluster, expectation).checks())


class _Checker:
    """The checks of one expectation."""

    def __init__(self, cluster: ScheduledCluster, expectation: Expectation) -> None:
        self._cluster = cluster
        self._expectation = expectation
        self._pods = cluster.pods(expectation)
        self._placed = {key: pod for key, (pod, _) in self._pods.items() if pod.spec.node_name}
        self._subject = describe_pods(expectation)

    def checks(self) -> Iterator[Check]:
        expectation = self._expectation
        if not self._pods:
            yield Check(f"there are {self._subject}", False, ("no pod is meant",))
            return
        if expectation.land_on is not None:
            yield self._lands_on(expectation.land_on)
        if expectation.never_on is not None:
            yield self._never_on(expectation.never_on)
        if expectation.spread_over is not None:
            yield self._spreads(expectation.spread_over)
        if expectation.at_most is not None:
            yield self._at_most(expectation.at_most)
        if expectation.pending is not None:
            yield self._pending(expectation.pending)
        if expectation.preempts_only is not None:
            yield self._preempts_only(expectation.preempts_only)
        if expectation.fits is not None:
            yield self._fits(expectation.fits)
        if expectation.survives_loss_of is not None:
            yield self._survives(expectation.survives_loss_of)

    def _check(self, what: str, problems: Iterable[str], about: str | None = None) -> Check:
        """`about` is the pod whose decision is explained, if the check does not hold."""
        lines = tuple(problems)
        explanation = _explain(self._cluster.model(), self._pods[about][0]) if lines and about is not None else ()
        return Check(f"{self._subject} {what}", not lines, tuple(first_of(lines, _NAMED)), explanation)

    def _unplaced(self) -> dict[str, str]:
        return {
            key: f"{key} is pending: {reason}" for key, (pod, reason) in self._pods.items() if not pod.spec.node_name
        }

    # -- where --------------------------------------------------------------------------------------------------------

    def _lands_on(self, labels: Labels) -> Check:
        wrong = self._unplaced()
        for key, pod in self._placed.items():
            node = self._cluster.node(pod)
            if not _has(node, labels):
                has = {name: label_of(node, name) for name in labels}
                wrong[key] = f"{key} is on {node.name}, which has {_labels(has)}"
        return self._check(f"land on nodes with {_labels(labels)}", wrong.values(), next(iter(wrong), None))

    def _never_on(self, labels: Labels) -> Check:
        wrong = {
            key: f"{key} is on {pod.spec.node_name}"
            for key, pod in self._placed.items()
            if _has(self._cluster.node(pod), labels)
        }
        return self._check(f"are never on nodes with {_labels(labels)}", wrong.values(), next(iter(wrong), None))

    def _per_domain(self, key: str) -> Counter[str]:
        """How many of the pods are in each domain that there is, empty ones included."""
        counts = Counter({value: 0 for node in self._cluster.outcome.nodes.values() if (value := label_of(node, key))})
        counts.update(label_of(self._cluster.node(pod), key) or f"(no {key})" for pod in self._placed.values())
        return counts

    def _spreads(self, spread: SpreadOver) -> Check:
        counts, problems = self._per_domain(spread.topology_key), list(self._unplaced().values())
        limits = []
        if spread.max_skew is not None:
            limits.append(f"a skew of at most {spread.max_skew}")
            skew = max(counts.values()) - min(counts.values()) if counts else 0
            if skew > spread.max_skew:
                problems.append(f"the skew is {skew}: {_counts(counts)}")
        if spread.min_domains is not None:
            limits.append(f"at least {spread.min_domains} domains")
            used = sum(count > 0 for count in counts.values())
            if used < spread.min_domains:
                problems.append(f"they are in {used}: {_counts(counts)}")
        what = f"spread over {spread.topology_key} with {' and '.join(limits)}"
        return self._check(what, problems, next(iter(self._unplaced() or self._placed), None))

    def _at_most(self, limit: AtMost) -> Check:
        crowded = {domain: count for domain, count in self._per_domain(limit.per).items() if count > limit.pods}
        problems = [f"{limit.per} {domain} has {count}" for domain, count in crowded.items()]
        last = [key for key, pod in self._placed.items() if label_of(self._cluster.node(pod), limit.per) in crowded]
        return self._check(f"are at most {limit.pods} per {limit.per}", problems, last[-1] if last else None)

    def _pending(self, expected: bool | str) -> Check:
        if expected is False:
            unplaced = self._unplaced()
            return self._check("are all placed", unplaced.values(), next(iter(unplaced), None))
        wrong = {key: f"{key} is on {pod.spec.node_name}" for key, pod in self._placed.items()}
        if isinstance(expected, str):
            for key, (pod, reason) in self._pods.items():
                if not pod.spec.node_name and expected not in reason:
                    wrong[key] = f"{key} is pending for another reason: {reason}"
        because = f", as {expected!r}" if isinstance(expected, str) else ""
        return self._check(f"are pending{because}", wrong.values(), next(iter(wrong), None))

    # -- others, more, less -------------------------------------------------------------------------------------------

    def _preempts_only(self, labels: Labels) -> Check:
        given = {obj.key: obj for obj in self._cluster.outcome.objects if isinstance(obj, Pod)}
        pods = {**{key: pod for key, (pod, _) in self._cluster.outcome.pods.items()}, **given}
        problems = list(self._unplaced().values())
        for eviction in self._cluster.outcome.report.preemptions:
            if eviction.preemptor not in self._pods:
                continue
            for victim in eviction.victims:
                pod = pods.get(victim)
                if not labels or pod is None or not labels.items() <= pod.metadata.labels.items():
                    problems.append(f"{eviction.preemptor} evicts {victim} from {eviction.node}")
        return self._check(f"evict only pods with {_labels(labels)}" if labels else "evict no pod", problems)

    def _fits(self, times: int) -> Check:
        pod = next(iter(self._pods.values()))[0]
        model = model_of(pod)
        assert model is not None, "a pod is its own model"
        missing = times - len(self._placed)
        problems = []
        if missing > 0:
            more = capacity(self._cluster.model(), model, most=missing)
            if more.fit < missing:
                problems.append(f"{len(self._placed) + more.fit} fit; what stops the next one: {more.stopped_by}")
        return self._check(f"fit {times} times", problems)

    def _survives(self, key: str) -> Check:
        problems = []
        domains = sorted({value for node in self._cluster.outcome.nodes.values() if (value := label_of(node, key))})
        for domain in domains:
            remaining = apply_hypothetical(self._cluster.outcome.settled, [FailNodes((f"{key}={domain}",))])
            after = outcome(remaining, self._cluster.settings, seed=self._cluster.seed, plugins=self._cluster.plugins)
            for name in self._pods:
                pod, reason = after.pods.get(name, (None, "it is gone"))
                if pod is None or not pod.spec.node_name:
                    problems.append(f"without {key} {domain}, {name} is pending: {reason}")
        if not domains:
            problems.append(f"no node has a {key}")
        return self._check(f"survive the loss of any {key}", problems)


def describe_pods(expectation: Expectation) -> str:
    """Which pods an expectation is about, in words."""
    parts = [f"pods with {_labels(expectation.pods)}" if expectation.pods else "pods"]
    if expectation.name:
        parts.append(f"named {expectation.name}")
    if expectation.namespace:
        parts.append(f"in {expectation.namespace}")
    return " ".join(parts if len(parts) > 1 or expectation.pods else ["all pods"])


def _has(node: Node, labels: Labels) -> bool:
    return all(label_of(node, key) == value for key, value in labels.items())


def _labels(labels: Mapping[str, str | None]) -> str:
    return ", ".join(f"no {key}" if value is None else f"{key}={value}" for key, value in labels.items())


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{domain} {count}" for domain, count in sorted(counts.items()))


def _explain(cluster: ClusterModel, pod: Pod) -> tuple[str, ...]:
    """The decision about the pod as if it had still to be made. The cluster is without the pod afterwards."""
    explanation = explain_pod(cluster, pod)
    groups: dict[str, list[str]] = {}
    for verdict in explanation.verdicts:
        if not verdict.fits and verdict.refusal is not None:
            groups.setdefault(f"{verdict.refusal.plugin}: {verdict.refusal.text}", []).append(verdict.node)
    lines = [f"the decision about {explanation.pod}:"]
    if explanation.gate is not None:
        lines.append(f"  {explanation.gate.plugin}: {explanation.gate.text}")
    if explanation.pre_filters.refusal is not None:
        lines.append(f"  {explanation.pre_filters.refusal.plugin}: {explanation.pre_filters.refusal.text}")
        groups = {}
    ranked = sorted(groups.items(), key=lambda group: -len(group[1]))
    lines += [f"  {_nodes(names)}: {reason}" for reason, names in ranked[:_REASONS]]
    if len(ranked) > _REASONS:
        lines.append(f"  and {len(ranked) - _REASONS} more reasons")
    for score in explanation.scores[:_BEST]:
        parts = sorted(score.parts, key=lambda part: -part.weighted)
        made_of = ", ".join(f"{part.plugin} {part.weighted}" for part in parts if part.weighted)
        lines.append(f"  {score.node}: score {score.total}{f' ({made_of})' if made_of else ''}")
    if not explanation.scores and explanation.node:
        lines.append(f"  {explanation.node}: the only node that fits")
    return tuple(lines)


def _nodes(names: list[str]) -> str:
    shown = ", ".join(names[:_NODES_NAMED]) + (", ..." if len(names) > _NODES_NAMED else "")
    return f"{len(names)} node{'' if len(names) == 1 else 's'} ({shown})"
