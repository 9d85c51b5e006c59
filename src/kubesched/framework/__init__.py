"""Extension points, statuses, profiles, the registry, and the decision for one pod.

Knows how plugins are asked and how their answers are merged; knows no plugin by name.
"""
