"""KubeSchedulerConfiguration: schema, defaults, validation, and the legacy Policy file.

Reads what kube-scheduler reads, and refuses what it refuses, naming every mistake at once.
"""

from kubesched.api.duration import Duration
from kubesched.config.configuration import (
    ExtenderConfig,
    PluginEntry,
    Plugins,
    PluginSet,
    ProfileConfig,
    SchedulerConfiguration,
)
from kubesched.config.features import Features
from kubesched.config.mistakes import ConfigError, InvalidConfigError, UnreadableConfigError
from kubesched.config.output import to_json, to_plain, to_yaml, without_secrets
from kubesched.config.reading import default, from_plain, load, read_again

__all__ = [
    "ConfigError",
    "Duration",
    "ExtenderConfig",
    "Features",
    "InvalidConfigError",
    "PluginEntry",
    "PluginSet",
    "Plugins",
    "ProfileConfig",
    "SchedulerConfiguration",
    "UnreadableConfigError",
    "default",
    "from_plain",
    "load",
    "read_again",
    "to_json",
    "to_plain",
    "to_yaml",
    "without_secrets",
]
