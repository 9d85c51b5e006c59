"""An object that cannot be read or handled is skipped, told of, and looked at again; all others are handled."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.daemon.metric_values import value_of
from tests.unit.daemon.test_fuzzed_objects import NoSink

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.daemon.object_handling import ObjectHandling
from kubesched.daemon.serving.endpoints import health_report, skipped_check
from kubesched.kube.decoding import Identity, UnreadableObject
from kubesched.kube.event_record import EventReference
from kubesched.kube.events import EventRecorder
from kubesched.testing import make_pod

ERRORS = "kubesched_handler_errors_total"
V1, V2, V3 = (make_pod("p").label(v=v).build() for v in ("1", "2", "3"))


class Events(EventRecorder):
    """Keeps what is recorded."""

    def __init__(self) -> None:
        super().__init__(NoSink(), "test")
        self.told: list[tuple[str, str, str]] = []

    def record(self, regarding: EventReference, *, note: str, **rest: Any) -> None:
        self.told.append((regarding.kind, f"{regarding.namespace}/{regarding.name}", note))


class Handled:
    """A handler that breaks as long as it is told to."""

    def __init__(self, may_record: Callable[[], bool] = lambda: True) -> None:
        self.breaks = True
        self.changes: list[Change[KubeObject]] = []
        self.registry, self.events = MetricsRegistry(), Events()
        self.handling = ObjectHandling(self._handle, self.registry, self.events, may_record=may_record)

    def _handle(self, change: Change[KubeObject]) -> None:
        if self.breaks and change.obj.name == "p":
            raise RuntimeError("oops")
        self.changes.append(change)


def test_error_is_told_and_other_objects_are_handled(caplog: pytest.LogCaptureFixture) -> None:
    handled, other = Handled(), make_pod("other").build()
    handled.handling(Change(new=V1))
    handled.handling(Change(new=other))
    assert handled.changes == [Change(new=other)]
    assert value_of(handled.registry, ERRORS, kind="Pod") == 1
    assert handled.events.told == [
        ("Pod", "default/p", "The scheduler skips this object until it changes: RuntimeError: oops")
    ]
    (logged,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    values = logged.__dict__["structured_values"]
    assert (values["kind"], values["name"]) == ("Pod", "default/p")
    assert logged.exc_info
    assert logged.exc_info[0] is RuntimeError


@pytest.mark.parametrize(
    ("missed", "next_change", "handled_as"),
    [
        (Change(None, V1), Change(V1, V2), Change(None, V2)),
        (Change(V1, V2), Change(V2, V3), Change(V1, V3)),
        (Change(V1, V2), Change(V2, None), Change(V1, None)),
        (Change(V1, None), Change(None, V2), Change(V1, V2)),
        (Change(None, V1), Change(V1, None), Change(V1, None)),
    ],
)
def test_next_change_goes_from_what_was_last_handled_to_what_is_now(
    missed: Change[KubeObject], next_change: Change[KubeObject], handled_as: Change[KubeObject]
) -> None:
    handled = Handled()
    handled.handling(missed)
    handled.breaks = False
    handled.handling(next_change)
    assert handled.changes == [handled_as]
    assert not handled.handling.skipped


def test_comparison_looks_at_skipped_objects_again() -> None:
    handled = Handled()
    handled.handling(Change(new=V1))
    handled.handling.look_again()
    assert handled.changes == []
    handled.breaks = False
    handled.handling.look_again()
    handled.handling.look_again()
    assert handled.changes == [Change(new=V1)]


def test_object_that_cannot_be_read_is_told_of_by_the_name_that_it_has() -> None:
    handled = Handled()
    handled.handling.unreadable(
        "Pod", UnreadableObject(Identity("ns/bad", "u", 7), ValueError("spec: expected a mapping"))
    )
    handled.handling.unreadable("Node", UnreadableObject(Identity("", "", 0), ValueError("nothing")))
    assert value_of(handled.registry, ERRORS) == 2
    ((kind, name, note),) = handled.events.told
    assert (kind, name) == ("Pod", "ns/bad")
    assert "spec: expected a mapping" in note


def test_standby_writes_no_events() -> None:
    handled = Handled(may_record=lambda: False)
    handled.handling(Change(new=V1))
    assert value_of(handled.registry, ERRORS) == 1
    assert handled.events.told == []


def test_readyz_says_how_many_objects_are_skipped_and_stays_ready() -> None:
    skipped = 0
    checks = (skipped_check(lambda: skipped),)
    assert "[+]objects-handled ok\n" in health_report("readyz", checks, verbose=True)[1]
    skipped = 2
    healthy, text = health_report("readyz", checks, verbose=True)
    assert healthy
    assert "[+]objects-handled ok: 2 objects skipped because of errors, see the log\n" in text
