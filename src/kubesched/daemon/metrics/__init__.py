"""Prometheus metrics with kube-scheduler's names, labels and buckets, set by observers or counted at each scrape."""
