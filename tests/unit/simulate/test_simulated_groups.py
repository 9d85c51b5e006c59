"""Pod groups in a simulation: the same scheduler, in virtual time."""

from __future__ import annotations

import io

from msgspec.structs import replace
from tests.unit.scheduler.group_world import ALL_GATES, ALPHA, make_gang, members

from kubesched import config
from kubesched.api.pod_groups import PodGroup
from kubesched.api.pod_groups import Workload as GroupWorkload
from kubesched.api.release import V1_37
from kubesched.config.features import POD_GROUP_GATES, Features
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.replay import Replay
from kubesched.simulate.kinds import Job, JobGang, JobScheduling, JobSchedulingPolicy
from kubesched.simulate.manifests import loads
from kubesched.simulate.simulation import Simulation
from kubesched.simulate.workloads import expand
from kubesched.testing import make_node


def test_gang_that_does_not_fit_waits_as_a_whole_beside_one_that_does() -> None:
    objects = [
        *[make_node(f"n{i}").capacity(cpu="1").build() for i in range(3)],
        make_gang("fits", 2, api=ALPHA),
        make_gang("large", 3, api=ALPHA),
        *[pod.build() for pod in (*members("fits", 2), *members("large", 3))],
    ]
    report = Simulation(objects, config.default(ALL_GATES)).run()
    placed = {story.pod.partition("/")[2] for story in report.pods if story.node}
    assert placed in ({"fits-0", "fits-1"}, {"large-0", "large-1", "large-2"})
    waiting = [story.message for story in report.pods if not story.node]
    assert all(waiting)


WITH_JOBS = Features.of(dict.fromkeys(POD_GROUP_GATES, True))
NODES = "".join(
    f"""
apiVersion: v1
kind: Node
metadata: {{name: n{i}}}
status: {{allocatable: {{cpu: "2", memory: 8Gi, pods: "9"}}}}
---"""
    for i in range(2)
)
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  completionMode: Indexed
  parallelism: %d
  completions: %d
  template:
    metadata: {annotations: {kubesched.io/duration: 60s}}
    spec:
      containers:
      - {name: main, image: train, resources: {requests: {cpu: "1"}}}
---"""


def test_jobs_that_need_all_of_their_pods_run_one_after_the_other() -> None:
    objects = loads(NODES + JOB % ("one", 3, 3) + JOB % ("two", 3, 3), workloads=True).objects
    report = Simulation(objects, config.default(WITH_JOBS)).run()
    began = {name: {story.placed for story in report.pods if f"/{name}-" in story.pod} for name in ("one", "two")}
    assert [len(times) for times in began.values()] == [1, 1]
    [[first], [second]] = sorted(map(list, began.values()))
    assert first is not None
    assert second is not None
    assert second >= first + 60


def test_job_that_no_cluster_of_this_size_holds_places_no_pod_and_says_why() -> None:
    objects = loads(NODES + JOB % ("large", 5, 5), workloads=True).objects
    report = Simulation(objects, config.default(WITH_JOBS)).run()
    assert {story.node for story in report.pods} == {""}
    assert all(story.message for story in report.pods)
    assert any("pod group is unschedulable" in story.message for story in report.pods)
    alone = Simulation(objects, config.default()).run()
    assert sum(bool(story.node) for story in alone.pods) == 5  # without the gate one after the other, as there is room


def test_group_of_a_job_that_is_there_already_is_used() -> None:
    objects = loads(NODES + JOB % ("one", 3, 3), workloads=True).objects
    first = expand(objects, job_groups=True)
    made = [obj for obj in first.objects if isinstance(obj, PodGroup | GroupWorkload)]
    again = expand([*objects, *made], job_groups=True)
    assert [obj for obj in again.objects if isinstance(obj, PodGroup | GroupWorkload)] == made
    names = {pod.spec.scheduling_group for series in again.series for pod in series.pods}
    assert {name.pod_group_name for name in names if name is not None} == {made[1].name}


def test_recorded_groups_are_decided_again_in_the_same_way() -> None:
    objects = loads(NODES + JOB % ("one", 3, 3) + JOB % ("two", 3, 3), workloads=True).objects
    recording = io.StringIO()
    Simulation(objects, config.default(WITH_JOBS), record=recording).run()
    text = recording.getvalue()
    assert "one-pgt-0" in text
    replay = Replay(text.splitlines(), in_tree())
    assert list(replay.run()) == []


def test_group_of_a_job_is_a_gang_in_v1_37_if_the_job_says_so() -> None:
    [job] = [obj for obj in loads(JOB % ("one", 3, 3), workloads=True).objects if isinstance(obj, Job)]
    said = JobScheduling(scheduling_policy=JobSchedulingPolicy(gang=JobGang(min_count=2)))
    gang = replace(job, spec=replace(job.spec, scheduling=said))
    for given, least in ((job, None), (gang, 2)):
        objects = expand([given], job_groups=True, release=V1_37).objects
        [policy] = [obj.spec.scheduling_policy for obj in objects if isinstance(obj, PodGroup)]
        assert (policy.gang and policy.gang.min_count) == least
