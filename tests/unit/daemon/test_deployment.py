"""What is in deploy/: it fits the code, and the chart fits the manifests."""

from __future__ import annotations

import configparser
import shlex
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.daemon.chart import Chart
from tools import release

from kubesched import __version__, config
from kubesched.admission import SERVED
from kubesched.api.kinds import POD_GROUPS, WATCHED, Kind
from kubesched.ask.rights import cluster_rights
from kubesched.cli import shadow
from kubesched.daemon.completion import complete_options
from kubesched.daemon.options import Options, parse_options

DEPLOY = Path(__file__).parents[3] / "deploy"
CHART = Chart(DEPLOY / "helm" / "kubesched")

WRITTEN = [
    ("", "pods/binding", "create"),
    ("", "pods/status", "patch"),
    ("", "pods", "delete"),
    ("", "pods", "get"),
    ("", "persistentvolumes", "patch"),
    ("", "persistentvolumeclaims", "patch"),
    ("events.k8s.io", "events", "create"),
    ("events.k8s.io", "events", "patch"),
    ("", "events", "create"),
    ("resource.k8s.io", "resourceclaims", "create"),
    ("resource.k8s.io", "resourceclaims", "update"),
    ("resource.k8s.io", "resourceclaims", "delete"),
    ("resource.k8s.io", "resourceclaims/status", "update"),
    ("resource.k8s.io", "resourceclaims/status", "patch"),
    ("resource.k8s.io", "resourceclaims/binding", "update"),
    ("resource.k8s.io", "resourceclaims/binding", "patch"),
    ("authentication.k8s.io", "tokenreviews", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "create"),
]
"""What a scheduler writes, and questions it asks."""


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "manifests" / name).read_text()))


BESIDE = documents("beside-kube-scheduler.yaml")
REPLACING = documents("replace-kube-scheduler.yaml")


def the(kind: str, objects: list[dict[str, Any]], name: str = "kubesched") -> dict[str, Any]:
    found = [obj for obj in objects if obj["kind"] == kind and obj["metadata"]["name"] == name]
    assert len(found) == 1
    return found[0]


def allows(rules: list[dict[str, Any]], group: str, resource: str, verb: str, name: str = "") -> bool:
    return any(
        group in rule["apiGroups"]
        and resource in rule["resources"]
        and verb in rule["verbs"]
        and (not rule.get("resourceNames") or name in rule["resourceNames"])
        for rule in rules
    )


def options_of(container: dict[str, Any]) -> Options:
    command = [*container.get("command", ["kube-scheduler"]), *container.get("args", [])]
    assert command[0] == "kube-scheduler"
    return parse_options(command[1:])


@pytest.mark.parametrize("kind", WATCHED, ids=lambda kind: kind.resource.kind)
def test_role_lets_every_kind_be_listed_and_watched(kind: Kind) -> None:
    resource = kind.resource
    rules = the("ClusterRole", BESIDE)["rules"]
    for verb in ("get", "list", "watch"):
        assert allows(rules, resource.group, resource.plural, verb)


@pytest.mark.parametrize(("group", "resource", "verb"), WRITTEN)
def test_role_lets_everything_be_written_that_is(group: str, resource: str, verb: str) -> None:
    assert allows(the("ClusterRole", BESIDE)["rules"], group, resource, verb)


GROUP_RIGHTS = [("podgroups", "list"), ("podgroups", "watch"), ("podgroups/status", "patch")]


@pytest.mark.parametrize("enabled", [True, False])
def test_chart_gives_rights_to_pod_groups_where_they_are_enabled(enabled: bool) -> None:
    """The others of the role are the same: rendered without it, the chart is the manifest."""
    rules = the("ClusterRole", CHART.rendered(podGroups={"enabled": enabled}))["rules"]
    for resource, verb in GROUP_RIGHTS:
        assert allows(rules, POD_GROUPS.group, resource, verb) is enabled


def test_role_names_only_what_an_api_server_has() -> None:
    served = {(resource.group, resource.plural): {"", *resource.subresources} for resource in SERVED}
    by_other_names = {("", "bindings"): {""}, ("", "pods"): {*served["", "pods"], "finalizers"}}
    by_other_names["resource.k8s.io", "resourceclaims"] = {*served["resource.k8s.io", "resourceclaims"], "binding"}
    for rule in the("ClusterRole", BESIDE)["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                plural, _, part = resource.partition("/")
                assert part in {**served, **by_other_names}[group, plural]


def test_role_lets_the_lease_of_the_configuration_be_held() -> None:
    text = the("ConfigMap", BESIDE)["data"]["scheduler.yaml"]
    election = config.load(text).leader_election
    role = the("Role", BESIDE, "kubesched-leader-election")
    assert role["metadata"]["namespace"] == election.resource_namespace
    for verb in ("get", "update", "create"):
        assert allows(role["rules"], "coordination.k8s.io", "leases", verb, election.resource_name)


def test_every_binding_is_of_the_account_that_the_deployment_uses() -> None:
    pod = the("Deployment", BESIDE)["spec"]["template"]["spec"]
    account = {"kind": "ServiceAccount", "name": pod["serviceAccountName"], "namespace": "kube-system"}
    the("ServiceAccount", BESIDE, account["name"])
    bindings = [obj for obj in BESIDE if obj["kind"].endswith("Binding")]
    assert len(bindings) == 3
    assert all(binding["subjects"] == [account] for binding in bindings)
    own = {obj["metadata"]["name"] for obj in BESIDE if obj["kind"] in ("Role", "ClusterRole")}
    assert {b["roleRef"]["name"] for b in bindings} == own | {"extension-apiserver-authentication-reader"}


def test_scheduler_beside_has_a_name_and_a_lease_of_its_own() -> None:
    configuration = config.load(the("ConfigMap", BESIDE)["data"]["scheduler.yaml"])
    assert [profile.scheduler_name for profile in configuration.profiles] == ["kubesched"]
    assert configuration.leader_election.resource_name != config.default().leader_election.resource_name


@pytest.mark.parametrize(
    "pod",
    [REPLACING[0]["spec"], the("Deployment", BESIDE)["spec"]["template"]["spec"]],
    ids=["replacing", "beside"],
)
def test_pod_calls_with_flags_that_exist_and_is_probed_where_it_listens(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]
    options = options_of(container)
    assert options.warnings == ()
    (port,) = container["ports"]
    assert port["containerPort"] == options.secure_port
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == port["name"]
        assert container[probe]["httpGet"]["path"] in options.authorization_always_allow_paths
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_static_pod_keeps_the_name_and_the_lease_of_kube_scheduler() -> None:
    options = options_of(REPLACING[0]["spec"]["containers"][0])
    configuration = complete_options(options).configuration
    assert configuration.leader_election == config.default().leader_election
    assert configuration.client_connection.kubeconfig == "/etc/kubernetes/scheduler.conf"
    assert [profile.scheduler_name for profile in configuration.profiles] == ["default-scheduler"]


def test_chart_with_its_defaults_is_the_manifest() -> None:
    rendered, expected = CHART.rendered(), documents("beside-kube-scheduler.yaml")
    annotations = the("Deployment", rendered)["spec"]["template"]["metadata"].pop("annotations")
    assert len(annotations["checksum/configuration"]) == 64
    for objects in (rendered, expected):
        data = the("ConfigMap", objects)["data"]
        data["scheduler.yaml"] = yaml.safe_load(data["scheduler.yaml"])
        objects.sort(key=lambda obj: (obj["kind"], obj["metadata"]["name"]))
    assert rendered == expected


def test_chart_follows_its_values() -> None:
    tolerations = [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]
    profiles = [{"schedulerName": "batch"}]
    rendered = CHART.rendered(
        namespace="scheduling",
        name="batch",
        configuration={"profiles": profiles, "parallelism": 4},
        extraArgs=["--shadow"],
        tolerations=tolerations,
        priorityClassName="",
    )
    pod = the("Deployment", rendered, "batch")["spec"]["template"]["spec"]
    assert pod["tolerations"] == tolerations
    assert "priorityClassName" not in pod
    assert options_of(pod["containers"][0]).shadow
    loaded = config.load(the("ConfigMap", rendered, "batch")["data"]["scheduler.yaml"])
    assert (loaded.leader_election.resource_name, loaded.leader_election.resource_namespace) == ("batch", "scheduling")
    assert [profile.scheduler_name for profile in loaded.profiles] == ["batch"]
    lease_role = the("Role", rendered, "batch-leader-election")
    assert lease_role["metadata"]["namespace"] == "scheduling"
    assert allows(lease_role["rules"], "coordination.k8s.io", "leases", "update", "batch")


def test_versions_agree() -> None:
    pods = [REPLACING[0]["spec"], BESIDE[-1]["spec"]["template"]["spec"]]
    pods.append(the("Deployment", CHART.rendered(), "kubesched")["spec"]["template"]["spec"])
    assert {pod["containers"][0]["image"] for pod in pods} == {f"kubesched:{__version__}"}
    assert (CHART.description["version"], CHART.description["appVersion"]) == (__version__, __version__)


def test_next_version_is_written_to_every_place_that_has_one(tmp_path: Path) -> None:
    root = DEPLOY.parent
    for place in release.PLACES:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text((root / place).read_text())
    release.write("9.8.7", tmp_path, today=date(2030, 1, 2))
    texts = {place: (tmp_path / place).read_text() for place in release.PLACES}
    assert "## Unreleased\n\n## 9.8.7 - 2030-01-02\n" in texts.pop("CHANGELOG.md")
    assert [place for place, text in texts.items() if __version__ in text or "9.8.7" not in text] == []


def test_image_runs_as_nobody_and_under_the_name_that_manifests_call() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    assert "USER 65532:65532" in lines
    assert 'ENTRYPOINT ["kube-scheduler"]' in lines
    copied = [line.split() for line in lines if line.startswith("COPY") and "--from" not in line]
    assert ["deploy/kube-scheduler", "/usr/local/bin/kube-scheduler"] in [words[-2:] for words in copied]
    sources = [word for words in copied for word in words[1:-1] if not word.startswith("--")]
    assert all((DEPLOY.parent / source).exists() for source in sources)
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert all(f"!{source}" in ignored for source in sources)


def test_systemd_unit_calls_with_flags_that_exist_and_waits_for_bindings() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "systemd" / "kubesched.service")
    program, command, *flags = shlex.split(unit["Service"]["ExecStart"])
    assert (Path(program).name, command) == ("kubesched", "run")
    assert parse_options([flag for flag in flags if not flag.startswith("$")]).config
    assert unit["Service"]["Restart"] == "always"
    assert int(unit["Service"]["TimeoutStopSec"]) >= 30


# -- shadow -----------------------------------------------------------------------------------------------------------

SHADOW = documents("shadow.yaml")


def rights_in(objects: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    rules = the("ClusterRole", objects, "kubesched-shadow")["rules"]
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_chart_of_a_shadow_is_its_manifest() -> None:
    rendered = CHART.rendered(shadow=True, name="kubesched-shadow")
    the("Deployment", rendered, "kubesched-shadow")["spec"]["template"]["metadata"].pop("annotations")
    for objects in (rendered, SHADOW):
        objects.sort(key=lambda obj: (obj["kind"], obj["metadata"]["name"]))
    assert rendered == SHADOW


def test_a_shadow_has_the_rights_that_the_command_prints_and_no_lease() -> None:
    printed = {(right.group, right.resource, verb) for right in cluster_rights("shadow") for verb in right.verbs}
    assert rights_in(SHADOW) == printed
    assert [obj for obj in SHADOW if obj["kind"] == "Role"] == []


def test_a_shadow_is_one_replica_that_judges_the_pods_of_kube_scheduler_and_keeps_what_it_finds() -> None:
    deployment = the("Deployment", SHADOW, "kubesched-shadow")
    assert deployment["spec"]["replicas"] == 1
    pod = deployment["spec"]["template"]["spec"]
    options = options_of(pod["containers"][0])
    assert options.shadow
    assert options.shadow_file == shadow.FILE
    mounts = {mount["mountPath"]: mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounts[str(Path(options.shadow_file).parent)] in {volume["name"] for volume in pod["volumes"]}
    text = the("ConfigMap", SHADOW, "kubesched-shadow")["data"]["scheduler.yaml"]
    assert [profile.scheduler_name for profile in config.load(text).profiles] == ["default-scheduler"]


def test_the_role_to_run_is_within_that_of_the_manifest() -> None:
    rules = the("ClusterRole", BESIDE)["rules"]
    for right in cluster_rights("run"):
        for verb in right.verbs:
            assert allows(rules, right.group, right.resource, verb), right
