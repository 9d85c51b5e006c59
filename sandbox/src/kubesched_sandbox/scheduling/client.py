"""The client of the sandbox's scheduler and its plugins: reads and writes as calls to the API in the same process."""

from __future__ import annotations

import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

import msgspec

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import EVENTS, PODS, Object, Resource
from kubesched.api.pod import Pod, PodCondition
from kubesched.framework import client as framework_client
from kubesched.framework.client import NOT_FOUND, Awaited, ClientError, ClusterClient
from kubesched.kube.event_record import EventSeries, micro_time, new_event, reference
from kubesched.scheduler.handle import ObjectWaiter
from kubesched_sandbox.api import Api, PatchKind
from kubesched_sandbox.store.memory import key_of

log = logging.getLogger(__name__)

_MANAGER = "kube-scheduler"


class ApiClient(ClusterClient):
    """A `ClusterClient` on the sandbox's own API."""

    def __init__(self, api: Api, *, recorder: ApiEventRecorder, waiter: ObjectWaiter) -> None:
        self._api = api
        self._recorder = recorder
        self._waiter = waiter

    async def get(self, kind: str, name: str, namespace: str = "") -> Object:
        with _as_client_errors():
            return self._api.get(self._resource(kind), namespace, name)

    async def create(self, kind: str, obj: Object) -> Object:
        with _as_client_errors():
            return self._api.create(self._resource(kind), obj["metadata"].get("namespace", ""), obj, manager=_MANAGER)

    async def replace(self, kind: str, obj: Object, *, subresource: str = "") -> Object:
        with _as_client_errors():
            resource = self._resource(kind)
            return self._api.update(resource, *key_of(obj), obj, subresource=subresource, manager=_MANAGER)

    async def patch(self, kind: str, name: str, patch: Object, *, namespace: str = "", subresource: str = "") -> Object:
        with _as_client_errors():
            resource = self._resource(kind)
            return self._api.patch(resource, namespace, name, patch, subresource=subresource, manager=_MANAGER)

    async def delete(self, kind: str, name: str, *, namespace: str = "", uid: str = "") -> None:
        with _as_client_errors():
            self._api.delete(self._resource(kind), namespace, name, uid=uid or None)

    async def bind(self, pod: Pod, node_name: str) -> None:
        with _as_client_errors():
            self._api.bind(pod.namespace, pod.name, framework_client.binding(pod, node_name))

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        with _as_client_errors():
            self._patch_status(pod, condition, nominated_node_name)

    async def evict(self, pod: Pod, condition: PodCondition) -> None:
        with _as_client_errors():
            self._patch_status(pod, condition, None)
            self._api.delete(PODS, pod.namespace, pod.name, uid=pod.uid)

    async def wait(
        self, pod: Pod, is_met: Callable[[], bool], *, objects: Callable[[], Iterable[Awaited]], within: float
    ) -> bool:
        return await self._waiter.wait(pod, is_met, objects=objects, within=within)

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        self._recorder.record(pod, related=related, type=type, reason=reason, action=action, note=note)

    def _patch_status(self, pod: Pod, condition: PodCondition | None, nominated: str | None) -> None:
        patch = framework_client.pod_status_patch(pod, condition, nominated, self._api.stamps.now())
        self._api.patch(
            PODS,
            pod.namespace,
            pod.name,
            patch,
            kind=PatchKind.STRATEGIC,
            subresource="status",
            manager=_MANAGER,
        )

    def _resource(self, kind: str) -> Resource:
        """By the kind of its objects, or as `plural.version.group`."""
        plural, _, rest = kind.partition(".")
        version, _, group = rest.partition(".")
        found = (
            self._api.catalog.lookup(group, version, plural)
            if rest
            else next((resource for resource in self._api.catalog.all() if resource.kind == kind), None)
        )
        if found is None:
            raise ClientError(NOT_FOUND, f"there is no resource for {kind} in the API")
        return found


@contextlib.contextmanager
def _as_client_errors() -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        raise ClientError(error.reason, error.message) from error


_SERIES_SECONDS = 360.0
"""A repeat after this time is a new event."""
_REMEMBERED = 4096
_HOST = "sandbox"

_Series = tuple[str, str, float, int]  # namespace, name, last seen, count


class ApiEventRecorder:
    """Writes events to the API, as kubectl shows them: repeats are counted in a series instead of stored again.

    People read them, so nothing depends on their getting there.
    """

    def __init__(self, api: Api, controller: str = "default-scheduler") -> None:
        self._api = api
        self._controller = controller
        self._latest = 0
        self._known: OrderedDict[tuple[str, ...], _Series] = OrderedDict()

    def record(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        key = (pod.uid, related.uid if related else "", type, reason, action, note)
        now = self._api.stamps.time()
        series = self._known.pop(key, None)
        if series is not None and now - series[2] < _SERIES_SECONDS and self._count(series, now):
            self._known[key] = (series[0], series[1], now, series[3] + 1)
            return
        controller = (related or pod).spec.scheduler_name or self._controller  # of who acts, not of the victim
        event = new_event(
            reference(pod, "v1", "Pod"),
            related=None if related is None else reference(related, "v1", "Pod"),
            type="Warning" if type == "Warning" else "Normal",
            reason=reason,
            action=action,
            note=note,
            controller=controller,
            instance=f"{controller}-{_HOST}",
            nanoseconds=self._moment(now),
        )
        try:
            self._api.create(EVENTS, pod.namespace, msgspec.to_builtins(event))
        except ApiError as error:  # most likely its namespace is on its way out
            log.warning("the event %s of pod %s was not recorded: %s", reason, pod.key, error)
            return
        self._known[key] = (pod.namespace, event.metadata.name, now, 1)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def _moment(self, now: float) -> int:
        """In nanoseconds. Events are named after it, so none is used twice."""
        self._latest = max(int(now * 1e9), self._latest + 1)
        return self._latest

    def _count(self, series: _Series, now: float) -> bool:
        namespace, name, _, count = series
        patch = {"series": msgspec.to_builtins(EventSeries(count + 1, micro_time(now)))}
        try:
            self._api.patch(EVENTS, namespace, name, patch)
        except ApiError:
            return False
        return True
