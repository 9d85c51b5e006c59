from __future__ import annotations

import pytest

from kubesched import config
from kubesched.simulate.manifests import loads
from kubesched.simulate.report import PodStory, SimulationReport
from kubesched.simulate.simulation import Simulation

VIP = "---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: vip}, value: 100}\n"


def node(name: str, cpu: int = 4, zone: str = "a") -> str:
    labels = f"{{topology.kubernetes.io/zone: {zone}}}"
    status = f"{{capacity: {{cpu: {cpu}, memory: 8Gi, pods: 110}}}}"
    return f"---\n{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {labels}}}, status: {status}}}\n"


def pod(name: str, cpu: int = 1, *, arrival: str = "", duration: str = "", more: str = "") -> str:
    notes = {"kubesched.io/arrival": arrival, "kubesched.io/duration": duration}
    annotations = ", ".join(f"{key}: {value}" for key, value in notes.items() if value)
    containers = f"containers: [{{resources: {{requests: {{cpu: {cpu}}}}}}}]"
    meta = f"{{name: {name}, annotations: {{{annotations}}}}}"
    return f"---\n{{apiVersion: v1, kind: Pod, metadata: {meta}, spec: {{{containers}{more and ', ' + more}}}}}\n"


def simulated(*manifests: str, seed: int = 0) -> SimulationReport:
    return Simulation(loads("".join(manifests), workloads=True).objects, config.default(), seed=seed).run()


def story(report: SimulationReport, name: str) -> PodStory:
    return next(story for story in report.pods if story.pod == f"default/{name}")


def test_pods_are_placed_until_nothing_is_left_and_the_rest_says_why_it_waits() -> None:
    report = simulated(node("n1"), *(pod(f"p{i}") for i in range(6)))
    assert (len(report.placed), len(report.pending)) == (4, 2)
    assert report.pending[0].message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert report.total.cpu.end == 1.0


def test_pod_arrives_when_its_annotation_says() -> None:
    found = story(simulated(node("n1"), pod("late", arrival="90s")), "late")
    assert (found.arrived, found.placed) == (90.0, 90.0)


def test_pod_that_finishes_makes_room_for_the_one_that_waits() -> None:
    report = simulated(node("n1"), pod("first", 4, duration="5m"), pod("second", 3, arrival="1s"))
    assert story(report, "first").finished == 300.0
    assert story(report, "second").placed == 300.0
    assert story(report, "second").waited == 299.0
    assert report.ended == 300.0


def test_utilisation_is_averaged_over_the_time_until_the_last_event() -> None:
    report = simulated(node("n1"), pod("half", 2, duration="1m"), pod("late", 1, arrival="2m"))
    assert report.total.cpu.mean == pytest.approx(0.25)
    assert report.total.cpu.peak == 0.5
    assert report.total.cpu.end == 0.25


def test_pod_that_fits_nowhere_does_not_keep_the_simulation_alive() -> None:
    report = simulated(node("n1"), pod("huge", 9), pod("small", arrival="10m"))
    assert report.ended == 600.0
    assert story(report, "huge").is_pending


def test_pod_of_higher_priority_evicts_a_lesser_one() -> None:
    vip = pod("vip", 4, arrival="1m", more="priorityClassName: vip")
    report = simulated(VIP, node("n1"), pod("lesser", 4), vip)
    (preempted,) = report.preemptions
    assert (preempted.preemptor, preempted.victims, preempted.time) == ("default/vip", ("default/lesser",), 60.0)
    assert story(report, "lesser").evicted == 60.0
    assert story(report, "vip").node == "n1"


def test_evicted_pod_of_a_replica_set_is_made_anew_and_waits() -> None:
    owner = (
        "---\n{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web}, spec: {template: {spec:"
        " {containers: [{resources: {requests: {cpu: 4}}}]}}}}\n"
    )
    report = simulated(VIP, node("n1"), owner, pod("vip", 4, arrival="1m", more="priorityClassName: vip"))
    assert story(report, "web-0").evicted == 60.0
    assert story(report, "web-0-r1").is_pending


def test_job_runs_a_few_pods_at_a_time_until_all_are_done() -> None:
    job = (
        "---\n{apiVersion: batch/v1, kind: Job, metadata: {name: sums}, spec: {parallelism: 2, completions: 5,"
        " template: {metadata: {annotations: {kubesched.io/duration: 1m}}, spec: {containers: [{}]}}}}\n"
    )
    report = simulated(node("n1"), job)
    assert [found.finished for found in report.pods] == [60.0, 60.0, 120.0, 120.0, 180.0]
    assert report.not_created == 0


def test_stateful_set_waits_for_the_pod_before() -> None:
    stateful = (
        "---\n{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 3, template: {spec:"
        " {containers: [{resources: {requests: {cpu: 3}}}]}}}}\n"
    )
    report = simulated(node("n1"), stateful)
    assert [found.pod for found in report.pods] == ["default/db-0", "default/db-1"]
    assert report.not_created == 1


def test_claims_of_a_stateful_set_get_volumes() -> None:
    storage = (
        "---\n{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: disk.example,"
        " volumeBindingMode: WaitForFirstConsumer}\n"
    )
    claim = "{metadata: {name: data}, spec: {storageClassName: fast, accessModes: [ReadWriteOnce]}}"
    stateful = (
        "---\n{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 2, volumeClaimTemplates:"
        f" [{claim}], template: {{spec: {{containers: [{{}}]}}}}}}}}\n"
    )
    assert len(simulated(node("n1"), storage, stateful).placed) == 2


def test_pods_with_an_ephemeral_volume_get_a_claim_of_their_own() -> None:
    storage = (
        "---\n{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: disk.example}\n"
    )
    volume = "volumes: [{name: tmp, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast}}}}]"
    assert len(simulated(node("n1"), storage, pod("p", more=volume, duration="1m")).placed) == 1


def test_claim_that_need_not_wait_gets_the_volume_that_is_there() -> None:
    spec = "{storageClassName: '', accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
    claim = f"---\n{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: data}}, spec: {spec}}}\n"
    on_n2 = "{required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n2]}]}]}}"
    offered = f"{{capacity: {{storage: 2Gi}}, accessModes: [ReadWriteOnce], nodeAffinity: {on_n2}}}"
    volume = f"---\n{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: v}}, spec: {offered}}}\n"
    using = pod("p", more="volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]")
    assert story(simulated(node("n1"), node("n2"), claim, volume, using), "p").node == "n2"


def test_claim_whose_first_pod_is_gone_binds_the_next_pod_to_no_node() -> None:
    binding = "provisioner: disk.example, volumeBindingMode: WaitForFirstConsumer"
    fast = f"---\n{{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {{name: fast}}, {binding}}}\n"
    spec = "{storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
    claim = f"---\n{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: data}}, spec: {spec}}}\n"
    using = "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"
    first, second = pod("first", 4, duration="1m", more=using), pod("second", 6, arrival="2m", more=using)
    report = simulated(node("n1"), node("n2", 8), fast, claim, pod("big", 8, duration="1m"), first, second)
    assert (story(report, "first").node, story(report, "second").node) == ("n1", "n2")


def test_volume_that_is_made_for_a_claim_stays_in_the_zone_of_its_first_pod() -> None:
    binding = "provisioner: disk.example, volumeBindingMode: WaitForFirstConsumer"
    fast = f"---\n{{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {{name: fast}}, {binding}}}\n"
    spec = "{storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
    claim = f"---\n{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: data}}, spec: {spec}}}\n"
    driver = "{name: disk.example, nodeID: n1, topologyKeys: [topology.kubernetes.io/zone]}"
    drivers = f"{{drivers: [{driver}]}}"
    csi = f"---\n{{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {{name: n1}}, spec: {drivers}}}\n"
    using = "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"
    first = pod("first", 4, duration="1m", more=using)
    second = pod("second", 6, arrival="2m", more=using)
    report = simulated(node("n1"), node("n2", 8, "b"), fast, claim, csi, pod("big", 8, duration="1m"), first, second)
    assert story(report, "first").node == "n1"
    assert "1 node(s) didn't match PersistentVolume's node affinity" in story(report, "second").message


def test_gated_pods_and_those_of_other_schedulers_say_what_they_wait_for() -> None:
    gated = pod("gated", more="schedulingGates: [{name: books}]")
    report = simulated(node("n1"), gated, pod("other", more="schedulerName: volcano"))
    assert story(report, "gated").message == "waiting for scheduling gates: [books]"
    assert "there is no profile 'volcano'" in story(report, "other").message


def test_the_same_seed_gives_the_same_report() -> None:
    cluster = [*(node(f"n{i}") for i in range(8)), *(pod(f"p{i}") for i in range(8))]
    assert simulated(*cluster, seed=3) == simulated(*cluster, seed=3)
    assert len({tuple(s.node for s in simulated(*cluster, seed=seed).pods) for seed in range(4)}) > 1


def test_cluster_without_nodes_places_nothing() -> None:
    report = simulated(pod("p"))
    assert report.pending[0].message == "no nodes available to schedule pods"
