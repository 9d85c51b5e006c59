from __future__ import annotations

from pathlib import Path

import pytest
from bench.peer.cases import CaseError, Workload, choose, read_workloads, settable_gates
from bench.peer.operations import Barrier, CreateNodes, CreatePods, CreatePodSets

OWN = Path(__file__).parents[3] / "bench/peer/workloads"

CONFIG = """
- name: Busy
  featureGates: {SchedulerQueueingHints: true}
  defaultPodTemplatePath: pod.yaml
  schedulerConfigPath: scheduler.yaml
  workloadTemplate:
  - {opcode: createNodes, countParam: $nodes, labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}}
  - opcode: createPodSets
    countParam: $namespaces
    namespacePrefix: busy
    createPodsOp: {opcode: createPods, countParam: $measurePods, skipWaitToCompletion: true}
  - {opcode: barrier, stageRequirement: Attempted}
  workloads:
  - {name: small, labels: [short], params: {nodes: 2, namespaces: 1, measurePods: 10, maxClaimsPerNode: 4}}
  - {name: large, params: {nodes: 200, namespaces: 3, measurePods: 1000, maxClaimsPerNode: 4}}
  - {name: no-longer-possible, featureGates: {SchedulerQueueingHints: false}, params: {nodes: 9999}}
  - {name: gated, featureGates: {SomeGate: false}, params: {nodes: 1, namespaces: 0, measurePods: 1}}
"""


@pytest.fixture
def workloads(tmp_path: Path) -> list[Workload]:
    folder = tmp_path / "test/integration/scheduler_perf/misc"
    folder.mkdir(parents=True)
    (folder / "performance-config.yaml").write_text(CONFIG)
    return read_workloads(tmp_path)


def test_workloads_are_found_in_a_source_tree(workloads: list[Workload]) -> None:
    assert [each.full_name for each in workloads] == [
        "Busy/small",
        "Busy/large",
        "Busy/no-longer-possible",
        "Busy/gated",
    ]
    assert workloads[0].scheduler_config == workloads[0].folder / "scheduler.yaml"


def test_parameters_fill_in_counts_of_operations_and_of_what_is_inside(workloads: list[Workload]) -> None:
    nodes, sets, barrier = workloads[1].operations()
    assert isinstance(nodes, CreateNodes)
    assert nodes.count == 200
    assert nodes.label_node_prepare_strategy is not None
    assert isinstance(sets, CreatePodSets)
    assert sets.count == 3
    assert sets.create_pods_op == CreatePods(count=1000, skip_wait_to_completion=True)
    assert barrier == Barrier(stage_requirement="Attempted")


def test_parameter_that_a_workload_does_not_have_is_named(workloads: list[Workload]) -> None:
    with pytest.raises(CaseError, match="createPodSets: the workload has no parameter 'namespaces'"):
        workloads[2].operations()


def test_operation_that_is_not_known_is_a_mistake_with_its_place(workloads: list[Workload]) -> None:
    unknown = [{"opcode": "createNodes", "count": 1, "speed": 3}]
    strange = Workload(Path("misc"), "Strange", "one", unknown, {}, {})
    with pytest.raises(CaseError, match=r"misc/performance-config\.yaml: Strange/one: .*`speed`"):
        strange.operations()


def test_a_case_alone_is_its_largest_workload_that_binaries_allow(workloads: list[Workload]) -> None:
    assert [each.full_name for each in choose(workloads, "Busy")] == ["Busy/large"]


def test_wildcards_choose_several(workloads: list[Workload]) -> None:
    assert [each.name for each in choose(workloads, "B*/*a*")] == ["small", "large", "gated"]


def test_a_name_that_nothing_has_is_a_mistake(workloads: list[Workload]) -> None:
    with pytest.raises(CaseError, match="no workload is called Busy/huge; --list names them all"):
        choose(workloads, "Busy/huge")


def test_a_folder_without_such_files_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="name a Kubernetes source tree"):
        read_workloads(tmp_path)


def test_gates_that_are_locked_are_not_passed_on(workloads: list[Workload]) -> None:
    assert settable_gates(workloads[0]) == {}
    assert settable_gates(workloads[3]) == {"SomeGate": False}


def test_scaling_changes_sizes_but_not_what_a_node_holds(workloads: list[Workload]) -> None:
    tenth = workloads[1].scaled(0.1)
    assert tenth.parameters == {"nodes": 20, "namespaces": 1, "measurePods": 100, "maxClaimsPerNode": 4}
    assert workloads[3].scaled(0.1).parameters == {"nodes": 1, "namespaces": 0, "measurePods": 1}


def test_a_size_that_a_workload_does_not_have_is_a_mistake(workloads: list[Workload]) -> None:
    assert workloads[0].with_parameters({"nodes": 7}).parameters["nodes"] == 7
    with pytest.raises(CaseError, match=r"Busy/small has no parameter pods; it has nodes, namespaces"):
        workloads[0].with_parameters({"pods": 7})


def test_our_own_workloads_can_be_read_and_have_their_templates() -> None:
    for workload in read_workloads(OWN):
        for operation in workload.operations():
            for field in ("node_template_path", "pod_template_path"):
                assert (workload.folder / getattr(operation, field, "")).exists()
