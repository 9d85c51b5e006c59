"""What the chart brings besides the scheduler: alerts, a dashboard, a schema for values. All of it fits the code."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from prometheus_client import ProcessCollector
from tests.unit.daemon.chart import Chart

from kubesched.daemon.metrics.registry import CLIENT, OWN, PROCESS, SCHEDULER, MetricsRegistry

ROOT = Path(__file__).parents[3]
CHART = Chart(ROOT / "deploy" / "helm" / "kubesched")
EVERYTHING: dict[str, Any] = {
    "serviceMonitor": {"enabled": True, "interval": "30s", "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "labels": {}},
    "dashboard": {"enabled": True, "labels": {"grafana_dashboard": "1"}},
}
SCHEMA = json.loads(CHART.file("values.schema.json"))
_METRIC = re.compile(r"\b(?:scheduler|kubesched|rest_client|leader_election|process|workqueue)_[a-z_]+\b")
_SUFFIX = re.compile(r"_(bucket|sum|count)$")


def the(kind: str, name: str) -> dict[str, Any]:
    (found,) = (obj for obj in CHART.rendered(**EVERYTHING) if (obj["kind"], obj["metadata"]["name"]) == (kind, name))
    return found


def alerts() -> list[dict[str, Any]]:
    return [rule for group in the("PrometheusRule", "kubesched")["spec"]["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    dashboard = json.loads(the("ConfigMap", "kubesched-dashboard")["data"]["kubesched.json"])
    found: list[dict[str, Any]] = dashboard["panels"]
    return found


def known_metrics() -> set[str]:
    process = {metric.name for metric in ProcessCollector(registry=None).collect()}
    return {series.name for series in (*PROCESS, *SCHEDULER, *CLIENT, *OWN)} | process


def used_in(expressions: Iterable[str]) -> set[str]:
    return {_SUFFIX.sub("", name) for expression in expressions for name in _METRIC.findall(expression)}


def test_alerts_use_metrics_that_exist_and_say_what_to_do() -> None:
    used = used_in(rule["expr"] for rule in alerts())
    assert used
    assert used <= known_metrics()
    for rule in alerts():
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["action"]


def test_alerts_about_the_lease_are_about_the_lease_of_this_release() -> None:
    rendered = CHART.rendered(**EVERYTHING, name="batch")
    (rules,) = (obj for obj in rendered if obj["kind"] == "PrometheusRule")
    about_leases = [rule["expr"] for rule in rules["spec"]["groups"][0]["rules"] if "leader_election" in rule["expr"]]
    assert about_leases
    assert all('name="batch"' in expression for expression in about_leases)


def test_dashboard_uses_metrics_that_exist() -> None:
    used = used_in(target["expr"] for panel in panels() for target in panel["targets"])
    assert len(used) > 8
    assert used <= known_metrics()
    assert len({panel["id"] for panel in panels()}) == len(panels())


def test_labels_in_alerts_and_panels_are_labels_of_those_metrics() -> None:
    registry = MetricsRegistry()
    expressions = [rule["expr"] for rule in alerts()] + [target["expr"] for p in panels() for target in p["targets"]]
    for expression in expressions:
        for labels, name in re.findall(r"by \(([a-z_, ]+)\) \((?:rate|increase)?\(?([a-z_]+)", expression):
            known = registry.family(_SUFFIX.sub("", name)).definition.labels
            assert {label.strip() for label in labels.split(",")} <= {*known, "le"}, expression


def test_service_leads_to_the_port_of_the_pods() -> None:
    service, deployment = the("Service", "kubesched"), the("Deployment", "kubesched")
    (port,) = service["spec"]["ports"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert port["targetPort"] in {each["name"] for each in container["ports"]}
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    (endpoint,) = the("ServiceMonitor", "kubesched")["spec"]["endpoints"]
    assert endpoint["port"] == port["name"]


def test_budget_and_spread_are_about_the_pods_of_the_deployment() -> None:
    labels = the("Deployment", "kubesched")["spec"]["template"]["metadata"]["labels"]
    assert the("PodDisruptionBudget", "kubesched")["spec"]["selector"]["matchLabels"] == labels
    for constraint in the("Deployment", "kubesched")["spec"]["template"]["spec"]["topologySpreadConstraints"]:
        assert constraint["labelSelector"]["matchLabels"] == labels


def test_image_may_be_named_by_its_digest() -> None:
    image = {**CHART.values["image"], "digest": f"sha256:{'0' * 64}"}
    (pod,) = (obj["spec"]["template"]["spec"] for obj in CHART.rendered(image=image) if obj["kind"] == "Deployment")
    assert pod["containers"][0]["image"] == f"kubesched@sha256:{'0' * 64}"


def test_values_have_a_schema_that_knows_all_of_them() -> None:
    jsonschema.validate(CHART.values, SCHEMA)
    jsonschema.validate({**CHART.values, **EVERYTHING}, SCHEMA)
    assert CHART.values.keys() <= SCHEMA["properties"].keys()


@pytest.mark.parametrize(
    "mistake",
    [
        {"replica": 3},
        {"replicas": "two"},
        {"name": "Not A Name"},
        {"extraArgs": ["shadow"]},
        {"image": {"repository": "", "tag": "1"}},
        {"image": {"repository": "x", "digest": "latest"}},
        {"configuration": {"leaderElection": {"resourceName": "other"}}},
        {"serviceMonitor": {"enabled": "yes"}},
    ],
    ids=lambda mistake: str(mistake),
)
def test_mistakes_in_values_are_refused(mistake: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**CHART.values, **mistake}, SCHEMA)


def test_notes_name_the_lease() -> None:
    assert "--namespace kube-system get lease kubesched" in CHART.notes()


@pytest.mark.parametrize("name", ["run", "dev", "build"])
def test_every_locked_requirement_has_hashes_and_no_address(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    entries = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).strip())
    assert entries
    for entry in entries:
        assert re.match(r"[A-Za-z0-9._-]+(\[[a-z,]+\])?==\S+", entry), entry
        assert "--hash=sha256:" in entry
    assert "://" not in text
    assert "--index" not in text


def test_everything_that_the_package_needs_is_locked_for_the_image() -> None:
    locked = {line.partition("==")[0].lower() for line in _lines("requirements/run.txt") if "==" in line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {re.split(r"[^A-Za-z0-9-]", requirement)[0] for requirement in project["dependencies"]}
    assert wanted
    assert {name.lower() for name in wanted} <= locked


@pytest.mark.parametrize("workflow", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda file: file.name)
def test_workflows_are_yaml_with_narrow_permissions(workflow: Path) -> None:
    read = yaml.safe_load(workflow.read_text())
    assert read["permissions"] == {"contents": "read"}
    assert all(job.get("timeout-minutes") for job in read["jobs"].values())


def _lines(path: str) -> list[str]:
    return (ROOT / path).read_text().splitlines()
