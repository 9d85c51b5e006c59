"""Questions to a live cluster: what is asked of its API server, what is said when it does not answer."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.front_server import Front, as_configz, fronted, pod_of_scheduler
from tests.unit.ask.clusters import CONTAINER, shop

from kubesched import config
from kubesched.ask.sources import live
from kubesched.cli.main import main
from kubesched.kube import listing
from kubesched_sandbox.http import kubeconfig, write_kubeconfig

BUDGETS, PODS, NODES = "/apis/policy/v1/poddisruptionbudgets", "/api/v1/pods", "/api/v1/nodes"
SCHEDULERS = "/api/v1/namespaces/kube-system/pods"
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "more"}, "spec": {"containers": [CONTAINER]}}


@pytest.fixture
def front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Front]:
    """The server of the current context."""
    monkeypatch.chdir(tmp_path)
    with fronted(shop()) as front:
        write_kubeconfig(tmp_path / "kubeconfig", kubeconfig(front.url))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        yield front


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def document(*arguments: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(run(*arguments, "-o", "json").stdout)
    return found


def placed(*arguments: str) -> list[str]:
    return [each["pod"] for each in document("place", *arguments)["placed"]]  # type: ignore[attr-defined]


def test_without_files_the_cluster_of_the_current_context_is_asked(front: Front) -> None:
    assert "default/web-2" in placed()
    assert "default/web-2" in placed("--kubeconfig", "kubeconfig", "--context", "kubesched-sandbox")


def test_all_commands_ask_the_live_cluster_and_send_nothing_but_questions(front: Front) -> None:
    Path("pod.yaml").write_text(yaml.safe_dump(POD))
    Path("config.yaml").write_text(config.to_yaml(config.default()))
    run("explain", "web-2", "-n", "default")
    run("explain", "--pod", "default/tall")
    run("place")
    run("simulate")
    run("compare", "--config", "config.yaml")
    run("capacity", "--pod", "pod.yaml", "--most", "5")
    run("what-if", "--drain", "node-0", "--with", "pod.yaml")
    run("snapshot", "-o", "cluster.json.gz")
    run("snapshot", "-o", "hidden.json.gz", "--anonymize")
    assert {method for method, _ in front.asked} == {"GET"}
    assert len([path for _, path in front.asked if path.startswith(f"{PODS}?")]) == 9


def test_plans_send_nothing_but_questions(front: Front) -> None:
    pytest.importorskip("highspy", reason="plans need HiGHS")
    CliRunner().invoke(main, ["plan", "free", "--nodes", "1", "-o", "sh"])
    CliRunner().invoke(main, ["plan", "fit"])
    CliRunner().invoke(main, ["plan", "queue"])
    assert len([path for _, path in front.asked if path.startswith(f"{PODS}?")]) == 3
    assert {method for method, _ in front.asked} == {"GET"}


def test_what_rbac_denies_is_named_with_its_consequence(front: Front) -> None:
    front.denied.add(BUDGETS)
    result = run("place")
    told = "Warning: PodDisruptionBudgets cannot be read: preemption may be reported that a budget forbids"
    assert told in result.stderr.splitlines()
    assert "web-2" in result.stdout


@pytest.mark.parametrize("path", [NODES, PODS])
def test_without_nodes_or_pods_there_is_no_answer(front: Front, path: str) -> None:
    front.denied.add(path)
    lines = run("place", code=2).stderr.splitlines()
    assert f"without {path.rpartition('/')[2]} there is no answer" in lines[-2]
    assert "deploy/manifests/read-only.yaml" in lines[-1]


def test_kinds_that_an_older_server_does_not_have_are_empty(front: Front) -> None:
    front.unknown |= {f"/apis/resource.k8s.io/v1/{name}" for name in ("resourceslices", "resourceclaims")}
    result = run("place")
    assert "cannot be read" not in result.stderr.replace("the pods of kube-system cannot", "")


def test_credential_that_expired_is_named(front: Front) -> None:
    front.expired = True
    [said] = run("explain", "web-2", code=2).stderr.splitlines()
    assert front.url in said
    assert "are not accepted; they may have expired" in said


def test_server_that_does_not_answer_in_time_is_left(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "LIST_TIMEOUT", 20.0)
    front.silent.add(NODES)
    said = run("place", "--request-timeout", "300ms", code=2).stderr
    assert "not read within 0.3 s" in said
    assert "--request-timeout gives it more time" in said


def test_unreachable_server_is_named(front: Front) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        write_kubeconfig(Path("kubeconfig"), kubeconfig(url))
        said = run("place", code=2).stderr
    assert url in said
    assert "refused" in said


def test_unknown_context_is_named_with_those_there_are(front: Front) -> None:
    assert "context was not found for specified context: prod" in run("place", "--context", "prod", code=2).stderr


def test_without_kubeconfig_or_files_both_ways_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, front: Front
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    said = run("place", code=2).stderr
    assert "there is no kubeconfig at" in said
    assert "no -f was given, so the live cluster is meant" in said


def test_files_and_a_live_cluster_exclude_each_other(front: Front) -> None:
    assert "one or the other" in run("place", "-f", "x.yaml", "--context", "a", code=2).stderr


@pytest.mark.parametrize("timeout", ["soon", "-5s"])
def test_timeout_that_is_none_is_refused(front: Front, timeout: str) -> None:
    assert "Invalid value for '--request-timeout'" in run("place", "--request-timeout", timeout, code=2).stderr


def test_place_shows_the_pods_of_one_namespace_where_that_is_asked_for(front: Front) -> None:
    assert "default/web-2" in placed("-n", "default")
    assert placed("-n", "shop") == []


# -- the configuration -------------------------------------------------------------------------------------------------


def with_scheduler(front: Front, answer: object) -> None:
    pod = {"metadata": {"name": "kube-scheduler-a"}, "status": {"phase": "Running"}}
    front.answers |= {SCHEDULERS: {"kind": "PodList", "items": [pod]}, pod_of_scheduler(): answer}


def test_configuration_of_the_scheduler_in_charge_is_followed(front: Front) -> None:
    [profile] = config.default().profiles
    named = config.to_plain(config.default()) | {"profiles": [{"schedulerName": "another"}]}
    assert profile.scheduler_name == "default-scheduler"
    with_scheduler(front, as_configz(json.dumps(named)))
    result = run("place", "-o", "json")
    assert "Scheduler configuration: /configz of kube-system/kube-scheduler-a" in result.stderr
    assert all("no profile 'default-scheduler'" in each["message"] for each in json.loads(result.stdout)["unplaced"])


def test_defaults_are_followed_and_said_where_no_scheduler_answers(front: Front) -> None:
    assert "the defaults (kube-system has no pod of a scheduler)" in run("place").stderr
    with_scheduler(front, {"nothing": "useful"})
    said = run("place").stderr
    assert "Scheduler configuration: the defaults (/configz of kube-system/kube-scheduler-a cannot be read" in said


def test_configuration_of_a_sandbox_is_followed(front: Front) -> None:
    named = config.to_plain(config.default()) | {"profiles": [{"schedulerName": "another"}]}
    front.answers["/configz"] = {"componentconfig": named}
    result = run("place", "-o", "json")
    assert "Scheduler configuration: /configz of the sandbox" in result.stderr
    assert all("no profile 'default-scheduler'" in each["message"] for each in json.loads(result.stdout)["unplaced"])
    front.answers["/configz"] = {"componentconfig": {"kind": "KubeletConfiguration"}}
    assert "the defaults (kube-system has no pod of a scheduler)" in run("place").stderr


def test_scheduler_that_does_not_answer_costs_no_more_than_its_patience(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PATIENCE", 0.2)
    pods = [{"metadata": {"name": name}, "status": {"phase": "Running"}} for name in ("kube-scheduler-a", "b")]
    front.answers |= {SCHEDULERS: {"kind": "PodList", "items": pods}}
    front.silent |= {pod_of_scheduler(), pod_of_scheduler("b")}
    assert "/configz of kube-system/kube-scheduler-a cannot be read" in run("place").stderr
    assert len([path for _, path in front.asked if path.endswith("configz")]) == 1


def test_configuration_that_is_given_is_not_looked_for(front: Front) -> None:
    Path("config.yaml").write_text(config.to_yaml(config.default()))
    assert "Scheduler configuration" not in run("place", "--config", "config.yaml").stderr


# -- snapshots ---------------------------------------------------------------------------------------------------------


def test_snapshot_answers_as_the_cluster_does(front: Front) -> None:
    front.denied.add(BUDGETS)
    said = run("snapshot", "-o", "cluster.json.gz").stderr
    assert "cluster.json.gz: 4 nodes, 3 pods" in said
    assert re.search(r", [1-9][\d.]* kB$", said.strip())
    assert Path("cluster.json.gz").stat().st_mode & 0o777 == 0o600
    for command in (["place"], ["simulate"], ["explain", "tall"]):
        assert document(*command, "-f", "cluster.json.gz") == document(*command)
    assert "PodDisruptionBudgets cannot be read" in run("place", "-f", "cluster.json.gz").stderr


def test_pods_of_a_deployment_have_the_priority_of_its_class(front: Front) -> None:
    run("snapshot", "-o", "cluster.json.gz")
    for source in ([], ["-f", "cluster.json.gz"]):
        found = document("simulate", *source)["pods"]
        assert {pod["priority"] for pod in found if "/api-" in pod["pod"]} == {1000}  # type: ignore[attr-defined]


def test_snapshot_keeps_the_configuration_that_was_found(front: Front) -> None:
    with_scheduler(front, as_configz(config.to_json(config.default())))
    run("snapshot", "-o", "cluster.json.gz")
    assert "Scheduler configuration: /configz of" in run("place", "-f", "cluster.json.gz").stderr


def test_capacity_takes_a_pod_beside_a_snapshot(front: Front) -> None:
    run("snapshot", "-o", "cluster.json.gz")
    Path("pod.yaml").write_text(yaml.safe_dump(POD))
    assert document("capacity", "-f", "cluster.json.gz", "--pod", "pod.yaml", "--most", "2")["fit"] == 2


@pytest.mark.parametrize("keep", [40, 2000])
def test_damaged_snapshot_is_refused(front: Front, keep: int) -> None:
    run("snapshot", "-o", "cluster.json.gz")
    Path("half.json.gz").write_bytes(Path("cluster.json.gz").read_bytes()[:keep])
    assert "half.json.gz" in run("place", "-f", "half.json.gz", code=2).stderr


def test_snapshot_that_cannot_be_written_is_refused_and_leaves_nothing(front: Front) -> None:
    assert "No such file or directory" in run("snapshot", "-o", "missing/cluster.json.gz", code=2).stderr
