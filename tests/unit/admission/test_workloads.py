"""Workloads: what is filled in, and that they keep knowing their pods."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.unit.admission.cluster import Cluster, refused
from tests.unit.admission.examples import example

from kubesched.admission import admit_create, admit_update
from kubesched.api import kinds
from kubesched.api.kinds import Object, Resource

EMPTY = Cluster()
OF_PODS = [kinds.DEPLOYMENTS, kinds.REPLICA_SETS, kinds.STATEFUL_SETS, kinds.DAEMON_SETS]


def created(resource: Resource, **spec: Any) -> Object:
    obj = copy.deepcopy(example(resource))
    obj["spec"].update(spec)
    return admit_create(resource, obj, EMPTY)


def updated(resource: Resource, old: Object, **spec: Any) -> Object:
    return admit_update(resource, old, {**old, "spec": {**old["spec"], **spec}}, "", EMPTY)


def by_name(resource: Resource) -> str:
    return resource.plural


def test_deployment_rolls_out_a_quarter_at_a_time() -> None:
    spec = created(kinds.DEPLOYMENTS)["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)
    assert spec["template"]["spec"]["schedulerName"] == "default-scheduler"


def test_template_is_not_yet_a_pod() -> None:
    limited = {"name": "main", "image": "a:1", "resources": {"limits": {"cpu": "1"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [limited]}}
    pod = created(kinds.DEPLOYMENTS, template=template)["spec"]["template"]["spec"]
    assert pod["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
    assert not pod.keys() & {"priority", "tolerations", "serviceAccountName", "enableServiceLinks"}


def test_recreate_has_no_rolling_update() -> None:
    strategy = {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}
    assert refused(lambda: created(kinds.DEPLOYMENTS, strategy=strategy)) == [
        (
            "spec.strategy.rollingUpdate",
            "Forbidden: may not be specified when strategy `type` is 'Recreate'",
        )
    ]


def test_stateful_set_gets_its_policies() -> None:
    spec = created(kinds.STATEFUL_SETS)["spec"]
    assert spec["podManagementPolicy"] == "OrderedReady"
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert spec["volumeClaimTemplates"][0]["spec"]["volumeMode"] == "Filesystem"


def test_daemon_set_replaces_one_pod_at_a_time() -> None:
    assert created(kinds.DAEMON_SETS)["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
    }


@pytest.mark.parametrize("resource", OF_PODS, ids=by_name)
def test_selector_is_required(resource: Resource) -> None:
    assert ("spec.selector", "Required value") in refused(lambda: created(resource, selector=None))


@pytest.mark.parametrize("resource", OF_PODS, ids=by_name)
def test_selector_must_match_the_labels_of_the_template(resource: Resource) -> None:
    assert refused(lambda: created(resource, selector={"matchLabels": {"app": "other"}})) == [
        (
            "spec.template.metadata.labels",
            'Invalid value: {"app":"web","rev":"1"}: `selector` does not match template `labels`',
        )
    ]


@pytest.mark.parametrize("resource", [kinds.DEPLOYMENTS, kinds.REPLICA_SETS, kinds.DAEMON_SETS], ids=by_name)
def test_selector_is_immutable(resource: Resource) -> None:
    old = created(resource)
    assert refused(lambda: updated(resource, old, selector={"matchLabels": {"rev": "1"}})) == [
        ("spec.selector", 'Invalid value: {"matchLabels":{"rev":"1"}}: field is immutable')
    ]


@pytest.mark.parametrize("resource", OF_PODS, ids=by_name)
def test_pods_that_run_for_good_are_always_restarted(resource: Resource) -> None:
    template = copy.deepcopy(example(resource)["spec"]["template"])
    template["spec"]["restartPolicy"] = "Never"
    assert refused(lambda: created(resource, template=template)) == [
        ("spec.template.spec.restartPolicy", 'Unsupported value: "Never": supported values: "Always"')
    ]


def test_mistakes_in_the_template_are_told_with_their_whole_path() -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a"}]}}
    assert refused(lambda: created(kinds.DEPLOYMENTS, template=template)) == [
        ("spec.template.spec.containers[0].image", "Required value")
    ]


def test_scaling_is_a_new_generation_and_the_status_is_kept() -> None:
    old = {**created(kinds.DEPLOYMENTS), "status": {"replicas": 1}}
    new = updated(kinds.DEPLOYMENTS, {**old, "status": {}}, replicas=5)
    kept = admit_update(kinds.DEPLOYMENTS, old, new, "", EMPTY)
    assert (kept["metadata"]["generation"], kept["status"]) == (2, {"replicas": 1})


def test_stateful_set_changes_only_what_it_may() -> None:
    old = created(kinds.STATEFUL_SETS)
    assert updated(kinds.STATEFUL_SETS, old, replicas=3)["spec"]["replicas"] == 3
    [(field, message)] = refused(lambda: updated(kinds.STATEFUL_SETS, old, serviceName="other"))
    assert field == "spec"
    assert message.startswith("Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals',")


def test_replication_controller_selects_by_the_labels_of_its_template() -> None:
    assert created(kinds.REPLICATION_CONTROLLERS)["spec"]["selector"] == {"app": "web", "rev": "1"}


# -- jobs -------------------------------------------------------------------------------------------------------------


def test_job_knows_its_pods_by_its_uid() -> None:
    spec = created(kinds.JOBS)["spec"]
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "7f3c"}}
    assert spec["template"]["metadata"]["labels"] == {
        "batch.kubernetes.io/controller-uid": "7f3c",
        "batch.kubernetes.io/job-name": "web",
        "controller-uid": "7f3c",
        "job-name": "web",
    }


def test_plain_job_runs_once_with_six_more_tries() -> None:
    spec = created(kinds.JOBS)["spec"]
    wanted = {"completions": 1, "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}
    assert spec.items() >= wanted.items()


def test_job_without_completions_is_done_when_one_pod_is() -> None:
    assert "completions" not in created(kinds.JOBS, parallelism=3)["spec"]


def test_pods_of_a_job_must_be_able_to_end() -> None:
    template = {"spec": {"containers": [{"name": "a", "image": "b:1"}]}}
    assert refused(lambda: created(kinds.JOBS, template=template)) == [
        ("spec.template.spec.restartPolicy", 'Required value: valid values: "OnFailure", "Never"')
    ]


def test_pods_of_a_cron_job_restart_as_those_of_a_job() -> None:
    pod = {"containers": [{"name": "a", "image": "b:1"}], "restartPolicy": "Sometimes"}
    [(field, _), (other_field, message)] = refused(
        lambda: created(kinds.CRON_JOBS, jobTemplate={"spec": {"template": {"spec": pod}}})
    )
    assert field == other_field == "spec.jobTemplate.spec.template.spec.restartPolicy"
    assert message == 'Unsupported value: "Sometimes": supported values: "OnFailure", "Never"'


def test_template_of_a_job_is_immutable_once_it_may_run() -> None:
    old = created(kinds.JOBS)
    pod = {**old["spec"]["template"]["spec"], "nodeSelector": {"disk": "ssd"}}
    template = {**old["spec"]["template"], "spec": pod}
    [(field, message)] = refused(lambda: updated(kinds.JOBS, old, template=template))
    assert field == "spec.template"
    assert message.endswith("field is immutable")
    suspended = created(kinds.JOBS, suspend=True)
    assert updated(kinds.JOBS, suspended, template={**suspended["spec"]["template"], "spec": pod})
