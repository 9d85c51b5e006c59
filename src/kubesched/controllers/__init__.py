"""The pure half of controllers: the pods, claims and volumes that a workload asks for, as functions on JSON objects.

The reconcilers of the sandbox call them when something changes; a simulation calls them once, before its clock starts.
"""
