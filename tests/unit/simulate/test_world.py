"""The simulated cluster as plugins see it: a client that reads and writes any object."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from kubesched.api.custom import CustomObject, read_custom
from kubesched.api.meta import ObjectMeta
from kubesched.api.workloads import Namespace
from kubesched.framework.client import ClientError
from kubesched.scheduler.run_now import run_now
from kubesched.simulate.world import World

T = TypeVar("T")

RACKS = "racks.v1.example.com"
RACK = {"apiVersion": "example.com/v1", "kind": "Rack", "metadata": {"name": "first"}, "spec": {"height": 42}}


def now(work: Callable[[], Awaitable[T]]) -> T:
    found: list[T] = []

    async def keep() -> None:
        found.append(await work())

    run_now(keep())
    return found[0]


def world() -> World:
    return World([read_custom(RACKS, RACK), Namespace(metadata=ObjectMeta(name="default"))], clock=lambda: 0.0)


def test_custom_object_is_patched_and_the_watch_shows_it() -> None:
    it = world()
    now(lambda: it.patch(RACKS, "first", {"spec": {"pods": 1, "height": None}}))
    assert now(lambda: it.get(RACKS, "first"))["spec"] == {"pods": 1}
    changes: list[object] = []
    it.deliver(changes.append)
    shown = changes[-1].new  # type: ignore[attr-defined]
    assert isinstance(shown, CustomObject)
    assert shown.content["spec"] == {"pods": 1}


def test_objects_of_kinds_that_the_scheduler_does_not_read_can_be_made_and_deleted() -> None:
    it = world()
    now(lambda: it.create("ConfigMap", {"metadata": {"name": "c", "namespace": "default"}, "data": {"a": "b"}}))
    assert now(lambda: it.get("ConfigMap", "c", "default"))["data"] == {"a": "b"}
    now(lambda: it.delete("ConfigMap", "c", namespace="default"))
    with pytest.raises(ClientError) as error:
        now(lambda: it.get("ConfigMap", "c", "default"))
    assert error.value.is_not_found


def test_replacing_what_is_not_what_was_read_is_a_conflict() -> None:
    it = world()
    with pytest.raises(ClientError) as error:
        now(lambda: it.replace("Namespace", {"metadata": {"name": "default", "resourceVersion": "7"}}))
    assert error.value.is_conflict


def test_kind_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(ClientError, match="neither a kind that Kubernetes has"):
        now(lambda: world().get("Rack", "first"))


@pytest.mark.parametrize("precondition", [{"uid": "of another one"}, {"resourceVersion": "7"}])
def test_patching_another_object_of_the_same_name_is_a_conflict(precondition: dict[str, str]) -> None:
    it = world()
    with pytest.raises(ClientError) as error:
        now(lambda: it.patch(RACKS, "first", {"metadata": precondition, "spec": {"height": 1}}))
    assert error.value.is_conflict
    assert now(lambda: it.get(RACKS, "first"))["spec"] == {"height": 42}
