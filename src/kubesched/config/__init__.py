"""KubeSchedulerConfiguration: schema, defaults, validation, and the legacy Policy file.

Reads what kube-scheduler reads, and refuses what it refuses, naming every mistake at once.
"""
