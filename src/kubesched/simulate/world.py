"""A cluster in memory: takes what the scheduler writes, and tells it what has changed, as a watch would."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

import msgspec

from kubesched.api.change import Change
from kubesched.api.device_claims import ResourceClaim
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod, PodCondition
from kubesched.plugins.dynamic_resources.writes import ClaimWrite
from kubesched.plugins.volume_binding.writes import VolumeWrites
from kubesched.scheduler.writer import WriteError
from kubesched.simulate.devices import DeviceClaims
from kubesched.simulate.volumes import Volumes

replace = msgspec.structs.replace

START = datetime(2000, 1, 1, tzinfo=UTC)
"""When virtual time begins. Before it are the start times of pods that run already, only if those say so."""


class World:
    """All objects, as an API server would hold them; a `ClusterWriter`. Evicted pods are gone at once."""

    def __init__(self, objects: Iterable[KubeObject], clock: Callable[[], float]) -> None:
        self._clock = clock
        self._unseen: deque[Change[KubeObject]] = deque()
        self._stamped = (-1.0, "")
        self.pods: dict[str, Pod] = {}
        self.changes = 0
        """Counts what may make a difference to pods that wait: pods that came to or left a node, volumes, claims."""
        self.on_bound: Callable[[Pod], None] = lambda pod: None
        self.on_evicted: Callable[[Pod], None] = lambda pod: None
        given = list(objects)
        # An API server lists by name, pods after what they stand on; the order decides between equals.
        for obj in sorted(given, key=lambda obj: (isinstance(obj, Pod), obj.namespace, obj.name)):
            if isinstance(obj, Pod):
                if obj.is_finished:
                    continue
                self.pods[obj.key] = obj
            self._unseen.append(Change(new=obj))
        self._claims = DeviceClaims(given, self._tell)
        self._volumes = Volumes(given, self._tell)
        self._volumes.settle()

    def deliver(self, handle: Callable[[Change[KubeObject]], None]) -> None:
        """Hand on all changes that were not handed on yet, in their order."""
        while self._unseen:
            handle(self._unseen.popleft())

    def create(self, pod: Pod) -> None:
        """A new pod, to be scheduled. It says already that it starts now, as most do: those stay as they are."""
        self._volumes.pod_created(pod)
        pod = self._claims.pod_created(pod)
        pod = replace(pod, status=replace(pod.status, start_time=self._stamp()))
        self.pods[pod.key] = pod
        self._unseen.append(Change(new=pod))

    def remove(self, pod: Pod) -> None:
        """The pod has finished, or was deleted: to the scheduler that is the same."""
        stored = self.pods.pop(pod.key)
        self._tell(stored, None)
        self._volumes.pod_gone(stored)
        self._claims.pod_gone(stored)

    # -- what the scheduler writes ------------------------------------------------------------------------------------

    async def bind(self, pod: Pod, node_name: str) -> None:
        stored = self._stored(pod)
        if stored.spec.node_name:
            raise WriteError("Conflict", f'pod {pod.name} is already assigned to node "{stored.spec.node_name}"')
        status, started = stored.status, self._stamp()
        if status.start_time != started or status.nominated_node_name:
            status = replace(status, start_time=started, nominated_node_name="")
        bound = replace(stored, spec=replace(stored.spec, node_name=node_name), status=status)
        self.pods[pod.key] = bound
        self._tell(stored, bound)
        self.on_bound(bound)

    async def patch_status(self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None) -> None:
        stored = self._stored(pod)
        status = stored.status
        if condition is not None:
            others = tuple(old for old in status.conditions if old.type != condition.type)
            status = replace(status, conditions=(*others, condition))
        if nominated_node_name is not None:
            status = replace(status, nominated_node_name=nominated_node_name)
        patched = self.pods[pod.key] = replace(stored, status=status)
        self._unseen.append(Change(stored, patched))

    async def evict(self, pod: Pod, condition: PodCondition) -> None:
        stored = self._stored(pod)
        self.remove(stored)
        self.on_evicted(stored)

    async def write_volumes(self, pod: Pod, writes: VolumeWrites) -> None:
        self._volumes.write(writes)

    async def write_claim(self, pod: Pod, write: ClaimWrite) -> ResourceClaim | None:
        return self._claims.write(write)

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        """Nobody reads events here: the report tells the same."""

    def _stamp(self) -> str:
        now = self._clock()
        if now != self._stamped[0]:
            self._stamped = (now, (START + timedelta(seconds=now)).isoformat())
        return self._stamped[1]

    def _stored(self, pod: Pod) -> Pod:
        stored = self.pods.get(pod.key)
        if stored is None or stored.uid != pod.uid:
            raise WriteError("NotFound", f'pods "{pod.name}" not found')
        return stored

    def _tell(self, old: KubeObject | None, new: KubeObject | None) -> None:
        self.changes += 1
        self._unseen.append(Change(old, new))
