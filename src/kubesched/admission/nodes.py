"""Nodes and namespaces."""

from __future__ import annotations

from kubesched.admission import names
from kubesched.admission.metadata import name_of
from kubesched.admission.mistakes import Mistakes
from kubesched.admission.pods.scheduling import EFFECTS
from kubesched.admission.reading import fill, filled, mapping, quantities, sequence, text
from kubesched.admission.resources import check_amount
from kubesched.admission.rules import Rules
from kubesched.admission.selectors import check_key
from kubesched.api.kinds import Object
from kubesched.api.well_known import NAMESPACE_NAME

_FINALIZER = "kubernetes"


def _fill_node(node: Object) -> None:
    filled(node, "spec")
    status = mapping(node, "status")
    if status.get("capacity") and status.get("allocatable") is None:
        status["allocatable"] = dict(mapping(status, "capacity"))


def _check_node(node: Object, mistakes: Mistakes) -> None:
    spec, status = mapping(node, "spec"), mapping(node, "status")
    _check_taints(sequence(spec, "taints"), mistakes)
    for key in ("capacity", "allocatable"):
        for name, amount in quantities(status, key).items():
            check_amount(name, amount, status[key][name], f"status.{key}[{name}]", mistakes)


def _check_taints(taints: list[Object], mistakes: Mistakes) -> None:
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(taints):
        where = f"spec.taints[{i}]"
        check_key(taint, "key", where, mistakes)
        value, effect = text(taint, "value"), text(taint, "effect")
        if words := names.label_value(value):
            mistakes.invalid(f"{where}.value", value, ";".join(words))
        mistakes.chosen(f"{where}.effect", effect, EFFECTS)
        pair = (effect, text(taint, "key"))
        if pair in seen:
            mistakes.duplicate(where, taint)
        seen.add(pair)


def _node_stays(new: Object, old: Object, mistakes: Mistakes) -> None:
    spec, before = mapping(new, "spec"), mapping(old, "spec")
    if (known := text(before, "providerID")) and spec.get("providerID") != known:
        how = "modified" if spec.get("providerID") else "cleared"
        mistakes.invalid("spec.providerID", None, f"field cannot be {how} once set")
    if sequence(before, "podCIDRs") and spec.get("podCIDRs") != before["podCIDRs"]:
        mistakes.forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')


def _fill_namespace(namespace: Object) -> None:
    filled(namespace, "spec")
    metadata = filled(namespace, "metadata")
    if name := name_of(namespace):
        metadata["labels"] = {**mapping(metadata, "labels"), NAMESPACE_NAME: name}


def _admit_namespace(namespace: Object, _: object) -> None:
    """The server's own finalizer holds a namespace until nothing is left in it."""
    spec = mapping(namespace, "spec")
    fill(spec, "finalizers", [])
    if _FINALIZER not in sequence(spec, "finalizers"):
        spec["finalizers"] = [*spec["finalizers"], _FINALIZER]


def _check_namespace(namespace: Object, mistakes: Mistakes) -> None:
    for finalizer in sequence(mapping(namespace, "spec"), "finalizers"):
        mistakes.invalid_each("spec.finalizers", finalizer, names.label_key(finalizer))


def _carry_over_finalizers(new: Object, old: Object) -> None:
    """Only the `finalize` subresource changes who holds a namespace."""
    new["spec"] = {**mapping(new, "spec")}
    new["spec"].pop("finalizers", None)
    if "finalizers" in mapping(old, "spec"):
        new["spec"]["finalizers"] = old["spec"]["finalizers"]


def _finalized(new: Object, old: Object, _: Mistakes) -> Object:
    return {**old, "metadata": new["metadata"], "spec": mapping(new, "spec")}


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
