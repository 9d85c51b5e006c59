"""Translates a legacy Policy file to a profile whose plugins do what its predicates and priorities did."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from kubesched.api.affinity import NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.schema import Mistake
from kubesched.api.selectors import label_key_fault
from kubesched.config.args import (
    CPU_AND_MEMORY,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatioParam,
    ScoringStrategy,
)
from kubesched.config.args_validation import validate_shape, validate_weights
from kubesched.config.configuration import (
    DEFAULT_SCHEDULER_NAME,
    PluginConfig,
    PluginEntry,
    Plugins,
    PluginSet,
    SchedulerConfiguration,
    WrittenConfiguration,
    WrittenProfile,
)
from kubesched.config.defaults import DEFAULT_PLUGINS
from kubesched.config.mistakes import InvalidConfigError, invalid, out_of_range
from kubesched.config.policy_file import (
    TABLE,
    LabelsPresence,
    Policy,
    PredicatePolicy,
    PriorityPolicy,
    RequestedToCapacityRatioArguments,
    read_policy,
)
from kubesched.config.reading import from_written
from kubesched.config.validation import validate_extenders

_MAX_WEIGHT = 2**31 - 1
_RATIO = "RequestedToCapacityRatioPriority"


class Translation(NamedTuple):
    """The configuration that does what a Policy did, and remarks on what has no counterpart but changes no decision."""

    configuration: SchedulerConfiguration
    notes: tuple[str, ...] = ()


def translate(text: str, *, source: str = "<policy>") -> Translation:
    """The configuration that does what the Policy in the text did, or an error with all that cannot be translated."""
    policy = read_policy(text, source=source)
    translator = _Translator()
    translator.take_predicates(policy.predicates)
    translator.take_priorities(policy.priorities)
    mistakes = [*translator.mistakes, *validate_extenders("extenders", policy.extenders)]
    mistakes += out_of_range("hardPodAffinitySymmetricWeight", policy.hard_pod_affinity_symmetric_weight, 0, 100)
    if mistakes:
        raise InvalidConfigError(mistakes, source)
    written = WrittenConfiguration(profiles=(translator.profile(policy),), extenders=policy.extenders)
    return Translation(from_written(written, source=source), tuple(_notes(policy)))


def _notes(policy: Policy) -> Iterable[str]:
    if policy.always_check_all_predicates:
        yield "alwaysCheckAllPredicates has no counterpart: a node's first reason for refusing a pod is the only one"
    if policy.priorities is None:
        yield "NodePreferAvoidPodsPriority, one of the default priorities, has no counterpart and is left out"


class _Translator:
    """Collects the predicates and priorities of a Policy, and makes the profile of them."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []
        self._predicates: set[str] = set()
        self._weights: dict[str, int] = {}  # of priorities, by their legacy names
        self._labels: list[NodeSelectorRequirement] = []
        self._ratio: RequestedToCapacityRatioArguments | None = None

    def _mistake(self, path: str, problem: str) -> None:
        self.mistakes.append(Mistake(path, problem))

    def take_predicates(self, predicates: tuple[PredicatePolicy, ...] | None) -> None:
        if predicates is None:
            self._predicates = {*TABLE.mandatory_predicates, *TABLE.default_predicates}
            return
        self._predicates = set(TABLE.mandatory_predicates)
        for i, predicate in enumerate(predicates):
            self._take_predicate(f"predicates[{i}]", predicate)
        if self._labels and "NodeAffinity" not in self._filters():
            problem = (
                "labelsPresence is checked by NodeAffinity now, which also checks the selectors of pods; "
                "add MatchNodeSelector or GeneralPredicates if that is what you want"
            )
            self._mistake("predicates", problem)

    def _take_predicate(self, path: str, predicate: PredicatePolicy) -> None:
        name, argument = TABLE.aliases.get(predicate.name, predicate.name), predicate.argument
        if name in TABLE.predicates:
            if argument is not None:
                self._mistake(f"{path}.argument", f"{predicate.name} takes no argument")
            self._predicates.add(name)
        elif predicate.name in TABLE.removed:
            self._mistake(f"{path}.name", f"{predicate.name}: {TABLE.removed[predicate.name]}")
        elif argument is None:
            self._mistake(f"{path}.name", f'unknown predicate "{predicate.name}"')
        elif (argument.service_affinity is None) == (argument.labels_presence is None):
            self._mistake(f"{path}.argument", "expected exactly one of serviceAffinity, labelsPresence")
        elif argument.labels_presence is not None:
            self._take_labels(f"{path}.argument.labelsPresence.labels", argument.labels_presence)
        else:
            self._mistake(f"{path}.argument.serviceAffinity", TABLE.removed_arguments["serviceAffinity"])

    def _take_labels(self, path: str, presence: LabelsPresence) -> None:
        for i, label in enumerate(presence.labels):
            if fault := label_key_fault(label):
                self.mistakes.append(invalid(f"{path}[{i}]", label, fault))
        self._labels += _as_requirements(presence)

    def take_priorities(self, priorities: tuple[PriorityPolicy, ...] | None) -> None:
        if priorities is None:
            self._weights = dict(TABLE.default_priorities)
            return
        for i, priority in enumerate(priorities):
            self.mistakes += out_of_range(f"priorities[{i}].weight", priority.weight, 1, _MAX_WEIGHT)
            self._take_priority(f"priorities[{i}]", priority)
        strategies = sorted(name for name in self._weights if name in TABLE.strategies)
        if len(strategies) > 1:
            problem = f"NodeResourcesFit follows one scoring strategy, so choose one of {', '.join(strategies)}"
            self._mistake("priorities", problem)

    def _take_priority(self, path: str, priority: PriorityPolicy) -> None:
        name, argument = TABLE.aliases.get(priority.name, priority.name), priority.argument
        ratio = argument.requested_to_capacity_ratio_arguments if argument else None
        if name in TABLE.priorities and name != _RATIO:
            if argument is not None:
                self._mistake(f"{path}.argument", f"{priority.name} takes no argument")
            self._weights[name] = priority.weight
        elif priority.name in TABLE.removed:
            self._mistake(f"{path}.name", f"{priority.name}: {TABLE.removed[priority.name]}")
        elif priority.name == TABLE.neutral_priority:
            return
        elif argument is None:
            missing = "needs the argument requestedToCapacityRatioArguments"
            problem = f"{priority.name} {missing}" if name == _RATIO else f'unknown priority "{priority.name}"'
            self._mistake(f"{path}.name", problem)
        elif [argument.service_anti_affinity, argument.label_preference, ratio].count(None) != 2:
            choices = "serviceAntiAffinity, labelPreference, requestedToCapacityRatioArguments"
            self._mistake(f"{path}.argument", f"expected exactly one of {choices}")
        elif ratio is not None:
            self._take_ratio(path, priority.weight, ratio)
        elif argument.label_preference is not None:
            self._mistake(f"{path}.argument.labelPreference", TABLE.removed_arguments["labelPreference"])
        else:
            self._mistake(f"{path}.argument.serviceAntiAffinity", TABLE.removed_arguments["serviceAntiAffinity"])

    def _take_ratio(self, path: str, weight: int, ratio: RequestedToCapacityRatioArguments) -> None:
        here = f"{path}.argument.requestedToCapacityRatioArguments"
        if self._ratio is not None:
            self._mistake(here, "can be given only once")
        self._ratio = ratio
        self._weights[_RATIO] = weight
        self.mistakes += validate_shape(f"{here}.shape", ratio.shape)
        self.mistakes += validate_weights(f"{here}.resources", ratio.resources)

    def _filters(self) -> list[str]:
        """The plugins that do the work of the predicates, each once, in the order predicates were checked."""
        plugins = (plugin for name in TABLE.predicates if name in self._predicates for plugin in TABLE.predicates[name])
        return list(dict.fromkeys(plugins))

    def _scorers(self) -> dict[str, int]:
        """The plugins that do the work of the priorities. Where two have become one, the first by name sets the weight,
        as in kube-scheduler."""
        weights: dict[str, int] = {}
        for name in sorted(self._weights):
            weights.setdefault(TABLE.priorities[name], self._weights[name])
        return weights

    def profile(self, policy: Policy) -> WrittenProfile:
        return WrittenProfile(
            scheduler_name=DEFAULT_SCHEDULER_NAME,
            plugins=self._plugins(),
            plugin_config=tuple(self._plugin_config(policy)),
        )

    def _plugins(self) -> Plugins:
        always = [PluginEntry(name=name, weight=DEFAULT_PLUGINS[name]) for name in TABLE.always_enabled]
        points: dict[str, list[PluginEntry]] = {}
        for name in self._filters():
            for point in TABLE.filter_points[name]:
                points.setdefault(point, []).append(PluginEntry(name=name))
        for name, weight in self._scorers().items():
            for point in TABLE.score_points[name]:
                points.setdefault(point, []).append(PluginEntry(name=name, weight=weight if point == "score" else 0))
        return Plugins(
            multi_point=PluginSet(enabled=tuple(always), disabled=(PluginEntry(name="*"),)),
            **{point: PluginSet(enabled=tuple(plugins)) for point, plugins in points.items()},
        )

    def _plugin_config(self, policy: Policy) -> Iterable[PluginConfig]:
        weight = policy.hard_pod_affinity_symmetric_weight
        if weight and "InterPodAffinityPriority" in self._weights:
            yield PluginConfig(name="InterPodAffinity", args=InterPodAffinityArgs(hard_pod_affinity_weight=weight))
        if self._labels:
            yield PluginConfig(name="NodeAffinity", args=_required_of_all_pods(self._labels))
        for name, strategy in TABLE.strategies.items():
            if name in self._weights:
                yield PluginConfig(name="NodeResourcesFit", args=self._scoring(strategy))
        if "EvenPodsSpreadPriority" in self._weights and "SelectorSpreadPriority" not in self._weights:
            # Only SelectorSpreadPriority spread pods without constraints of their own.
            yield PluginConfig(name="PodTopologySpread", args=PodTopologySpreadArgs(defaulting_type="List"))

    def _scoring(self, strategy: str) -> NodeResourcesFitArgs:
        if self._ratio is None:
            return NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(type=strategy))
        return NodeResourcesFitArgs(
            scoring_strategy=ScoringStrategy(
                type=strategy,
                resources=self._ratio.resources or CPU_AND_MEMORY,
                requested_to_capacity_ratio=RequestedToCapacityRatioParam(shape=self._ratio.shape),
            )
        )


def _as_requirements(labels: LabelsPresence) -> list[NodeSelectorRequirement]:
    operator: Literal["Exists", "DoesNotExist"] = "Exists" if labels.presence else "DoesNotExist"
    return [NodeSelectorRequirement(key=label, operator=operator) for label in labels.labels]


def _required_of_all_pods(requirements: list[NodeSelectorRequirement]) -> NodeAffinityArgs:
    term = NodeSelectorTerm(match_expressions=tuple(requirements))
    selector = NodeSelector(node_selector_terms=(term,))
    return NodeAffinityArgs(added_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=selector))
