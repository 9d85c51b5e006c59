"""The last line of `simulate`, `compare` and `capacity`: what no policy could exceed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched import config as configuration
from kubesched.cli.main import main
from kubesched.planning.ceiling import Ceiling, ceilings_of, highest, most_copies
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.placement import capacity
from kubesched.simulate.simulation import Simulation
from kubesched.testing import make_node, make_pod

pytest.importorskip("highspy", reason="plans need HiGHS")

NODE = "---\n{apiVersion: v1, kind: Node, metadata: {name: n%d}, status: {capacity: {cpu: 4, memory: 8Gi, pods: 9}}}\n"
POD = (
    "---\n{apiVersion: v1, kind: Pod, metadata: {name: p%d}, spec: {containers: [{resources: {requests: {cpu: 3}}}]}}\n"
)


def ran(*arguments: str, stdin: str) -> str:
    result = CliRunner().invoke(main, arguments, input=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_simulate_says_what_no_policy_could_exceed() -> None:
    text = ran("simulate", "-f", "-", stdin=NODE % 0 + NODE % 1 + "".join(POD % i for i in range(3)))
    assert "75.0% of cpu in use; no policy could exceed 75.0%\n" in text


def test_compare_says_it_once_for_all_policies(tmp_path: Path) -> None:
    files: list[str] = []
    for name in ("one", "other"):
        config = tmp_path / f"{name}.yaml"
        config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
        files += ["--config", str(config)]
    text = ran("compare", "-f", "-", *files, stdin=NODE % 0 + NODE % 1 + POD % 0)
    assert text.count("37.5% of cpu in use; no policy could exceed 37.5%\n") == 1


def test_capacity_says_how_many_there_is_room_for(tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(POD % 0)
    text = ran("capacity", "-f", "-", "--pod", str(pod), stdin=NODE % 0 + NODE % 1)
    assert "No policy could place more than 2 of them beside what runs.\n" in text


def test_without_a_solver_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    assert "no policy" not in ran("simulate", "-f", "-", stdin=NODE % 0 + POD % 0)


def test_extended_resources_count_rather_than_cpu() -> None:
    node = make_node("n").capacity({"cpu": 8, "x.io/gpu": 4}).build()
    pod = make_pod("p").requests({"cpu": 8, "x.io/gpu": 3}).build()
    (ceiling,) = ceilings_of([node, pod], configuration.default())
    assert ceiling.resource == "x.io/gpu"
    assert ceiling.share == pytest.approx(0.75)


def test_pod_that_runs_where_it_could_not_go_counts_all_the_same() -> None:
    node = make_node("n").capacity(cpu=8).taint("away").build()
    runs = make_pod("runs").requests(cpu=2).on("n").build()
    assert ceilings_of([node, runs], configuration.default())[0].share == pytest.approx(0.25)


def test_pods_that_run_already_could_have_been_evicted() -> None:
    node = make_node("n").capacity(cpu=8).build()
    runs = make_pod("runs").requests(cpu=5).on("n").build()
    waits = make_pod("waits").requests(cpu=8).priority(9).build()
    assert ceilings_of([node, runs, waits], configuration.default())[0].share == pytest.approx(1.0)


def test_highest_of_several_configurations_counts() -> None:
    assert highest([[Ceiling("cpu", 0.5)], [Ceiling("cpu", 0.75)]]) == [Ceiling("cpu", 0.75)]


def test_bound_that_was_exceeded_is_not_told() -> None:
    assert Ceiling("cpu", 0.5).beside(0.6) == ""


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(2, 8), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 2)), min_size=1, max_size=9),
)
def test_no_simulation_exceeds_it(nodes: list[int], pods: list[tuple[int, int]]) -> None:
    made = [make_node(f"n{i}").capacity(cpu=cpu).build() for i, cpu in enumerate(nodes)]
    waiting = [make_pod(f"p{i}").requests(cpu=cpu).priority(level).build() for i, (cpu, level) in enumerate(pods)]
    report = Simulation([*made, *waiting], configuration.default(), seed=1).run()
    (ceiling,) = ceilings_of([*made, *waiting], configuration.default())
    assert report.total.resources["cpu"].peak <= ceiling.share + 1e-4


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 4)), min_size=1, max_size=4), st.integers(1, 4))
def test_no_more_copies_are_placed_than_there_is_room_for(nodes: list[tuple[int, int]], size: int) -> None:
    made = [make_node(f"n{i}").capacity(cpu=cpu, pods=6).build() for i, (cpu, _) in enumerate(nodes)]
    running = [make_pod(f"r{i}").requests(cpu=used).on(f"n{i}").build() for i, (_, used) in enumerate(nodes) if used]
    cluster = ClusterModel([*made, *running], configuration.default())
    pod = make_pod("copy").requests(cpu=size).build()
    most = most_copies(cluster, pod)
    assert most == capacity(cluster, pod, most=100).fit
