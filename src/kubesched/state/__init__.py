"""The cluster state, which is cache and snapshot in one, as columns: a row per node, a NumPy column per fact.

One writer changes it; everything cached from it is repaired from its change log.
"""
