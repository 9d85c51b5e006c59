"""PodTopologySpread: pods of a kind lie evenly over zones, hosts or any other domains."""

from kubesched.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
