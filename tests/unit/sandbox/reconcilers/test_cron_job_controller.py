from __future__ import annotations

from typing import Any

from tests.living_sandbox import LivingSandbox

from kubesched.api.kinds import CRON_JOBS, JOBS, Object

HOUR = 3600.0


def cron_job(schedule: str = "*/10 * * * *", *, seconds: int = 60, exit_code: int = 0, **spec: Any) -> Object:
    annotations = {"kubesched.io/duration": f"{seconds}s", "kubesched.io/exit-code": str(exit_code)}
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    jobs = {"metadata": {"labels": {"of": "report"}}, "spec": {"backoffLimit": 0, "template": template}}
    return {"metadata": {"name": "report"}, "spec": {"schedule": schedule, "jobTemplate": jobs, **spec}}


def jobs(cluster: LivingSandbox) -> list[str]:
    return [job["metadata"]["name"] for job in cluster.api.select(JOBS, "default")]


def test_a_job_is_created_at_each_time_and_old_ones_go() -> None:
    cluster = LivingSandbox()
    cluster.create(CRON_JOBS, cron_job())
    assert jobs(cluster) == []
    cluster.run(HOUR + 300)
    assert len(jobs(cluster)) == 3
    assert cluster.reasons("report").count("SuccessfulCreate") == 6
    status = cluster.get(CRON_JOBS, "report")["status"]
    assert "active" not in status
    assert status["lastSuccessfulTime"] > status["lastScheduleTime"]
    job = cluster.api.select(JOBS, "default")[0]
    assert job["metadata"]["labels"]["of"] == "report"
    assert job["metadata"]["ownerReferences"][0]["name"] == "report"


def test_failed_jobs_have_a_history_of_their_own() -> None:
    cluster = LivingSandbox()
    cluster.create(CRON_JOBS, cron_job(exit_code=1, failedJobsHistoryLimit=2))
    cluster.run(HOUR + 300)
    assert len(jobs(cluster)) == 2


def test_with_forbid_a_time_passes_while_a_job_is_at_work() -> None:
    cluster = LivingSandbox()
    cluster.create(CRON_JOBS, cron_job(seconds=1500, concurrencyPolicy="Forbid", startingDeadlineSeconds=30))
    cluster.run(1250)
    assert len(jobs(cluster)) == 1
    assert "JobAlreadyActive" in cluster.reasons("report")
    assert len(cluster.get(CRON_JOBS, "report")["status"]["active"]) == 1


def test_with_replace_the_job_at_work_gives_way() -> None:
    cluster = LivingSandbox()
    cluster.create(CRON_JOBS, cron_job(seconds=1500, concurrencyPolicy="Replace"))
    cluster.run(650)
    first = jobs(cluster)
    cluster.run(600)
    assert len(jobs(cluster)) == 1
    assert jobs(cluster) != first


def test_what_was_missed_while_suspended_is_made_up_for_once() -> None:
    cluster = LivingSandbox()
    cluster.create(CRON_JOBS, cron_job(suspend=True))
    cluster.run(48 * HOUR)
    assert jobs(cluster) == []
    cluster.change(CRON_JOBS, "report", {"spec": {"suspend": False}})
    assert len(jobs(cluster)) == 1
    latest = int(cluster.now) // 600 * 10
    assert jobs(cluster) == [f"report-{latest}"]
