"""Ask what if: simulate the cluster as it is, then with the edits, and tell the difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kubesched.api.errors import UserError
from kubesched.api.meta import KubeObject
from kubesched.ask.edits import (
    MOST_WEIGHT,
    Edit,
    EditError,
    EditMistake,
    RescheduleAll,
    SetWeight,
    UpgradeNodes,
    UseConfiguration,
)
from kubesched.ask.hypothetical import ObjectSet, apply_hypothetical, node_names
from kubesched.ask.what_if.answer import Upgraded, WhatIfAnswer
from kubesched.ask.what_if.difference import difference
from kubesched.ask.what_if.outcome import ClusterOutcome, outcome
from kubesched.config import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.scheduler.run_now import StillWaitingError
from kubesched.simulate.rolling_upgrade import RollingUpgrade
from kubesched.simulate.simulation import Progress

Baselines = dict[bool, ClusterOutcome]
"""Outcomes without edits of one cluster, as it is and with all pods rescheduled: for several questions about it."""


class WhatIfOutcome(NamedTuple):
    """Both ends of the cluster, and the difference between them."""

    before: ClusterOutcome
    after: ClusterOutcome
    difference: WhatIfAnswer


def what_if(
    objects: Iterable[KubeObject],
    configuration: SchedulerConfiguration,
    edits: Sequence[Edit],
    *,
    seed: int = 0,
    plugins: Registry | None = None,
    baselines: Baselines | None = None,
    progress: Progress | None = None,
) -> WhatIfOutcome:
    """The difference that edits make. RescheduleAll counts for both sides, so it makes none by itself.

    Raises EditError, and UserError where a simulation does not come to an end.
    """
    known, baselines = tuple(objects), {} if baselines is None else baselines
    reschedules = [edit for edit in edits if isinstance(edit, RescheduleAll)]
    edits = [edit for edit in edits if not isinstance(edit, RescheduleAll)]
    known = apply_hypothetical(known, reschedules)
    changed = apply_hypothetical(known, edits)
    then = configuration_with(configuration, edits)
    upgrades = [edit for edit in edits if isinstance(edit, UpgradeNodes)]
    operation = None
    if upgrades:
        nodes = {name for edit in upgrades for name in node_names(edit, ObjectSet(changed))}
        operation = RollingUpgrade(sorted(nodes), upgrades[0].pace)
    try:
        before = baselines.get(bool(reschedules))
        if before is None:
            before = outcome(known, configuration, seed=seed, plugins=plugins, progress=progress)
            baselines[bool(reschedules)] = before
        after = outcome(changed, then, seed=seed, plugins=plugins, upgrade=operation, progress=progress)
    except StillWaitingError as error:
        raise UserError(str(error)) from error
    upgraded = _upgraded(operation) if operation is not None else None
    return WhatIfOutcome(before, after, difference(before, after, [*map(str, edits)], seed=seed, upgrade=upgraded))


def _upgraded(operation: RollingUpgrade) -> Upgraded:
    replaced = tuple(operation.replaced)
    return Upgraded(max((each.ended for each in replaced), default=0.0), replaced, tuple(operation.forced))


def configuration_with(configuration: SchedulerConfiguration, edits: Iterable[Edit]) -> SchedulerConfiguration:
    """The configuration that is in force with the edits. EditError if a weight cannot be."""
    mistakes: list[EditMistake] = []
    for edit in edits:
        if isinstance(edit, UseConfiguration):
            configuration = edit.configuration
        elif isinstance(edit, SetWeight):
            if 1 <= edit.weight <= MOST_WEIGHT:
                configuration = _reweighted(configuration, edit)
            else:
                problem = f"expected a number from 1 to {MOST_WEIGHT}, got {edit.weight}"
                mistakes.append(EditMistake(edit, "", edit.plugin, problem))
    if mistakes:
        raise EditError(mistakes=mistakes)
    return configuration


def _reweighted(configuration: SchedulerConfiguration, edit: SetWeight) -> SchedulerConfiguration:
    profiles = []
    for profile in configuration.profiles:
        points = {}
        for point in ("score", "multi_point"):
            known = getattr(profile.plugins, point)
            enabled = (
                replace(plugin, weight=edit.weight) if plugin.name == edit.plugin else plugin
                for plugin in known.enabled
            )
            points[point] = replace(known, enabled=tuple(enabled))
        profiles.append(replace(profile, plugins=replace(profile.plugins, **points)))
    return replace(configuration, profiles=tuple(profiles))
