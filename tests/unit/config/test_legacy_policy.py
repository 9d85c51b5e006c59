from __future__ import annotations

import json
from typing import Any

import pytest

from kubesched import config
from kubesched.config.args import InterPodAffinityArgs, NodeResourcesFitArgs, PodTopologySpreadArgs
from kubesched.config.policy import translate
from kubesched.config.policy_file import TABLE

TRANSLATABLE_PRIORITIES = sorted(TABLE.priorities.keys() - {"RequestedToCapacityRatioPriority"})
SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]


def policy(**fields: Any) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "Policy", **fields})


def profile_of(**fields: Any) -> config.ProfileConfig:
    [profile] = translate(policy(**fields)).configuration.profiles
    return profile


def priorities(*names: str, weight: int = 1) -> list[dict[str, Any]]:
    return [{"name": name, "weight": weight} for name in names]


def names(plugins: config.PluginSet) -> list[str]:
    return [plugin.name for plugin in plugins.enabled]


def mistakes_in(text: str) -> list[str]:
    with pytest.raises(config.ConfigError) as caught:
        translate(text)
    return [str(mistake) for mistake in caught.value.mistakes]


def test_an_empty_policy_is_the_default_predicates_and_priorities() -> None:
    profile = profile_of()
    assert names(profile.plugins.filter) == [
        "NodeUnschedulable",
        "NodeResourcesFit",
        "NodeName",
        "NodePorts",
        "NodeAffinity",
        "VolumeRestrictions",
        "TaintToleration",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
    ]
    assert {plugin.name: plugin.weight for plugin in profile.plugins.score.enabled} == {
        "NodeResourcesBalancedAllocation": 1,
        "PodTopologySpread": 2,
        "ImageLocality": 1,
        "InterPodAffinity": 1,
        "NodeResourcesFit": 1,
        "NodeAffinity": 1,
        "TaintToleration": 1,
    }


def test_empty_lists_leave_only_what_is_mandatory() -> None:
    plugins = profile_of(predicates=[], priorities=[]).plugins
    assert names(plugins.filter) == ["NodeUnschedulable", "TaintToleration"]
    assert names(plugins.score) == []
    assert "DefaultBinder" in names(plugins.multi_point)
    assert "NodeResourcesFit" not in names(plugins.multi_point)


@pytest.mark.parametrize("name", sorted(TABLE.predicates))
def test_every_predicate_has_a_plugin_that_filters(name: str) -> None:
    filters = names(profile_of(predicates=[{"name": name}]).plugins.filter)
    assert set(TABLE.predicates[name]) <= set(filters)


@pytest.mark.parametrize("name", TRANSLATABLE_PRIORITIES)
def test_every_priority_has_a_plugin_that_scores_with_its_weight(name: str) -> None:
    [plugin] = profile_of(priorities=priorities(name, weight=7)).plugins.score.enabled
    assert (plugin.name, plugin.weight) == (TABLE.priorities[name], 7)


def test_the_tables_agree_with_each_other() -> None:
    assert TABLE.predicates.keys() >= {*TABLE.mandatory_predicates, *TABLE.default_predicates}
    assert TABLE.priorities.keys() >= TABLE.default_priorities.keys()
    assert {plugin for plugins in TABLE.predicates.values() for plugin in plugins} == TABLE.filter_points.keys()
    assert set(TABLE.priorities.values()) == TABLE.score_points.keys()


def test_volumes_are_also_reserved_and_bound() -> None:
    plugins = profile_of(predicates=[{"name": "CheckVolumeBinding"}]).plugins
    points = (plugins.pre_filter, plugins.filter, plugins.reserve, plugins.pre_bind)
    assert all("VolumeBinding" in names(point) for point in points)


def test_old_names_still_work() -> None:
    assert "NodePorts" in names(profile_of(predicates=[{"name": "PodFitsPorts"}]).plugins.filter)
    scorers = profile_of(priorities=priorities("ServiceSpreadingPriority")).plugins.score
    assert names(scorers) == ["PodTopologySpread"]


def test_equal_priority_does_nothing() -> None:
    assert names(profile_of(priorities=priorities("EqualPriority")).plugins.score) == []


@pytest.mark.parametrize(
    ("name", "strategy"), [("MostRequestedPriority", "MostAllocated"), ("LeastRequestedPriority", "LeastAllocated")]
)
def test_how_full_nodes_should_be_is_a_strategy(name: str, strategy: str) -> None:
    args = profile_of(priorities=priorities(name)).plugin_config["NodeResourcesFit"]
    assert isinstance(args, NodeResourcesFitArgs)
    assert args.scoring_strategy.type == strategy


def test_requested_to_capacity_ratio_takes_its_shape_along() -> None:
    argument = {"requestedToCapacityRatioArguments": {"shape": SHAPE, "resources": [{"name": "gpu", "weight": 5}]}}
    profile = profile_of(priorities=[{"name": "Mine", "weight": 3, "argument": argument}])
    args = profile.plugin_config["NodeResourcesFit"]
    assert isinstance(args, NodeResourcesFitArgs)
    strategy = args.scoring_strategy
    assert strategy.type == "RequestedToCapacityRatio"
    assert [(each.name, each.weight) for each in strategy.resources] == [("gpu", 5)]
    assert strategy.requested_to_capacity_ratio is not None
    assert [point.score for point in strategy.requested_to_capacity_ratio.shape] == [0, 10]
    assert [(each.name, each.weight) for each in profile.plugins.score.enabled] == [("NodeResourcesFit", 3)]


def test_two_strategies_at_once_are_refused() -> None:
    [mistake] = mistakes_in(policy(priorities=priorities("MostRequestedPriority", "LeastRequestedPriority")))
    assert mistake.endswith("choose one of LeastRequestedPriority, MostRequestedPriority")


@pytest.mark.parametrize(
    ("listed", "defaulting"),
    [
        (("EvenPodsSpreadPriority",), "List"),
        (("SelectorSpreadPriority",), "System"),
        (("SelectorSpreadPriority", "EvenPodsSpreadPriority"), "System"),
    ],
)
def test_pods_that_do_not_ask_are_spread_only_with_selector_spread(listed: tuple[str, ...], defaulting: str) -> None:
    args = profile_of(priorities=priorities(*listed)).plugin_config["PodTopologySpread"]
    assert isinstance(args, PodTopologySpreadArgs)
    assert args.defaulting_type == defaulting


def test_hard_pod_affinity_weight_goes_to_inter_pod_affinity() -> None:
    args = profile_of(hardPodAffinitySymmetricWeight=40).plugin_config["InterPodAffinity"]
    assert args == InterPodAffinityArgs(hard_pod_affinity_weight=40)


def test_presence_of_labels_becomes_affinity_of_all_pods() -> None:
    wanted = [
        {"name": "MatchNodeSelector"},
        {"name": "HasDisk", "argument": {"labelsPresence": {"labels": ["disk"], "presence": True}}},
        {"name": "NotRetiring", "argument": {"labelsPresence": {"labels": ["retiring"], "presence": False}}},
    ]
    translated = config.to_plain(translate(policy(predicates=wanted)).configuration)
    [entry] = [each for each in translated["profiles"][0]["pluginConfig"] if each["name"] == "NodeAffinity"]
    assert entry["args"]["addedAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": "disk", "operator": "Exists"},
                    {"key": "retiring", "operator": "DoesNotExist"},
                ]
            }
        ]
    }


def test_presence_of_labels_needs_the_selectors_of_pods_to_be_checked_too() -> None:
    argument = {"labelsPresence": {"labels": ["disk"], "presence": True}}
    [mistake] = mistakes_in(policy(predicates=[{"name": "HasDisk", "argument": argument}]))
    assert mistake.startswith("predicates: labelsPresence is checked by NodeAffinity now")


def test_all_that_cannot_be_translated_is_named_at_once() -> None:
    text = policy(
        predicates=[
            {"name": "Nonsense"},
            {"name": "CheckServiceAffinity"},
            {"name": "Mine", "argument": {"serviceAffinity": {"labels": ["zone"]}}},
            {"name": "Both", "argument": {"serviceAffinity": {}, "labelsPresence": {}}},
            {"name": "HostName", "argument": {"labelsPresence": {"labels": ["a"]}}},
            {"name": "MatchNodeSelector"},
            {"name": "BadLabel", "argument": {"labelsPresence": {"labels": ["-a"]}}},
        ],
        priorities=[
            {"name": "Nonsense", "weight": 1},
            {"name": "NodePreferAvoidPodsPriority", "weight": 10000},
            {"name": "LeastRequestedPriority", "weight": 0},
            {"name": "ByLabel", "weight": 1, "argument": {"labelPreference": {"label": "a", "presence": True}}},
            {"name": "ByService", "weight": 1, "argument": {"serviceAntiAffinity": {"label": "a"}}},
            {"name": "RequestedToCapacityRatioPriority", "weight": 1},
        ],
        extenders=[{"prioritizeVerb": "score"}],
        hardPodAffinitySymmetricWeight=101,
    )
    assert [mistake.split(": ")[0] for mistake in mistakes_in(text)] == [
        "predicates[0].name",
        "predicates[1].name",
        "predicates[2].argument.serviceAffinity",
        "predicates[3].argument",
        "predicates[4].argument",
        "predicates[6].argument.labelsPresence.labels[0]",
        "priorities[0].name",
        "priorities[1].name",
        "priorities[2].weight",
        "priorities[3].argument.labelPreference",
        "priorities[4].argument.serviceAntiAffinity",
        "priorities[5].name",
        "extenders[0].weight",
        "hardPodAffinitySymmetricWeight",
    ]


def test_a_ratio_is_given_once_and_with_a_shape() -> None:
    ratio = {"name": "R", "weight": 1, "argument": {"requestedToCapacityRatioArguments": {"shape": []}}}
    found = mistakes_in(policy(priorities=[ratio, ratio]))
    assert "priorities[1].argument.requestedToCapacityRatioArguments: can be given only once" in found
    assert sum(".shape: Required value" in mistake for mistake in found) == 2


def test_extenders_are_read_whatever_the_case_and_time_out_in_nanoseconds() -> None:
    extender = {"URLPrefix": "http://e", "enableHttps": True, "httpTimeout": 5_000_000_000, "apiVersion": "v1beta1"}
    [translated] = translate(policy(extenders=[extender])).configuration.extenders
    assert translated == config.ExtenderConfig(
        url_prefix="http://e", enable_https=True, http_timeout=config.Duration(5)
    )


def test_remarks_tell_what_is_lost_without_changing_decisions() -> None:
    translation = translate(policy(alwaysCheckAllPredicates=True, priorities=[]))
    assert [note.split()[0] for note in translation.notes] == ["alwaysCheckAllPredicates"]


def test_a_translation_reads_back_the_same() -> None:
    translated = translate(policy()).configuration
    assert config.load(config.to_yaml(translated)) == translated


def test_what_is_no_policy_is_refused() -> None:
    assert mistakes_in("kind: Policy\napiVersion: v2\npredicate: []\n") == [
        'apiVersion: expected "v1", got "v2"',
        'predicate: unknown field; did you mean "predicates"?',
    ]
    assert mistakes_in("[]") == ["expected a Policy, got no mapping"]
    assert mistakes_in("a: [")[0].startswith("line ")
