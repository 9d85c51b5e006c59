"""A cluster that watches keep current, and how old the view of it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

from kubesched.api.errors import UserError
from kubesched.api.kinds import VERSIONS_BY_SERVER, Kind
from kubesched.ask.sources.live import ESSENTIAL, LiveClusterError, missing_right
from kubesched.ask.sources.reading import UnreadableKind
from kubesched.kube.authentication import transport_for
from kubesched.kube.client import Client, Throttle
from kubesched.kube.connection import ConnectionSettings
from kubesched.kube.discovered import source_of
from kubesched.kube.errors import ApiStatusError, KubeError
from kubesched.kube.informers import Informers
from kubesched.kube.transport import user_agent
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.kinds import kinds_read

_PATIENCE = 30.0
"""Seconds for the first question to the API server."""
_RETRIES = 2
_FOLLOWED = tuple(Kind(read.record, read.resource) for read in kinds_read(workloads=True).values())
"""The kinds that are watched: those that questions to live clusters read."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A kind of objects that may have changed since, as its watch is not open."""

    kind: str
    seconds: float
    """Since when."""
    why: str


@dataclass(frozen=True, slots=True)
class ClusterAge:
    """How old the view of the cluster is on which an answer is based."""

    origin: str
    source: Literal["watch", "files"]
    age_seconds: float
    """How long ago the view of the cluster was last known to be current; 0 while all watches are open."""
    behind: tuple[Behind, ...] = ()
    """Kinds whose watch is broken."""
    unreadable: tuple[str, ...] = ()
    """Kinds that may not be read, with what follows from that."""


class NotReadyError(UserError):
    """The cluster has not been read yet; the lines say what is missing."""


class ClusterFeed(Protocol):
    """Where a cluster comes from, as far as answers tell it."""

    def age(self) -> ClusterAge:
        """How old the view of it is now. NotReadyError before there is a whole one."""


class Files:
    """Manifests or a snapshot, which stay as they were read."""

    def __init__(self, origin: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._origin = origin
        self._clock = clock
        self._read_at = clock()

    def age(self) -> ClusterAge:
        return ClusterAge(self._origin, "files", round(self._clock() - self._read_at, 1))


class Following:
    """The watches of one cluster."""

    def __init__(
        self,
        cluster: ClusterModel,
        client: Client,
        kinds: Iterable[Kind],
        *,
        custom: Iterable[str] = (),
        origin: str = "",
        unreadable: Collection[UnreadableKind] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.client = client
        self._informers = Informers(client, cluster.handle, kinds=kinds, custom=custom)
        self._origin = origin
        self.unreadable = tuple(map(str, unreadable))
        """Kinds that may not be read, with what follows from that."""
        self._clock = clock

    async def run(self) -> None:
        """For ever: whatever breaks is mended."""
        await self._informers.run()

    async def wait_synced(self) -> None:
        """Until all there is has been seen once."""
        await self._informers.wait_synced()

    def age(self) -> ClusterAge:
        """How far the watches are. NotReadyError while something has never been read."""
        reflectors = self._informers.reflectors
        missing = self._informers.not_synced()
        if missing:
            raise NotReadyError(*(f"waiting for {name}: {reflectors[name].trouble or 'listing'}" for name in missing))
        now = self._clock()
        behind = tuple(
            Behind(name, round(now - reflector.lost_at, 3), reflector.trouble or "the watch ended")
            for name, reflector in reflectors.items()
            if reflector.lost_at is not None
        )
        oldest = max((reflector.seconds for reflector in behind), default=0.0)
        return ClusterAge(self._origin, "watch", oldest, behind, self.unreadable)


async def readable(client: Client, origin: str) -> tuple[list[Kind], list[UnreadableKind]]:
    """The kinds that may be read, of those that the server has; and those that may not. Raises KubeError."""
    answers = await asyncio.gather(*(_is_readable(client, kind, origin) for kind in _FOLLOWED))
    kinds = [kind for kind, answer in zip(_FOLLOWED, answers) if answer is True]
    denied = [UnreadableKind.of(kind.resource.kind) for kind, answer in zip(_FOLLOWED, answers) if answer is False]
    return kinds, denied


async def _is_readable(client: Client, kind: Kind, origin: str) -> bool | None:
    """None if the server has no such kind: then there are none of these."""
    try:
        if kind.resource in VERSIONS_BY_SERVER:  # which one is found out, and no version at all means no objects
            await source_of(client, kind.resource).page(resource_version="", limit=1, more="")
        else:
            await client.get(f"{kind.resource.path}?limit=1", timeout=_PATIENCE, retries=_RETRIES)
    except ApiStatusError as error:
        is_essential = kind.resource in ESSENTIAL
        if error.code == 403 and is_essential:
            raise missing_right(origin, kind.resource, error) from None
        if error.code not in (403, 404) or is_essential:
            raise
        return False if error.code == 403 else None
    return True


@asynccontextmanager
async def following(
    cluster: ClusterModel,
    settings: ConnectionSettings,
    environ: Mapping[str, str],
    *,
    custom: Iterable[str] = (),
    origin: str = "",
) -> AsyncIterator[Following]:
    """The watches, open as long as the context lasts. Raises LiveClusterError."""
    transport = transport_for(settings, environ)
    client = Client(transport, Throttle(-1.0, 0, clock=time.monotonic), agent=user_agent("serve"), clock=time.monotonic)
    try:
        try:
            kinds, unreadable = await readable(client, origin)
        except KubeError as error:
            raise LiveClusterError(*(f"{origin}: {line}" for line in error.lines)) from None
        followed = Following(cluster, client, kinds, custom=custom, origin=origin, unreadable=unreadable)
        task = asyncio.create_task(followed.run(), name="watches")
        try:
            yield followed
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    finally:
        await transport.close()
