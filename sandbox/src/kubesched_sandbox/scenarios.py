"""Scenarios to watch: small stories that play in a sandbox; scenarios.yaml tells them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.resources import files
from typing import NamedTuple, Protocol

import msgspec

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import BUILT_IN, Object, Resource
from kubesched.api.well_known import ZONE
from kubesched.api.yaml import documents
from kubesched_sandbox.api import Api

_CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110"}


class Machines(Protocol):
    """What a story can do to nodes."""

    def fail(self, name: str) -> None: ...

    def recover(self, name: str) -> None: ...


class ScenarioCluster(NamedTuple):
    """What a story plays on."""

    api: Api
    machines: Machines


class ScenarioStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At this second, say this and do that."""

    at: float
    says: str
    create: tuple[Object, ...] = ()
    patch: tuple[Object, ...] = ()
    """Parts of objects, which are merged into those of that name."""
    fail: tuple[str, ...] = ()
    recover: tuple[str, ...] = ()

    def do(self, stage: ScenarioCluster) -> None:
        for obj in self.create:
            _create_once(stage.api, obj)
        for part in self.patch:
            resource, metadata = _resource(part), part["metadata"]
            stage.api.patch(resource, metadata.get("namespace", ""), metadata["name"], part)
        for name in self.fail:
            stage.machines.fail(name)
        for name in self.recover:
            stage.machines.recover(name)


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Steps in order of time; after `seconds` the story is over."""

    name: str
    about: str
    zones: tuple[str, ...]
    nodes_per_zone: int
    seconds: float
    steps: tuple[ScenarioStep, ...]
    try_next: tuple[str, ...]
    """Commands to try after the story, with the KUBECONFIG of the sandbox."""
    gates: tuple[str, ...] = ()
    """Feature gates that must be on."""

    @property
    def nodes(self) -> list[Object]:
        """Templates from which the hollow nodes are made: node-a1, node-a2, node-b1, ..."""
        places = [(zone, i) for zone in self.zones for i in range(1, self.nodes_per_zone + 1)]
        return [
            {
                "metadata": {"name": f"node-{zone}{i}", "labels": {ZONE: f"zone-{zone}"}},
                "status": {"capacity": _CAPACITY},
            }
            for zone, i in places
        ]


async def play(scenario: Scenario, stage: ScenarioCluster, say: Callable[[str], None]) -> None:
    """Say and do everything at its time, and return when the story is over."""
    running = asyncio.get_running_loop()
    began = running.time()
    for step in scenario.steps:
        await asyncio.sleep(began + step.at - running.time())
        say(step.says)
        step.do(stage)
    await asyncio.sleep(began + scenario.seconds - running.time())


def _create_once(api: Api, obj: Object) -> None:
    try:
        api.create(_resource(obj), obj["metadata"].get("namespace", ""), obj)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise


def _resource(obj: Object) -> Resource:
    return BUILT_IN[obj["apiVersion"], obj["kind"]]


def _read() -> dict[str, Scenario]:
    text = files(__package__).joinpath("scenarios.yaml").read_text(encoding="utf-8")
    scenarios = (msgspec.convert(document.value, Scenario) for document in documents(text))
    return {scenario.name: scenario for scenario in scenarios}


SCENARIOS = _read()
