"""DynamicResources: devices for the claims of pods, found on every node and set aside on the chosen one."""

from kubesched.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
