"""The scheduler inside a sandbox as a source, with the story that plays there."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.config import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.sandbox.box import Sandbox
from kubesched.ui.model.observed import Observed
from kubesched.ui.sources.scheduler import observe_scheduler


def observe_sandbox(
    box: Sandbox,
    configuration: SchedulerConfiguration,
    *,
    clock: Callable[[], float],
    plugins: Registry | None = None,
    saying: Callable[[], str] = lambda: "",
) -> Observed:
    """The cluster of a sandbox that has started. `clock` is that of its event loop."""
    title = f"sandbox at {box.server.url}"
    return observe_scheduler(
        box.scheduler, configuration, kind="sandbox", title=title, clock=clock, plugins=plugins, saying=saying
    )
