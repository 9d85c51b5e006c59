"""The in-tree plugins of kube-scheduler v1.36, a file (or a small package) each."""
