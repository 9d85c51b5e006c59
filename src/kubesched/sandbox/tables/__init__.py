"""Tables as `kubectl get` shows them, made by the server so that every client shows the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from kubesched.api import kinds
from kubesched.api.kinds import CONTROLLER_REVISIONS, Object, Resource
from kubesched.sandbox.tables import core, pods, storage, workloads
from kubesched.sandbox.tables.column import Column, human_duration
from kubesched.sandbox.tables.custom import custom_columns

__all__ = ["human_duration", "table"]

_COLUMNS: Mapping[Resource, tuple[Column, ...]] = {
    kinds.CONFIG_MAPS: core.CONFIG_MAPS,
    CONTROLLER_REVISIONS: workloads.CONTROLLER_REVISIONS,
    kinds.CORE_EVENTS: core.EVENTS,
    kinds.CSI_DRIVERS: storage.CSI_DRIVERS,
    kinds.CSI_NODES: storage.CSI_NODES,
    kinds.CSI_STORAGE_CAPACITIES: storage.CSI_CAPACITIES,
    kinds.CUSTOM_RESOURCE_DEFINITIONS: core.DEFINITIONS,
    kinds.DAEMON_SETS: workloads.DAEMON_SETS,
    kinds.DEPLOYMENTS: workloads.DEPLOYMENTS,
    kinds.EVENTS: core.EVENTS,
    kinds.JOBS: workloads.JOBS,
    kinds.LEASES: core.LEASES,
    kinds.NAMESPACES: core.NAMESPACES,
    kinds.NODES: core.NODES,
    kinds.PERSISTENT_VOLUMES: storage.VOLUMES,
    kinds.PERSISTENT_VOLUME_CLAIMS: storage.CLAIMS,
    kinds.PODS: pods.COLUMNS,
    kinds.POD_DISRUPTION_BUDGETS: workloads.DISRUPTION_BUDGETS,
    kinds.PRIORITY_CLASSES: core.PRIORITY_CLASSES,
    kinds.REPLICATION_CONTROLLERS: workloads.REPLICATION_CONTROLLERS,
    kinds.REPLICA_SETS: workloads.REPLICA_SETS,
    kinds.RESOURCE_CLAIMS: core.RESOURCE_CLAIMS,
    kinds.RESOURCE_SLICES: core.RESOURCE_SLICES,
    kinds.SECRETS: core.SECRETS,
    kinds.SERVICES: core.SERVICES,
    kinds.STATEFUL_SETS: workloads.STATEFUL_SETS,
    kinds.STORAGE_CLASSES: storage.CLASSES,
    kinds.VOLUME_ATTACHMENTS: storage.ATTACHMENTS,
}

Include = Literal["None", "Metadata", "Object"]


def table(
    resource: Resource,
    objects: Sequence[Object],
    *,
    now: datetime,
    include: Include = "Metadata",
    list_meta: Object | None = None,
    columns: Sequence[Object] | None = None,
) -> Object:
    """A meta.k8s.io/v1 Table of the objects; `columns` are the additionalPrinterColumns of a custom resource."""
    shown = _COLUMNS.get(resource) or custom_columns(columns)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(list_meta or {}),
        "columnDefinitions": [column.definition() for column in shown],
        "rows": [_row(obj, shown, now, include) for obj in objects],
    }


def _row(obj: Object, columns: Sequence[Column], now: datetime, include: Include) -> Object:
    row: Object = {"cells": [column.cell(obj, now) for column in columns]}
    if include == "Object":
        row["object"] = obj
    elif include == "Metadata":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": obj.get("metadata") or {},
        }
    return row
