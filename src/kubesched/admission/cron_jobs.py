"""CronJobs: Jobs that are created by a schedule."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubesched.admission.metadata import name_of
from kubesched.admission.mistakes import Mistakes
from kubesched.admission.reading import fill, filled, mapping, text
from kubesched.admission.rules import Rules
from kubesched.admission.workloads import check_counts, check_template, fill_template
from kubesched.api.cron import CronError, parse_schedule
from kubesched.api.kinds import Object

_LONGEST_NAME = 52
"""Jobs are named after it, with eleven more characters."""


def _defaults(cron_job: Object) -> None:
    spec = filled(cron_job, "spec")
    fill(spec, "concurrencyPolicy", "Allow")
    fill(spec, "suspend", False)
    fill(spec, "successfulJobsHistoryLimit", 3)
    fill(spec, "failedJobsHistoryLimit", 1)
    fill_template(mapping(mapping(spec, "jobTemplate"), "spec"))


def _check(cron_job: Object, mistakes: Mistakes) -> None:
    spec = cron_job["spec"]
    if len(name_of(cron_job)) > _LONGEST_NAME:
        mistakes.invalid("metadata.name", name_of(cron_job), f"must be no more than {_LONGEST_NAME} characters")
    _check_schedule(spec, mistakes)
    mistakes.one_of("spec.concurrencyPolicy", text(spec, "concurrencyPolicy"), ("Allow", "Forbid", "Replace"))
    limits = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    check_counts(spec, limits, mistakes)
    found = Mistakes()
    check_template(mapping(mapping(spec, "jobTemplate"), "spec"), found)
    for each in found.found:
        mistakes.found.append(each._replace(path=f"spec.jobTemplate.{each.path}"))
    policy = text(mapping(mapping(mapping(mapping(spec, "jobTemplate"), "spec"), "template"), "spec"), "restartPolicy")
    if policy in ("", "Always"):
        where = "spec.jobTemplate.spec.template.spec.restartPolicy"
        mistakes.required(where, 'valid values: "OnFailure", "Never"')


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


RULES = Rules(defaults=_defaults, check=_check, counts_generations=True)
