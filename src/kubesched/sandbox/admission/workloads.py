"""Workloads that run pods from a template: Deployments, ReplicaSets, StatefulSets, DaemonSets and their elders."""

from __future__ import annotations

import re
from typing import Any

from kubesched.api.kinds import Object
from kubesched.sandbox.admission import names
from kubesched.sandbox.admission.faults import NEGATIVE, Faults
from kubesched.sandbox.admission.metadata import check_annotations, check_labels, require_metadata
from kubesched.sandbox.admission.pods import check_pod_spec, fill_pod_spec
from kubesched.sandbox.admission.reading import (
    fill,
    int_or_text,
    integer,
    mapping,
    optional_mapping,
    records,
    string_map,
    text,
)
from kubesched.sandbox.admission.rules import Rules
from kubesched.sandbox.admission.selectors import check_label_selector, matches
from kubesched.sandbox.admission.storage.claims import check_claim_spec, fill_claim_spec

MISMATCH = "`selector` does not match template `labels`"
_PERCENT = "[0-9]+%"
_PERCENT_WORDS = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    f"(e.g. '1%',  or '93%', regex used for validation is '{_PERCENT}')"
)
_SET_CHANGES = frozenset(
    (
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    )
)
_SET_WORDS = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


# -- templates --------------------------------------------------------------------------------------------------------


def spec_to_fill(obj: Object) -> Object:
    """The object's spec, made if there was none, to be changed by the caller."""
    if obj.get("spec") is None:
        obj["spec"] = {}
    return mapping(obj, "spec", "")


def fill_template(spec: Object) -> None:
    template = mapping(spec, "template", "spec")
    if template.get("spec") is not None:
        fill_pod_spec(mapping(template, "spec", "spec.template"), "spec.template.spec")


def template_labels(spec: Object) -> dict[str, str]:
    metadata = mapping(mapping(spec, "template", "spec"), "metadata", "spec.template")
    return string_map(metadata, "labels", "spec.template.metadata")


def check_template(spec: Object, faults: Faults) -> None:
    template = mapping(spec, "template", "spec")
    metadata = mapping(template, "metadata", "spec.template")
    check_labels(template_labels(spec), "spec.template.labels", faults)
    check_annotations(string_map(metadata, "annotations", ""), "spec.template.annotations", faults)
    check_pod_spec(mapping(template, "spec", "spec.template"), "spec.template.spec", faults)


def _check_long_running(spec: Object, kind: str, faults: Faults) -> None:
    """What runs for good restarts its containers, always."""
    pod = mapping(mapping(spec, "template", "spec"), "spec", "spec.template")
    policy = text(pod, "restartPolicy", "spec.template.spec")
    if policy in ("OnFailure", "Never"):
        faults.unsupported("spec.template.spec.restartPolicy", policy, ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        why = f"activeDeadlineSeconds in {kind} is not Supported"
        faults.forbidden("spec.template.spec.activeDeadlineSeconds", why)


def _check_selector(spec: Object, kind: str, faults: Faults) -> None:
    selector = optional_mapping(spec, "selector", "spec")
    if selector is None:
        faults.required("spec.selector")
        return
    check_label_selector(selector, "spec.selector", faults)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        faults.invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
    labels = template_labels(spec)
    if not matches(selector, labels, "spec.selector"):
        faults.invalid("spec.template.metadata.labels", labels, MISMATCH)


def check_counts(spec: Object, keys: tuple[str, ...], faults: Faults) -> None:
    """None of these numbers is negative."""
    for key in keys:
        faults.not_negative(f"spec.{key}", integer(spec, key, "spec"))


def _selector_stays(new: Object, old: Object, faults: Faults) -> None:
    faults.immutable("spec.selector", new["spec"].get("selector"), mapping(old, "spec", "").get("selector"))


def check_share(holder: Object, key: str, where: str, faults: Faults) -> None:
    """The field holds a number of pods, or a percentage of them."""
    value = int_or_text(holder, key, where)
    if isinstance(value, str):
        if not re.fullmatch(_PERCENT, value):
            faults.invalid(f"{where}.{key}", value, _PERCENT_WORDS)
    elif value is not None and value < 0:
        faults.invalid(f"{where}.{key}", value, NEGATIVE)


def _is_none(value: Any) -> bool:
    return value in (None, 0, "0%")


# -- Deployments and ReplicaSets --------------------------------------------------------------------------------------


def _fill_deployment(deployment: Object) -> None:
    spec = spec_to_fill(deployment)
    fill(spec, "replicas", 1)
    fill(spec, "strategy", {})
    strategy = mapping(spec, "strategy", "spec")
    fill(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(strategy, "rollingUpdate", {})
        rolling = mapping(strategy, "rollingUpdate", "spec.strategy")
        fill(rolling, "maxUnavailable", "25%")
        fill(rolling, "maxSurge", "25%")
    fill(spec, "revisionHistoryLimit", 10)
    fill(spec, "progressDeadlineSeconds", 600)
    fill_template(spec)


def _check_deployment(deployment: Object, faults: Faults) -> None:
    spec = deployment["spec"]
    check_counts(spec, ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"), faults)
    _check_selector(spec, "deployment", faults)
    check_template(spec, faults)
    _check_long_running(spec, "ReplicaSet", faults)
    _check_strategy(mapping(spec, "strategy", "spec"), faults)
    deadline = integer(spec, "progressDeadlineSeconds", "spec")
    if deadline is not None and deadline <= (integer(spec, "minReadySeconds", "spec") or 0):
        faults.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _check_strategy(strategy: Object, faults: Faults) -> None:
    where = "spec.strategy"
    kind, rolling = text(strategy, "type", where), optional_mapping(strategy, "rollingUpdate", where)
    if kind == "Recreate":
        if rolling is not None:
            why = "may not be specified when strategy `type` is 'Recreate'"
            faults.forbidden(f"{where}.rollingUpdate", why)
        return
    faults.one_of(f"{where}.type", kind, ("Recreate", "RollingUpdate"))
    if rolling is not None:
        for key in ("maxUnavailable", "maxSurge"):
            check_share(rolling, key, f"{where}.rollingUpdate", faults)
        if _is_none(rolling.get("maxUnavailable")) and _is_none(rolling.get("maxSurge")):
            why = "may not be 0 when `maxSurge` is 0"
            faults.invalid(f"{where}.rollingUpdate.maxUnavailable", rolling.get("maxUnavailable"), why)


def _fill_replica_set(replica_set: Object) -> None:
    spec = spec_to_fill(replica_set)
    fill(spec, "replicas", 1)
    fill_template(spec)


def _check_replica_set(replica_set: Object, faults: Faults) -> None:
    spec = replica_set["spec"]
    check_counts(spec, ("replicas", "minReadySeconds"), faults)
    _check_selector(spec, "deployment", faults)
    check_template(spec, faults)
    _check_long_running(spec, "ReplicaSet", faults)


def _fill_replication_controller(controller: Object) -> None:
    spec = spec_to_fill(controller)
    if labels := template_labels(spec):
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        metadata = require_metadata(controller)
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)
    fill(spec, "replicas", 1)
    fill_template(spec)


def _check_replication_controller(controller: Object, faults: Faults) -> None:
    spec = controller["spec"]
    check_counts(spec, ("replicas", "minReadySeconds"), faults)
    selector = string_map(spec, "selector", "spec")
    if not selector:
        faults.required("spec.selector")
    if spec.get("template") is None:
        faults.required("spec.template")
        return
    labels = template_labels(spec)
    if selector and not selector.items() <= labels.items():
        faults.invalid("spec.template.metadata.labels", labels, MISMATCH)
    check_template(spec, faults)
    _check_long_running(spec, "ReplicationController", faults)


# -- StatefulSets and DaemonSets --------------------------------------------------------------------------------------


def _fill_stateful_set(stateful_set: Object) -> None:
    spec = spec_to_fill(stateful_set)
    fill(spec, "podManagementPolicy", "OrderedReady")
    _fill_update_strategy(spec, {"partition": 0})
    fill(spec, "persistentVolumeClaimRetentionPolicy", {})
    retention = mapping(spec, "persistentVolumeClaimRetentionPolicy", "spec")
    fill(retention, "whenDeleted", "Retain")
    fill(retention, "whenScaled", "Retain")
    fill(spec, "replicas", 1)
    fill(spec, "revisionHistoryLimit", 10)
    fill_template(spec)
    for claim in records(spec, "volumeClaimTemplates", "spec"):
        fill(claim, "apiVersion", "v1")
        fill(claim, "kind", "PersistentVolumeClaim")
        fill_claim_spec(spec_to_fill(claim))
        fill(claim, "status", {"phase": "Pending"})


def _fill_update_strategy(spec: Object, rolling: Object) -> None:
    fill(spec, "updateStrategy", {})
    strategy = mapping(spec, "updateStrategy", "spec")
    fill(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(strategy, "rollingUpdate", {})
        given = mapping(strategy, "rollingUpdate", "spec.updateStrategy")
        for key, value in rolling.items():
            fill(given, key, value)


def _check_stateful_set(stateful_set: Object, faults: Faults) -> None:
    spec = stateful_set["spec"]
    policy = text(spec, "podManagementPolicy", "spec")
    if policy not in ("OrderedReady", "Parallel"):
        faults.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    _check_update_strategy(spec, faults)
    check_counts(spec, ("replicas", "minReadySeconds", "revisionHistoryLimit"), faults)
    _check_selector(spec, "statefulset", faults)
    check_template(spec, faults)
    _check_long_running(spec, "StatefulSet", faults)
    for i, claim in enumerate(records(spec, "volumeClaimTemplates", "spec")):
        where = f"spec.volumeClaimTemplates[{i}]"
        check_claim_spec(mapping(claim, "spec", where), f"{where}.spec", faults)
    retention = mapping(spec, "persistentVolumeClaimRetentionPolicy", "spec")
    for key in ("whenDeleted", "whenScaled"):
        where = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
        faults.one_of(where, text(retention, key, "spec"), ("Delete", "Retain"))


def _check_update_strategy(spec: Object, faults: Faults) -> None:
    strategy, where = mapping(spec, "updateStrategy", "spec"), "spec.updateStrategy"
    kind = text(strategy, "type", where)
    if kind not in ("RollingUpdate", "OnDelete"):
        faults.unsupported(f"{where}.type", kind, ("RollingUpdate", "OnDelete"))
    rolling = mapping(strategy, "rollingUpdate", where)
    if kind == "OnDelete" and rolling:
        why = "only allowed for updateStrategy 'RollingUpdate'"
        faults.invalid(f"{where}.rollingUpdate", rolling, why)
    faults.not_negative(f"{where}.rollingUpdate.partition", integer(rolling, "partition", where))
    for key in ("maxUnavailable", "maxSurge"):
        check_share(rolling, key, f"{where}.rollingUpdate", faults)


def _stateful_set_stays(new: Object, old: Object, faults: Faults) -> None:
    before = mapping(old, "spec", "")
    rest, old_rest = (
        {key: value for key, value in spec.items() if key not in _SET_CHANGES} for spec in (new["spec"], before)
    )
    if rest != old_rest:
        faults.forbidden("spec", _SET_WORDS)


def _fill_daemon_set(daemon_set: Object) -> None:
    spec = spec_to_fill(daemon_set)
    _fill_update_strategy(spec, {"maxUnavailable": 1, "maxSurge": 0})
    fill(spec, "revisionHistoryLimit", 10)
    fill_template(spec)


def _check_daemon_set(daemon_set: Object, faults: Faults) -> None:
    spec = daemon_set["spec"]
    _check_selector(spec, "daemonset", faults)
    check_template(spec, faults)
    _check_long_running(spec, "DaemonSet", faults)
    check_counts(spec, ("minReadySeconds", "revisionHistoryLimit"), faults)
    _check_update_strategy(spec, faults)
    strategy = mapping(spec, "updateStrategy", "spec")
    rolling, where = mapping(strategy, "rollingUpdate", "spec.updateStrategy"), "spec.updateStrategy.rollingUpdate"
    if strategy.get("type") == "RollingUpdate":
        idle, extra = _is_none(rolling.get("maxUnavailable")), _is_none(rolling.get("maxSurge"))
        if not idle and not extra:
            faults.invalid(f"{where}.maxSurge", rolling["maxSurge"], "may not be set when maxUnavailable is non-zero")
        if idle and extra:
            faults.required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _revision_stays(new: Object, old: Object, faults: Faults) -> None:
    faults.immutable("data", new.get("data"), old.get("data"))


DEPLOYMENT = Rules(
    defaults=_fill_deployment, check=_check_deployment, check_update=_selector_stays, counts_generations=True
)
REPLICA_SET = Rules(
    defaults=_fill_replica_set, check=_check_replica_set, check_update=_selector_stays, counts_generations=True
)
REPLICATION_CONTROLLER = Rules(
    defaults=_fill_replication_controller, check=_check_replication_controller, counts_generations=True
)
STATEFUL_SET = Rules(
    name=names.label,
    defaults=_fill_stateful_set,
    check=_check_stateful_set,
    check_update=_stateful_set_stays,
    new_status=lambda _: {"replicas": 0},
    counts_generations=True,
)
DAEMON_SET = Rules(
    defaults=_fill_daemon_set, check=_check_daemon_set, check_update=_selector_stays, counts_generations=True
)
CONTROLLER_REVISION = Rules(check_update=_revision_stays)
