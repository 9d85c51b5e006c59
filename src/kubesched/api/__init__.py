"""Kubernetes objects as typed records, and the small languages inside them.

Quantities, selectors, tolerations and pod requests live here. Nothing in this package knows about scheduling.
"""
