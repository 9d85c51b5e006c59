"""The cluster state, which is cache and snapshot in one, as columns: a row per node, a NumPy column per fact.

One writer changes it; caches of answers are repaired from its change logs.
"""
