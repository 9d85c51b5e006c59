"""Objects from bytes: only what is needed, as leniently as Go reads them; and what a reflector asks a real server."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.builders import Json
from tests.unit.kube.memory_server import bookmark, line
from tests.unit.kube.scripted_server import answering, chunked, serving, talking_to

from kubesched.api.change import Change
from kubesched.api.kinds import KINDS, PODS
from kubesched.api.pod import Pod
from kubesched.kube.decoding import DictCodec, ListPage, RecordCodec, WithOriginalCodec
from kubesched.kube.errors import UnreadableAnswerError
from kubesched.kube.listing import UNFINISHED, ApiSource
from kubesched.kube.reflector import Reflector
from kubesched.kube.timing import Timing

POD: Json = {
    "metadata": {
        "name": "p",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "7",
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:metadata": {}}}],
    },
    "spec": {"nodeName": "n", "containers": [{"name": "c"}], "somethingNew": {"deep": [1, 2]}},
}


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def test_record_has_the_fields_it_knows() -> None:
    codec = RecordCodec(Pod)
    pod = codec.decode(encoded(POD))
    assert (pod.key, pod.spec.node_name, pod.spec.containers[0].name) == ("ns/p", "n", "c")
    assert codec.identity(pod) == ("ns/p", "u", 7)


def test_line_about_an_object_is_read_in_one_go() -> None:
    event = RecordCodec(Pod).event(encoded({"type": "MODIFIED", "object": POD}))
    assert event is not None
    assert (event.type, event.object) == ("MODIFIED", RecordCodec(Pod).decode(encoded(POD)))


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "9"}}},
        {"type": "ERROR", "object": {"kind": "Status", "code": 410}},
        {"type": "ADDED", "object": {"metadata": {"name": None}}},
    ],
)
def test_any_other_line_is_left_to_be_read_step_by_step(odd: Json) -> None:
    assert RecordCodec(Pod).event(encoded(odd)) is None


def test_null_is_absent_and_unknown_words_are_kept() -> None:
    spec = {"containers": None, "tolerations": [{"operator": "Nearly"}], "nodeSelector": None}
    body = encoded({"metadata": {"name": "p", "labels": None}, "spec": spec})
    pod = RecordCodec(Pod).decode(body)
    assert pod.spec.containers == ()
    assert pod.metadata.labels == {}
    assert pod.spec.tolerations[0].operator == "Nearly"  # type: ignore[comparison-overlap]


def test_one_odd_object_does_not_spoil_a_list() -> None:
    odd = {"metadata": {"name": "odd", "annotations": None}}
    page = RecordCodec(Pod).page(
        encoded({"metadata": {"resourceVersion": "9", "continue": "more"}, "items": [POD, odd]})
    )
    assert [pod.name for pod in page.objects] == ["p", "odd"]
    assert (page.resource_version, page.more) == ("9", "more")


@pytest.mark.parametrize("items", [None, []])
def test_empty_lists_are_lists(items: list[Json] | None) -> None:
    body = encoded({"metadata": {"resourceVersion": "9"}, "items": items})
    assert RecordCodec(Pod).page(body) == ListPage([], "9", "")
    assert DictCodec().page(body) == ListPage([], "9", "", [])


def test_object_of_another_shape_is_refused_in_words() -> None:
    with pytest.raises(UnreadableAnswerError, match=r"a Pod cannot be read: spec\.containers: expected a list"):
        RecordCodec(Pod).decode(b'{"spec": {"containers": 5}}')
    with pytest.raises(UnreadableAnswerError, match="a list cannot be read"):
        RecordCodec(Pod).page(b"<html>")


def test_originals_have_everything_but_managed_fields() -> None:
    codec = WithOriginalCodec(Pod, "v1", wants=lambda pod: True)
    sent = codec.decode(encoded(POD))
    assert sent.record == RecordCodec(Pod).decode(encoded(POD))
    assert sent.original is not None
    meta = {name: value for name, value in POD["metadata"].items() if name != "managedFields"}
    assert json.loads(sent.original) == {**POD, "metadata": meta, "apiVersion": "v1", "kind": "Pod"}
    assert codec.identity(sent) == ("ns/p", "u", 7)


def test_originals_are_kept_only_of_what_is_wanted() -> None:
    codec = WithOriginalCodec(Pod, "v1", wants=lambda pod: pod.name == "q")
    other = {**POD, "metadata": {"name": "q"}}
    page = codec.page(encoded({"metadata": {"resourceVersion": "9", "continue": "more"}, "items": [POD, other]}))
    assert [(sent.record.name, sent.original is not None) for sent in page.objects] == [("p", False), ("q", True)]
    assert (page.resource_version, page.more) == ("9", "more")


def test_dictionaries_have_everything_but_managed_fields() -> None:
    codec = DictCodec()
    obj = codec.decode(encoded(POD))
    assert obj["spec"] == POD["spec"]
    assert "managedFields" not in obj["metadata"]
    assert codec.identity(obj) == ("ns/p", "u", 7)


def test_dictionaries_of_a_list_say_what_they_are() -> None:
    page = DictCodec().page(encoded({"kind": "FooList", "apiVersion": "x/v1", "items": [POD]}))
    assert (page.objects[0]["kind"], page.objects[0]["apiVersion"]) == ("Foo", "x/v1")


def test_every_resource_has_its_path() -> None:
    assert PODS.path_of(namespace="a", name="b", subresource="binding") == "/api/v1/namespaces/a/pods/b/binding"
    assert KINDS["CSINode"].resource.path_of(name="n") == "/apis/storage.k8s.io/v1/csinodes/n"


class Names:
    """A handler that keeps the names."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def handle(self, change: Change[Pod]) -> None:
        mark = {"added": "", "updated": "~", "deleted": "-"}[change.verb]
        self.names.append(f"{mark}{change.obj.name}")


async def no_pause(seconds: float) -> None:
    await asyncio.sleep(0)


def test_reflector_follows_a_resource_over_http() -> None:
    async def main() -> None:
        changed = {**POD, "metadata": {**POD["metadata"], "resourceVersion": "9"}}
        first = chunked(
            line("ADDED", POD) + b"\n" + bookmark(8, ends_list=True) + b"\n", line("MODIFIED", changed) + b"\n"
        )
        async with serving(first, answering(500)) as server, talking_to(server) as client:
            handler = Names()
            source = ApiSource(client, PODS, field_selector=UNFINISHED)
            reflector = Reflector("pods", source, RecordCodec(Pod), handler.handle, timing=Timing(sleep=no_pause))
            task = asyncio.create_task(reflector.run())
            await reflector.wait_synced()
            while len(server.requests) < 2:
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert handler.names == ["p", "~p"]
            streamed, resumed, *_ = server.paths
            assert streamed.startswith(
                "/api/v1/pods?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed&watch=true"
                "&allowWatchBookmarks=true&timeoutSeconds="
            )
            assert streamed.endswith("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
            assert "&resourceVersion=9&" in resumed

    asyncio.run(main())


def test_lists_over_http_are_paged() -> None:
    async def main() -> None:
        pages = [
            answering(422),
            answering(200, encoded({"metadata": {"resourceVersion": "5", "continue": "a=b"}, "items": [POD]})),
            answering(200, encoded({"metadata": {"resourceVersion": "5"}, "items": []})),
            chunked(),
        ]
        async with serving(*pages) as server, talking_to(server) as client:
            reflector = Reflector("pods", ApiSource(client, PODS, namespace="ns"), RecordCodec(Pod), Names().handle)
            task = asyncio.create_task(reflector.run())
            await reflector.wait_synced()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert server.paths[1:3] == [
                "/api/v1/namespaces/ns/pods?limit=500&resourceVersion=0",
                "/api/v1/namespaces/ns/pods?limit=500&continue=a%3Db",
            ]

    asyncio.run(main())
