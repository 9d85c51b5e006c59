"""VolumeBinding: which volumes a pod's claims can have on each node, set aside for it and written down to be bound."""

from kubesched.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
