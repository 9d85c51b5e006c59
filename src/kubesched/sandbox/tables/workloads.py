"""How workloads are shown."""

from __future__ import annotations

from datetime import datetime

from kubesched.api.kinds import Object
from kubesched.sandbox.tables.column import (
    AGE,
    NAME,
    NONE,
    Column,
    at,
    count,
    each,
    field,
    human_duration,
    is_leaving,
    is_true,
    labels,
    moment,
    number,
    selector,
    word,
)

_JOB_STATES = (
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _of_containers(key: str) -> Column:
    def cell(obj: Object, _: datetime) -> str:
        containers = each(obj, "spec", "template", "spec", "containers")
        return ",".join(word(container, key) for container in containers)

    return Column({"name": "Containers", "image": "Images"}[key], cell, priority=1)


_CONTAINERS = (_of_containers("name"), _of_containers("image"))
_SELECTOR = Column("Selector", lambda obj, _: selector(at(obj, "spec", "selector")) or NONE, priority=1)


def _ready(obj: Object, _: datetime) -> str:
    return f"{count(obj, 'status', 'readyReplicas')}/{count(obj, 'spec', 'replicas')}"


_READY = Column("Ready", _ready, description="Pods that are ready, of those wanted.")
_REPLICAS = (
    NAME,
    number("Desired", "spec", "replicas"),
    number("Current", "status", "replicas"),
    number("Ready", "status", "readyReplicas"),
    AGE,
    *_CONTAINERS,
)

DEPLOYMENTS = (
    NAME,
    _READY,
    Column("Up-to-date", lambda obj, _: count(obj, "status", "updatedReplicas")),
    Column("Available", lambda obj, _: count(obj, "status", "availableReplicas")),
    AGE,
    *_CONTAINERS,
    Column("Selector", lambda obj, _: selector(at(obj, "spec", "selector")), priority=1),
)
REPLICA_SETS = (*_REPLICAS, _SELECTOR)
REPLICATION_CONTROLLERS = (
    *_REPLICAS,
    Column("Selector", lambda obj, _: labels(at(obj, "spec", "selector")), priority=1),
)
STATEFUL_SETS = (NAME, _READY, AGE, *_CONTAINERS)
DAEMON_SETS = (
    NAME,
    number("Desired", "status", "desiredNumberScheduled"),
    number("Current", "status", "currentNumberScheduled"),
    number("Ready", "status", "numberReady"),
    number("Up-to-date", "status", "updatedNumberScheduled"),
    number("Available", "status", "numberAvailable"),
    Column("Node Selector", lambda obj, _: labels(at(obj, "spec", "template", "spec", "nodeSelector"))),
    AGE,
    *_CONTAINERS,
    _SELECTOR,
)


# -- jobs -------------------------------------------------------------------------------------------------------------


def _job_status(job: Object, _: datetime) -> str:
    if is_true(job, "Complete"):
        return "Complete"
    if is_true(job, "Failed"):
        return "Failed"
    if is_leaving(job):
        return "Terminating"
    return next((shown for condition, shown in _JOB_STATES if is_true(job, condition)), "Running")


def _completions(job: Object, _: datetime) -> str:
    done, parallel = count(job, "status", "succeeded"), count(job, "spec", "parallelism")
    if at(job, "spec", "completions") is not None:
        return f"{done}/{count(job, 'spec', 'completions')}"
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(job: Object, now: datetime) -> str:
    begun, ended = (moment(at(job, "status", key)) for key in ("startTime", "completionTime"))
    return "" if begun is None else human_duration(((ended or now) - begun).total_seconds())


JOBS = (
    NAME,
    Column("Status", _job_status),
    Column("Completions", _completions),
    Column("Duration", _duration),
    AGE,
    *_CONTAINERS,
    _SELECTOR,
)


# -- what belongs to workloads ----------------------------------------------------------------------------------------


def _controller(obj: Object, _: datetime) -> str:
    owners = (one for one in each(obj, "metadata", "ownerReferences") if one.get("controller") is True)
    owner = next(owners, None)
    if owner is None:
        return NONE
    group = word(owner, "apiVersion").rpartition("/")[0]
    kind = word(owner, "kind").lower()
    return f"{kind}.{group}/{word(owner, 'name')}" if group else f"{kind}/{word(owner, 'name')}"


CONTROLLER_REVISIONS = (NAME, Column("Controller", _controller), field("Revision", "revision", otherwise="0"), AGE)
DISRUPTION_BUDGETS = (
    NAME,
    field("Min Available", "spec", "minAvailable", otherwise="N/A"),
    field("Max Unavailable", "spec", "maxUnavailable", otherwise="N/A"),
    number("Allowed Disruptions", "status", "disruptionsAllowed"),
    AGE,
)
