"""Objects whole for extenders: which are kept, for how long, and that it is them who arrive."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.builders import Json
from tests.unit.extenders.extender_server import ExtenderServer, asked, decide_attempt, filtering, passing, settings
from tests.unit.scheduler.memory_cluster import MemoryCluster
from tests.unit.scheduler.world import pop_pod

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.extenders.http_extender import extenders_of
from kubesched.framework.decision import Decision, Outcome
from kubesched.kube.originals import Originals, originals_for
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.testing import PodBuilder, make_node, make_pod

WAITING, PLACED, NODE = make_pod("p").build(), make_pod("q").on("a").build(), make_node("a").build()
FOREIGN = make_pod("f").spec(scheduler_name="somebody-else").build()


def versioned(obj: Any, version: int) -> Any:
    return replace(obj, metadata=replace(obj.metadata, uid=f"uid-of-{obj.name}", resource_version=str(version)))


def original(record: KubeObject, **more: Any) -> bytes:
    """What the API server sends: what the record has, and more."""
    return msgspec.json.encode({**msgspec.to_builtins(record), "more": more})


# -- which are wanted -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extender", "wanted"),
    [
        ({"filterVerb": "f", "nodeCacheCapable": True}, [WAITING]),
        ({"filterVerb": "f"}, [WAITING, NODE]),
        ({"prioritizeVerb": "p", "weight": 1}, [WAITING, NODE]),
        ({"preemptVerb": "p", "nodeCacheCapable": True}, [WAITING]),
        ({"preemptVerb": "p"}, [WAITING, PLACED]),
        ({"filterVerb": "f", "managedResources": [{"name": "example.com/gpu"}]}, [NODE]),
    ],
)
def test_only_what_an_extender_may_see_is_wanted(extender: Json, wanted: list[KubeObject]) -> None:
    originals = originals_for(settings({"urlPrefix": "http://extender.test", **extender}))
    assert originals is not None
    assert [obj for obj in (WAITING, PLACED, NODE, FOREIGN) if originals.wants(obj)] == wanted
    assert originals.wants_any(Pod)
    assert originals.wants_any(Node) == (NODE in wanted)


def test_pod_that_mentions_what_an_extender_manages_is_wanted() -> None:
    managed = [{"name": "example.com/gpu"}]
    originals = originals_for(
        settings({"urlPrefix": "http://extender.test", "filterVerb": "f", "managedResources": managed})
    )
    assert originals is not None
    assert originals.wants(make_pod("p").requests({"example.com/gpu": 1}).build())


@pytest.mark.parametrize("extenders", [[], [{"urlPrefix": "http://extender.test", "bindVerb": "bind"}]])
def test_without_extenders_that_see_objects_there_is_nothing_to_keep(extenders: list[Json]) -> None:
    assert originals_for(settings(*extenders)) is None


# -- for how long -----------------------------------------------------------------------------------------------------


def keeping() -> Originals:
    return Originals(settings({"urlPrefix": "http://extender.test", "filterVerb": "f", "preemptVerb": "p"}))


def test_original_is_that_of_the_very_version() -> None:
    originals, old, new = keeping(), versioned(WAITING, 1), versioned(WAITING, 2)
    originals.keep(old, b"1")
    assert bytes(originals.of(old) or b"") == b"1"
    assert originals.of(new) is None
    originals.keep(new, b"2")
    originals.forget(old, new)
    assert (originals.of(old), bytes(originals.of(new) or b"")) == (None, b"2")


def test_pod_that_is_assumed_to_be_on_a_node_has_no_original() -> None:
    originals, pod = keeping(), versioned(WAITING, 1)
    originals.keep(pod, b"1")
    assert originals.of(PodBuilder(pod).on("a").build()) is None


def test_version_that_is_told_again_is_not_forgotten() -> None:
    originals, node = keeping(), versioned(NODE, 1)
    originals.keep(node, b"1")
    originals.forget(node, node)
    assert originals.of(node) is not None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=30))
def test_there_are_never_more_originals_than_objects(happenings: list[tuple[str, bool]]) -> None:
    originals = keeping()
    known: dict[str, Node] = {}
    for version, (name, goes) in enumerate(happenings, start=1):
        old = known.pop(name, None)
        if goes:
            if old is not None:
                originals.forget(old)
            continue
        known[name] = new = versioned(make_node(name).build(), version)
        originals.keep(new, b"{}")
        if old is not None:
            originals.forget(old, new)
    assert len(originals) == len(known)
    assert all(originals.of(node) is not None for node in known.values())


# -- that they arrive -------------------------------------------------------------------------------------------------


class Watching:
    """A scheduler that handles records, and has their originals."""

    def __init__(self, *extenders: Json) -> None:
        config = settings(*extenders)
        self.originals = Originals(config)
        self._extenders = extenders_of(config, self.originals)
        self.scheduler = build_scheduler(
            SchedulerSettings(clock=lambda: 0.0, draw=lambda among: 0),
            config,
            MemoryCluster(),
            in_tree(),
            extenders=self._extenders,
        )
        self._version = 0

    def add(self, obj: Any) -> Any:
        self._version += 1
        record = versioned(obj, self._version)
        self._keep(record)
        self.scheduler.handle(Change(new=record))
        return record

    def update(self, old: Any, new: Any) -> None:
        self._version += 1
        record = versioned(new, self._version)
        self._keep(record)
        self.scheduler.handle(Change(old, record))
        self.originals.forget(old, record)

    def _keep(self, record: KubeObject) -> None:
        if self.originals.wants(record):
            self.originals.keep(record, original(record, version=self._version))

    def decide(self) -> Decision:
        attempt = pop_pod(self.scheduler)
        assert attempt is not None
        asked(lambda: decide_attempt(self.scheduler, attempt), self._extenders)
        assert attempt.decision is not None
        return attempt.decision


def test_pod_and_nodes_arrive_whole(server: ExtenderServer) -> None:
    server.answers["filter"] = lambda question: {"Nodes": {"items": question["Nodes"]["items"][1:]}}
    watching = Watching(filtering(server, nodeCacheCapable=False))
    for obj in (make_node("a").build(), make_node("b").build(), WAITING):
        watching.add(obj)
    assert watching.decide().node == "b"
    question = server.asked[0][1]
    assert [node["more"] for node in question["Nodes"]["items"]] == [{"version": 1}, {"version": 2}]
    assert (question["Pod"]["metadata"]["name"], question["Pod"]["more"]) == ("p", {"version": 3})


def test_latest_version_of_a_node_arrives(server: ExtenderServer) -> None:
    server.answers["filter"] = lambda question: {"Nodes": question["Nodes"]}
    watching = Watching(filtering(server, nodeCacheCapable=False))
    node = watching.add(NODE)
    watching.add(WAITING)
    watching.update(node, make_node("a").label(colour="red").build())
    watching.decide()
    [sent] = server.asked[0][1]["Nodes"]["items"]
    assert (sent["metadata"]["labels"]["colour"], sent["more"]) == ("red", {"version": 3})


def test_object_without_an_original_arrives_as_it_is_known(server: ExtenderServer) -> None:
    server.answers["filter"] = passing("a")
    watching = Watching(filtering(server))
    watching.add(NODE)
    pod = watching.add(WAITING)
    watching.originals.forget(pod)
    assert watching.decide().node == "a"
    sent = server.asked[0][1]["Pod"]
    assert "more" not in sent
    assert (sent["kind"], sent["metadata"]["resourceVersion"]) == ("Pod", "2")


def test_victims_arrive_whole(server: ExtenderServer) -> None:
    server.answers["preempt"] = lambda question: {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "uid-of-full"}]}}}
    watching = Watching({"urlPrefix": server.url, "preemptVerb": "preempt"})
    watching.add(make_node("a").build())
    watching.add(make_pod("full").requests(cpu="4").on("a").build())
    watching.add(make_pod("p").requests(cpu="4").priority(10).build())
    assert watching.decide().outcome is Outcome.UNSCHEDULABLE
    [victim] = server.asked[0][1]["NodeNameToVictims"]["a"]["Pods"]
    assert (victim["metadata"]["name"], victim["more"]) == ("full", {"version": 2})
    assert server.asked[0][1]["Pod"]["more"] == {"version": 3}


def test_nothing_is_kept_of_a_pod_that_has_found_its_node(server: ExtenderServer) -> None:
    watching = Watching(filtering(server))
    pod = watching.add(WAITING)
    assert len(watching.originals) == 1
    watching.update(pod, PodBuilder(pod).on("a").build())
    assert len(watching.originals) == 0
