"""Cells of kinds that are mostly kept as they are: autoscalers, addresses, quotas, roles, certificates."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from kubesched.admission.reading import value_at
from kubesched.api.kinds import Object
from kubesched.sandbox.tables.column import (
    NONE,
    UNKNOWN,
    count,
    each,
    human_duration,
    is_true,
    listed,
    since,
    word,
)

UNSET = "<unset>"
_SHOWN = 3
"""How many of a list are shown before the rest is only counted."""


def _some(found: list[str], none: str = NONE) -> str:
    rest = len(found) - _SHOWN
    return ",".join(found[:_SHOWN]) + (f" + {rest} more..." if rest > 0 else "") or none


# -- jobs by schedule, and autoscalers --------------------------------------------------------------------------------


def suspended(cron_job: Object, _: datetime) -> str:
    return str(value_at(cron_job, "spec", "suspend") is True)


def last_schedule(cron_job: Object, now: datetime) -> str:
    last = value_at(cron_job, "status", "lastScheduleTime")
    return since(last, now) if last else NONE


def _of_template(*path: str) -> Callable[[str], Callable[[Object, datetime], str]]:
    def of(key: str) -> Callable[[Object, datetime], str]:
        return lambda obj, _: ",".join(word(one, key) for one in each(obj, *path, "spec", "containers"))

    return of


_job, _template = _of_template("spec", "jobTemplate", "spec", "template"), _of_template("template")
job_container_names, job_container_images = _job("name"), _job("image")
template_container_names, template_container_images = _template("name"), _template("image")


def scale_target(autoscaler: Object, _: datetime) -> str:
    target = value_at(autoscaler, "spec", "scaleTargetRef")
    return f"{word(target, 'kind')}/{word(target, 'name')}"


def scale_metrics(autoscaler: Object, _: datetime) -> str:
    now = each(autoscaler, "status", "currentMetrics")
    shown = []
    for i, metric in enumerate(each(autoscaler, "spec", "metrics")):
        shown.append(_metric(metric, now[i] if i < len(now) else {}))
    return ", ".join(shown[:2]) + (f" + {len(shown) - 2} more..." if len(shown) > 2 else "") or NONE


_SOURCES = ("resource", "containerResource", "pods", "object", "external")


def _metric(metric: Object, now: Object) -> str:
    source = next((key for key in _SOURCES if key in metric), "")
    wanted, found = value_at(metric, source, "target"), value_at(now, source, "current")
    name = word(metric, source, "name")
    before = f"{name}: " if name else ""
    if value_at(wanted, "averageUtilization") is not None:
        share = value_at(found, "averageUtilization")
        return f"{before}{UNKNOWN if share is None else f'{share}%'}/{word(wanted, 'averageUtilization')}%"
    key = "averageValue" if value_at(wanted, "averageValue") is not None else "value"
    return f"{before}{word(found, key, otherwise=UNKNOWN)}/{word(wanted, key)}"


# -- networking -------------------------------------------------------------------------------------------------------


def ingress_hosts(ingress: Object, _: datetime) -> str:
    return _some([word(rule, "host") for rule in each(ingress, "spec", "rules") if word(rule, "host")], "*")


def ingress_addresses(ingress: Object, _: datetime) -> str:
    balanced = each(ingress, "status", "loadBalancer", "ingress")
    return ",".join(word(one, "ip") or word(one, "hostname") for one in balanced)


def ingress_ports(ingress: Object, _: datetime) -> str:
    return "80, 443" if each(ingress, "spec", "tls") else "80"


def ingress_parameters(ingress_class: Object, _: datetime) -> str:
    given = value_at(ingress_class, "spec", "parameters")
    if not isinstance(given, dict):
        return NONE
    group = word(given, "apiGroup")
    return f"{word(given, 'kind')}{f'.{group}' if group else ''}/{word(given, 'name')}"


def address_parent(address: Object, _: datetime) -> str:
    parent = value_at(address, "spec", "parentRef")
    return "/".join(filter(None, (word(parent, "resource"), word(parent, "namespace"), word(parent, "name"))))


def endpoint_addresses(endpoints: Object, _: datetime) -> str:
    found = []
    for subset in each(endpoints, "subsets"):
        hosts = [word(one, "ip") for one in each(subset, "addresses")]
        ports = [f":{count(port, 'port')}" for port in each(subset, "ports")] or [""]
        found += [f"{host}{port}" for port in ports for host in hosts]
    return _some(found)


def slice_ports(endpoint_slice: Object, _: datetime) -> str:
    return _some([word(port, "port", otherwise="*") for port in each(endpoint_slice, "ports")], UNSET)


def slice_addresses(endpoint_slice: Object, _: datetime) -> str:
    return _some([listed(one, "addresses") for one in each(endpoint_slice, "endpoints")], UNSET)


# -- quotas, roles, certificates, extensions --------------------------------------------------------------------------


def quota_requests(quota: Object, _: datetime) -> str:
    return _shares(quota, lambda name: not name.startswith("limits"))


def quota_limits(quota: Object, _: datetime) -> str:
    return _shares(quota, lambda name: name.startswith("limits"))


def _shares(quota: Object, belongs: Callable[[str], bool]) -> str:
    hard, used = value_at(quota, "status", "hard"), value_at(quota, "status", "used")
    names = sorted(filter(belongs, hard)) if isinstance(hard, dict) else []
    return ", ".join(f"{name}: {word(used, name, otherwise='0')}/{word(hard, name)}" for name in names)


def bound_role(binding: Object, _: datetime) -> str:
    return f"{word(binding, 'roleRef', 'kind')}/{word(binding, 'roleRef', 'name')}"


def _subjects(kind: str) -> Callable[[Object, datetime], str]:
    def cell(binding: Object, _: datetime) -> str:
        found = [one for one in each(binding, "subjects") if one.get("kind") == kind]
        return ", ".join("/".join(filter(None, (word(one, "namespace"), word(one, "name")))) for one in found)

    return cell


bound_users, bound_groups, bound_accounts = _subjects("User"), _subjects("Group"), _subjects("ServiceAccount")


def asked_duration(request: Object, _: datetime) -> str:
    seconds: Any = value_at(request, "spec", "expirationSeconds")
    return human_duration(seconds) if isinstance(seconds, int) else NONE


def signing_state(request: Object, _: datetime) -> str:
    states = [state for state in ("Approved", "Denied", "Failed") if is_true(request, state)]
    states += ["Issued"] if word(request, "status", "certificate") else []
    return ",".join(states) or "Pending"


def service_available(service: Object, _: datetime) -> str:
    return "True" if is_true(service, "Available") or value_at(service, "spec", "service") is None else "False"


# -- pod groups -------------------------------------------------------------------------------------------------------


def group_policy(group: Object, _: datetime) -> str:
    policy = value_at(group, "spec", "schedulingPolicy")
    return "Gang" if isinstance(policy, dict) and policy.get("gang") is not None else "Basic"


def group_status(group: Object, _: datetime) -> str:
    conditions = {word(one, "type"): one for one in each(group, "status", "conditions")}
    if "DisruptionTarget" in conditions:
        return word(conditions["DisruptionTarget"], "reason")
    if "PodGroupScheduled" in conditions:
        return "Scheduled" if is_true(group, "PodGroupScheduled") else "Unschedulable"
    return "Pending"
