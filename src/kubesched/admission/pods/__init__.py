"""Pods: defaults, what the admission plugins of a plain cluster do, what may be written and what may change."""

from __future__ import annotations

from kubesched.admission.metadata import labels_of
from kubesched.admission.mistakes import Mistakes
from kubesched.admission.pods.containers import KINDS, fill_pods_container
from kubesched.admission.pods.priority import give_priority
from kubesched.admission.pods.scheduling import merge_label_keys, tolerate_node_trouble
from kubesched.admission.pods.spec import check_pod_spec, fill_pod_spec
from kubesched.admission.pods.updates import check_pod_update, resized, with_ephemeral_containers
from kubesched.admission.reading import fill, filled, mapping, sequence
from kubesched.admission.resources import quality_of_service, request_for_the_whole
from kubesched.admission.rules import Reader, Rules
from kubesched.api.kinds import Object

__all__ = ["check_pod_spec", "deletion_grace", "fill_pod_spec"]

_GRACE = 30


def _defaults(pod: Object) -> None:
    spec = filled(pod, "spec")
    fill_pod_spec(spec)
    fill(spec, "enableServiceLinks", True)
    host_network = spec.get("hostNetwork") is True
    for kind in KINDS:
        for container in sequence(spec, kind):
            fill_pods_container(container, host_network)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if spec.get("resources"):
        request_for_the_whole(spec)


def _admit(pod: Object, reader: Reader) -> None:
    spec = pod["spec"]
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"] = "default"
    if "affinity" in spec or "topologySpreadConstraints" in spec:
        merge_label_keys(spec, labels_of(pod), "spec")
    tolerate_node_trouble(spec)
    give_priority(pod, reader)


def _carry_over(pod: Object, old: Object) -> None:
    """What admission gave the pod when it was created stays, even if a client's copy lacks it."""
    spec, before = pod["spec"], mapping(old, "spec")
    for key in ("priority", "preemptionPolicy"):
        if key in before:
            fill(spec, key, before[key])
    tolerate_node_trouble(spec)


def _check(pod: Object, mistakes: Mistakes) -> None:
    check_pod_spec(pod["spec"], "spec", mistakes)


def _check_create(pod: Object, mistakes: Mistakes) -> None:
    spec = pod["spec"]
    if spec.get("ephemeralContainers"):
        mistakes.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        mistakes.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def _new_status(pod: Object) -> Object:
    return {"phase": "Pending", "qosClass": quality_of_service(pod["spec"])}


def deletion_grace(pod: Object, requested: int | None) -> int:
    """How many seconds a pod has to end; none if nobody runs it, or it has ended already."""
    spec, status = mapping(pod, "spec"), mapping(pod, "status")
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    if requested is not None:
        return requested if requested >= 0 else 1
    own = spec.get("terminationGracePeriodSeconds")
    return _GRACE if own is None else max(own, 0)


RULES = Rules(
    defaults=_defaults,
    admit=_admit,
    carry_over=_carry_over,
    check=_check,
    check_create=_check_create,
    check_update=check_pod_update,
    new_status=_new_status,
    takes={"resize": resized, "ephemeralcontainers": with_ephemeral_containers},
    counts_generations=True,
)
