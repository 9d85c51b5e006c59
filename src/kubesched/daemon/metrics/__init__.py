"""Prometheus metrics with kube-scheduler's names, labels and buckets: what is told by observers, and what is counted
when somebody asks."""
