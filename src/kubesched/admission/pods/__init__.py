"""Pods: defaults, priorities and other admission of a plain cluster, what may be written and what may change."""

from __future__ import annotations

from kubesched.admission.limits import limit_pod
from kubesched.admission.metadata import labels_of, metadata_of, name_of
from kubesched.admission.mistakes import Mistakes
from kubesched.admission.pods.containers import KINDS, fill_pods_container
from kubesched.admission.pods.scheduling import merge_label_keys, tolerate_node_trouble
from kubesched.admission.pods.spec import check_pod_spec, fill_pod_spec
from kubesched.admission.pods.updates import check_pod_update, resized, with_ephemeral_containers
from kubesched.admission.reading import fill, filled, mapping, sequence, text
from kubesched.admission.resources import quality_of_service, request_for_the_whole
from kubesched.admission.rules import Reader, Rules
from kubesched.api.api_error import ApiError, forbidden
from kubesched.api.kinds import PODS, PRIORITY_CLASSES, RUNTIME_CLASSES, Object
from kubesched.api.well_known import SYSTEM_PRIORITY_CLASSES

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
    limit_pod(pod, reader)
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"] = "default"
    if "affinity" in spec or "topologySpreadConstraints" in spec:
        merge_label_keys(spec, labels_of(pod), "spec")
    tolerate_node_trouble(spec)
    give_priority(pod, reader)
    if name := text(spec, "runtimeClassName"):
        _run_as(pod, reader.find(RUNTIME_CLASSES, "", name))


def _run_as(pod: Object, runtime_class: Object | None) -> None:
    """A class of runtimes brings its overhead and the nodes that have it."""
    spec = pod["spec"]
    if runtime_class is None:
        why = f'pod rejected: RuntimeClass "{spec["runtimeClassName"]}" not found'
        raise forbidden(PODS, name_of(pod), why)
    if overhead := mapping(mapping(runtime_class, "overhead"), "podFixed"):
        if spec.get("overhead") and spec["overhead"] != overhead:
            why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            raise forbidden(PODS, name_of(pod), why)
        spec["overhead"] = dict(overhead)
    where = mapping(runtime_class, "scheduling")
    selector, own = mapping(where, "nodeSelector"), mapping(spec, "nodeSelector")
    if conflicting := [key for key in selector if own.get(key, selector[key]) != selector[key]]:
        pair = f"runtimeClass.scheduling.nodeSelector[{conflicting[0]}] = {selector[conflicting[0]]}"
        why = f"conflict: {pair}; pod.spec.nodeSelector[{conflicting[0]}] = {own[conflicting[0]]}"
        raise forbidden(PODS, name_of(pod), why)
    if selector:
        spec["nodeSelector"] = {**own, **selector}
    if tolerations := sequence(where, "tolerations"):
        held = sequence(spec, "tolerations")
        spec["tolerations"] = [*held, *(each for each in tolerations if each not in held)]


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
    """How many seconds a pod has to end; none if no node runs it, or it has ended already."""
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


def give_priority(pod: Object, reader: Reader) -> None:
    """Set priority and preemptionPolicy; a pod may not say otherwise than its class."""
    spec = pod["spec"]
    wanted = text(spec, "priorityClassName")
    found = _named(wanted, reader) if wanted else _default(reader)
    if found is None:
        raise _refused(pod, "priorityClassName", f"no PriorityClass with name {wanted} was found")
    name = text(metadata_of(found), "name")
    value = found.get("value") or 0
    given = spec.get("priority")
    if given is not None and given != value:
        why = f"the integer value of priority ({given}) must not be provided in pod spec; "
        why += f"priority admission controller computed {value} from the given PriorityClass name"
        raise _refused(pod, "priority", why)
    policy = text(found, "preemptionPolicy") or "PreemptLowerPriority"
    said = text(spec, "preemptionPolicy")
    if said and said != policy:
        why = f"the string value of PreemptionPolicy ({said}) must not be provided in pod spec; "
        why += f"priority admission controller computed {policy} from the given PriorityClass name"
        raise _refused(pod, "preemptionPolicy", why)
    spec["priority"], spec["preemptionPolicy"] = value, policy
    if name:
        spec["priorityClassName"] = name


def _named(name: str, reader: Reader) -> Object | None:
    found = reader.find(PRIORITY_CLASSES, "", name)
    if found is None and name in SYSTEM_PRIORITY_CLASSES:
        return {"metadata": {"name": name}, "value": SYSTEM_PRIORITY_CLASSES[name]}
    return found


def _default(reader: Reader) -> Object:
    """The class for pods that name none; of several the one with the lowest value."""
    marked = [each for each in reader.select(PRIORITY_CLASSES) if each.get("globalDefault") is True]
    return min(marked, key=lambda each: each.get("value") or 0) if marked else {}


def _refused(pod: Object, field: str, why: str) -> ApiError:
    return forbidden(PODS, name_of(pod), why, f"spec.{field}")
