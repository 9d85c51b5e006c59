from __future__ import annotations

import json
from typing import Any

from kubesched import config

EXTENDER: dict[str, Any] = {
    "urlPrefix": "https://ext",
    "filterVerb": "filter",
    "prioritizeVerb": "score",
    "weight": 3,
    "enableHTTPS": True,
    "tlsConfig": {"insecure": True, "certData": "aGVsbG8="},
    "httpTimeout": "1m30s",
    "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
    "ignorable": True,
}


def plain(**fields: Any) -> dict[str, Any]:
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return config.to_plain(config.from_plain({**header, **fields}))


def arguments(name: str, args: Any) -> Any:
    [profile] = plain(profiles=[{"pluginConfig": [{"name": name, "args": args}]}])["profiles"]
    return profile["pluginConfig"][0]["args"]


def test_extenders_come_out_as_they_went_in() -> None:
    assert plain(extenders=[EXTENDER])["extenders"] == [EXTENDER]


def test_empty_fields_of_extenders_are_left_out_but_for_address_and_timeout() -> None:
    assert plain(extenders=[{}])["extenders"] == [{"urlPrefix": "", "httpTimeout": "0s"}]


def test_a_percentage_of_zero_is_written_when_a_profile_says_so() -> None:
    [said, unsaid] = plain(profiles=[{"schedulerName": "a", "percentageOfNodesToScore": 0}, {"schedulerName": "b"}])[
        "profiles"
    ]
    assert said["percentageOfNodesToScore"] == 0
    assert "percentageOfNodesToScore" not in unsaid


def test_arguments_say_what_they_are() -> None:
    assert arguments("DefaultPreemption", {"minCandidateNodesPercentage": 0}) == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "DefaultPreemptionArgs",
        "minCandidateNodesPercentage": 0,
        "minCandidateNodesAbsolute": 100,
    }


def test_constraints_are_written_in_full() -> None:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 0}
    written = arguments("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": [constraint]})
    assert written["defaultConstraints"] == [constraint]


def test_added_affinity_is_written_in_full() -> None:
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}, {}]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": {}}],
    }
    assert arguments("NodeAffinity", {"addedAffinity": affinity})["addedAffinity"] == affinity


def test_arguments_of_unknown_plugins_are_written_as_given() -> None:
    assert arguments("Mine", {"a": [None, False]}) == {"a": [None, False]}
    assert arguments("Mine", None) is None


def test_written_configurations_read_back_the_same() -> None:
    loaded = config.from_plain(plain(extenders=[EXTENDER], profiles=[{"schedulerName": "a"}, {"schedulerName": "b"}]))
    assert config.load(config.to_yaml(loaded)) == loaded
    assert config.load(config.to_json(loaded)) == loaded
    assert json.loads(config.to_json(loaded)) == config.to_plain(loaded)
