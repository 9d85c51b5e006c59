"""What would an upgrade change, asked about a cluster that a service looks after, or about a model of one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from kubesched.api.meta import KubeObject
from kubesched.api.release import NEWEST, RELEASES, Release
from kubesched.ask.releases.comparison import Progress, ReleaseComparison, compare_releases
from kubesched.ask.releases.settings import usable_gates
from kubesched.ask.service import CheckTime, QueryService
from kubesched.ask.sources.following import ClusterAge
from kubesched.ask.targets import QuestionRequest, RequestError
from kubesched.config import Features, SchedulerConfiguration, read_again
from kubesched.framework.registry import Registry

_KNOWN = Meta(description=f"A release of Kubernetes: {' or '.join(RELEASES)}.")


class ReleaseQuestion(QuestionRequest, frozen=True):
    """What will change for the pods with another release of Kubernetes, and which change of Kubernetes does it?"""

    before: Annotated[str, _KNOWN] = ""
    """Empty for the release that the cluster is looked at with, or the one before it if that is the newest."""
    after: Annotated[str, _KNOWN] = NEWEST.name

    def releases(self, followed: Release) -> tuple[Release, Release]:
        """The two releases to compare. Raises RequestError."""
        all_releases = list(RELEASES.values())
        older = followed if followed.name != self.after else all_releases[max(all_releases.index(followed) - 1, 0)]
        names = {"before": self.before or older.name, "after": self.after}
        expected = " or ".join(map(repr, RELEASES))
        wrong = [f"{path}: expected {expected}, got {name!r}" for path, name in names.items() if name not in RELEASES]
        if not wrong and names["before"] == names["after"]:
            wrong = [f"after: expected another release than before, which is {self.after}"]
        if wrong:
            raise RequestError(*wrong)
        return RELEASES[names["before"]], RELEASES[names["after"]]


async def compare_now(question: ReleaseQuestion, service: QueryService) -> tuple[ReleaseComparison, ClusterAge | None]:
    """What changes for the cluster of this moment, and how old the view of it is.

    NotReadyError, RequestError, BusyError, QuestionTimeoutError, PluginError.
    """
    settings, plugins = service.cluster.configuration, service.cluster.plugins
    before, after = question.releases(settings.features.release)

    def answer(
        prepared: tuple[tuple[KubeObject, ...], ClusterAge | None], check_time: CheckTime
    ) -> tuple[ReleaseComparison, ClusterAge | None]:
        objects, age = prepared
        check_time()
        return compare_settings(objects, settings, before, after, plugins=plugins, progress=check_time), age

    return await service.run(lambda: (service.all_objects(), service.age()), answer)


def compare_settings(
    objects: Iterable[KubeObject],
    settings: SchedulerConfiguration,
    before: Release,
    after: Release,
    *,
    plugins: Registry | None = None,
    progress: Progress | None = None,
) -> ReleaseComparison:
    """The comparison with a configuration as each release reads it, and with its gates as far as each has them."""
    gates, features, refused = settings.features.changed, list[Features](), list[str]()
    for release in (before, after):
        usable, wrong = usable_gates(gates, release)
        features.append(Features.of(usable, release))
        refused += wrong
    return compare_releases(
        objects,
        lambda features: read_again(settings, features),
        *features,
        gates=gates,
        refused=refused,
        plugins=plugins,
        progress=progress,
    )
