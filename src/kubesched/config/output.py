"""A configuration as kube-scheduler writes it: plain values, YAML or JSON."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from kubesched.api.affinity import (
    NodeSelector,
    NodeSelectorRequirement,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
)
from kubesched.api.duration import Duration
from kubesched.api.yaml import dump
from kubesched.config.args import (
    ARGS,
    DefaultPreemptionArgs,
    InterPodAffinityArgs,
    ResourceSpec,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kubesched.config.configuration import (
    API_VERSION,
    KIND,
    ClientConnection,
    ExtenderConfig,
    ExtenderManagedResource,
    LeaderElection,
    PluginEntry,
    ProfileConfig,
    SchedulerConfiguration,
    WrittenValues,
)

MASKED = "masked"

# Fields are left out when empty, as Go's omitempty does, except these.
_ALWAYS: dict[type, frozenset[str]] = {
    type_: frozenset(names.split())
    for type_, names in {
        SchedulerConfiguration: "percentage_of_nodes_to_score enable_profiling enable_contention_profiling",
        LeaderElection: "leader_elect",
        ClientConnection: "kubeconfig accept_content_types",
        PluginEntry: "name weight",
        ExtenderConfig: "url_prefix http_timeout",
        ExtenderManagedResource: "name",
        ResourceSpec: "name",
        UtilizationShapePoint: "utilization score",
        DefaultPreemptionArgs: "min_candidate_nodes_percentage min_candidate_nodes_absolute",
        InterPodAffinityArgs: "hard_pod_affinity_weight ignore_preferred_terms_of_existing_pods",
        VolumeBindingArgs: "bind_timeout_seconds",
        NodeSelector: "node_selector_terms",
        NodeSelectorRequirement: "key operator",
        PreferredSchedulingTerm: "weight preference",
        TopologySpreadConstraint: "max_skew topology_key when_unsatisfiable",
    }.items()
}


def to_plain(config: SchedulerConfiguration) -> dict[str, Any]:
    """The configuration as plain values in the shape of its file."""
    plain = _record(config)
    for name in ("features", "written"):  # which no file has
        plain.pop(name, None)
    if not config.features.release.group_post_filter:
        for profile in plain["profiles"]:
            del profile["plugins"]["podGroupPostFilter"]
    return {"apiVersion": API_VERSION, "kind": KIND, **plain}


def without_secrets(config: SchedulerConfiguration) -> SchedulerConfiguration:
    """The configuration as others may see it: without the keys of extenders, and without names and passwords in their
    addresses."""
    extenders = tuple(map(_without_secrets, config.extenders))
    return msgspec.structs.replace(config, extenders=extenders, written=WrittenValues())


def _without_secrets(extender: ExtenderConfig) -> ExtenderConfig:
    address, tls = urlsplit(extender.url_prefix), extender.tls_config
    if tls is not None and tls.key_data:
        tls = msgspec.structs.replace(tls, key_data=MASKED.encode())
    if "@" in address.netloc:
        address = address._replace(netloc=f"{MASKED}@{address.netloc.rpartition('@')[2]}")
    return msgspec.structs.replace(extender, url_prefix=urlunsplit(address), tls_config=tls)


def to_yaml(config: SchedulerConfiguration) -> str:
    """The configuration as YAML."""
    return dump(to_plain(config))


def to_json(config: SchedulerConfiguration) -> str:
    """The configuration as JSON."""
    return json.dumps(to_plain(config), indent=2, ensure_ascii=False) + "\n"


def _plain(value: Any) -> Any:
    match value:
        case msgspec.Struct():
            return _record(value)
        case Duration():
            return str(value)
        case tuple() | list():
            return [_plain(item) for item in value]
        case bytes():
            return base64.b64encode(value).decode()
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def _record(record: msgspec.Struct) -> dict[str, Any]:
    always = _ALWAYS.get(type(record), frozenset())
    plain = {}
    for field in msgspec.structs.fields(record):
        value = getattr(record, field.name)
        is_empty = not value and not isinstance(value, msgspec.Struct)
        if value is not None and (field.default is None or field.name in always or not is_empty):
            plain[field.encode_name] = _plain(value)
    if isinstance(record, ProfileConfig) and record.plugin_config:
        plain["pluginConfig"] = [_plugin_config(name, args) for name, args in record.plugin_config.items()]
    return plain


def _plugin_config(name: str, args: Any) -> dict[str, Any]:
    if name in ARGS:
        args = {"apiVersion": API_VERSION, "kind": ARGS[name].__name__, **_record(args)}
    return {"name": name, "args": args}
