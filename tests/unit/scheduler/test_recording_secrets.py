"""A recording tells nobody what people keep in annotations, nor the keys of extenders, and replays all the same."""

from __future__ import annotations

import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.scheduler.memory_cluster import MemoryCluster, Running

from kubesched import config
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.well_known import SELECTED_NODE
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.recording import AnnotationMask, Recording, RecordingClient, open_recording
from kubesched.scheduler.replay import Replay
from kubesched.testing import make_node, make_pod

SECRET = "hunter2"
EXTENDER = {
    "urlPrefix": f"https://me:{SECRET}@extender.example/v1",
    "filterVerb": "filter",
    "enableHTTPS": True,
    "httpTimeout": "1s",
    "tlsConfig": {"certData": "Y2VydA==", "keyData": "aHVudGVyMg=="},
}


def annotated(obj: Any, **annotations: str) -> Any:
    return replace(obj, metadata=replace(obj.metadata, annotations=annotations))


def recorded(*, with_annotations: bool = False) -> str:
    """A pod that fits nowhere, until an annotation of its node changes together with the size of the node."""
    stream = io.StringIO()
    recording = Recording(stream, config.default(), lambda: 0.0, with_annotations=with_annotations)
    cluster = MemoryCluster()
    client = RecordingClient(cluster, recording)
    scheduler = build_scheduler(
        SchedulerSettings(clock=lambda: 0.0, draw=lambda among: 0),
        config.default(),
        client,
        in_tree(),
        listeners=[recording],
    )
    pod: Pod = annotated(make_pod("p").requests(cpu="3").build(), password=SECRET)
    node: Node = annotated(make_node("n").capacity(cpu="1").build(), token=SECRET)
    cluster.put(node)
    cluster.put(pod)
    for each in (node, annotated(make_node("n").capacity(cpu="4").build(), token=SECRET + "3")):
        cluster.put(each)
        cluster.tell(scheduler)
        while attempt := scheduler.pop():
            scheduler.decide(attempt)
            Running(scheduler.finish(attempt)).to_the_end()
    assert cluster.bindings
    return stream.getvalue()


def test_values_of_annotations_are_not_in_a_recording_and_it_replays_the_same() -> None:
    text = recorded()
    assert SECRET not in text
    assert '"password"' in text
    replay = Replay(text.splitlines(), in_tree())
    assert replay.run() == []
    assert replay.decisions == 2


def test_they_are_recorded_if_that_is_asked_for() -> None:
    assert recorded(with_annotations=True).count(SECRET) > 2


def test_masks_show_which_values_are_the_same_but_only_within_one_recording() -> None:
    def value(mask: AnnotationMask, text: str) -> str:
        masked: str = mask({"metadata": {"annotations": {"a": text}}})["metadata"]["annotations"]["a"]
        return masked

    one, other = AnnotationMask(), AnnotationMask()
    assert value(one, "x") == value(one, "x") != value(one, "y")
    assert value(one, "x") != value(other, "x")


def test_what_decisions_depend_on_stays_as_it_is() -> None:
    obj = {"metadata": {"annotations": {SELECTED_NODE: "n1"}}}
    assert AnnotationMask()(obj) == obj


def test_keys_and_passwords_of_extenders_are_masked() -> None:
    stream = io.StringIO()
    configuration = config.from_plain(
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "extenders": [EXTENDER]}
    )
    Recording(stream, configuration, lambda: 0.0)
    [extender] = json.loads(stream.getvalue())["config"]["extenders"]
    assert extender["urlPrefix"] == "https://masked@extender.example/v1"
    assert extender["tlsConfig"] == {"certData": "Y2VydA==", "keyData": "bWFza2Vk"}


@pytest.mark.parametrize("before", [None, 0o644])
def test_only_the_owner_may_read_a_recording(tmp_path: Path, before: int | None) -> None:
    file = tmp_path / "today.jsonl"
    if before is not None:
        file.touch(before)
    with open_recording(str(file), lambda kept: None):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
