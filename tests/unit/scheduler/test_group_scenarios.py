"""All scenarios about pod groups, in memory, with the API of either release; UPSTREAM.md has the cases of upstream."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.group_scenarios import gangs, preemption, topology
from tests.group_scenarios.stage import ALPHA, BETA, Json, Scenario, Stage
from tests.unit.scheduler.group_world import GroupWorld

from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod

TABLE = Path(__file__).parents[2] / "group_scenarios" / "UPSTREAM.md"
EVERYWHERE = [*gangs.SCENARIOS, *preemption.SCENARIOS, *topology.SCENARIOS]
ALL = [*EVERYWHERE, *gangs.LOWERED]
_ROUNDS = 12


class MemoryStage(Stage):
    """A scheduler on a cluster in memory. Nothing is tried before something is expected."""

    def __init__(self, api: str) -> None:
        self.api = api
        self.world = GroupWorld()
        self._made = 0

    def create(self, api_version: str, kind: str, body: Json) -> None:
        self._made += 1
        defaults: Json = {"namespace": "default"} if KINDS[kind].resource.namespaced else {}
        named = {"apiVersion": api_version, "kind": kind}
        body = named | body | {"metadata": defaults | {"uid": f"uid {self._made}"} | body["metadata"]}
        if kind == "Pod":
            body["spec"].setdefault("schedulerName", "default-scheduler")
        self.world.see(msgspec.convert(body, KINDS[kind].record))

    def change_group(self, name: str, spec: Json) -> None:
        found = self._found("PodGroup", name)
        self.world.see(replace(found, spec=msgspec.convert(spec, type(found.spec))))  # type: ignore[attr-defined]

    def remove(self, kind: str, name: str) -> None:
        self.world.cluster.remove(self._found(kind, name))
        self.world.cluster.tell(self.world.scheduler)

    def open_gates(self, pod: str) -> None:
        found = self._found("Pod", pod)
        assert isinstance(found, Pod)
        self.world.see(replace(found, spec=replace(found.spec, scheduling_gates=())))

    def pods(self) -> list[Json]:
        return [msgspec.to_builtins(pod) for pod in self.world.cluster.pods.values()]

    def expect(self, is_met: Callable[[], bool], what: str) -> None:
        for _ in range(_ROUNDS):
            self.world.try_all()
            if is_met():
                return
            self.world.pass_seconds(30)
        raise AssertionError(f"{what}: {self._story()}")

    def _found(self, kind: str, name: str) -> KubeObject:
        record = KINDS[kind].record
        return next(o for o in self.world.cluster.objects.values() if isinstance(o, record) and o.name == name)

    def _story(self) -> Any:
        return {
            pod["metadata"]["name"]: pod["spec"].get("nodeName") or self.why(pod["metadata"]["name"])
            for pod in self.pods()
        }


@pytest.mark.parametrize("scenario", EVERYWHERE, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize("api", [ALPHA, BETA], ids=["v1.36", "v1.37"])
def test_scenario(api: str, scenario: Scenario) -> None:
    stage = MemoryStage(api)
    scenario(stage)
    assert stage.world.nothing_is_in_flight()


@pytest.mark.parametrize("scenario", gangs.LOWERED, ids=lambda scenario: scenario.__name__)
def test_scenario_of_a_count_that_changes(scenario: Scenario) -> None:
    scenario(MemoryStage(BETA))


def test_the_table_of_upstreams_cases_names_every_scenario_and_no_other() -> None:
    named = set(re.findall(r"`([a-z0-9_]+)`", TABLE.read_text(encoding="utf-8")))
    assert {scenario.__name__ for scenario in ALL} <= named
    unknown = named - {scenario.__name__ for scenario in ALL}
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_pod_group*.py"))
    assert not [name for name in unknown if f"def {name}(" not in tests]
