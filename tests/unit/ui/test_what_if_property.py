"""The page, the service and the command give one answer to one question, on any cluster."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.serve.asking import Service, served

from kubesched import config
from kubesched.ask.output import plain
from kubesched.ask.what_if.what_if import PageWhatIfQuestion
from kubesched.cli.main import main as command
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.manifests import load
from kubesched.ui.sources import observe_manifests
from kubesched.ui.views import PageViews

Json = dict[str, Any]

NODES = [f"node-{i}" for i in range(4)]
CPUS = st.sampled_from(["500m", "1", "2"])
TARGETS = st.lists(st.sampled_from([*NODES[:2], "zone=a", "zone=b"]), max_size=2, unique=True)


def node(name: str, zone: str) -> Json:
    labels = {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name}
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"capacity": capacity}}


def spec(cpu: str, **more: Any) -> Json:
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}], **more}


@st.composite
def clusters(draw: st.DrawFn) -> list[Json]:
    """Nodes in two zones, pods that run or wait, and workloads whose pods are yet to be made."""
    objects = [node(name, "ab"[i % 2]) for i, name in enumerate(NODES)]
    for i in range(draw(st.integers(0, 5))):
        on = draw(st.sampled_from(["", *NODES]))
        pod = spec(draw(CPUS), **({"nodeName": on} if on else {}))
        objects.append({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{i}"}, "spec": pod})
    for kind in draw(st.lists(st.sampled_from(["Deployment", "StatefulSet"]), max_size=2, unique=True)):
        labels = {"app": kind.lower()}
        template = {"metadata": {"labels": labels}, "spec": spec(draw(CPUS))}
        workload = {"replicas": draw(st.integers(0, 4)), "selector": {"matchLabels": labels}, "template": template}
        objects.append({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": kind.lower()}, "spec": workload})
    if draw(st.booleans()):
        job = {"completions": 4, "parallelism": 2, "template": {"spec": spec("1", restartPolicy="Never")}}
        objects.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": job})
    return objects


@st.composite
def questions(draw: st.DrawFn) -> Json:
    question: Json = {"drain": draw(TARGETS), "lose": draw(TARGETS), "anew": draw(st.booleans())}
    if draw(st.booleans()) or not (question["drain"] or question["lose"]):
        question["add"] = [{"like": "node-3", "count": draw(st.integers(1, 2))}]
    return question


def of_command(file: str, question: Json) -> Json:
    options = [f"--{name}={text}" for name in ("drain", "lose") for text in question[name]]
    options += [f"--add={each['count']}:like={each['like']}" for each in question.get("add", ())]
    options += ["--anew"] if question["anew"] else []
    result = CliRunner().invoke(command, ["what-if", "-f", file, "-o", "json", "--release=1.36", *options])
    if result.exit_code:
        return {"errors": [line.split(": ", 1)[1] for line in result.output.splitlines()]}
    found: Json = json.loads(result.output)
    for name in ("apiVersion", "kind", "skipped"):
        del found[name]
    return found


async def of_page(cluster: ClusterModel, question: Json) -> Json:
    service = PageViews(observe_manifests(cluster, "cluster")).service
    assert service is not None
    outcome, _ = await service.what_if(msgspec.convert(question, PageWhatIfQuestion))
    found: Json = plain(outcome.difference)
    return found


async def of_service(cluster: ClusterModel, question: Json) -> Json:
    async with served(cluster) as service:
        assert isinstance(service, Service)
        found = await service.post("what-if", question)
    for name in ("apiVersion", "kind", "skipped", "cluster"):
        del found[name]
    return found


@given(clusters(), questions())
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_page_service_and_command_give_one_answer(objects: list[Json], question: Json) -> None:
    with TemporaryDirectory() as directory:
        file = Path(directory) / "cluster.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        expected = of_command(str(file), question)
        read = load([str(file)], workloads=True).objects
    if "errors" in expected:  # such as a node that is lost and drained
        assert all("node" in line for line in expected["errors"])
        return
    shown = ClusterModel.with_missing_pods(read, config.default())
    assert asyncio.run(of_page(shown, question)) == expected
    held = ClusterModel(read, config.default(), draw=lambda among: 0)
    assert asyncio.run(of_service(held, question)) == expected
