"""Workloads with a pod template: Deployments, ReplicaSets, ReplicationControllers, StatefulSets and DaemonSets."""

from __future__ import annotations

import re
from typing import Any

from kubesched.admission import names
from kubesched.admission.pods import check_pod_spec, fill_pod_spec
from kubesched.admission.reading import (
    ensure_mapping,
    fill,
    fill_all,
    labels_of,
    mapping,
    metadata_of,
    name_of,
    sequence,
    text,
)
from kubesched.admission.rules import NEGATIVE, Mistakes, Rules, check_annotations, check_labels
from kubesched.admission.selectors import check_label_selector, matches
from kubesched.admission.storage import CLAIM_DEFAULTS, check_claim_spec
from kubesched.api.kinds import Object

MISMATCH = "`selector` does not match template `labels`"
_PERCENT = "[0-9]+%"
_NOT_A_PERCENTAGE = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    f"(e.g. '1%',  or '93%', regex used for validation is '{_PERCENT}')"
)
_CHANGEABLE_FIELDS = frozenset(
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
_OTHER_CHANGES_FORBIDDEN = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


# -- templates --------------------------------------------------------------------------------------------------------


def fill_template(spec: Object) -> None:
    template = mapping(spec, "template")
    if template.get("spec") is not None:
        fill_pod_spec(mapping(template, "spec"))


def template_labels(spec: Object) -> dict[str, str]:
    return labels_of(mapping(spec, "template"))


def check_template(spec: Object, mistakes: Mistakes, *, added: frozenset[str] = frozenset()) -> None:
    template = mapping(spec, "template")
    check_labels(template_labels(spec), "spec.template.labels", mistakes)
    check_annotations(mapping(metadata_of(template), "annotations"), "spec.template.annotations", mistakes)
    check_pod_spec(mapping(template, "spec"), "spec.template.spec", mistakes, added=added)


def _check_long_running(spec: Object, kind: str, mistakes: Mistakes) -> None:
    """Pods that are meant to run for good restart their containers, and have no deadline."""
    pod = mapping(mapping(spec, "template"), "spec")
    policy = text(pod, "restartPolicy")
    if policy in ("OnFailure", "Never"):
        mistakes.unsupported("spec.template.spec.restartPolicy", policy, ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        field = "spec.template.spec.activeDeadlineSeconds"
        mistakes.forbidden(field, f"activeDeadlineSeconds in {kind} is not Supported")


def _check_selector(spec: Object, kind: str, mistakes: Mistakes) -> None:
    selector = spec.get("selector")
    if selector is None:
        mistakes.required("spec.selector")
        return
    check_label_selector(selector, "spec.selector", mistakes)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        mistakes.invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
    labels = template_labels(spec)
    if not matches(selector, labels):
        mistakes.invalid("spec.template.metadata.labels", labels, MISMATCH)


def check_counts(spec: Object, keys: tuple[str, ...], mistakes: Mistakes) -> None:
    """None of these numbers is negative."""
    for key in keys:
        mistakes.not_negative(f"spec.{key}", spec.get(key))


def check_share(holder: Object, key: str, where: str, mistakes: Mistakes) -> None:
    """The field holds a number of pods, or a percentage of them."""
    value = holder.get(key)
    if isinstance(value, str):
        if not re.fullmatch(_PERCENT, value):
            mistakes.invalid(f"{where}.{key}", value, _NOT_A_PERCENTAGE)
    elif value is not None and value < 0:
        mistakes.invalid(f"{where}.{key}", value, NEGATIVE)


def _is_none(value: Any) -> bool:
    return value in (None, 0, "0%")


# -- Deployments and ReplicaSets --------------------------------------------------------------------------------------


def _fill_deployment(deployment: Object) -> None:
    spec = deployment["spec"]
    _fill_update_strategy(spec, {"maxUnavailable": "25%", "maxSurge": "25%"}, "strategy")
    fill_template(spec)


def _check_deployment(deployment: Object, mistakes: Mistakes) -> None:
    spec = deployment["spec"]
    check_counts(spec, ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"), mistakes)
    _check_selector(spec, "deployment", mistakes)
    check_template(spec, mistakes)
    _check_long_running(spec, "ReplicaSet", mistakes)
    _check_strategy(mapping(spec, "strategy"), mistakes)
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        mistakes.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _check_strategy(strategy: Object, mistakes: Mistakes) -> None:
    where = "spec.strategy"
    kind, rolling = text(strategy, "type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            mistakes.forbidden(f"{where}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
        return
    mistakes.one_of(f"{where}.type", kind, ("Recreate", "RollingUpdate"))
    if rolling is not None:
        for key in ("maxUnavailable", "maxSurge"):
            check_share(rolling, key, f"{where}.rollingUpdate", mistakes)
        if _is_none(rolling.get("maxUnavailable")) and _is_none(rolling.get("maxSurge")):
            why = "may not be 0 when `maxSurge` is 0"
            mistakes.invalid(f"{where}.rollingUpdate.maxUnavailable", rolling.get("maxUnavailable"), why)


def _check_replica_set(replica_set: Object, mistakes: Mistakes) -> None:
    spec = replica_set["spec"]
    check_counts(spec, ("replicas", "minReadySeconds"), mistakes)
    _check_selector(spec, "deployment", mistakes)
    check_template(spec, mistakes)
    _check_long_running(spec, "ReplicaSet", mistakes)


def _fill_replication_controller(controller: Object) -> None:
    spec = ensure_mapping(controller, "spec")
    if labels := template_labels(spec):
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        metadata = ensure_mapping(controller, "metadata")
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)
    fill(spec, "replicas", 1)
    fill_template(spec)


def _check_replication_controller(controller: Object, mistakes: Mistakes) -> None:
    spec = controller["spec"]
    check_counts(spec, ("replicas", "minReadySeconds"), mistakes)
    selector = mapping(spec, "selector")
    mistakes.not_empty("spec.selector", selector)
    if spec.get("template") is None:
        mistakes.required("spec.template")
        return
    labels = template_labels(spec)
    if selector and not selector.items() <= labels.items():
        mistakes.invalid("spec.template.metadata.labels", labels, MISMATCH)
    check_template(spec, mistakes)
    _check_long_running(spec, "ReplicationController", mistakes)


# -- StatefulSets and DaemonSets --------------------------------------------------------------------------------------


_STATEFUL_SET_DEFAULTS: Object = {
    "podManagementPolicy": "OrderedReady",
    "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    "replicas": 1,
    "revisionHistoryLimit": 10,
}


def _fill_stateful_set(stateful_set: Object) -> None:
    spec = stateful_set["spec"]
    _fill_update_strategy(spec, {"partition": 0})
    fill_template(spec)
    for claim in sequence(spec, "volumeClaimTemplates"):
        fill_all(claim, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **CLAIM_DEFAULTS})
        fill(claim, "status", {"phase": "Pending"})


def _fill_update_strategy(spec: Object, rolling: Object, field: str = "updateStrategy") -> None:
    strategy = ensure_mapping(spec, field)
    fill(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill_all(ensure_mapping(strategy, "rollingUpdate"), rolling)


def _check_stateful_set(stateful_set: Object, mistakes: Mistakes) -> None:
    spec = stateful_set["spec"]
    policy = text(spec, "podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        mistakes.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    _check_update_strategy(spec, mistakes)
    check_counts(spec, ("replicas", "minReadySeconds", "revisionHistoryLimit"), mistakes)
    _check_selector(spec, "statefulset", mistakes)
    claims = sequence(spec, "volumeClaimTemplates")
    check_template(spec, mistakes, added=frozenset(map(name_of, claims)))
    _check_long_running(spec, "StatefulSet", mistakes)
    for i, claim in enumerate(claims):
        check_claim_spec(mapping(claim, "spec"), f"spec.volumeClaimTemplates[{i}].spec", mistakes)
    retention = mapping(spec, "persistentVolumeClaimRetentionPolicy")
    for key in ("whenDeleted", "whenScaled"):
        field = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
        mistakes.one_of(field, text(retention, key), ("Delete", "Retain"))


def _check_update_strategy(spec: Object, mistakes: Mistakes) -> None:
    strategy, where = mapping(spec, "updateStrategy"), "spec.updateStrategy"
    kind = text(strategy, "type")
    mistakes.one_of(f"{where}.type", kind, ("RollingUpdate", "OnDelete"))
    rolling = mapping(strategy, "rollingUpdate")
    if kind == "OnDelete" and rolling:
        mistakes.invalid(f"{where}.rollingUpdate", rolling, "only allowed for updateStrategy 'RollingUpdate'")
    mistakes.not_negative(f"{where}.rollingUpdate.partition", rolling.get("partition"))
    for key in ("maxUnavailable", "maxSurge"):
        check_share(rolling, key, f"{where}.rollingUpdate", mistakes)


def _check_stateful_set_update(new: Object, old: Object, mistakes: Mistakes) -> None:
    spec, before = new["spec"], mapping(old, "spec")
    if any(spec.get(key) != before.get(key) for key in (spec.keys() | before.keys()) - _CHANGEABLE_FIELDS):
        mistakes.forbidden("spec", _OTHER_CHANGES_FORBIDDEN)


def _fill_daemon_set(daemon_set: Object) -> None:
    spec = ensure_mapping(daemon_set, "spec")
    _fill_update_strategy(spec, {"maxUnavailable": 1, "maxSurge": 0})
    fill(spec, "revisionHistoryLimit", 10)
    fill_template(spec)


def _check_daemon_set(daemon_set: Object, mistakes: Mistakes) -> None:
    spec = daemon_set["spec"]
    _check_selector(spec, "daemonset", mistakes)
    check_template(spec, mistakes)
    _check_long_running(spec, "DaemonSet", mistakes)
    check_counts(spec, ("minReadySeconds", "revisionHistoryLimit"), mistakes)
    _check_update_strategy(spec, mistakes)
    strategy = mapping(spec, "updateStrategy")
    rolling, where = mapping(strategy, "rollingUpdate"), "spec.updateStrategy.rollingUpdate"
    if strategy.get("type") == "RollingUpdate":
        no_unavailable, no_surge = (_is_none(rolling.get(key)) for key in ("maxUnavailable", "maxSurge"))
        if not no_unavailable and not no_surge:
            mistakes.invalid(f"{where}.maxSurge", rolling["maxSurge"], "may not be set when maxUnavailable is non-zero")
        if no_unavailable and no_surge:
            mistakes.required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0")


DEPLOYMENT = Rules(
    fills={"spec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}},
    defaults=_fill_deployment,
    check=_check_deployment,
    immutable=("spec.selector",),
    counts_generations=True,
)
REPLICA_SET = Rules(
    fills={"spec": {"replicas": 1}},
    defaults=lambda replica_set: fill_template(replica_set["spec"]),
    check=_check_replica_set,
    immutable=("spec.selector",),
    counts_generations=True,
)
REPLICATION_CONTROLLER = Rules(
    defaults=_fill_replication_controller, check=_check_replication_controller, counts_generations=True
)
STATEFUL_SET = Rules(
    name=names.label,
    fills={"spec": _STATEFUL_SET_DEFAULTS},
    defaults=_fill_stateful_set,
    check=_check_stateful_set,
    check_update=_check_stateful_set_update,
    new_status=lambda _: {"replicas": 0},
    counts_generations=True,
)
DAEMON_SET = Rules(
    defaults=_fill_daemon_set, check=_check_daemon_set, immutable=("spec.selector",), counts_generations=True
)
CONTROLLER_REVISION = Rules(immutable=("data",))
