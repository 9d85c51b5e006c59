"""Devices: which there are, which are in use, which of them would do. kube-scheduler has a library of its own for this.

DynamicResources allocates them, and NodeResourcesFit scores extended resources by how many of them are in use.
"""
