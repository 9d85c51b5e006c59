"""Observed clusters for tests of the page: one that stands still, and a scheduler at work in virtual time."""

from __future__ import annotations

from tests.unit.scheduler.world import World

from kubesched import config
from kubesched.api.meta import KubeObject
from kubesched.ask.service import QueryService
from kubesched.config.features import DEFAULT_FEATURES, Features
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import NodeBuilder, PodBuilder
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.sources import observe_manifests, observe_scheduler
from kubesched.ui.views import PageViews


def still(*objects: PodBuilder | NodeBuilder | KubeObject) -> PageViews:
    """The page of manifests with these objects."""
    built = [obj if isinstance(obj, KubeObject) else obj.build() for obj in objects]
    return PageViews(observe_manifests(ClusterModel(built, config.default()), "cluster.yaml"))


def alive(
    *objects: PodBuilder | NodeBuilder | KubeObject, features: Features = DEFAULT_FEATURES
) -> tuple[World, PageViews]:
    """A scheduler that has heard of these objects and tried no pod yet, and its page."""
    world = World(*objects, features=features)
    return world, PageViews(observed(world))


def service_of(views: PageViews) -> QueryService:
    assert views.service is not None
    return views.service


def observed(world: World) -> ObservedCluster:
    clock = lambda: world.now  # noqa: E731
    return observe_scheduler(world.scheduler, config.default(), kind="test", title="a test", clock=clock)
