"""A live cluster as input: lists of all that scheduling looks at, read in pages, and its scheduler's configuration."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from kubesched.api.custom import read_custom
from kubesched.api.errors import UserError
from kubesched.api.kinds import NODES, PODS, Resource, resource_named
from kubesched.api.meta import KubeObject
from kubesched.ask.sources.reading import ClusterReading, FoundConfiguration, UnreadableKind
from kubesched.kube.authentication import transport_for
from kubesched.kube.client import Client, Throttle
from kubesched.kube.connection import ConnectionSettings
from kubesched.kube.decoding import Codec, DictCodec
from kubesched.kube.discovered import codec_of, server_version, source_of
from kubesched.kube.errors import AnswerTimeoutError, ApiStatusError, KubeError, UnreadableAnswerError
from kubesched.kube.listing import list_in_pages
from kubesched.kube.transport import user_agent
from kubesched.simulate.kinds import kinds_read

SCHEDULER_NAMESPACE = "kube-system"
SCHEDULER_SELECTORS = ("component=kube-scheduler", "app.kubernetes.io/name=kubesched")
"""Label selectors of scheduler pods: those of kubeadm for kube-scheduler, and those of our manifests."""
SCHEDULER_PORT = 10259
PATIENCE = 5.0
"""Seconds for each question: a scheduler that listens on loopback alone cannot be reached, and that is common."""
T = TypeVar("T")

_ROLE = "deploy/manifests/read-only.yaml"
"""What grants the rights that are needed."""
ESSENTIAL = (NODES, PODS)
"""Without these there is no answer."""
Progress = Callable[[int], None]
"""Takes how many objects there are so far."""


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""


class _SchedulerPod(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    status: _Status = _Status()


class _SchedulerPods(msgspec.Struct, frozen=True):
    items: list[_SchedulerPod] | None = None


class _Configz(msgspec.Struct, frozen=True):
    componentconfig: dict[str, object]


_pods = msgspec.json.Decoder(_SchedulerPods)
_configz = msgspec.json.Decoder(_Configz)


async def configuration_of_scheduler(client: Client) -> FoundConfiguration:
    """What the first scheduler says that answers. Raises KubeError where the API server itself does not."""
    refusals: list[str] = []
    for selector in SCHEDULER_SELECTORS:
        query = urlencode({"labelSelector": selector})
        try:
            body = await client.get(
                f"{PODS.path_of(namespace=SCHEDULER_NAMESPACE)}?{query}", timeout=PATIENCE, retries=0
            )
            names = [pod.metadata.name for pod in _pods.decode(body).items or () if pod.status.phase == "Running"]
        except (ApiStatusError, msgspec.DecodeError) as error:
            if isinstance(error, ApiStatusError) and error.code == 401:
                raise  # every other request would be refused, too
            return FoundConfiguration("", f"the pods of {SCHEDULER_NAMESPACE} cannot be read: {error}")
        for name in names:
            pod = PODS.path_of(
                namespace=SCHEDULER_NAMESPACE, name=f"https:{name}:{SCHEDULER_PORT}", subresource="proxy/configz"
            )
            try:
                answer = await client.get(pod, timeout=PATIENCE, retries=0)
                text = json.dumps(_configz.decode(answer).componentconfig)
                return FoundConfiguration(text, f"/configz of {SCHEDULER_NAMESPACE}/{name}")
            except (KubeError, msgspec.DecodeError) as error:
                refusals.append(f"/configz of {SCHEDULER_NAMESPACE}/{name} cannot be read: {error}")
                if isinstance(error, AnswerTimeoutError):
                    return FoundConfiguration("", refusals[-1])  # the next scheduler would cost as long again
    return await _of_server(client, refusals[0] if refusals else f"{SCHEDULER_NAMESPACE} has no pod of a scheduler")


async def _of_server(client: Client, otherwise: str) -> FoundConfiguration:
    """A sandbox has its scheduler inside its API server, which shows the configuration in its place."""
    try:
        configuration = _configz.decode(await client.get("/configz", timeout=PATIENCE, retries=0)).componentconfig
    except (KubeError, msgspec.DecodeError):
        return FoundConfiguration("", otherwise)
    if configuration.get("kind") != "KubeSchedulerConfiguration":
        return FoundConfiguration("", otherwise)
    return FoundConfiguration(json.dumps(configuration), "/configz of the sandbox")


class LiveClusterError(UserError):
    """A cluster that cannot be read: which, and why."""


def missing_right(origin: str, resource: Resource, error: ApiStatusError) -> LiveClusterError:
    """The error for a resource without which there is no answer, and which may not be read."""
    return LiveClusterError(
        f"{origin}: without {resource.plural} there is no answer: {error}",
        f"the rights that are needed are in {_ROLE}",
    )


class LiveCluster:
    """A cluster that can be asked; close it afterwards. All calls raise LiveClusterError.

    `timeout` is in seconds, for all that is asked of it together.
    """

    def __init__(
        self, settings: ConnectionSettings, environ: Mapping[str, str], *, name: str = "", timeout: float | None = None
    ) -> None:
        self.origin = f"{name} ({settings.server})" if name else settings.server
        self.settings = settings
        self._environ = environ
        self.timeout = timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._runner = asyncio.Runner()
        self._client: Client | None = None
        self._count = 0
        self._close: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._configuration: FoundConfiguration | None = None

    @cached_property
    def version(self) -> str:
        """Of the API server: `v1.36.4`; empty if it keeps that to itself."""
        return self._run(_version_of)

    def configuration(self) -> FoundConfiguration:
        """The configuration of the scheduler in charge, as far as it can be found. It is looked for once."""
        if self._configuration is None:
            self._configuration = self._run(configuration_of_scheduler)
        return self._configuration

    def read(
        self, *, workloads: bool = False, custom: Iterable[str] = (), progress: Progress | None = None
    ) -> ClusterReading:
        """All that scheduling looks at; with `workloads`, also what makes pods. `custom` is what plugins wait for."""
        configuration, version = self.configuration(), self.version
        return self._run(lambda client: self._read(client, workloads, tuple(custom), progress, configuration, version))

    def close(self) -> None:
        """Hang up."""
        if self._close is not None:
            self._runner.run(self._close())
        self._runner.close()

    # -- how it is asked ----------------------------------------------------------------------------------------------

    def _run(self, ask: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Ask on a loop that stays, so that connections and credentials do, too."""

        async def within_time() -> T:
            seconds = None if self._deadline is None else self._deadline - time.monotonic()
            async with asyncio.timeout(seconds):
                return await ask(self._connected())

        try:
            return self._runner.run(within_time())
        except TimeoutError:
            so_far = f"; {self._count:,} objects were read" if self._count else ""
            raise LiveClusterError(
                f"{self.origin}: not read within {self.timeout:g} s{so_far} (--request-timeout gives it more time)"
            ) from None
        except ApiStatusError as error:
            raise LiveClusterError(f"{self.origin}: {self._in_words(error)}") from None
        except KubeError as error:
            raise LiveClusterError(*(f"{self.origin}: {line}" for line in error.lines)) from None

    def _connected(self) -> Client:
        if self._client is None:
            transport = transport_for(self.settings, self._environ)
            self._close = transport.close
            unlimited = Throttle(-1.0, 0, clock=time.monotonic)
            self._client = Client(transport, unlimited, agent=user_agent("questions"), clock=time.monotonic)
        return self._client

    def _in_words(self, error: ApiStatusError) -> str:
        if error.code == 401:
            name = self.settings.user_name
            user = f'user "{name}"' if name else "an anonymous user"
            return f"the credentials of {user} are not accepted; they may have expired: {error}"
        return str(error)

    # -- what is read -------------------------------------------------------------------------------------------------

    async def _read(
        self,
        client: Client,
        workloads: bool,
        custom: tuple[str, ...],
        progress: Progress | None,
        configuration: FoundConfiguration,
        version: str,
    ) -> ClusterReading:
        self._count = 0

        def arrived(count: int) -> None:
            self._count += count
            if progress is not None:
                progress(self._count)

        async def listed(name: str, resource: Resource, codec: Codec[Any]) -> list[Any] | UnreadableKind:
            try:
                return (await list_in_pages(source_of(client, resource), codec, arrived=arrived))[0]
            except ApiStatusError as error:
                if error.code == 404 and resource not in ESSENTIAL:
                    return []  # an older server, or one without this group: then there are none of these
                if error.code != 403:
                    raise
                if resource in ESSENTIAL:
                    raise missing_right(self.origin, resource, error) from None
                return UnreadableKind.of(name)
            except UnreadableAnswerError as error:
                raise LiveClusterError(f"{self.origin}: {resource.path}: {error}") from None

        kinds = kinds_read(workloads=workloads)
        requests: dict[str, Coroutine[Any, Any, list[Any] | UnreadableKind]] = {
            name: listed(name, kind.resource, codec_of(kind.resource, kind.record)) for name, kind in kinds.items()
        }
        requests |= {name: listed(name, resource, DictCodec()) for name, resource in _resources(custom).items()}
        lists = await asyncio.gather(*requests.values())
        answers = dict(zip(requests, lists))
        objects: dict[str, tuple[KubeObject, ...]] = {
            name: tuple(answer) if name in kinds else tuple(read_custom(name, content) for content in answer)
            for name, answer in answers.items()
            if not isinstance(answer, UnreadableKind)
        }
        return ClusterReading(
            origin=self.origin,
            objects=objects,
            unreadable=tuple(answer for answer in answers.values() if isinstance(answer, UnreadableKind)),
            server_version=version,
            taken_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            configuration=configuration,
        )


def _resources(names: Iterable[str]) -> dict[str, Resource]:
    return {name: resource for name in names if (resource := resource_named(name)) is not None}


async def _version_of(client: Client) -> str:
    """The gitVersion of the API server; empty if /version cannot be read."""
    try:
        return await server_version(client)
    except ApiStatusError:
        return ""
