"""kubesched: the Kubernetes scheduler, in Python.

Same decisions as kube-scheduler v1.36, on a columnar engine that looks at every node.
"""

__version__ = "0.1.0"
