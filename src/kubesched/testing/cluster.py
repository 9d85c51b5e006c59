"""A cluster in a line, to schedule pods on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubesched import config as configuration
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.ask.explain.explanation import Explanation, explain_pod
from kubesched.config import SchedulerConfiguration
from kubesched.framework.decision import Decision
from kubesched.framework.plugin import Plugin
from kubesched.framework.registry import Registry
from kubesched.plugins.registry import IN_TREE
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.placement import schedule
from kubesched.testing.builders import NodeBuilder, PodBuilder


class Cluster:
    """Nodes, pods and a scheduler with the default plugins and these besides."""

    def __init__(
        self,
        nodes: Iterable[Node | NodeBuilder] = (),
        pods: Iterable[Pod | PodBuilder] = (),
        *,
        objects: Iterable[KubeObject] = (),
        plugins: Iterable[type[Plugin]] = (),
        args: Mapping[str, Any] | None = None,
        config: str = "",
        seed: int = 0,
    ) -> None:
        """`args` has the args of plugins by their names. `config` is the text of a KubeSchedulerConfiguration, which
        then says alone what is enabled; `objects` is whatever else there is in the cluster."""
        added = tuple(plugins)
        known = [*objects, *map(built_node, nodes), *map(built_pod, pods)]
        settings = settings_with(added, args, config)
        self._cluster = ClusterModel(known, settings, seed=seed, plugins=Registry((*IN_TREE, *added)))
        self.state = self._cluster.state

    def schedule(self, pod: Pod | PodBuilder) -> Decision:
        """Decide on a pod: `.node` is where it goes, and where it stands from now on; else `.message` says why not.

        PreEnqueue, all of the scheduling cycle, and Reserve are run; Permit and binding are not.
        """
        return schedule(self._cluster, self._cluster.with_claims(built_pod(pod)))

    def explain(self, pod: Pod | PodBuilder) -> Explanation:
        """What `kubesched explain` says of a pod. It is not placed."""
        return explain_pod(self._cluster, self._cluster.with_claims(built_pod(pod)))


def built_pod(pod: Pod | PodBuilder) -> Pod:
    return pod.build() if isinstance(pod, PodBuilder) else pod


def built_node(node: Node | NodeBuilder) -> Node:
    return node.build() if isinstance(node, NodeBuilder) else node


def settings_with(
    plugins: Iterable[type[Plugin]], args: Mapping[str, Any] | None, config: str
) -> SchedulerConfiguration:
    """The configuration of this text; without it, the default with these plugins and their args."""
    return configuration.load(config) if config else configuration.from_plain(_enabling(plugins, args or {}))


def _enabling(plugins: Iterable[type[Plugin]], args: Mapping[str, Any]) -> dict[str, Any]:
    enabled = [{"name": plugin.name} for plugin in plugins]
    profile = {
        "plugins": {"multiPoint": {"enabled": enabled}},
        "pluginConfig": [{"name": name, "args": given} for name, given in args.items()],
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
