"""Jobs, whose pods run to an end, and CronJobs, which create them by a schedule."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubesched.admission.reading import ensure_mapping, fill, mapping, metadata_of, name_of, sequence, text
from kubesched.admission.rules import IMMUTABLE, Mistakes, Reader, Rules
from kubesched.admission.selectors import check_label_selector, matches
from kubesched.admission.workloads import MISMATCH, check_counts, check_template, fill_template, template_labels
from kubesched.api.api_error import bad_request, forbidden
from kubesched.api.cron import CronError, parse_schedule
from kubesched.api.kinds import JOBS, POD_GROUPS, Object

_UID, _OLD_UID = "batch.kubernetes.io/controller-uid", "controller-uid"
_NAME, _OLD_NAME = "batch.kubernetes.io/job-name", "job-name"
_INT32 = 2**31 - 1
_COUNTS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_STARTING = frozenset(("nodeSelector", "affinity", "tolerations", "schedulingGates", "schedulerName"))
"""Fields of the pods that may change until the Job begins."""


def _defaults(job: Object) -> None:
    spec = ensure_mapping(job, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    fill(spec, "parallelism", 1)
    fill(spec, "backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else _INT32)
    fill(spec, "completionMode", "NonIndexed")
    fill(spec, "suspend", False)
    fill(spec, "podReplacementPolicy", "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed")
    fill(spec, "manualSelector", False)
    metadata = ensure_mapping(job, "metadata")
    if (labels := template_labels(spec)) and not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    fill_template(spec)


def _admit(job: Object, reader: Reader) -> None:
    """Select the pods of the Job by its uid, unless its author wants to select them."""
    spec = job["spec"]
    if not reader.release.job_scheduling:
        spec.pop("scheduling", None)
    if spec.get("manualSelector"):
        return
    uid = text(metadata_of(job), "uid")
    if not uid:
        raise bad_request("a Job must have its uid before it is admitted")
    metadata = ensure_mapping(ensure_mapping(spec, "template"), "metadata")
    name = name_of(job)
    metadata["labels"] = {**mapping(metadata, "labels"), _OLD_NAME: name, _NAME: name, _OLD_UID: uid, _UID: uid}
    selector = ensure_mapping(spec, "selector")
    selector["matchLabels"] = {**mapping(selector, "matchLabels"), _UID: uid}


def _check(job: Object, mistakes: Mistakes) -> None:
    spec = job["spec"]
    selector = spec.get("selector")
    if selector is None:
        mistakes.required("spec.selector")
    else:
        check_label_selector(selector, "spec.selector", mistakes)
        if not matches(selector, template_labels(spec)):
            mistakes.invalid("spec.template.metadata.labels", template_labels(spec), MISMATCH)
    check_counts(spec, _COUNTS, mistakes)
    mode = text(spec, "completionMode")
    mistakes.one_of("spec.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed" and spec.get("completions") is None:
        mistakes.required("spec.completions", "when completion mode is Indexed")
    check_template(spec, mistakes)
    _check_restart_policy(spec, mistakes)
    gang = mapping(mapping(mapping(spec, "scheduling"), "schedulingPolicy"), "gang")
    if (gang.get("minCount") or 0) > spec["parallelism"]:
        why = f"must not be greater than parallelism ({spec['parallelism']})"
        mistakes.invalid("spec.scheduling.schedulingPolicy.gang.minCount", gang["minCount"], why)


def _check_restart_policy(spec: Object, mistakes: Mistakes) -> None:
    field = "spec.template.spec.restartPolicy"
    pod = mapping(mapping(spec, "template"), "spec")
    policy = text(pod, "restartPolicy")
    if policy in ("", "Always"):
        mistakes.required(field, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        mistakes.unsupported(field, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        mistakes.invalid(field, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _check_update(new: Object, old: Object, mistakes: Mistakes) -> None:
    spec, before = new["spec"], mapping(old, "spec")
    indexed = before.get("completionMode") == "Indexed"
    if not (indexed and spec.get("completions") == spec.get("parallelism")):
        mistakes.immutable("spec.completions", spec.get("completions"), before.get("completions"))
    for key in ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"):
        mistakes.immutable(f"spec.{key}", spec.get(key), before.get(key))
    scheduling, old_scheduling = (_without_gang_size(version.get("scheduling")) for version in (spec, before))
    mistakes.immutable("spec.scheduling", scheduling, old_scheduling)
    template, old_template = mapping(spec, "template"), mapping(before, "template")
    if before.get("suspend") is True and not mapping(old, "status").get("startTime"):
        template, old_template = _without_starting_fields(template), _without_starting_fields(old_template)
    if template != old_template:
        mistakes.invalid("spec.template", spec.get("template"), IMMUTABLE)


def _without_gang_size(scheduling: Object | None) -> Object | None:
    """How many pods make a gang may change."""
    policy = mapping(scheduling or {}, "schedulingPolicy")
    return {**scheduling, "schedulingPolicy": {"gang": {}}} if scheduling and "gang" in policy else scheduling


def _without_starting_fields(template: Object) -> Object:
    return {"spec": {key: value for key, value in mapping(template, "spec").items() if key not in _STARTING}}


def _keep_gang(new: Object, old: Object, reader: Reader) -> None:
    """In v1.36 the parallelism of a Job whose PodGroup is a gang may not change."""
    if reader.release.job_scheduling or new["spec"].get("parallelism") == mapping(old, "spec").get("parallelism"):
        return
    namespace = text(metadata_of(old), "namespace")
    template = mapping(mapping(mapping(old, "spec"), "template"), "spec")
    group_name = text(mapping(template, "schedulingGroup"), "podGroupName")
    for group in reader.select(POD_GROUPS, namespace):
        is_own = name_of(group) == group_name if group_name else _is_controlled_by(group, old)
        if is_own and "gang" in mapping(mapping(group, "spec"), "schedulingPolicy"):
            why = f'cannot change parallelism for a Job referencing gang-scheduled PodGroup "{name_of(group)}"'
            raise forbidden(JOBS, name_of(old), why)


def _is_controlled_by(obj: Object, job: Object) -> bool:
    owners = sequence(metadata_of(obj), "ownerReferences")
    return any(owner.get("controller") and owner.get("uid") == metadata_of(job).get("uid") for owner in owners)


RULES = Rules(
    defaults=_defaults,
    admit=_admit,
    check=_check,
    check_update=_check_update,
    admit_update=_keep_gang,
    counts_generations=True,
)


_LONGEST_NAME = 52
"""The names of its Jobs are eleven characters longer."""


_CRON_JOB_DEFAULTS: Object = {
    "concurrencyPolicy": "Allow",
    "suspend": False,
    "successfulJobsHistoryLimit": 3,
    "failedJobsHistoryLimit": 1,
}


def _check_cron_job(cron_job: Object, mistakes: Mistakes) -> None:
    spec = cron_job["spec"]
    if len(name_of(cron_job)) > _LONGEST_NAME:
        mistakes.invalid("metadata.name", name_of(cron_job), f"must be no more than {_LONGEST_NAME} characters")
    _check_schedule(spec, mistakes)
    mistakes.one_of("spec.concurrencyPolicy", text(spec, "concurrencyPolicy"), ("Allow", "Forbid", "Replace"))
    limits = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    check_counts(spec, limits, mistakes)
    job_mistakes, job_spec = Mistakes(), mapping(mapping(spec, "jobTemplate"), "spec")
    check_template(job_spec, job_mistakes)
    _check_restart_policy(job_spec, job_mistakes)
    mistakes.found += [mistake._replace(path=f"spec.jobTemplate.{mistake.path}") for mistake in job_mistakes.found]


def _check_schedule(spec: Object, mistakes: Mistakes) -> None:
    schedule, zone = text(spec, "schedule"), text(spec, "timeZone")
    if not schedule:
        mistakes.required("spec.schedule")
    elif "TZ" in schedule:
        mistakes.invalid("spec.schedule", schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    else:
        try:
            parse_schedule(schedule)
        except CronError as error:
            mistakes.invalid("spec.schedule", schedule, str(error))
    if zone:
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            mistakes.invalid("spec.timeZone", zone, f"unknown time zone {zone}")


CRON_JOB = Rules(
    fills={"spec": _CRON_JOB_DEFAULTS},
    defaults=lambda cron_job: fill_template(mapping(mapping(cron_job["spec"], "jobTemplate"), "spec")),
    check=_check_cron_job,
    counts_generations=True,
)
