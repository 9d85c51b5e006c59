"""Which pods two releases treat differently, and which single change between the releases does it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from kubesched.api.meta import KubeObject
from kubesched.ask.output import counted
from kubesched.ask.releases.fates import Fate, PodClass, ReleaseModel
from kubesched.ask.releases.settings import SettingChange, field_changes, gate_changes
from kubesched.ask.releases.toggles import ReleaseCause, causes_between
from kubesched.config import ConfigError, Features, SchedulerConfiguration
from kubesched.config.output import to_plain
from kubesched.framework.registry import Registry

Progress: TypeAlias = Callable[[int, int | None], None]
ConfigurationLoader: TypeAlias = Callable[[Features], SchedulerConfiguration]
"""Reads one's configuration as a release with these features does. Raises ConfigError."""


class ChangeKind(StrEnum):
    """What is different for a pod, the gravest first."""

    NO_LONGER_FITS = "no longer fits"
    FITS = "fits"
    FAILS_OTHERWISE = "fails otherwise"
    OTHER_NODE = "other node"
    OTHER_VICTIMS = "other victims"
    OTHER_MESSAGE = "other message"


@dataclass(frozen=True, slots=True)
class PodChange:
    """Equal pods that the releases treat differently."""

    pods: tuple[str, ...]
    kind: ChangeKind
    is_placed: bool
    """Whether they have a node: then the change shows when they are scheduled again."""
    before: Fate
    after: Fate


@dataclass(frozen=True, slots=True)
class ChangesByCause:
    """Pods that are treated differently for the same reason."""

    causes: tuple[ReleaseCause, ...]
    """Changes that make a difference alone; where these do not explain all of it, also changes that it needs."""
    only_together: bool
    changes: tuple[PodChange, ...]

    @property
    def title(self) -> str:
        text = "; ".join(cause.words for cause in self.causes) or "no single change could be found"
        return f"Only several changes together: {text}" if self.only_together else text[:1].upper() + text[1:]


@dataclass(frozen=True, kw_only=True)
class ReleaseComparison:
    """What an upgrade from one release to another would change."""

    before: str
    """The release: `1.36`."""
    after: str
    refused: tuple[str, ...] = ()
    """What a release refuses to start with. Where that is the configuration, no pod is decided upon."""
    pending: int = 0
    placed: int = 0
    decided: int = 0
    """How many of these pods were decided upon under each release: equal pods on one node are decided upon once."""
    groups: tuple[ChangesByCause, ...] = ()
    fields: tuple[SettingChange, ...] = ()
    gates: tuple[SettingChange, ...] = ()

    @property
    def summary(self) -> str:
        changed = sum(len(change.pods) for group in self.groups for change in group.changes)
        difference = f"something changes for {changed}" if changed else "no pod is treated otherwise"
        return f"{counted(self.pending, 'pending pod')}, {self.placed} placed: {difference}."

    @property
    def method(self) -> str:
        return (
            "Each pod is decided upon alone under both releases, a placed one as if it had no node; equal pods "
            f"on one node once, so {self.decided} in all. Which of equally good nodes is drawn makes no difference."
        )


def compare_releases(
    objects: Iterable[KubeObject],
    load: ConfigurationLoader,
    before: Features,
    after: Features,
    *,
    gates: Iterable[str] = (),
    refused: Iterable[str] = (),
    plugins: Registry | None = None,
    progress: Progress | None = None,
) -> ReleaseComparison:
    """Decide upon every pod under both releases. `gates` are those that are set, `refused` what is wrong with them."""
    settings, wrong = list[SchedulerConfiguration](), list(refused)
    for features in (before, after):
        try:
            settings.append(load(features))
        except ConfigError as error:
            wrong += [f"{features.release.name}: {line}" for line in error.lines]
    classes, groups = tuple[PodClass, ...](), tuple[ChangesByCause, ...]()
    if len(settings) == 2:
        search = _CauseSearch(tuple(objects), load, before, after, plugins, progress or (lambda done, total: None))
        classes, changed = search.changed()
        groups = search.by_cause(changed, causes_between(before, after)) if changed else ()
    return ReleaseComparison(
        before=before.release.name,
        after=after.release.name,
        refused=tuple(wrong),
        pending=sum(len(pod_class.pods) for pod_class in classes if not pod_class.is_placed),
        placed=sum(len(pod_class.pods) for pod_class in classes if pod_class.is_placed),
        decided=len(classes),
        groups=groups,
        fields=tuple(field_changes(to_plain(settings[0]), to_plain(settings[1]))) if len(settings) == 2 else (),
        gates=tuple(gate_changes(before.release, after.release, gates)),
    )


@dataclass
class _AffectedPods:
    """A class of pods that the releases treat differently, and what was found to cause it."""

    pods: PodClass
    before: Fate
    after: Fate
    causes: list[ReleaseCause] = field(default_factory=list)
    only_together: bool = False

    @property
    def kind(self) -> ChangeKind:
        if self.before.outcome != self.after.outcome:
            fits = ChangeKind.FITS if self.after.nodes else ChangeKind.FAILS_OTHERWISE
            return ChangeKind.NO_LONGER_FITS if self.before.nodes else fits
        if self.before.nodes != self.after.nodes:
            return ChangeKind.OTHER_NODE
        is_same = (self.before.evicting_on, self.before.victims) == (self.after.evicting_on, self.after.victims)
        return ChangeKind.OTHER_MESSAGE if is_same else ChangeKind.OTHER_VICTIMS

    def is_other(self, model: ReleaseModel, than: Fate) -> bool:
        """Whether the fate differs in what is different for these pods: of a pod that fits, words do not matter."""
        return self._aspect(model.fate_of(self.pods)) != self._aspect(than)

    def _aspect(self, fate: Fate) -> Hashable:
        match self.kind:
            case ChangeKind.OTHER_NODE:
                return fate.nodes
            case ChangeKind.OTHER_VICTIMS:
                return fate.outcome, fate.evicting_on, fate.victims
            case ChangeKind.OTHER_MESSAGE:
                return fate.message
        return fate.outcome

    def change(self) -> PodChange:
        before, after = self.before.telling(self.after), self.after.telling(self.before)
        return PodChange(self.pods.pods, self.kind, self.pods.is_placed, before, after)


@dataclass(frozen=True)
class _CauseSearch:
    """Makes models of the cluster under releases that never were: one with some of the changes of the other."""

    objects: tuple[KubeObject, ...]
    load: ConfigurationLoader
    before: Features
    after: Features
    plugins: Registry | None
    progress: Progress

    def changed(self) -> tuple[tuple[PodClass, ...], list[_AffectedPods]]:
        """All classes of pods, and those that the releases treat differently."""
        old, new, changed = self._model(self.before), self._model(self.after), list[_AffectedPods]()
        classes = old.classes()
        for i, pods in enumerate(classes, 1):
            before, after = old.fate_of(pods), new.fate_of(pods)
            if before != after:
                changed.append(_AffectedPods(pods, before, after))
            self.progress(i, len(classes))
        return classes, changed

    def by_cause(self, changed: list[_AffectedPods], causes: Sequence[ReleaseCause]) -> tuple[ChangesByCause, ...]:
        """First what each change does to the older release by itself, then what the newer one does without it."""
        self._search(causes, changed)
        for together in {tuple(pods.causes) for pods in changed}:
            model = self._with(together)
            for pods in changed:
                if tuple(pods.causes) == together:
                    pods.only_together = pods.is_other(model, pods.after)
        rest = [pods for pods in changed if pods.only_together]
        for cause in causes if rest else ():
            model = self._model(cause.made(self.after, self.before))
            for pods in rest:
                if cause not in pods.causes and pods.is_other(model, pods.after):
                    pods.causes.append(cause)
        groups = _group_by_cause(changed)
        return tuple(sorted(groups, key=lambda group: -sum(len(change.pods) for change in group.changes)))

    def _search(self, causes: Sequence[ReleaseCause], changed: list[_AffectedPods]) -> None:
        """Note for each class the changes that make a difference by themselves. Halves that make none are not looked
        into: a model of a large cluster takes seconds to make."""
        middle = len(causes) // 2
        for half in filter(None, (causes[:middle], causes[middle:])):
            model = self._with(half)
            touched = [pods for pods in changed if pods.is_other(model, pods.before)]
            if len(half) > 1 and touched:
                self._search(half, touched)
            for pods in touched if len(half) == 1 else ():
                pods.causes.append(half[0])

    def _with(self, causes: Iterable[ReleaseCause]) -> ReleaseModel:
        features = self.before
        for cause in causes:
            features = cause.made(features, self.after)
        return self._model(features)

    def _model(self, features: Features) -> ReleaseModel:
        self.progress(0, None)  # whoever watches may stop here: the model of a large cluster takes seconds
        return ReleaseModel(self.objects, self.load(features), self.plugins)


def _group_by_cause(changed: Iterable[_AffectedPods]) -> Iterator[ChangesByCause]:
    groups: dict[tuple[tuple[ReleaseCause, ...], bool], list[PodChange]] = {}
    for pods in changed:
        groups.setdefault((tuple(pods.causes), pods.only_together), []).append(pods.change())
    kinds = list(ChangeKind)
    for (causes, only_together), changes in groups.items():
        changes.sort(key=lambda change: (change.is_placed, kinds.index(change.kind)))
        yield ChangesByCause(causes, only_together, tuple(changes))
