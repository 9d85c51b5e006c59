"""Remedies carried out on JSON, as a program would: patched, created and deleted objects, and a cluster made anew."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import msgspec

from kubesched import config
from kubesched.api.json_patch import json_patch
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.ask.output import plain
from kubesched.ask.remedies import ObjectChange, Remedy
from kubesched.framework.decision import Outcome
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.placement import schedule

Json = dict[str, Any]


def cluster_of(objects: Iterable[Json], settings: config.SchedulerConfiguration | None = None) -> ClusterModel:
    """A cluster of objects as an API server has them."""
    records = [msgspec.convert(obj, KINDS[obj["kind"]].record) for obj in objects if obj["kind"] in KINDS]
    return ClusterModel(records, settings or config.default())


def as_json(objects: Iterable[KubeObject]) -> list[Json]:
    """Objects as an API server would show them."""
    return [{**msgspec.json.decode(msgspec.json.encode(obj)), "kind": type(obj).__name__} for obj in objects]


def after(objects: Iterable[Json], changes: Iterable[ObjectChange]) -> list[Json]:
    """The objects once the changes have been made."""
    found = {_place(obj): obj for obj in objects}
    for change in changes:
        place = (change.kind, change.namespace, change.name)
        match change.verb:
            case "create":
                assert change.object is not None
                assert place not in found
                found[place] = plain(change.object)
            case "delete":
                del found[place]
            case _:
                assert change.patch is not None
                found[place] = json_patch(deepcopy(found[place]), plain(change.patch))
    return list(found.values())


def schedules(
    objects: Iterable[Json], pod: str, remedy: Remedy, settings: config.SchedulerConfiguration | None = None
) -> bool:
    """Whether a cluster made anew, with the remedy, has a node for the pod: from PreEnqueue to Reserve."""
    cluster = cluster_of(after(objects, remedy.changes), settings)
    return schedule(cluster, cluster.pods[pod]).outcome is Outcome.SCHEDULED


def _place(obj: Json) -> tuple[str, str, str]:
    meta = obj["metadata"]
    return obj["kind"], meta.get("namespace", ""), meta["name"]
