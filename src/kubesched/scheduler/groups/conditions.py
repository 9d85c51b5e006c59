"""The condition of a pod group: whether it was scheduled, and why not."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from kubesched.api.pod_groups import PodGroup, PodGroupCondition
from kubesched.framework.client import ClientError, ClusterClient
from kubesched.framework.status import Status

log = logging.getLogger(__name__)
_TRIES = 5


class GroupConditions:
    """Writes the condition of groups to their status. A failure is logged: the next attempt writes it again."""

    def __init__(
        self, client: ClusterClient, find: Callable[[PodGroup], PodGroup | None], now: Callable[[], float]
    ) -> None:
        """`find` looks up the latest version of a group; `now` is the time of day, in seconds since 1970."""
        self._client = client
        self._find = find
        self._now = now

    async def write(self, group: PodGroup, status: Status | None) -> None:
        if not group.is_native:
            return  # a group of an alias: its controller writes its own conditions
        for _ in range(_TRIES):
            latest = self._find(group)
            conditions = None if latest is None else self._conditions(latest, status)
            if latest is None or conditions is None:
                return
            meta = {"uid": latest.metadata.uid, "resourceVersion": latest.metadata.resource_version}
            patch = {"apiVersion": latest.api_version, "metadata": meta, "status": {"conditions": conditions}}
            try:
                await self._client.patch(
                    "PodGroup", latest.name, patch, namespace=latest.namespace, subresource="status"
                )
            except ClientError as failure:
                if failure.is_conflict and self._find(group) is not latest:
                    continue
                log.warning("the condition of pod group %s could not be written: %s", group.key, failure)
            return

    def _conditions(self, group: PodGroup, status: Status | None) -> list[dict[str, Any]] | None:
        """All conditions with the new one; None if nothing changes, or the group was scheduled once."""
        name = "PodGroupScheduled" if group.is_alpha else "PodGroupInitiallyScheduled"
        earlier = next((known for known in group.status.conditions if known.type == name), None)
        if earlier is not None and earlier.status == "True":
            return None
        reason = "Scheduled" if status is None else "Unschedulable" if status.is_rejection else "SchedulerError"
        condition = PodGroupCondition(
            type=name,
            status="True" if status is None else "False",
            reason=reason,
            message="" if status is None else status.message,
            observed_generation=group.metadata.generation,
        )
        is_same = earlier is not None and earlier.status == condition.status
        stamp = datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        since = earlier.last_transition_time if earlier is not None and is_same else stamp
        condition = msgspec.structs.replace(condition, last_transition_time=since)
        if condition == earlier:
            return None
        others = [other for other in group.status.conditions if other.type != name]
        return [msgspec.to_builtins(written) | {"message": written.message} for written in (*others, condition)]
