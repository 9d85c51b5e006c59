from __future__ import annotations

from typing import Any

import pytest

from kubesched import config
from kubesched.config.features import DEFAULT_FEATURES

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def found(features: config.Features = DEFAULT_FEATURES, **fields: Any) -> list[tuple[str, ...]]:
    """Field and kind of every mistake; none if the configuration is valid."""
    try:
        config.from_plain({**HEADER, **fields}, features=features)
    except config.InvalidConfigError as error:
        return [tuple(str(mistake).split(": ")[:2]) for mistake in error.mistakes]
    return []


def in_args(plugin: str, args: Any, features: config.Features = DEFAULT_FEATURES) -> list[tuple[str, ...]]:
    prefix = "profiles[0].pluginConfig[0].args"
    mistakes = found(features, profiles=[{"pluginConfig": [{"name": plugin, "args": args}]}])
    return [(path.removeprefix(prefix).removeprefix("."), kind) for path, kind in mistakes]


def enabled(*names: str) -> dict[str, Any]:
    return {"enabled": [{"name": name} for name in names]}


def test_mistakes_say_field_kind_value_and_what_is_wrong() -> None:
    with pytest.raises(config.InvalidConfigError) as caught:
        config.from_plain({**HEADER, "parallelism": -1}, source="c.yaml")
    assert str(caught.value) == "c.yaml: parallelism: Invalid value: -1: must be greater than zero"


def test_all_mistakes_are_found_at_once() -> None:
    assert found(
        parallelism=0,
        percentageOfNodesToScore=101,
        podInitialBackoffSeconds=0,
        podMaxBackoffSeconds=-1,
        clientConnection={"burst": -1},
        profiles=[{"schedulerName": "", "percentageOfNodesToScore": -1}],
    ) == [
        ("clientConnection.burst", "Invalid value"),
        ("parallelism", "Invalid value"),
        ("profiles[0].schedulerName", "Required value"),
        ("profiles[0].percentageOfNodesToScore", "Invalid value"),
        ("percentageOfNodesToScore", "Invalid value"),
        ("podInitialBackoffSeconds", "Invalid value"),
        ("podMaxBackoffSeconds", "Invalid value"),
    ]


@pytest.mark.parametrize(
    ("election", "fields"),
    [
        ({"leaseDuration": "-1s"}, ["leaseDuration", "leaseDuration"]),
        ({"renewDeadline": "-1s"}, ["renewDeadline"]),
        ({"retryPeriod": "-1s"}, ["retryPeriod"]),
        ({"renewDeadline": "15s"}, ["leaseDuration"]),
        ({"resourceLock": "endpoints"}, ["resourceLock"]),
        ({"leaderElect": False, "leaseDuration": "-1s", "resourceLock": "endpoints"}, []),
    ],
)
def test_leader_election(election: dict[str, Any], fields: list[str]) -> None:
    assert found(leaderElection=election) == [(f"leaderElection.{field}", "Invalid value") for field in fields]


def test_durations_are_shown_as_written() -> None:
    with pytest.raises(config.InvalidConfigError) as caught:
        config.from_plain({**HEADER, "leaderElection": {"renewDeadline": "90s"}})
    [mistake] = caught.value.mistakes
    assert mistake.problem == 'Invalid value: "15s": must be greater than renewDeadline (1m30s)'


def test_profiles_need_names_of_their_own() -> None:
    assert found(profiles=[{"schedulerName": "a"}, {"schedulerName": "a"}, {}]) == [
        ("profiles[1].schedulerName", "Duplicate value"),
        ("profiles[2].schedulerName", "Required value"),
    ]


@pytest.mark.parametrize("name", ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"])
def test_removed_plugins_are_refused_except_where_upstream_does_not_look(name: str) -> None:
    profile = {"plugins": {"filter": enabled(name), "multiPoint": enabled(name)}, "pluginConfig": [{"name": name}]}
    assert found(profiles=[profile]) == [
        ("profiles[0].plugins.filter.enabled[0]", "Invalid value"),
        ("profiles[0].pluginConfig[0]", "Invalid value"),
    ]


def test_arguments_are_given_once_and_each_time_checked() -> None:
    twice = [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": weight}} for weight in (1, 101)]
    assert found(profiles=[{"pluginConfig": twice}]) == [
        ("profiles[0].pluginConfig[1]", "Duplicate value"),
        ("profiles[0].pluginConfig[1].args.hardPodAffinityWeight", "Invalid value"),
    ]


def with_sorters(name: str, first: Any, second: Any) -> list[tuple[str, ...]]:
    """The mistakes in two profiles that sort the queue by a plugin, each with arguments of its own."""
    plugins = {"queueSort": enabled(name)}
    return found(
        profiles=[
            {"schedulerName": scheduler, "plugins": plugins, "pluginConfig": [{"name": name, "args": args}]}
            for scheduler, args in (("a", first), ("b", second))
        ]
    )


def test_true_is_not_one_in_the_arguments_of_the_plugin_that_sorts_the_queue() -> None:
    assert with_sorters("Mine", {"a": 1, "b": 2}, {"b": 2, "a": 1}) == []
    assert with_sorters("Mine", {"a": 1}, {"a": True}) == [("profiles[1].pluginConfig.args", "Invalid value")]


def test_an_empty_list_is_no_list_in_the_arguments_of_the_plugin_that_sorts_the_queue() -> None:
    assert with_sorters("VolumeBinding", {}, {"shape": []}) == [
        ("profiles[1].pluginConfig[0].args.shape", "Invalid value")
    ]


def test_without_a_plugin_that_sorts_arguments_of_a_plugin_without_a_name_are_taken_for_its_own() -> None:
    nameless = [{"name": "", "args": {"anything": 1}}]
    first, second = ({"schedulerName": name, "pluginConfig": nameless} for name in ("a", "b"))
    assert found(profiles=[first, {"schedulerName": "b"}]) == []
    assert found(profiles=[first, second]) == [("profiles[1].pluginConfig.args", "Invalid value")]


def test_profiles_share_one_queue() -> None:
    sorted_by = {"queueSort": enabled("Mine")}
    other = {"queueSort": enabled("Mine", "Other")}
    args = [{"name": "Mine", "args": {"a": 1}}]
    assert found(profiles=[{"schedulerName": "a", "plugins": other}]) == [
        ("profiles[0].plugins.queueSort.Enabled", "Invalid value")
    ]
    assert found(
        profiles=[
            {"schedulerName": "a", "plugins": sorted_by, "pluginConfig": args},
            {"schedulerName": "b", "plugins": other, "pluginConfig": [{"name": "Mine", "args": {"a": 2}}]},
            {"schedulerName": "c", "plugins": sorted_by, "pluginConfig": args},
        ]
    ) == [("profiles[1].plugins.queueSort", "Invalid value"), ("profiles[1].pluginConfig.args", "Invalid value")]


@pytest.mark.parametrize(
    "name", ["cpu", "kubernetes.io/x", "sub.kubernetes.io/x", "requests.example.com/x", "bad name"]
)
def test_extenders_manage_extended_resources_only(name: str) -> None:
    mistakes = found(extenders=[{"managedResources": [{"name": name}]}])
    assert mistakes == [("extenders[0].managedResources[0].name", "Invalid value")]


def test_extenders_do_not_share_resources_nor_binding() -> None:
    extender = {"bindVerb": "bind", "prioritizeVerb": "score", "managedResources": [{"name": "example.com/gpu"}]}
    assert found(extenders=[{**extender, "weight": 1}, extender]) == [
        ("extenders[1].weight", "Invalid value"),
        ("extenders[1].managedResources[0].name", "Invalid value"),
        ("extenders", "Invalid value"),
    ]


@pytest.mark.parametrize(
    ("plugin", "args", "expected"),
    [
        ("DefaultPreemption", {"minCandidateNodesPercentage": 101}, [("minCandidateNodesPercentage", "Invalid value")]),
        ("DefaultPreemption", {"minCandidateNodesAbsolute": -1}, [("minCandidateNodesAbsolute", "Invalid value")]),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            [("minCandidateNodesPercentage", "Invalid value"), ("minCandidateNodesAbsolute", "Invalid value")],
        ),
        ("DynamicResources", {"filterTimeout": "-1s"}, [("filterTimeout", "Invalid value")]),
        ("DynamicResources", {"filterTimeout": "0s", "bindingTimeout": "1s"}, []),
        ("DynamicResources", {"bindingTimeout": "999ms"}, [("bindingTimeout", "Invalid value")]),
        ("InterPodAffinity", {"hardPodAffinityWeight": -1}, [("hardPodAffinityWeight", "Invalid value")]),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu"}, {"name": "cpu", "weight": 2}]},
            [("resources[1].name", "Duplicate value"), ("resources[1].weight", "Invalid value")],
        ),
        ("VolumeBinding", {"bindTimeoutSeconds": -1}, [("bindTimeoutSeconds", "Invalid value")]),
        ("VolumeBinding", {"shape": []}, [("shape", "Invalid value")]),
        ("VolumeBinding", {"shape": None}, []),
        ("NodeResourcesFit", {"scoringStrategy": {"type": "Nonsense"}}, []),
        ("NodeResourcesFitArgs", {}, [("", "Invalid value")]),
        ("PodTopologySpread", {"defaultingType": "Other"}, [("defaultingType", "Unsupported value")]),
    ],
)
def test_arguments(plugin: str, args: Any, expected: list[tuple[str, str]]) -> None:
    assert in_args(plugin, args) == expected


def test_default_constraints() -> None:
    good = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    bad = {"maxSkew": 0, "topologyKey": "-", "whenUnsatisfiable": "Never", "labelSelector": {}}
    assert in_args("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": [good, good, bad, {}]}) == [
        ("defaultConstraints[1]", "Duplicate value"),
        ("defaultConstraints[2].maxSkew", "Invalid value"),
        ("defaultConstraints[2].topologyKey", "Invalid value"),
        ("defaultConstraints[2].whenUnsatisfiable", "Unsupported value"),
        ("defaultConstraints[2].labelSelector", "Forbidden"),
        ("defaultConstraints[3].maxSkew", "Invalid value"),
        ("defaultConstraints[3].topologyKey", "Required value"),
        ("defaultConstraints[3].whenUnsatisfiable", "Required value"),
    ]
    assert in_args("PodTopologySpread", {"defaultConstraints": [good]}) == [("defaultingType", "Invalid value")]


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ({"key": "a", "operator": "In"}, [("values", "Invalid value")]),
        ({"key": "a", "operator": "Exists", "values": ["b"]}, [("values", "Invalid value")]),
        ({"key": "a", "operator": "Gt", "values": ["1", "2"]}, [("values", "Invalid value")]),
        ({"key": "a", "operator": "Lt", "values": ["x"]}, [("values[0]", "Invalid value")]),
        ({"key": "a", "operator": "Bad"}, [("operator", "Unsupported value")]),
        (
            {"key": "-a", "operator": "In", "values": ["-b"]},
            [("key", "Invalid value"), ("values[0][-a]", "Invalid value")],
        ),
        ({"key": "a.b/c", "operator": "NotIn", "values": ["", "x"]}, []),
    ],
)
def test_requirements_of_added_affinity(requirement: Any, expected: list[tuple[str, str]]) -> None:
    term = {"matchExpressions": [requirement]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}, term]}}
    path = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1].matchExpressions[0]"
    assert in_args("NodeAffinity", {"addedAffinity": required}) == [
        (f"{path}.{field}", kind) for field, kind in expected
    ]


def test_preferences_that_weigh_nothing_are_not_looked_at() -> None:
    bad = {"matchFields": [{"key": "metadata.name", "operator": "Exists"}, {"key": "metadata.name", "operator": "In"}]}
    preferred = [{"weight": weight, "preference": bad} for weight in (0, 1)]
    path = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[1].matchFields"
    affinity = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    assert in_args("NodeAffinity", {"addedAffinity": affinity}) == [
        (f"{path}[0].operator", "Unsupported value"),
        (f"{path}[1].values", "Invalid value"),
    ]


@pytest.mark.parametrize(
    ("args", "off", "field"),
    [
        ({"filterTimeout": "10s"}, config.Features(device_search_timeout=False), "filterTimeout"),
        ({"bindingTimeout": "600s"}, config.Features(device_binding_conditions=False), "bindingTimeout"),
    ],
)
def test_a_timeout_is_forbidden_where_its_feature_is_off(
    args: dict[str, str], off: config.Features, field: str
) -> None:
    assert in_args("DynamicResources", args) == []
    assert in_args("DynamicResources", {}, off) == []
    assert in_args("DynamicResources", args, off) == [(field, "Forbidden")]


def test_a_shape_is_looked_at_where_storage_is_scored() -> None:
    on = config.Features(storage_capacity_scoring=True)
    falling = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
    assert in_args("VolumeBinding", {"shape": falling}, on) == []
    assert in_args("VolumeBinding", {"shape": [{"utilization": 101}]}, on) == [
        ("shape[0].utilization", "Invalid value")
    ]
