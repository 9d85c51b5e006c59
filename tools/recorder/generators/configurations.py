"""Cases of configurations: files of every shape, most of them with a few values that need judging, as JSON or YAML."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml
from tools.recorder.generators.drawing import APPS, HOSTNAME, TOPOLOGIES, ZONE, Draw, Json

from kubesched.config.configuration import Plugins, point_as_written
from kubesched.plugins.registry import in_tree

Values = Sequence[Any] | Callable[[Draw, float], Any]
"""What a field may have: some of these, or whatever this makes. The number is the chance of an odd value."""

_ODD: tuple[Any, ...] = (
    None,
    "",
    "many",
    0,
    -1,
    1.5,
    True,
    [],
    {},
    ["x"],
    101,
    2**31,
    2**63,
    "10",
    "9e2s",
    "1d",
    "soon",
)
_NAMES = (*in_tree(), "Coscheduling", "EBSLimits", "*", "Nope", "")
_POINTS = tuple(point_as_written(point) for point, _ in Plugins().sets())
_DURATIONS = ("15s", "10s", "2s", "1m", "1.5s", "100ms", "1h0m1s", "0s", "0", "-1s", "2us", "1µs")
_RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi", "a/b/c", "UPPER", "")


def _some(make: Callable[[Draw, float], Any], at_most: int) -> Callable[[Draw, float], Any]:
    return lambda draw, odd: [make(draw, odd) for _ in range(draw.number(0, at_most))]


def _fields(fields: Mapping[str, Values], share: float = 0.5) -> Callable[[Draw, float], Any]:
    """A record that has each of the fields with this chance."""

    def make(draw: Draw, odd: float) -> Json:
        made = {name: _value(draw, values, odd) for name, values in fields.items() if draw.chance(share)}
        if draw.chance(odd / 8):
            made[draw.one(("extra", *(name.upper() for name in fields)))] = 1
        return made

    return make


def _value(draw: Draw, values: Values, odd: float) -> Any:
    if draw.chance(odd):
        return draw.one(_ODD)
    return values(draw, odd) if callable(values) else draw.one(values)


_requirement = _fields(
    {
        "key": ("disk", "a/b", "-bad-", "x" * 64, ZONE),
        "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "in"),
        "values": ([], ["ssd"], ["ssd", "hdd"], ["10"], ["x y"]),
    },
    0.95,
)
_field_requirement = _fields(
    {"key": ("metadata.name", "spec.x"), "operator": ("In", "NotIn", "Exists"), "values": (["n"], [], ["n", "m"])}, 0.95
)
_term = _fields({"matchExpressions": _some(_requirement, 2), "matchFields": _some(_field_requirement, 2)}, 0.7)
_added_affinity = _fields(
    {
        "requiredDuringSchedulingIgnoredDuringExecution": _fields({"nodeSelectorTerms": _some(_term, 2)}, 1.0),
        "preferredDuringSchedulingIgnoredDuringExecution": _some(
            _fields({"weight": (0, 1, 50, 100, 101), "preference": _term}, 0.9), 2
        ),
    }
)
_resource = _fields({"name": _RESOURCES, "weight": (0, 1, 2, 100)}, 0.9)
_point_of_shape = _fields({"utilization": (0, 20, 50, 100), "score": (0, 3, 10, 11)}, 0.9)
_constraint = _fields(
    {
        "maxSkew": (0, 1, 5),
        "topologyKey": (*TOPOLOGIES, "", "bad key"),
        "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway", "", "Never"),
        "labelSelector": ({}, {"matchLabels": {"app": APPS[0]}}),
        "minDomains": (1, 3),
        "nodeTaintsPolicy": ("Honor", "Ignore"),
        "matchLabelKeys": (["app"], []),
    },
    0.7,
)
_ARGS: dict[str, Mapping[str, Values]] = {
    "DefaultPreemption": {"minCandidateNodesPercentage": (0, 10, 100), "minCandidateNodesAbsolute": (0, 1, 100)},
    "DynamicResources": {"filterTimeout": _DURATIONS, "bindingTimeout": _DURATIONS},
    "InterPodAffinity": {"hardPodAffinityWeight": (0, 1, 100), "ignorePreferredTermsOfExistingPods": (True, False)},
    "NodeAffinity": {"addedAffinity": _added_affinity},
    "NodeResourcesBalancedAllocation": {"resources": _some(_resource, 3)},
    "NodeResourcesFit": {
        "ignoredResources": (["example.com/gpu"], ["cpu"], ["bad name"], []),
        "ignoredResourceGroups": (["example.com"], ["a/b"], []),
        "scoringStrategy": _fields(
            {
                "type": ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio", "Other"),
                "resources": _some(_resource, 3),
                "requestedToCapacityRatio": _fields({"shape": _some(_point_of_shape, 3)}, 0.9),
            },
            0.8,
        ),
    },
    "PodTopologySpread": {"defaultConstraints": _some(_constraint, 3), "defaultingType": ("System", "List", "Other")},
    "VolumeBinding": {"bindTimeoutSeconds": (0, 1, 600), "shape": _some(_point_of_shape, 2)},
    "NodeResourcesFitArgs": {},
    "Coscheduling": {"anything": (1, "x", {"of": ["any", "kind"]})},
    "EBSLimits": {},
}
_VERSIONS = ("kubescheduler.config.k8s.io/v1",) * 8 + ("kubescheduler.config.k8s.io/v1beta3", "v1", "/", "")


def _plugin_config(draw: Draw, odd: float) -> Json:
    name = draw.one(tuple(_ARGS))
    args = _fields(_ARGS[name], 0.8)(draw, odd)
    if draw.chance(0.15):
        args["kind"] = f"{name}Args" if draw.chance(0.8) else draw.one(("NodeAffinityArgs", "Nope"))
        args["apiVersion"] = draw.one(_VERSIONS)
    return {"name": name, "args": args} if not draw.chance(odd) else {"name": name}


_plugin = _fields({"name": _NAMES, "weight": (0, 1, 5, 100)}, 0.8)
_plugin_set = _fields({"enabled": _some(_plugin, 3), "disabled": _some(_fields({"name": _NAMES}, 0.95), 2)}, 0.7)
_profile = _fields(
    {
        "schedulerName": ("default-scheduler", "gpu", "batch", ""),
        "percentageOfNodesToScore": (0, 50, 100, 101),
        "plugins": lambda draw, odd: {
            point: _value(draw, _plugin_set, odd) for point in draw.some(_POINTS, 3 if draw.chance(0.8) else 15)
        },
        "pluginConfig": _some(_plugin_config, 4),
    },
    0.7,
)
_extender = _fields(
    {
        "urlPrefix": ("http://127.0.0.1:80/x", "https://extender", "", "%zz"),
        **{f"{verb}Verb": (verb, "") for verb in ("filter", "preempt", "prioritize", "bind")},
        "weight": (0, 1, 5, -1),
        "enableHTTPS": (True, False),
        "httpTimeout": _DURATIONS,
        "nodeCacheCapable": (True, False),
        "ignorable": (True, False),
        "managedResources": _some(_fields({"name": _RESOURCES, "ignoredByScheduler": (True, False)}, 0.8), 2),
        "tlsConfig": _fields(
            {
                "insecure": (True, False),
                "serverName": ("extender", ""),
                "certFile": ("c.pem",),
                "keyFile": ("k.pem",),
                "caData": ("", "Zm9v"),
            }
        ),
    }
)
_SETTINGS: dict[str, Values] = {
    "parallelism": (1, 16, 0),
    "percentageOfNodesToScore": (0, 50, 100),
    "podInitialBackoffSeconds": (1, 5, 0),
    "podMaxBackoffSeconds": (1, 10, 60),
    "enableProfiling": (True, False),
    "enableContentionProfiling": (True, False),
    "delayCacheUntilActive": (True, False),
    "leaderElection": _fields(
        {
            "leaderElect": (True, True, False),
            "leaseDuration": _DURATIONS,
            "renewDeadline": _DURATIONS,
            "retryPeriod": _DURATIONS,
            "resourceLock": ("leases", "endpoints", ""),
            "resourceName": ("kube-scheduler", ""),
            "resourceNamespace": ("kube-system", ""),
        },
        0.4,
    ),
    "clientConnection": _fields(
        {
            "kubeconfig": ("", "/etc/kubeconfig"),
            "acceptContentTypes": ("", "application/json"),
            "contentType": ("", "application/json"),
            "qps": (0, 50, 0.5, -1, 1e39),
            "burst": (0, 100, -1),
        }
    ),
    "profiles": _some(_profile, 3),
    "extenders": _some(_extender, 2),
}


def plausible(draw: Draw) -> Json:
    """What somebody might write; here and there a value that nobody should."""
    return {"text": _written(draw, _document(draw, 0.01))}


def mistaken(draw: Draw) -> Json:
    """Odd values everywhere."""
    return {"text": _written(draw, _document(draw, 0.06))}


def scribbled(draw: Draw) -> Json:
    """The text itself is damaged: lines gone, repeated, or changed."""
    lines = _written(draw, _document(draw, 0.0)).split("\n")
    for _ in range(draw.number(1, 2)):
        at = draw.number(0, len(lines) - 1)
        lines[at : at + 1] = draw.one(
            (
                [""],
                [lines[at], lines[at]],
                [lines[at].replace(":", "", 1)],
                ["\t" + lines[at]],
                [" " + lines[at]],
                [lines[at] + " # remark"],
                [lines[at].swapcase()],
                [lines[at], "---", "kind: Other"],
            )
        )
    return {"text": "\n".join(lines)}


FAMILIES: dict[str, Callable[[Draw], Json]] = {"plausible": plausible, "mistaken": mistaken, "scribbled": scribbled}


def _document(draw: Draw, odd: float) -> Json:
    head = {"apiVersion": _VERSIONS[0], "kind": "KubeSchedulerConfiguration"}
    if draw.chance(odd):
        head[draw.one(("apiVersion", "kind"))] = draw.one((*_VERSIONS, "KubeletConfiguration"))
    return {**head, **_fields(_SETTINGS)(draw, odd)}


def _written(draw: Draw, document: Json) -> str:
    if draw.chance(0.3):
        return json.dumps(document, indent=draw.one((None, 2)))
    text: str = yaml.safe_dump(
        document, sort_keys=False, default_flow_style=draw.one((None, False)), allow_unicode=True
    )
    return "---\n# " + HOSTNAME + "\n" + text if draw.chance(0.2) else text
