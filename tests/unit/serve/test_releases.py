"""Two releases compared over HTTP: the answer of the command, or what is wrong with the question."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner
from tests.json_schema import mistakes
from tests.unit.serve.asking import Json, Service, cluster_of, run

from kubesched.cli.main import main as command
from kubesched.serve.questions import described
from kubesched.simulate.manifests import loads

SHOP = Path(__file__).parents[3] / "examples" / "shop"


def test_answer_is_that_of_the_command() -> None:
    manifests = loads("\n---\n".join(file.read_text() for file in sorted(SHOP.glob("*.yaml"))), workloads=True)
    printed = CliRunner().invoke(
        command, ["compare", "-f", str(SHOP), "--release", "1.36", "--release", "1.37", "-o", "json"]
    )
    expected = json.loads(printed.output)

    async def test(service: Service) -> None:
        found = await service.post("compare-releases", {"before": "1.36", "after": "1.37"})
        assert found.pop("cluster")["source"] == "files"
        schema: Json = described()["components"]["schemas"]["ReleaseComparison"]
        schema = {**schema, "properties": {**schema["properties"], "cluster": {}}}
        assert mistakes({**found, "cluster": None}, schema) == []
        assert found["groups"]
        assert found == {**expected, "skipped": {}}

    run(test, cluster=cluster_of(*manifests.objects))


def test_releases_that_cannot_be_compared_are_refused() -> None:
    async def test(service: Service) -> None:
        assert await service.errors("compare-releases", {"before": "1.2"}, 422) == [
            "before: expected '1.36' or '1.37', got '1.2'"
        ]

    run(test)
