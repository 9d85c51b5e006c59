"""Nodes and namespaces."""

from __future__ import annotations

from kubesched.api.kinds import Object
from kubesched.sandbox.admission import names
from kubesched.sandbox.admission.faults import Faults
from kubesched.sandbox.admission.metadata import name_of, require_metadata
from kubesched.sandbox.admission.pods.scheduling import EFFECTS
from kubesched.sandbox.admission.reading import (
    fill,
    flag,
    mapping,
    quantities,
    records,
    sequence,
    string_map,
    text,
    texts,
)
from kubesched.sandbox.admission.resources import check_amount
from kubesched.sandbox.admission.rules import Rules
from kubesched.sandbox.admission.selectors import check_key

_NAME_LABEL = "kubernetes.io/metadata.name"
_FINALIZER = "kubernetes"


def _fill_node(node: Object) -> None:
    if node.get("spec") is None:
        node["spec"] = {}
    status = mapping(node, "status", "")
    if status.get("capacity") and status.get("allocatable") is None:
        status["allocatable"] = dict(mapping(status, "capacity", "status"))


def _check_node(node: Object, faults: Faults) -> None:
    spec, status = mapping(node, "spec", ""), mapping(node, "status", "")
    _check_taints(records(spec, "taints", "spec"), faults)
    flag(spec, "unschedulable", "spec")
    for key in ("podCIDR", "providerID"):
        text(spec, key, "spec")
    texts(spec, "podCIDRs", "spec")
    for key in ("capacity", "allocatable"):
        for name, amount in quantities(status, key, "status").items():
            check_amount(name, amount, status[key][name], f"status.{key}[{name}]", faults)
    for key in ("conditions", "addresses"):
        records(status, key, "status")


def _check_taints(taints: list[Object], faults: Faults) -> None:
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(taints):
        where = f"spec.taints[{i}]"
        check_key(taint, "key", where, faults)
        value, effect = text(taint, "value", where), text(taint, "effect", where)
        if told := names.label_value(value):
            faults.invalid(f"{where}.value", value, ";".join(told))
        if not effect:
            faults.required(f"{where}.effect")
        elif effect not in EFFECTS:
            faults.unsupported(f"{where}.effect", effect, EFFECTS)
        pair = (effect, text(taint, "key", where))
        if pair in seen:
            faults.duplicate(where, taint)
        seen.add(pair)


def _node_stays(new: Object, old: Object, faults: Faults) -> None:
    spec, before = mapping(new, "spec", ""), mapping(old, "spec", "")
    if (known := text(before, "providerID", "spec")) and spec.get("providerID") != known:
        how = "modified" if spec.get("providerID") else "cleared"
        faults.invalid("spec.providerID", None, f"field cannot be {how} once set")
    if sequence(before, "podCIDRs", "spec") and spec.get("podCIDRs") != before["podCIDRs"]:
        faults.forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')


def _fill_namespace(namespace: Object) -> None:
    if namespace.get("spec") is None:
        namespace["spec"] = {}
    metadata = require_metadata(namespace)
    if name := name_of(namespace):
        metadata["labels"] = {**string_map(metadata, "labels", "metadata"), _NAME_LABEL: name}


def _admit_namespace(namespace: Object, _: object) -> None:
    """The server's own finalizer holds a namespace until nothing is left in it."""
    spec = mapping(namespace, "spec", "")
    fill(spec, "finalizers", [])
    if _FINALIZER not in sequence(spec, "finalizers", "spec"):
        spec["finalizers"] = [*spec["finalizers"], _FINALIZER]


def _check_namespace(namespace: Object, faults: Faults) -> None:
    for finalizer in texts(mapping(namespace, "spec", ""), "finalizers", "spec"):
        faults.invalid_each("spec.finalizers", finalizer, names.label_key(finalizer))


def _carry_over_finalizers(new: Object, old: Object) -> None:
    """Only the `finalize` subresource changes who holds a namespace."""
    new["spec"] = {**mapping(new, "spec", "")}
    new["spec"].pop("finalizers", None)
    if "finalizers" in mapping(old, "spec", ""):
        new["spec"]["finalizers"] = old["spec"]["finalizers"]


def _finalized(new: Object, old: Object, _: Faults) -> Object:
    return {**old, "metadata": new["metadata"], "spec": mapping(new, "spec", "")}


NODE = Rules(defaults=_fill_node, check=_check_node, check_update=_node_stays, new_status=None)
NAMESPACE = Rules(
    name=names.label,
    defaults=_fill_namespace,
    admit=_admit_namespace,
    carry_over=_carry_over_finalizers,
    check=_check_namespace,
    new_status=lambda _: {"phase": "Active"},
    takes={"finalize": _finalized},
)
