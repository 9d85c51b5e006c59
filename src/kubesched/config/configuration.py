"""KubeSchedulerConfiguration as records: as written in a file, and complete with all defaults.

Fields carry the defaults that do not depend on other fields; `defaults` fills in the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from kubesched.api.duration import Duration
from kubesched.api.meta import Int32, Record
from kubesched.config.features import Features


class ExtenderTLSConfig(Record, frozen=True):
    """The authorities and the client certificate for an extender. Data goes before files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ExtenderManagedResource(Record, frozen=True):
    """A resource the extender accounts for, perhaps instead of the scheduler."""

    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderConfig(Record, frozen=True):
    """The address of an extender, and its verbs: the scheduler calls none that is empty."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = Duration(0)
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER_NAME = "default-scheduler"


class PluginEntry(Record, frozen=True):
    """A plugin by name. Weight counts where plugins score; 0 leaves it to the framework."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(Record, frozen=True):
    """The plugins that an extension point runs besides its defaults, in order, and the defaults that it does not."""

    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()

    @property
    def disabled_names(self) -> frozenset[str]:
        """Names of the plugins that are off; `*` stands for all."""
        return frozenset(plugin.name for plugin in self.disabled)


class Plugins(Record, frozen=True):
    """A plugin set per extension point. `multi_point` enables a plugin at every extension point that it implements."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    pod_group_post_filter: PluginSet = PluginSet()

    def sets(self) -> Iterator[tuple[str, PluginSet]]:
        """Every extension point (named as its field here) with its plugins."""
        for point in self.__struct_fields__:
            yield point, getattr(self, point)

    def enabled_names(self) -> set[str]:
        return {plugin.name for _, plugins in self.sets() for plugin in plugins.enabled}


def point_as_written(point: str) -> str:
    """The name of an extension point in a file: `preFilter` for `pre_filter`."""
    return Plugins.__struct_encode_fields__[Plugins.__struct_fields__.index(point)]


class PluginConfig(Record, frozen=True):
    """The arguments of one plugin: a record for in-tree plugins, plain values for others."""

    name: str = ""
    args: Any = None


class LeaderElection(Record, frozen=True):
    """How replicas agree on who schedules."""

    leader_elect: bool = True
    lease_duration: Duration = Duration(15)
    renew_deadline: Duration = Duration(10)
    retry_period: Duration = Duration(2)
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(Record, frozen=True):
    """How to talk to the API server."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: Annotated[float, msgspec.Meta(ge=-3.4028235677973366e38, le=3.4028235677973366e38)] = 50.0  # a float32
    burst: Int32 = 100


class WrittenProfile(Record, frozen=True):
    """A profile as a file has it."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class ProfileConfig(Record, frozen=True):
    """One scheduler by name: which plugins it runs where, and their arguments by plugin name.

    `plugins` is merged with the default plugins, but `multi_point` is not yet expanded into extension points.
    """

    scheduler_name: str
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: dict[str, Any] = {}


class SharedSettings(Record, frozen=True):
    """The settings that all profiles share."""

    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    extenders: tuple[ExtenderConfig, ...] = ()
    delay_cache_until_active: bool = False


class WrittenConfiguration(SharedSettings, frozen=True):
    """The configuration as a file has it."""

    enable_contention_profiling: bool | None = None
    profiles: tuple[WrittenProfile, ...] = ()


@dataclass(frozen=True)
class WrittenValues:
    """The plain values of a file. All compare equal, so that configurations are equal if their settings are."""

    plain: Any = field(default=None, compare=False)


class SchedulerConfiguration(SharedSettings, frozen=True):
    """The configuration, complete and valid."""

    enable_contention_profiling: bool = True
    profiles: tuple[ProfileConfig, ...] = ()
    features: Features = Features()
    """The feature gates under which it was read. They are in no file, but hold for all that is built from it."""
    written: WrittenValues = WrittenValues()
    """The values that it was read from, which another release may read otherwise."""
