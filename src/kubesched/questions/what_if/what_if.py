"""Ask what if: simulate the cluster as it is, then with the changes, and tell the difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kubesched.api.meta import KubeObject
from kubesched.config import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.questions.what_if.answer import Upgraded, WhatIf
from kubesched.questions.what_if.change import Change, applied
from kubesched.questions.what_if.difference import difference
from kubesched.questions.what_if.node_changes import meant
from kubesched.questions.what_if.outcome import Outcome, outcome
from kubesched.simulate.rolling_upgrade import Pace, RollingUpgrade
from kubesched.simulate.simulation import Progress


@dataclass(frozen=True)
class Upgrade:
    """Nodes, by name or `key=value`, are replaced one after another while time passes. It comes after all changes."""

    nodes: tuple[str, ...]
    pace: Pace = field(default_factory=Pace)

    def __str__(self) -> str:
        return f"upgrade {', '.join(self.nodes)} with a surge of {self.pace.surge}"


def what_if(
    objects: Iterable[KubeObject],
    settings: SchedulerConfiguration,
    changes: Sequence[Change] = (),
    *,
    then: SchedulerConfiguration | None = None,
    upgrade: Upgrade | None = None,
    seed: int = 0,
    plugins: Registry | None = None,
    before: Outcome | None = None,
    progress: Progress | None = None,
) -> WhatIf:
    """The difference that changes make; `then` is another configuration that is in force with them.

    `before` is the outcome without changes, for who asks several questions about the same cluster. Raises ChangeError.
    """
    known = tuple(objects)
    changed = applied(known, changes)
    operation = None
    if upgrade is not None:
        operation = RollingUpgrade(sorted(meant(changed, upgrade.nodes, "--upgrade")), upgrade.pace)
    if before is None:
        before = outcome(known, settings, seed=seed, plugins=plugins, progress=progress)
    after = outcome(changed, then or settings, seed=seed, plugins=plugins, upgrade=operation, progress=progress)
    words = [*map(str, changes), *(["another configuration"] if then is not None else [])]
    if operation is None or upgrade is None:
        return difference(before, after, words, seed=seed)
    replaced, forced = tuple(operation.replaced), tuple(operation.forced)
    ended = max((each.ended for each in replaced), default=0.0)
    return difference(before, after, [*words, str(upgrade)], seed=seed, upgrade=Upgraded(ended, replaced, forced))
