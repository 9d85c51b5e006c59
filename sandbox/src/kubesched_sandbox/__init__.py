"""A cluster in a box: an API server, hollow nodes and small workload controllers in one process.

A real kubectl and any client library can talk to it; the scheduler inside is the one that runs on live clusters.
"""
