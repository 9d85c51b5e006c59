"""DefaultPreemption: when nothing fits, whom to ask to leave."""

from kubesched.plugins.default_preemption.plugin import DefaultPreemption

__all__ = ["DefaultPreemption"]
