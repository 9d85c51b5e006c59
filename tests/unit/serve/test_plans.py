"""Plans over HTTP: those of the command, for the objects of the moment; what is wrong with a question is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.json_schema import mistakes
from tests.unit.serve.asking import Json, Service, cluster_of, run

from kubesched.cli.main import main as command
from kubesched.planning import solver
from kubesched.serve.questions import described
from kubesched.simulate.manifests import loads

pytest.importorskip("highspy", reason="plans need HiGHS")

EXAMPLES = Path(__file__).parents[3] / "examples" / "planning"
TYPES = [{"type": "large", "cpu": 16, "memory": "64Gi", "price": 0.77}, {"type": "gpu", "cpu": 32, "memory": "128Gi"}]


def example() -> Json:
    return {"cluster": cluster_of(*loads((EXAMPLES / "cluster.yaml").read_text(), workloads=True).objects)}


def test_plan_is_that_of_the_command() -> None:
    arguments = ["free", "-f", str(EXAMPLES / "cluster.yaml"), "--nodes", "2", "--pool", "large", "-o", "json"]
    expected = json.loads(CliRunner().invoke(command, ["plan", *arguments]).stdout)

    async def test(service: Service) -> None:
        found = await service.post("plan", {"goal": "free", "nodes": 2, "pool": "large"})
        assert found.pop("cluster")["source"] == "files"
        schema: Json = described()["components"]["schemas"]["Plan"]
        properties = {**schema["properties"], "cluster": {}}
        assert mistakes({**found, "cluster": None}, {**schema, "properties": properties}) == []
        assert {**found, "observedAt": ""} == {**expected, "observedAt": ""}

    run(test, **example())


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"goal": "free", "nodes": 99}, "there are only 10 such nodes"),
        ({"goal": "fit", "target": "job/none"}, "there is no Job default/none"),
        ({"goal": "pool"}, "the price list has no types"),
        ({"goal": "consolidate", "prices": TYPES}, "prices[1]: price is missing"),
        ({"goal": "consolidate", "prices": TYPES[:1]}, "no price for the type 'gpu'"),
    ],
)
def test_what_is_wrong_is_told(question: Json, said: str) -> None:
    async def test(service: Service) -> None:
        assert said in "\n".join(await service.errors("plan", question, 422))

    run(test, **example())


def test_queue_and_pool_are_planned() -> None:
    async def test(service: Service) -> None:
        assert (await service.post("plan", {"goal": "queue"}))["reason"] == "no pod waits for a node"
        assert (await service.post("plan", {"goal": "pool", "prices": TYPES[:1]}))["outcome"] == "unchanged"

    run(test, **example())


def test_missing_solver_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "is_installed", lambda: False)

    async def test(service: Service) -> None:
        [line] = await service.errors("plan", {"goal": "queue"}, 422)
        assert line.startswith("plans need the solver HiGHS")

    run(test, **example())
