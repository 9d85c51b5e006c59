"""The configuration of the scheduler in charge, asked of the scheduler itself: its /configz, through the API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlencode

import msgspec

from kubesched.api.kinds import PODS
from kubesched.ask.sources.reading import FoundConfiguration
from kubesched.kube.client import Client
from kubesched.kube.errors import AnswerTimeoutError, ApiStatusError, KubeError

NAMESPACE = "kube-system"
SELECTORS = ("component=kube-scheduler", "app.kubernetes.io/name=kubesched")
"""How the pods of schedulers are known: as kubeadm labels those of kube-scheduler, and as our manifests do."""
PORT = 10259
PATIENCE = 5.0
"""Seconds for each question: a scheduler that listens on loopback alone cannot be reached, and that is common."""


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


async def found_in(client: Client) -> FoundConfiguration:
    """What the first scheduler says that answers. Raises KubeError where the API server itself does not."""
    refusals: list[str] = []
    for selector in SELECTORS:
        query = urlencode({"labelSelector": selector})
        try:
            body = await client.get(f"{PODS.path_of(namespace=NAMESPACE)}?{query}", timeout=PATIENCE, retries=0)
            names = list(_running(body))
        except (ApiStatusError, msgspec.DecodeError) as error:
            if isinstance(error, ApiStatusError) and error.code == 401:
                raise  # then there will be no answer to anything
            return FoundConfiguration("", f"the pods of {NAMESPACE} cannot be read: {error}")
        for name in names:
            pod = PODS.path_of(namespace=NAMESPACE, name=f"https:{name}:{PORT}", subresource="proxy/configz")
            try:
                answer = await client.get(pod, timeout=PATIENCE, retries=0)
                text = json.dumps(_configz.decode(answer).componentconfig)
                return FoundConfiguration(text, f"/configz of {NAMESPACE}/{name}")
            except (KubeError, msgspec.DecodeError) as error:
                refusals.append(f"/configz of {NAMESPACE}/{name} cannot be read: {error}")
                if isinstance(error, AnswerTimeoutError):
                    return FoundConfiguration("", refusals[-1])  # whoever waits for an answer waits once
    return FoundConfiguration("", refusals[0] if refusals else f"{NAMESPACE} has no pod of a scheduler")


def _running(body: bytes) -> Iterator[str]:
    for pod in _pods.decode(body).items or ():
        if pod.status.phase == "Running":
            yield pod.metadata.name
