"""The in-tree plugins of kube-scheduler, a file (or a small package) each."""
