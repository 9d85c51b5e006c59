"""Jobs: pods that run to an end."""

from __future__ import annotations

from kubesched.api.kinds import Object
from kubesched.sandbox.admission.faults import Faults
from kubesched.sandbox.admission.metadata import metadata_of, name_of, require_metadata
from kubesched.sandbox.admission.reading import fill, flag, integer, mapping, optional_mapping, string_map, text
from kubesched.sandbox.admission.rules import Reader, Rules
from kubesched.sandbox.admission.selectors import check_label_selector, matches
from kubesched.sandbox.admission.workloads import (
    MISMATCH,
    check_counts,
    check_template,
    fill_template,
    spec_to_fill,
    template_labels,
)
from kubesched.sandbox.errors import bad_request

_UID, _OLD_UID = "batch.kubernetes.io/controller-uid", "controller-uid"
_NAME, _OLD_NAME = "batch.kubernetes.io/job-name", "job-name"
_INT32 = 2**31 - 1
_COUNTS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_STARTING = frozenset(("nodeSelector", "affinity", "tolerations", "schedulingGates", "schedulerName"))
"""What may change in the pods of a job that has not begun."""


def _defaults(job: Object) -> None:
    spec = spec_to_fill(job)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    fill(spec, "parallelism", 1)
    fill(spec, "backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else _INT32)
    fill(spec, "completionMode", "NonIndexed")
    fill(spec, "suspend", False)
    fill(spec, "podReplacementPolicy", "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed")
    fill(spec, "manualSelector", False)
    metadata = require_metadata(job)
    if (labels := template_labels(spec)) and not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    fill_template(spec)


def _select_by_uid(job: Object, _: Reader) -> None:
    """Unless its owner chose otherwise, a job knows its pods by its own uid."""
    spec = job["spec"]
    if flag(spec, "manualSelector", "spec"):
        return
    uid = text(metadata_of(job), "uid", "metadata")
    if not uid:
        raise bad_request("a Job must have its uid before it is admitted")
    fill(spec, "template", {})
    template = mapping(spec, "template", "spec")
    fill(template, "metadata", {})
    metadata = mapping(template, "metadata", "spec.template")
    labels = string_map(metadata, "labels", "spec.template.metadata")
    name = name_of(job)
    metadata["labels"] = {**labels, _OLD_NAME: name, _NAME: name, _OLD_UID: uid, _UID: uid}
    fill(spec, "selector", {})
    selector = mapping(spec, "selector", "spec")
    selector["matchLabels"] = {**string_map(selector, "matchLabels", "spec.selector"), _UID: uid}


def _check(job: Object, faults: Faults) -> None:
    spec = job["spec"]
    selector = optional_mapping(spec, "selector", "spec")
    if selector is None:
        faults.required("spec.selector")
    else:
        check_label_selector(selector, "spec.selector", faults)
        if not matches(selector, template_labels(spec), "spec.selector"):
            faults.invalid("spec.template.metadata.labels", template_labels(spec), MISMATCH)
    check_counts(spec, _COUNTS, faults)
    mode = text(spec, "completionMode", "spec")
    if mode not in ("NonIndexed", "Indexed"):
        faults.unsupported("spec.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed" and integer(spec, "completions", "spec") is None:
        faults.required("spec.completions", "when completion mode is Indexed")
    check_template(spec, faults)
    _check_restart_policy(spec, faults)


def _check_restart_policy(spec: Object, faults: Faults) -> None:
    field = "spec.template.spec.restartPolicy"
    pod = mapping(mapping(spec, "template", "spec"), "spec", "spec.template")
    policy = text(pod, "restartPolicy", "spec.template.spec")
    if policy in ("", "Always"):
        faults.required(field, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        faults.unsupported(field, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        faults.invalid(field, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _check_update(new: Object, old: Object, faults: Faults) -> None:
    spec, before = new["spec"], mapping(old, "spec", "")
    indexed = before.get("completionMode") == "Indexed"
    if not (indexed and spec.get("completions") == spec.get("parallelism")):
        faults.immutable("spec.completions", spec.get("completions"), before.get("completions"))
    for key in ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"):
        faults.immutable(f"spec.{key}", spec.get(key), before.get(key))
    not_begun = before.get("suspend") is True and not mapping(old, "status", "").get("startTime")
    template, old_template = spec.get("template"), before.get("template")
    if not_begun:
        template, old_template = _lasting(template), _lasting(old_template)
    if template != old_template:
        faults.invalid("spec.template", spec.get("template"), "field is immutable")


def _lasting(template: Object | None) -> Object:
    """The template without what may change before the job begins."""
    pod = mapping(template or {}, "spec", "spec.template")
    return {"spec": {key: value for key, value in pod.items() if key not in _STARTING}}


RULES = Rules(
    defaults=_defaults, admit=_select_by_uid, check=_check, check_update=_check_update, counts_generations=True
)
