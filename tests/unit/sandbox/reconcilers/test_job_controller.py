from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.living_sandbox import LivingSandbox, is_live, template

from kubesched.api.kinds import JOBS, PODS, Object
from kubesched.controllers.jobs import INDEX, Indexes
from kubesched_sandbox.api.conditions import condition_of, is_true
from kubesched_sandbox.nodes.manifests import DURATION, EXIT_CODE


def job(*, seconds: int = 5, exit_code: int = 0, restart: str = "Never", **spec: object) -> Object:
    annotations = {DURATION: f"{seconds}s", EXIT_CODE: str(exit_code)}
    return {
        "metadata": {"name": "work"},
        "spec": {"template": template("work", annotations=annotations, restartPolicy=restart), **spec},
    }


def active(cluster: LivingSandbox) -> list[Object]:
    return [pod for pod in cluster.pods() if pod["status"]["phase"] in ("Pending", "Running") and is_live(pod)]


def test_job_runs_as_many_pods_at_once_as_allowed_until_enough_succeeded() -> None:
    cluster = LivingSandbox()
    cluster.create(JOBS, job(parallelism=2, completions=5))
    most = 0
    for _ in range(60):
        cluster.run(1)
        most = max(most, len(active(cluster)))
    work = cluster.get(JOBS, "work")
    assert most == 2
    assert (work["status"]["succeeded"], is_true(work, "Complete")) == (5, True)
    assert work["status"]["completionTime"] > work["status"]["startTime"]
    assert len(cluster.pods()) == 5


def test_job_fails_after_too_many_failures_with_longer_and_longer_pauses() -> None:
    cluster = LivingSandbox()
    cluster.create(JOBS, job(exit_code=1, backoffLimit=2))
    cluster.run(12)
    assert len(cluster.pods()) == 1
    cluster.run(8)
    assert len(cluster.pods()) == 2
    cluster.run(120)
    work = cluster.get(JOBS, "work")
    assert (condition_of(work, "Failed") or {})["reason"] == "BackoffLimitExceeded"
    assert work["status"]["failed"] == len(cluster.pods()) == 3


def test_containers_that_restart_in_place_count_as_failures_too() -> None:
    cluster = LivingSandbox()
    cluster.create(JOBS, job(exit_code=1, restart="OnFailure", backoffLimit=1))
    cluster.run(60)
    assert is_true(cluster.get(JOBS, "work"), "Failed")
    assert active(cluster) == []


def test_deadline_ends_a_job_and_its_pods() -> None:
    cluster = LivingSandbox()
    cluster.create(JOBS, job(seconds=600, activeDeadlineSeconds=30))
    cluster.run(40)
    assert (condition_of(cluster.get(JOBS, "work"), "Failed") or {})["reason"] == "DeadlineExceeded"
    assert active(cluster) == []


def test_finished_job_goes_with_its_pods_after_its_time_to_live() -> None:
    cluster = LivingSandbox()
    cluster.create(JOBS, job(ttlSecondsAfterFinished=60))
    cluster.run(50)
    assert is_true(cluster.get(JOBS, "work"), "Complete")
    cluster.run(60)
    assert cluster.api.find(JOBS, "default", "work") is None
    assert cluster.pods() == []


def test_suspended_job_has_no_pods_until_it_is_resumed() -> None:
    cluster = LivingSandbox()
    cluster.create(JOBS, job(suspend=True))
    cluster.run(10)
    assert cluster.pods() == []
    assert is_true(cluster.get(JOBS, "work"), "Suspended")
    cluster.change(JOBS, "work", {"spec": {"suspend": False}})
    cluster.run(20)
    assert is_true(cluster.get(JOBS, "work"), "Complete")


def test_indexed_job_runs_every_index_once() -> None:
    cluster = LivingSandbox()
    cluster.create(JOBS, job(completions=4, parallelism=2, completionMode="Indexed"))
    cluster.run(60)
    work = cluster.get(JOBS, "work")
    assert (work["status"]["completedIndexes"], work["status"]["succeeded"]) == ("0-3", 4)
    assert sorted(pod["metadata"]["annotations"][INDEX] for pod in cluster.pods()) == ["0", "1", "2", "3"]


def test_pod_that_is_deleted_while_it_runs_is_replaced_and_let_go() -> None:
    cluster = LivingSandbox()
    cluster.create(JOBS, job(seconds=20))
    cluster.run(5)
    (first,) = cluster.pods()
    cluster.delete(PODS, first["metadata"]["name"])
    cluster.run(60)
    assert is_true(cluster.get(JOBS, "work"), "Complete")
    assert cluster.api.find(PODS, "default", first["metadata"]["name"]) is None


def test_deleted_job_takes_its_pods_along() -> None:
    cluster = LivingSandbox()
    cluster.create(JOBS, job(seconds=600, parallelism=3, completions=3))
    cluster.run(5)
    cluster.delete(JOBS, "work", propagation="Background")
    cluster.run(10)
    assert cluster.pods() == []


@given(st.sets(st.integers(0, 40)))
def test_indexes_read_what_they_print(indexes: set[int]) -> None:
    assert set(Indexes.read(str(Indexes(indexes)))) == indexes


def test_indexes_print_runs_of_three_as_a_range() -> None:
    assert str(Indexes({0, 1, 3, 4, 5, 9})) == "0,1,3-5,9"
