"""NodeResourcesFit and NodeResourcesBalancedAllocation: does it fit, and how full or how even would the node be?"""

from kubesched.plugins.node_resources.balanced import NodeResourcesBalancedAllocation
from kubesched.plugins.node_resources.fit import NodeResourcesFit

__all__ = ["NodeResourcesBalancedAllocation", "NodeResourcesFit"]
